//! DuckDB, run once in Python on a list of statements.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::answer::Rows;

/// A Python that has DuckDB: `TERSECADES_PYTHON`, `.venv`, or the one of the system.
static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let given = std::env::var_os("TERSECADES_PYTHON").map(PathBuf::from);
    let known = [root.join(".venv/bin/python"), PathBuf::from("python3")];
    given.into_iter().chain(known).find(|python| {
        let mut import = Command::new(python);
        import.args(["-c", "import duckdb"]);
        import.stdout(Stdio::null()).stderr(Stdio::null());
        import.status().is_ok_and(|status| status.success())
    })
});

/// A statement that drops every table.
pub(crate) const RESET: &str = "%reset";

/// DuckDB's rows, or its error, for each statement; `None`, said on the terminal, without DuckDB.
pub(crate) fn answers(statements: &[String]) -> Option<Vec<Result<Rows, String>>> {
    let Some(python) = &*PYTHON else {
        eprintln!("*** SKIPPED: no Python with DuckDB, SQL answers are not compared (make venv)");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("input"), folder.path().join("output"));
    let text: String = statements
        .iter()
        .map(|statement| format!("%%\n{statement}\n"))
        .collect();
    std::fs::write(&input, text).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/duckdb_sql.py");
    let run = Command::new(python)
        .arg(script)
        .arg(&input)
        .arg(&output)
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let text = std::fs::read_to_string(&output).unwrap();
    let found: Vec<_> = text.split("%% ").skip(1).map(answer).collect();
    assert_eq!(found.len(), statements.len());
    Some(found)
}

fn answer(text: &str) -> Result<Rows, String> {
    let mut lines = text.lines();
    match lines.next() {
        Some("ok") => Ok(lines
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect()),
        _ => Err(lines.collect::<Vec<_>>().join(" ")),
    }
}
