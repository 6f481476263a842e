//! The reference library, run through Python.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Python that has the library: `TERSECADES_PYTHON`, `.venv`, or the one of the system.
pub(crate) fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("TERSECADES_PYTHON").map(PathBuf::from);
    let known = [root.join(".venv/bin/python"), PathBuf::from("python3")];
    given.into_iter().chain(known).find(|python| {
        let mut import = Command::new(python);
        import
            .args(["-c", "import zfpy"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        import.status().is_ok_and(|status| status.success())
    })
}

/// The library's lines for lines of arrays.
pub(crate) fn compress(python: &Path, lines: &str) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zfp/reference.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg("compress")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = lines.to_owned();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = String::from_utf8(output.stdout).unwrap();
    output.lines().map(str::to_owned).collect()
}
