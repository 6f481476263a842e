//! `tersecades shell` with its input from a pipe.

#![cfg(feature = "shell")]
#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

fn shell(input: &str) -> Output {
    let mut shell = Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .arg("shell")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    shell
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    shell.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn statements_span_lines_and_tables_stay() {
    let answer = shell(
        ".mode csv\nCREATE TABLE t AS SELECT 1 AS a\n  UNION ALL SELECT 2; -- two rows\n\
         SELECT sum(a) AS total,\n ';' AS s FROM t;\nSELECT 7 AS last",
    );
    assert!(answer.status.success(), "{}", text(&answer.stderr));
    assert_eq!(text(&answer.stdout), "total,s\n3,;\nlast\n7\n");
    assert!(text(&answer.stderr).contains("table t: 2 rows"));
}

#[test]
fn commands_show_what_there_is() {
    let answer =
        shell("CREATE TABLE t AS SELECT 1 AS a;\n.tables\n.schema t\n.help\n.quit\nSELECT");
    assert!(answer.status.success(), "{}", text(&answer.stderr));
    let said = text(&answer.stdout);
    assert!(said.contains("table_name") && said.contains("Int64") && said.contains(".timer"));
}

#[test]
fn a_script_ends_at_the_first_error() {
    let answer = shell("SELECT nothing;\nSELECT 1;\n");
    assert_eq!(answer.status.code(), Some(1));
    assert!(answer.stdout.is_empty());
    assert!(text(&answer.stderr).contains("line 1, column 8"));
    let command = shell(".tabels\n");
    assert_eq!(command.status.code(), Some(1));
    assert!(text(&command.stderr).contains("did you mean `.tables`?"));
    assert_eq!(shell(".timer maybe\n").status.code(), Some(1));
}

/// A statement that takes minutes: every pair of many rows.
const LONG: &str = "SELECT count(*) FROM t a JOIN t b ON a.n <> b.n JOIN t c ON b.n <> c.n;\n";

/// The rows that it reads.
fn many_rows(folder: &std::path::Path) -> String {
    let path = folder.join("t.csv");
    let rows: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    std::fs::write(&path, format!("n\n{rows}")).unwrap();
    format!("t={}", path.display())
}

#[test]
#[cfg(unix)]
fn control_c_stops_the_statement_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .args(["shell", "--table", &many_rows(folder.path())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    input.write_all(b".mode csv\nSELECT 7 AS first;\n").unwrap();
    input.write_all(LONG.as_bytes()).unwrap();
    let mut first = [0; 8];
    let output = shell.stdout.as_mut().unwrap();
    std::io::Read::read_exact(output, &mut first).unwrap();
    assert_eq!(&first, b"first\n7\n");
    // The long statement starts right after that row has come.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let id = shell.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let answer = shell.wait_with_output().unwrap();
    assert_eq!(answer.status.code(), Some(1), "{}", text(&answer.stderr));
    assert!(text(&answer.stderr).contains("the statement was stopped"));
}

/// On a terminal of `script`, where there is one, the conversation goes on.
#[test]
#[cfg(target_os = "linux")]
fn a_conversation_goes_on_after_control_c() {
    let folder = tempfile::tempdir().unwrap();
    let shell = env!("CARGO_BIN_EXE_tersecades");
    let command = format!("{shell} shell --table {}", many_rows(folder.path()));
    let started = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut terminal) = started else {
        return;
    };
    let mut input = terminal.stdin.take().unwrap();
    input.write_all(b".mode csv\n.pager off\n").unwrap();
    input.write_all(LONG.as_bytes()).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    input.write_all(b"\x03").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    input
        .write_all(b"SELECT 40 + 2 AS after;\n.quit\n")
        .unwrap();
    let answer = terminal.wait_with_output().unwrap();
    let said = text(&answer.stdout);
    assert!(said.contains("the statement was stopped"), "{said}");
    assert!(said.contains("after\r\n42\r\n"), "{said}");
}
