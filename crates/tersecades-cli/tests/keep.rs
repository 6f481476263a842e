//! `KEEP … INTO`: a stream that is written to a store while statements read it.

#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn tersecades(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tersecades"));
    command.current_dir(folder).args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn sql(folder: &Path, statements: &str) -> Output {
    let arguments = ["sql", statements, "--format", "csv"];
    tersecades(folder, &arguments).output().unwrap()
}

fn lines(rows: std::ops::Range<u64>) -> String {
    let line = |row: u64| {
        let (hour, minute, second) = (row / 3_600, row / 60 % 60, row % 60);
        format!("2024-05-01T{hour:02}:{minute:02}:{second:02},{row}\n")
    };
    rows.map(line).collect()
}

const CREATE: &str = "CREATE STREAM p FROM 'rows.csv' \
                      WATERMARK FOR ts AS ts - INTERVAL '1' SECOND KEEP 7 DAYS INTO 's'";
const COUNT: &str = "SELECT count(*) AS n, sum(v) AS total FROM";

/// What [`COUNT`] gives of rows 0 to `rows`.
fn counted(rows: u64) -> String {
    format!("n,total\n{rows},{}\n", rows * (rows - 1) / 2)
}

/// A script of the shell and a query of another store end when all rows are there.
#[test]
fn what_is_kept_is_there_whoever_ran_the_statement() {
    let rows = 80_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("rows.csv"), format!("ts,v\n{}", lines(0..rows))).unwrap();
    let held = |place: &str| {
        let query = format!("{COUNT} history");
        let arguments = ["store", "query", place, &query, "--format", "csv"];
        text(&tersecades(path, &arguments).output().unwrap().stdout)
    };
    let script = format!("-- from here on\n.mode csv\n{CREATE};; -- and no further\n");
    let mut shell = tersecades(path, &["shell"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    assert!(shell.wait().unwrap().success());
    assert_eq!(held("s"), counted(rows));
    let another = CREATE.replace("'s'", "'t'");
    let output = tersecades(path, &["store", "query", "s", &another]).output();
    assert!(output.unwrap().status.success());
    assert_eq!(held("t"), counted(rows));
    // No file is said to be written that is not.
    let none = format!("{COUNT} history; SET batch_rows = 9");
    let arguments = ["store", "query", "s", &none, "-o", "out.csv"];
    let output = tersecades(path, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("gives none"));
}

#[test]
fn a_stream_is_kept_once_however_often_it_is_read_and_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for rows in [2_000, 2_500] {
        std::fs::write(path.join("rows.csv"), format!("ts,v\n{}", lines(0..rows))).unwrap();
        let minutes = "SELECT count(*) AS n, sum(n) AS total FROM \
                       (SELECT window_start, count(*) AS n FROM p \
                        GROUP BY tumble(ts, INTERVAL '1 minute')) AS w";
        for (query, expected) in [
            (format!("{COUNT} p"), counted(rows)),
            (
                minutes.to_owned(),
                format!("n,total\n{},{rows}\n", rows.div_ceil(60)),
            ),
        ] {
            let output = sql(path, &format!("{CREATE}; {query}"));
            assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
        }
        // All rows are there when the statement has ended, read or not.
        let output = sql(path, CREATE);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let query = format!("{COUNT} history");
        let arguments = ["store", "query", "s", &query, "--format", "csv"];
        let history = tersecades(path, &arguments).output().unwrap();
        assert_eq!(text(&history.stdout), counted(rows));
    }
    std::fs::write(path.join("rows.csv"), format!("ts,v\n{}", lines(0..10))).unwrap();
    for (statements, expected) in [
        (CREATE.to_owned(), "the store has 2490 more rows"),
        (
            CREATE.replace("7 DAYS", "2 DAYS"),
            "keeps rows for another time",
        ),
        (
            CREATE.replace("7 DAYS INTO", "ALL INTO"),
            "keeps rows for another time",
        ),
        (CREATE.replace("7 DAYS INTO 's'", "ALL"), "INTO"),
    ] {
        let output = sql(path, &statements);
        assert_eq!(output.status.code(), Some(1));
        let error = text(&output.stderr);
        assert!(error.contains(expected), "{statements}: {error}");
    }
}

