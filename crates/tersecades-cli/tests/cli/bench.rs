//! `bench` is a program of its own, which may be there or not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TERSECADES: &str = env!("CARGO_BIN_EXE_tersecades");

/// A folder with the command line in it and nothing else.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    // The folder lies beside the program, so a link does.
    fs::hard_link(TERSECADES, folder.join("tersecades")).unwrap();
    folder
}

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(folder.join("tersecades"))
        .arg("bench")
        .args(arguments)
        .env("PATH", "")
        .output()
        .unwrap()
}

#[test]
fn without_its_program_it_says_how_to_build_it() {
    let output = bench(&folder("no_bench"), &["limits"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cargo build --release -p tersecades-bench"),
        "{said}"
    );
}

#[test]
fn arguments_and_exit_code_are_those_of_the_program_beside_it() {
    let folder = folder("some_bench");
    let program = folder.join("tersecades-bench");
    fs::write(&program, "#!/bin/sh\necho \"$*\"\nexit 7\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = bench(&folder, &["limits", "--rows", "9", "-o", "lines.jsonl"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"limits --rows 9 -o lines.jsonl\n");
    assert_eq!(bench(&folder, &[]).stdout, b"--help\n");
}
