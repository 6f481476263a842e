//! A program that is told to end leaves no partial files, and the rows that it could not read in
//! their file.

#![cfg(all(feature = "shell", unix))]
#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const HUP: i32 = 1;
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

/// Reads rows from a pipe that does not end, some of which do not fit, and is told to end.
fn keeps_dead_letters(arguments: &[&str], letters: &str, signal: i32) {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .current_dir(folder.path())
        .args(["store", "create", "s", "--schema", "n BIGINT"])
        .status();
    assert!(made.unwrap().success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .current_dir(folder.path())
        .args(arguments)
        .args(["--dead-letters", letters])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let rows: String = (0..100).map(|n| format!("{n}\n")).collect();
    stdin
        .write_all(format!("n\n{rows}no number\n7\n").as_bytes())
        .unwrap();
    // What fits has come out: the row before it was met.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap() == "acked 101"));
    let id = child.id().to_string();
    let kill = Command::new("kill")
        .args([&format!("-{signal}"), &id])
        .status();
    assert!(kill.unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(signal));
    drop(stdin);
    let written = fs::read(folder.path().join(letters)).unwrap();
    assert!(
        String::from_utf8_lossy(&written).contains("no number"),
        "{arguments:?}"
    );
    assert!(
        !names(folder.path())
            .iter()
            .any(|name| name.contains("partial"))
    );
}

/// Whether this process ignores hang-ups, as below `nohup`; where the system does not tell, not.
fn is_hang_up_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut ignored = status
        .lines()
        .filter_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored
        .next()
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (HUP - 1) & 1 == 1)
}

#[test]
fn rows_that_could_not_be_read_are_in_their_file() {
    let ingest = [
        "store", "ingest", "s", "--input", "-", "--format", "csv", "--ack",
    ];
    for signal in [HUP, INT, TERM] {
        if signal == HUP && is_hang_up_ignored() {
            println!(
                "SKIPPED: whoever runs the tests has hang-ups ignored, and so has the program"
            );
            continue;
        }
        keeps_dead_letters(&ingest, "bad.csv", signal);
        keeps_dead_letters(&ingest, "bad.parquet", signal);
    }
}
