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
