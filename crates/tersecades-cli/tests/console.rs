//! What happens where standard output or standard error cannot be written.

#![cfg(all(feature = "shell", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A command line with the files of [`folder`].
fn tersecades(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tersecades"));
    command.current_dir(folder).args(arguments);
    command.stdin(File::open(folder.join("script.sql")).unwrap());
    command
}

/// A pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A disk on which nothing fits.
fn full_disk() -> Stdio {
    let disk = File::options().write(true).open("/dev/full").unwrap();
    disk.into()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A folder with `rows.csv`, packed too, the store `rows.store` and the script `script.sql`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..2_000).map(|k| format!("{k},{k}.5\n")).collect();
    fs::write(folder.path().join("rows.csv"), format!("k,v\n{rows}")).unwrap();
    fs::write(folder.path().join("script.sql"), ".help\n.tables\n").unwrap();
    let schema = [
        "store",
        "create",
        "rows.store",
        "--schema",
        "k BIGINT, v DOUBLE",
    ];
    for arguments in [
        &["pack", "rows.csv"][..],
        &[&schema[..], &["--key", "k"]].concat(),
        &["store", "ingest", "rows.store", "-i", "rows.csv"],
    ] {
        let made = tersecades(folder.path(), arguments).output().unwrap();
        assert!(made.status.success(), "{arguments:?}: {}", said(&made));
    }
    folder
}

const QUERY: &str = "SELECT k, v FROM 'rows.csv'";

/// Everything that prints.
const PRINTING: &[&[&str]] = &[
    &["sql", QUERY],
    &["sql", QUERY, "--format", "csv"],
    &["sql", QUERY, "--format", "jsonl"],
    &["sql", QUERY, "--format", "arrow"],
    &["qos", "-t", "r=rows.csv", "-q", "SELECT avg(v) AS v FROM r"],
    &["shell"],
    &["inspect", "rows.csv"],
    &["costs"],
    &["cat", "rows.csv.tcz"],
    &["lists", "codecs"],
    &["store", "query", "rows.store", "SELECT k FROM history"],
    &["store", "stats", "rows.store"],
    &["store", "explain", "rows.store"],
    &["store", "verify", "rows.store"],
    &["store", "compact", "rows.store"],
    &["store", "repair", "rows.store"],
    &["store", "upgrade", "rows.store"],
    &["store", "ingest", "rows.store", "-i", "rows.csv", "--ack"],
    &["completions", "bash"],
    &["man"],
    &["--help"],
    &["help", "sql"],
    &["--version"],
];

#[test]
fn readers_that_go_end_the_program_quietly() {
    let folder = folder();
    for arguments in PRINTING {
        let mut command = tersecades(folder.path(), arguments);
        let output = command.stdout(closed_pipe()).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(!said.contains("error"), "{arguments:?}: {said}");
    }
}

