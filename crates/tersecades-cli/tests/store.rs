//! `tersecades store` as scripts see it, kills included.

#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tersecades"));
    command.current_dir(folder).arg("store").args(arguments);
    command
}

fn store(folder: &Path, arguments: &[&str]) -> Output {
    let output = command(folder, arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn create(folder: &Path, more: &[&str]) {
    let schema = [
        "create",
        "s",
        "--schema",
        "k BIGINT NOT NULL, ts TIMESTAMP(3), v DOUBLE",
    ];
    store(folder, &[&schema, more].concat());
}

fn csv(rows: std::ops::Range<u64>) -> String {
    let mut text = String::from("k,ts,v\n");
    for row in rows {
        let (minute, second) = (row / 60 % 60, row % 60);
        text += &format!(
            "{row},2024-05-01T12:{minute:02}:{second:02},{}.5\n",
            row % 9
        );
    }
    text
}

#[cfg(feature = "sql")]
fn query(folder: &Path, sql: &str) -> String {
    let output = store(folder, &["query", "s", sql, "--format", "csv"]);
    text(&output.stdout)
}

#[cfg(feature = "sql")]
#[test]
fn rows_are_stored_queried_merged_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    create(
        path,
        &["--key", "k", "--time", "ts", "--set", "buffer_rows=500"],
    );
    std::fs::write(path.join("rows.csv"), csv(0..2_000)).unwrap();
    let arguments = [
        "ingest",
        "s",
        "--input",
        "rows.csv",
        "--ack",
        "--batch-rows",
        "300",
    ];
    let acknowledged = text(&store(path, &arguments).stdout);
    assert!(
        acknowledged.starts_with("acked 300\nacked 600\n"),
        "{acknowledged}"
    );
    assert!(acknowledged.ends_with("acked 2000\n"), "{acknowledged}");
    let sums = "SELECT count(*) AS n, sum(v) AS s FROM history WHERE k BETWEEN 100 AND 999";
    let expected = query(path, sums);
    assert!(expected.starts_with("n,s\n900,"), "{expected}");
    let windows = "SELECT sum(n) AS n FROM (SELECT window_start, count(*) AS n FROM \
                   TUMBLE(TABLE history, DESCRIPTOR(ts), INTERVAL '1' MINUTE) \
                   GROUP BY window_start, window_end) AS w";
    assert_eq!(query(path, windows), "n\n2000\n");
    store(path, &["compact", "s"]);
    let some = ["add-column", "s", "w TEXT, x BIGINT NOT NULL"];
    let refused = command(path, &some).output().unwrap();
    assert!(text(&refused.stderr).contains("may be null"));
    store(path, &["add-column", "s", "w TEXT"]);
    assert_eq!(query(path, sums), expected);
    assert_eq!(query(path, "SELECT count(w) AS n FROM history"), "n\n0\n");
    let stats = text(&store(path, &["stats", "s"]).stdout);
    assert!(stats.contains("2,000 rows acknowledged"), "{stats}");
    assert!(!stats.contains("bookmark"), "{stats}");
    // A query that never came back.
    let left = "bookmarks/0000000001-00c0ffee00c0ffee";
    std::fs::create_dir(path.join("s/bookmarks")).unwrap();
    std::fs::write(path.join("s").join(left), "").unwrap();
    let stats = text(&store(path, &["stats", "s"]).stdout);
    assert!(stats.contains(left) && stats.contains(" s ago"), "{stats}");
    std::fs::remove_file(path.join("s").join(left)).unwrap();
    assert!(text(&store(path, &["verify", "s"]).stdout).contains("0 damaged places"));
    store(path, &["export", "s", "-o", "out.parquet"]);
    let again = "SELECT count(*) AS n FROM 'out.parquet'";
    let sql = Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .current_dir(path)
        .args(["sql", again, "--format", "csv"])
        .output()
        .unwrap();
    assert_eq!(text(&sql.stdout), "n\n2000\n");
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let failed = |arguments: &[&str]| {
        let output = command(path, arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        text(&output.stderr)
    };
    assert!(failed(&["stats", "s"]).contains("there is no store here"));
    assert!(failed(&["create", "s", "--schema", "k BIGNT"]).contains("did you mean BIGINT?"));
    create(path, &[]);
    let again = ["create", "s", "--schema", "k BIGINT"];
    assert!(failed(&again).contains("there is a store already"));
    std::fs::write(path.join("rows.csv"), "k,x\n1,2\n").unwrap();
    assert!(failed(&["ingest", "s", "--input", "rows.csv"]).contains("no such column"));
    std::fs::write(path.join("nulls.csv"), "k,v\n1,2\n2,3\n3,4\n4,5\n,6\n7,7\n").unwrap();
    let said = failed(&["ingest", "s", "--input", "nulls.csv", "--batch-rows", "2"]);
    assert!(
        said.contains("may not be (file nulls.csv, row 5, column k)"),
        "{said}"
    );
    assert!(said.contains("hint: leave such rows out"), "{said}");
    let stored = "; the first 4 rows of the input are stored";
    assert!(said.contains(stored), "{said}");
    std::fs::write(path.join("lacks.csv"), "v\n1\n").unwrap();
    let said = failed(&["ingest", "s", "--input", "lacks.csv"]);
    assert!(
        said.contains("that may not be null (file lacks.csv, column k)"),
        "{said}"
    );
    std::fs::write(path.join("s/CURRENT"), "MANIFEST-0000000009 00000000\n").unwrap();
    assert!(failed(&["stats", "s"]).contains("damaged"));
    assert!(text(&store(path, &["repair", "s"]).stdout).contains("given up"));
    store(path, &["verify", "s"]);
}

/// Feeds rows until the process that stores them is killed; rows that it acknowledged.
fn feed_and_kill(folder: &Path, first: u64, after: usize) -> u64 {
    let mut child = command(folder, &["ingest", "s", "--input", "-", "--format", "csv"])
        .args(["--ack", "--batch-rows", "50"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        // The process is killed while it reads.
        let _ = input.write_all(csv(first..first + 200_000).as_bytes());
    });
    let mut acknowledged = 0;
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for (index, line) in lines.enumerate() {
        let Ok(line) = line else { break };
        acknowledged = line.strip_prefix("acked ").unwrap().parse().unwrap();
        if index == after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    feeder.join().unwrap();
    acknowledged
}

#[cfg(feature = "sql")]
#[test]
fn kills_lose_no_acknowledged_row() {
    let kills = std::env::var("TERSECADES_KILLS").map_or(8, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    create(
        path,
        &[
            "--time",
            "ts",
            "--set",
            "buffer_rows=700",
            "--set",
            "level_ratio=3",
        ],
    );
    let mut rows = 0;
    for kill in 0..kills {
        let acknowledged = feed_and_kill(path, rows, 3 + 7 * (kill % 5));
        let found = query(
            path,
            "SELECT count(*) AS n, min(k) AS low, max(k) AS high FROM history",
        );
        let fields: Vec<u64> = found
            .lines()
            .nth(1)
            .unwrap()
            .split(',')
            .map(|field| field.parse().unwrap())
            .collect();
        let count = fields[0];
        assert!(
            count >= rows + acknowledged,
            "kill {kill}: {count} of {rows} + {acknowledged}"
        );
        assert_eq!(
            (fields[1], fields[2]),
            (0, count - 1),
            "kill {kill}: not the first rows"
        );
        rows = count;
    }
}

#[test]
fn what_is_exported_as_text_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let schema = "k BIGINT NOT NULL, d DECIMAL(20,4), b BLOB, x TEXT, f DOUBLE";
    let rows = "k,d,b,x,f\n\
                1,1.25,6162,a,0.5\n\
                2,-0.05,\"\",\"\",-inf\n\
                3,,,,\n\
                4,1234567890123456.7891,00ff,NA,NaN\n";
    std::fs::write(path.join("rows.csv"), rows).unwrap();
    let all = "SELECT k, d, encode(b, 'hex') AS b, x, f FROM history ORDER BY k";
    let of = |name: &str, input: &str| -> String {
        store(path, &["create", name, "--schema", schema, "--key", "k"]);
        store(path, &["ingest", name, "--input", input]);
        text(&store(path, &["query", name, all, "--format", "csv"]).stdout)
    };
    let written = of("s", "rows.csv");
    assert!(
        written.contains("4,1234567890123456.7891,00ff,,NaN\n"),
        "{written}"
    );
    for (name, file) in [("c", "out.csv"), ("j", "out.jsonl"), ("p", "out.parquet")] {
        store(path, &["export", "s", "-o", file]);
        let back = of(name, file);
        // JSON has no numbers that are none.
        let expected = match name {
            "j" => written.replace("-inf", "").replace("NaN", ""),
            _ => written.clone(),
        };
        assert_eq!(back, expected, "{file}");
    }
}

#[test]
fn arrow_files_of_a_store_hold_plain_texts_of_their_rows_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let schema = "k BIGINT NOT NULL, x TEXT";
    std::fs::write(path.join("rows.csv"), "k,x\n1,secret\n2,shown\n3,shown\n").unwrap();
    store(path, &["create", "s", "--schema", schema, "--time", "k"]);
    store(path, &["ingest", "s", "--input", "rows.csv"]);
    store(path, &["export", "s", "-o", "out.arrow", "--from", "2"]);
    let bytes = std::fs::read(path.join("out.arrow")).unwrap();
    let count = |text: &str| {
        bytes
            .windows(text.len())
            .filter(|it| *it == text.as_bytes())
            .count()
    };
    assert_eq!((count("secret"), count("shownshown")), (0, 1));
}

#[test]
fn the_end_of_a_log_that_is_no_record_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    create(path, &[]);
    assert_eq!(feed_and_kill(path, 0, 3).min(1), 1);
    let verify = || store(path, &["verify", "s"]);
    let log = std::fs::read_dir(path.join("s/log")).unwrap();
    let last = log.map(|file| file.unwrap().path()).max().unwrap();
    let mut bytes = std::fs::read(&last).unwrap();
    bytes.extend_from_slice(&[7; 100]);
    std::fs::write(&last, bytes).unwrap();
    let said = verify();
    assert!(text(&said.stdout).contains("0 damaged places"));
    assert!(
        text(&said.stderr).contains("hold no whole record"),
        "{}",
        text(&said.stderr)
    );
}

#[test]
fn rows_go_by_their_primary_keys_and_levels_that_are_not_there_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let schema = "k BIGINT NOT NULL, v TEXT";
    store(
        path,
        &["create", "s", "--schema", schema, "--primary-key", "k"],
    );
    std::fs::write(path.join("rows.csv"), "k,v\n1,a\n2,b\n3,c\n").unwrap();
    store(path, &["ingest", "s", "--input", "rows.csv"]);
    store(path, &["compact", "s"]);
    std::fs::write(path.join("keys.csv"), "k\n1\n3\n9\n").unwrap();
    let deleted = store(path, &["delete", "s", "--input", "keys.csv"]);
    assert!(text(&deleted.stderr).contains("3 keys deleted"));
    let all = "SELECT * FROM history";
    assert_eq!(query(path, all), "k,v\n2,b\n");
    store(path, &["compact", "s"]);
    assert_eq!(query(path, all), "k,v\n2,b\n");
    let wrong = ["export", "s", "--level", "99", "-o", "out.csv"];
    let refused = command(path, &wrong).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("no run is of level 99"));
    assert!(!path.join("out.csv").exists());
    store(path, &["create", "every", "--schema", "k BIGINT"]);
    let refused = command(path, &["delete", "every", "--input", "keys.csv"])
        .output()
        .unwrap();
    assert!(text(&refused.stderr).contains("by their primary key"));
}

