//! Streams that are kept in stores: what replaces them, what fails beside them, how long.

use std::path::Path;
use std::time::{Duration, Instant};

use tersecades_engine::runtime::Interrupt;
use tersecades_engine::{Error, ErrorKind, Result};
use tersecades_sql::Session;

use crate::answer::{Rows, run};

const ROWS: usize = 150_000;

/// Stands behind a stream with the time `ts`.
const MARK: &str = "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND";

/// More seconds than are written while a test runs.
const CENTURIES: &str = "SELECT ts FROM generate_series(TIMESTAMP '1700-01-01', \
                         TIMESTAMP '2200-01-01', INTERVAL '1 second') AS s(ts)";

/// A session over a folder with `rows.csv`.
struct Kept {
    folder: tempfile::TempDir,
    session: Session,
}

impl Kept {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("rows.csv"), "");
        let mut session = Session::default();
        let until = Instant::now() + Duration::from_secs(60);
        session.interrupt_with(Interrupt::new(move || match Instant::now() < until {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Interrupted, "the test takes long")),
        }));
        Kept { folder, session }
    }

    /// Runs statements in which `$` is the folder.
    fn ask(&mut self, sql: &str) -> Result<Rows> {
        let folder = format!("{}/", self.folder.path().display());
        run(&mut self.session, &sql.replace('$', &folder))
    }

    fn count(&mut self, name: &str) -> usize {
        let rows = self.ask(&format!("SELECT count(*) FROM {name}")).unwrap();
        rows[0][0].parse().unwrap()
    }
}

/// Writes rows of all seconds from one on, and `last` behind them.
fn write(path: &Path, last: &str) {
    let line = |row: usize| {
        let (day, hour, minute) = (row / 86_400 + 1, row / 3_600 % 24, row / 60 % 60);
        format!(
            "2024-05-{day:02}T{hour:02}:{minute:02}:{:02},{row}\n",
            row % 60
        )
    };
    let lines: String = (0..ROWS).map(line).collect();
    std::fs::write(path, format!("ts,v\n{lines}{last}")).unwrap();
}

#[test]
fn a_stream_writes_no_more_when_its_name_stands_for_other_rows() {
    for replacing in [
        "TABLE p AS SELECT 1 AS x".to_owned(),
        "VIEW p FROM '$rows.csv'".to_owned(),
        format!("STREAM p FROM '$rows.csv' {MARK} KEEP 1 HOUR"),
        format!("STREAM p FROM '$rows.csv' {MARK} KEEP ALL INTO '$other'"),
    ] {
        let mut kept = Kept::new();
        kept.ask(&format!(
            "CREATE STREAM p AS {CENTURIES} {MARK} KEEP ALL INTO '$s'"
        ))
        .unwrap();
        kept.ask(&format!("CREATE OR REPLACE {replacing}")).unwrap();
        kept.session.finish().unwrap();
        // Nobody has the store open any more.
        kept.ask(&format!(
            "CREATE STREAM q AS SELECT * FROM range(TIMESTAMP '2024-01-01', \
             TIMESTAMP '2024-01-02', INTERVAL '1 day') AS s(ts) {MARK} KEEP ALL INTO '$s'"
        ))
        .unwrap_or_else(|error| panic!("{replacing}: {error}"));
    }
}

#[test]
fn a_stream_that_another_reads_is_written_to_its_end() {
    let mut kept = Kept::new();
    kept.ask(&format!(
        "CREATE STREAM p FROM '$rows.csv' {MARK} KEEP ALL INTO '$s'"
    ))
    .unwrap();
    kept.ask("CREATE OR REPLACE STREAM p AS SELECT ts, v + 1 AS v FROM p")
        .unwrap();
    kept.session.finish().unwrap();
    assert_eq!(kept.count("p"), ROWS);
}

#[test]
fn a_stream_that_another_kept_one_follows_is_written_to_its_end() {
    let mut kept = Kept::new();
    for sql in [
        format!("CREATE STREAM p FROM '$rows.csv' {MARK} KEEP ALL INTO '$s'"),
        format!("CREATE STREAM q AS SELECT ts, v + 1 AS v FROM p {MARK} KEEP ALL INTO '$t'"),
        "CREATE OR REPLACE TABLE p AS SELECT 1 AS x".to_owned(),
    ] {
        kept.ask(&sql).unwrap();
    }
    kept.session.finish().unwrap();
    assert_eq!(kept.count("q"), ROWS);
}

#[test]
fn a_stream_that_cannot_be_replaced_is_written_to_its_end() {
    let mut kept = Kept::new();
    let create = |name: &str, into: &str| {
        format!("CREATE OR REPLACE STREAM {name} FROM '$rows.csv' {MARK} KEEP {into}")
    };
    kept.ask(&create("p", "30000 DAYS INTO '$s'")).unwrap();
    kept.ask(&create("q", "ALL INTO '$t'")).unwrap();
    for (into, expected) in [
        ("ALL INTO '$t'", "the stream `q` feeds this store"),
        ("2 DAYS INTO '$s'", "keeps rows for another time"),
        ("ALL INTO '$s'", "keeps rows for another time"),
    ] {
        let error = kept.ask(&create("p", into)).unwrap_err().to_string();
        assert!(error.contains(expected), "{into}: {error}");
    }
    kept.session.finish().unwrap();
    assert_eq!(kept.count("p"), ROWS);
}

#[test]
fn a_stream_that_is_refused_leaves_no_store() {
    let mut kept = Kept::new();
    let path = kept.folder.path().to_owned();
    for sql in [
        "CREATE VIEW lossy AS SELECT ts, v / 2.0 AS v FROM '$rows.csv'",
        "SET encoding.lossy.v = 'zfp(0.25)'",
    ] {
        kept.ask(sql).unwrap();
    }
    std::fs::create_dir(path.join("empty")).unwrap();
    for folder in ["new", "some/new/folder", "empty"] {
        let create = format!("CREATE STREAM p AS SELECT * FROM lossy {MARK}");
        let error = kept.ask(&format!("{create} KEEP ALL INTO '${folder}'"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("a store would hand out as exact"), "{error}");
    }
    let names = std::fs::read_dir(&path).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, ["empty", "rows.csv"]);
    assert!(
        std::fs::read_dir(path.join("empty"))
            .unwrap()
            .next()
            .is_none()
    );
    kept.ask(&format!(
        "CREATE STREAM p FROM '$rows.csv' {MARK} KEEP ALL INTO '$empty'"
    ))
    .unwrap();
    kept.session.finish().unwrap();
    assert_eq!(kept.count("p"), ROWS);
}

#[test]
fn streams_beside_one_that_fails_are_written_to_their_end() {
    let mut kept = Kept::new();
    write(
        &kept.folder.path().join("bad.csv"),
        "2024-06-01T00:00:00,x\n",
    );
    for (name, file) in [("bad", "bad"), ("good", "rows")] {
        kept.ask(&format!(
            "CREATE STREAM {name} (ts TIMESTAMP, v BIGINT) FROM '${file}.csv' {MARK} \
             KEEP ALL INTO '${name}'"
        ))
        .unwrap();
    }
    let error = kept.session.finish().unwrap_err().to_string();
    assert!(error.contains("bad.csv"), "{error}");
    assert_eq!(kept.count("good"), ROWS);
}