/// What `arguments` say of how many rows `table` has.
fn count(folder: &Path, table: &str, arguments: &[&str]) -> String {
    let query = format!("SELECT count(*) AS n FROM {table}");
    let all = [arguments, &[query.as_str(), "--format", "csv"]].concat();
    let output = tersecades(folder, &all).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn readers_that_go_leave_files_of_late_rows_whole() {
    let folder = folder();
    let path = folder.path();
    let late = |file: &str| {
        format!(
            "SELECT count(*) FROM r GROUP BY tumble(ts, INTERVAL '1 second') LATE INTO '{file}'"
        )
    };
    let rows = "ts\n2024-01-01 00:00:01\n2024-01-01 00:00:09\n2024-01-01 00:00:01\n";
    fs::write(path.join("disorder.csv"), rows).unwrap();
    let both = format!("{}; {}", late("late.csv"), late("later.csv"));
    let table = "r=disorder.csv,event_time=ts,lateness=0s";
    let arguments = ["sql", "-t", table, &both, "--set", "batch_rows=1"];
    let mut command = tersecades(path, &arguments);
    let written = command.stdout(closed_pipe()).output().unwrap();
    assert_eq!(written.status.code(), Some(0), "{}", said(&written));
    assert_eq!(count(path, "'late.csv'", &["sql"]), "n\n1\n");
    assert_eq!(count(path, "'later.csv'", &["sql"]), "n\n1\n");
}

#[test]
fn readers_that_go_leave_no_work_undone() {
    let folder = folder();
    let path = folder.path();
    let run = |arguments: &[&str]| {
        let mut command = tersecades(path, arguments);
        command.stdout(closed_pipe()).output().unwrap()
    };
    let count = |table: &str, arguments: &[&str]| count(path, table, arguments);
    let ingest = [
        "store",
        "ingest",
        "rows.store",
        "--ack",
        "--batch-rows",
        "100",
        "-i",
    ];
    let stored = run(&[&ingest[..], &["rows.csv"]].concat());
    assert_eq!(stored.status.code(), Some(0), "{}", said(&stored));
    assert!(said(&stored).contains("2000 rows stored"));
    assert_eq!(
        count("history", &["store", "query", "rows.store"]),
        "n\n4000\n"
    );
    let kept = "CREATE STREAM s FROM 'times.csv' WATERMARK FOR ts AS ts KEEP 1 DAY INTO 'kept'";
    fs::write(
        path.join("times.csv"),
        "ts\n2024-01-01 00:00:01\n2024-01-01 00:00:02\n",
    )
    .unwrap();
    let both = format!("{kept}; {QUERY}; {QUERY}");
    let written = run(&["sql", &both, "-o", "out.parquet"]);
    assert_eq!(written.status.code(), Some(0), "{}", said(&written));
    assert_eq!(count("'out.parquet'", &["sql"]), "n\n2000\n");
    assert_eq!(count("history", &["store", "query", "kept"]), "n\n2\n");

    fs::write(path.join("bad.csv"), "k,v\n1,1\n2,2\nx,3\n").unwrap();
    let both = format!("{QUERY}; SELECT k FROM 'bad.csv'");
    for arguments in [
        &[
            "store",
            "ingest",
            "rows.store",
            "--ack",
            "--batch-rows",
            "1",
            "-i",
            "bad.csv",
        ][..],
        &["sql", &both, "--types", "k=int64", "-o", "bad.parquet"],
        &["sql", &both, "-o", "missing/out.parquet"],
    ] {
        let failed = run(arguments);
        assert_eq!(
            failed.status.code(),
            Some(1),
            "{arguments:?}: {}",
            said(&failed)
        );
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let folder = folder();
    for arguments in PRINTING {
        let mut command = tersecades(folder.path(), arguments);
        let output = command.stdout(full_disk()).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        let tells = said.contains("error: No space left on device");
        assert!(tells, "{arguments:?}: {said}");
    }
}

#[test]
fn what_nobody_listens_to_changes_nothing() {
    let folder = folder();
    let query = "SELECT count(*) AS n FROM 'rows.csv'";
    for (arguments, code) in [
        (
            &["sql", query, "--format", "csv", "--log-level", "debug"][..],
            0,
        ),
        (&["sql", "SELECT nothing FROM 'rows.csv'"], 1),
        (&["sql"], 2),
        (&["pack", "rows.csv", "-o", "again.tcz"], 0),
        (&["generate", "weather", "--rows", "9", "-o", "w.csv"], 0),
        (&["store", "export", "rows.store", "-o", "rows.jsonl"], 0),
        (&["costs"], 0),
    ] {
        for stderr in [closed_pipe(), full_disk()] {
            let mut command = tersecades(folder.path(), arguments);
            let output = command.stderr(stderr).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        }
    }
    for made in ["again.tcz", "w.csv", "rows.jsonl"] {
        assert!(folder.path().join(made).exists(), "{made}");
    }
}