/// Rows of the store, as another process sees them: the first of the stream, each once.
fn kept(path: &Path) -> u64 {
    let query = format!("{COUNT} history");
    let arguments = ["store", "query", "s", &query, "--format", "csv"];
    let output = tersecades(path, &arguments).output().unwrap();
    let found = text(&output.stdout);
    let count = found.lines().nth(1).and_then(|line| line.split(',').next());
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(0);
    if count > 0 {
        assert_eq!(found, counted(count));
    }
    count
}

#[test]
fn other_processes_see_rows_of_a_pipe_as_they_come_and_a_kill_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let create = CREATE.replace("FROM 'rows.csv'", "AS SELECT * FROM raw");
    let mut known = 0;
    for _ in 0..2 {
        let arguments = ["sql", &create, "--table", "raw=-,format=csv"];
        let mut running = tersecades(path, &[&arguments[..], &["--threads", "2"]].concat());
        let running = running.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut running = running.spawn().unwrap();
        let mut pipe = running.stdin.take().unwrap();
        writeln!(pipe, "ts,v").unwrap();
        pipe.write_all(lines(known..known + 20_000).as_bytes())
            .unwrap();
        let seen = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            let count = kept(path);
            (count > known).then_some(count)
        });
        let seen = seen.unwrap();
        running.kill().unwrap();
        running.wait().unwrap();
        known = kept(path);
        assert!(known >= seen, "{known} rows after {seen}");
    }
}

#[test]
fn a_pipe_whose_columns_are_declared_is_read_from_its_first_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let pipe = path.join("rows.csv");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let writer = std::thread::spawn(move || std::fs::write(pipe, "k,v\n1,007\n2,008\n"));
    let create = "CREATE STREAM p (k BIGINT, v TEXT) FROM 'rows.csv'";
    let output = sql(path, &format!("{create}; SELECT v, k FROM p"));
    let error = text(&output.stderr);
    assert_eq!(text(&output.stdout), "v,k\n007,1\n008,2\n", "{error}");
    writer.join().unwrap().unwrap();
}

#[test]
fn a_query_follows_a_store_that_another_process_feeds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let columns = [
        "store",
        "create",
        "s",
        "--schema",
        "ts TIMESTAMP, v BIGINT",
        "--time",
        "ts",
    ];
    assert!(tersecades(path, &columns).status().unwrap().success());
    let arguments = [
        "store", "ingest", "s", "--input", "-", "--format", "csv", "--ack",
    ];
    let ingest = [&arguments[..], &["--batch-rows", "500"]].concat();
    let mut feeding = tersecades(path, &ingest);
    let feeding = feeding.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut feeding = feeding.spawn().unwrap();
    let mut pipe = feeding.stdin.take().unwrap();
    write!(pipe, "ts,v\n{}", lines(0..20_000)).unwrap();
    let mut acknowledged = BufReader::new(feeding.stdout.take().unwrap()).lines();
    assert_eq!(acknowledged.next().unwrap().unwrap(), "acked 500");

    let minutes = "SELECT count(*) AS n, sum(v) AS total FROM history \
                   GROUP BY tumble(ts, INTERVAL '1 minute')";
    let arguments = [
        "store",
        "query",
        "s",
        minutes,
        "--follow",
        "--lateness",
        "1s",
    ];
    let mut query = tersecades(path, &arguments);
    let mut query = query.stdout(Stdio::piped()).spawn().unwrap();
    let mut found = BufReader::new(query.stdout.take().unwrap()).lines();
    let mut next = || found.next().unwrap().unwrap();
    assert_eq!(next(), "n,total");
    let minute = |minute: u64| {
        let rows = minute * 60..minute * 60 + 60;
        format!("60,{}", rows.sum::<u64>())
    };
    // Windows come out while rows flow.
    (0..50).for_each(|window| assert_eq!(next(), minute(window)));
    write!(pipe, "{}", lines(20_000..20_040)).unwrap();
    drop(pipe);
    (50..334).for_each(|window| assert_eq!(next(), minute(window)));
    assert!(found.next().is_none() && query.wait().unwrap().success());
    assert!(feeding.wait().unwrap().success());

    let key = [
        "store",
        "create",
        "k",
        "--schema",
        "k BIGINT NOT NULL",
        "--primary-key",
        "k",
    ];
    assert!(tersecades(path, &key).status().unwrap().success());
    let arguments = ["store", "query", "k", "SELECT * FROM history", "--follow"];
    let refused = tersecades(path, &arguments).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("primary key"));
}
