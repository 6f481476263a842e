//! A program that is told to end leaves no partial files.

#![cfg(all(feature = "shell", unix))]
#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const INT: i32 = 2;
const TERM: i32 = 15;

/// A query that takes minutes: every pair of many rows.
const LONG: &str = "SELECT count(*) AS n FROM 'rows.csv' a JOIN 'rows.csv' b ON a.n <> b.n \
                    JOIN 'rows.csv' c ON b.n <> c.n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    fs::write(folder.path().join("rows.csv"), format!("n\n{rows}")).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect()
}

/// Runs a command with `input`, which does not end, until it has begun a file; then sends `signal`.
fn ends_without_leftovers(arguments: &[&str], input: &str, signal: i32) {
    let folder = folder();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .current_dir(folder.path())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let start = Instant::now();
    let is_partial = |name: &String| name.ends_with(".partial");
    while !names(folder.path()).iter().any(is_partial) {
        assert_eq!(child.try_wait().unwrap(), None, "{arguments:?}");
        assert!(start.elapsed() < Duration::from_secs(60), "{arguments:?}");
        thread::sleep(Duration::from_millis(10));
    }
    let id = child.id().to_string();
    let kill = Command::new("kill")
        .args([&format!("-{signal}"), &id])
        .status();
    assert!(kill.unwrap().success());
    assert_eq!(
        child.wait().unwrap().signal(),
        Some(signal),
        "{arguments:?}"
    );
    assert_eq!(names(folder.path()), ["rows.csv"], "{arguments:?}");
}

#[test]
fn no_partial_file_stays_behind() {
    for signal in [INT, TERM] {
        let generate = ["generate", "pingmesh", "--rows", "1G", "-o", "probes.csv"];
        ends_without_leftovers(&generate, "", signal);
        ends_without_leftovers(&["pack", "-", "-o", "packed.tcz"], "begun", signal);
        ends_without_leftovers(&["sql", LONG, "-o", "pairs.csv.gz"], "", signal);
    }
    let copy = format!("COPY ({LONG}) TO 'pairs.parquet';\n");
    ends_without_leftovers(&["shell"], &copy, TERM);
}