#[test]
fn rows_of_files_beside_a_store_that_do_not_fit_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    store(path, &["create", "s", "--schema", "k BIGINT"]);
    std::fs::write(path.join("bad.csv"), "k\n1\nx\n3\n").unwrap();
    let sum = "SELECT sum(k) AS k FROM 'bad.csv'";
    let options = [
        "--types",
        "k=int64",
        "--dead-letters",
        "letters.csv",
        "--format",
        "csv",
    ];
    let all: Vec<&str> = ["query", "s", sum].into_iter().chain(options).collect();
    assert_eq!(text(&store(path, &all).stdout), "k\n4\n");
    let letters = std::fs::read_to_string(path.join("letters.csv")).unwrap();
    assert!(letters.contains("bad.csv,3,k,"), "{letters}");
}

#[cfg(feature = "sql")]
#[test]
fn columns_have_any_name_and_types_of_decimals_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let schema = r#""a, b" DECIMAL(9, 2) NOT NULL, "say ""hi""" VARBINARY, c INT"#;
    let keys = r#""a, b",c"#;
    store(path, &["create", "s", "--schema", schema, "--key", keys]);
    let rows = "\"a, b\",\"say \"\"hi\"\"\",c\n1.50,6869,2\n";
    std::fs::write(path.join("rows.csv"), rows).unwrap();
    store(path, &["ingest", "s", "--input", "rows.csv"]);
    assert_eq!(query(path, "SELECT * FROM history"), rows);
    let doubled = r#"SELECT "a, b" * 2 AS x FROM history WHERE "say ""hi""" = X'6869'"#;
    assert_eq!(query(path, doubled), "x\n3.00\n");
    let types = r#""a, b"=decimal(9,3),"say ""hi"""=binary"#;
    let sum = r#"SELECT sum("a, b") AS n FROM 'rows.csv' WHERE "say ""hi""" = X'6869'"#;
    let typed = ["query", "s", sum, "--types", types, "--format", "csv"];
    assert_eq!(text(&store(path, &typed).stdout), "n\n1.500\n");
    let nameless = ["create", "t", "--schema", r#""" INT"#];
    let refused = command(path, &nameless).output().unwrap();
    assert!(text(&refused.stderr).contains("a column without a name"));
    let primary = [
        "create",
        "p",
        "--schema",
        "k INT NOT NULL",
        "--primary-key",
        "k",
    ];
    store(path, &primary);
    let follow = ["query", "p", "SELECT * FROM history", "--follow"];
    let refused = command(path, &follow).output().unwrap();
    assert!(
        text(&refused.stderr).contains("arg_max"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn rows_are_exported_by_times_as_people_write_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    create(path, &["--time", "ts"]);
    std::fs::write(path.join("rows.csv"), csv(0..200)).unwrap();
    store(path, &["ingest", "s", "--input", "rows.csv"]);
    for (range, expected) in [
        (&["--from", "2024-05-01 12:01:00"][..], 140),
        (&["--until", "2024-05-01T14:00:30+02:00"], 30),
        (
            &["--from", "2024-05-01T12:00:10Z", "--until", "1714564820000"],
            10,
        ),
        (&["--from", "2024-05-02"], 0),
    ] {
        std::fs::remove_file(path.join("out.csv")).unwrap_or_default();
        let arguments = [&["export", "s", "-o", "out.csv"], range].concat();
        let said = text(&store(path, &arguments).stderr);
        assert!(
            said.contains(&format!("{expected} rows written")),
            "{range:?}: {said}"
        );
    }
    let arguments = ["export", "s", "-o", "no.csv", "--until", "yesterday"];
    let output = command(path, &arguments).output().unwrap();
    let said = text(&output.stderr);
    assert!(
        said.contains("`yesterday` of --until is no time (column ts)"),
        "{said}"
    );
    assert!(
        said.contains("2018-07-11T00:00:00Z or milliseconds since 1970"),
        "{said}"
    );
    assert!(!path.join("no.csv").exists());
}

#[cfg(feature = "sql")]
#[test]
fn times_of_other_runs_are_queried_where_one_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let options = [
        "--time",
        "ts",
        "--set",
        "buffer_rows=60",
        "--set",
        "level_ratio=99",
    ];
    create(path, &options);
    std::fs::write(path.join("rows.csv"), csv(0..180)).unwrap();
    let ingest = ["ingest", "s", "--input", "rows.csv", "--batch-rows", "60"];
    store(path, &ingest);
    let run = path.join("s/runs/0000000002.tcr");
    let mut bytes = std::fs::read(&run).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&run, bytes).unwrap();
    let count = "SELECT count(*) AS n FROM history WHERE ts";
    let before = format!("{count} < '2024-05-01 12:01:00'");
    assert_eq!(query(path, &before), "n\n60\n");
    let behind = format!("{count} >= '2024-05-01 12:02:00'");
    assert_eq!(query(path, &behind), "n\n60\n");
    let across = format!("{count} <= '2024-05-01 12:01:00'");
    let all = "SELECT count(*) AS n FROM history";
    let newest = "SELECT max(ts) FROM history";
    let latest = "SELECT ts FROM history ORDER BY ts DESC LIMIT 1";
    let mut said = String::new();
    for sql in [all, newest, latest, &across] {
        let refused = command(path, &["query", "s", sql]).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{sql}");
        said = text(&refused.stderr);
    }
    assert!(
        said.contains("0000000002.tcr") && said.contains("store repair"),
        "{said}"
    );
    let verified = command(path, &["verify", "s"]).output().unwrap();
    assert_eq!(verified.status.code(), Some(1));
    let said = text(&store(path, &["stats", "s"]).stderr);
    assert!(said.contains("0000000002.tcr"), "{said}");
}
