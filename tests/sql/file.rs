//! Statements that read and write files, and what `EXPLAIN` says of them.

use std::path::Path;

use tersecades_sql::Session;

use crate::answer::{Rows, run};

/// Rows of which the last two are late by more than two seconds.
const PROBES: &str = "Timestamp,k,v,note\n\
    2024-01-01 00:00:01,a,1,007\n\
    2024-01-01 00:00:12,a,2,008\n\
    2024-01-01 00:00:25,b,3,009\n\
    2024-01-01 00:00:11,b,4,010\n\
    2024-01-01 00:00:02,a,5,011\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("probes.csv"), PROBES).unwrap();
    folder
}

fn ask(session: &mut Session, folder: &Path, sql: &str) -> Rows {
    let text = sql.replace("$", &format!("{}/", folder.display()));
    run(session, &text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn cells(rows: &[&[&str]]) -> Rows {
    let row = |row: &&[&str]| row.iter().map(|cell| (*cell).to_owned()).collect();
    rows.iter().map(row).collect()
}

/// The stream `probes` over the file, with a watermark.
const STREAM: &str = "CREATE STREAM probes \
     (timestamp TIMESTAMP(3), note VARCHAR, v DOUBLE, k VARCHAR, \
     WATERMARK FOR timestamp AS timestamp - INTERVAL '2' SECOND) FROM '$probes.csv'";

const WINDOWS: &str = "SELECT window_start, sum(v) AS total FROM probes \
     GROUP BY tumble(timestamp, INTERVAL '10 seconds')";

#[test]
fn a_stream_of_a_file_has_the_columns_types_and_watermark_it_says() {
    let (folder, mut session) = (folder(), Session::default());
    ask(&mut session, folder.path(), STREAM);
    let columns = ask(&mut session, folder.path(), "DESCRIBE probes");
    let wanted = cells(&[
        &["timestamp", "Timestamp(ms)"],
        &["note", "Utf8"],
        &["v", "Float64"],
        &["k", "Utf8"],
    ]);
    assert_eq!(columns, wanted);
    let notes = ask(
        &mut session,
        folder.path(),
        "SELECT note FROM probes WHERE v < 2",
    );
    assert_eq!(notes, cells(&[&["007"]]));
    let windows = ask(&mut session, folder.path(), WINDOWS);
    let starts = [
        "2024-01-01 00:00:00",
        "2024-01-01 00:00:10",
        "2024-01-01 00:00:20",
    ];
    let wanted = cells(&[
        &[starts[0], "1.0"],
        &[starts[1], "2.0"],
        &[starts[2], "3.0"],
    ]);
    assert_eq!(windows, wanted);
}

#[test]
fn late_rows_go_to_a_file_whole() {
    let (folder, mut session) = (folder(), Session::default());
    ask(&mut session, folder.path(), STREAM);
    let late = format!("{WINDOWS} LATE INTO '$late.csv'");
    assert_eq!(ask(&mut session, folder.path(), &late).len(), 3);
    let rows = ask(
        &mut session,
        folder.path(),
        "SELECT k, v FROM '$late.csv' ORDER BY v",
    );
    assert_eq!(rows, cells(&[&["b", "4.0"], &["a", "5.0"]]));
    let none = format!("{WINDOWS} ALLOWED LATENESS INTERVAL '1' MINUTE LATE INTO '$none.csv'");
    let updates = ask(&mut session, folder.path(), &none);
    assert_eq!(updates.iter().filter(|row| row[2] == "update").count(), 2);
    let rows = ask(
        &mut session,
        folder.path(),
        "SELECT count(*) FROM '$none.csv'",
    );
    assert_eq!(rows, cells(&[&["0"]]));
}

#[test]
fn late_rows_of_a_query_that_is_explained_by_running_it_go_to_their_file() {
    let (folder, mut session) = (folder(), Session::default());
    let mut ask = |sql: &str| ask(&mut session, folder.path(), sql);
    ask(STREAM);
    ask(&format!("EXPLAIN {WINDOWS} LATE INTO '$planned.csv'"));
    assert!(!folder.path().join("planned.csv").exists());
    ask(&format!("EXPLAIN ANALYZE {WINDOWS} LATE INTO '$late.csv'"));
    let late = ask("SELECT k, v FROM '$late.csv' ORDER BY v");
    assert_eq!(late, cells(&[&["b", "4.0"], &["a", "5.0"]]));
    let no_windows = "EXPLAIN ANALYZE SELECT v FROM probes LATE INTO '$none.csv'";
    let error = run(&mut session, no_windows).unwrap_err().to_string();
    assert!(error.contains("a query without windows"), "{error}");
}

#[test]
fn late_rows_of_a_window_over_a_join_are_those_of_the_join() {
    let (folder, mut session) = (folder(), Session::default());
    let mut ask = |sql: &str| ask(&mut session, folder.path(), sql);
    ask(STREAM);
    // Keys that come twice are joined, one that comes once is looked up.
    ask("CREATE TABLE hosts AS \
         SELECT * FROM (VALUES ('a', 'x'), ('b', 'y'), ('a', 'z')) AS h(k, host)");
    ask("CREATE TABLE names AS \
         SELECT * FROM (VALUES ('a', 'x'), ('b', 'y')) AS n(k, host)");
    let joined = [&["4.0", "y"], &["5.0", "x"], &["5.0", "z"]].map(|row| &row[..]);
    // Rows that look something up are still those of the stream.
    let looked_up = [&["4.0", "b"], &["5.0", "a"]].map(|row| &row[..]);
    for (table, results, columns, wanted) in [
        ("hosts", 5, "v, host", &joined[..]),
        ("names", 3, "v, k", &looked_up[..]),
    ] {
        let query = format!(
            "SELECT window_start, host, sum(v) FROM probes JOIN {table} ON probes.k = {table}.k \
             GROUP BY tumble(timestamp, INTERVAL '10 seconds'), host LATE INTO '${table}.csv'"
        );
        assert_eq!(ask(&query).len(), results, "{table}");
        let late = format!("SELECT {columns} FROM '${table}.csv' ORDER BY {columns}");
        assert_eq!(ask(&late), cells(wanted), "{table}");
    }
}

#[test]
fn late_rows_of_inner_windows_are_no_silent_loss() {
    let (folder, mut session) = (folder(), Session::default());
    ask(&mut session, folder.path(), STREAM);
    let nested = "SELECT window_start, count(*) \
         FROM (SELECT window_start, k, sum(v) AS total FROM probes \
               GROUP BY tumble(timestamp, INTERVAL '10 seconds'), k LIMIT 9) AS w \
         GROUP BY tumble(window_start, INTERVAL '1 minute') LATE INTO '$late.csv'";
    let text = nested.replace('$', &format!("{}/", folder.path().display()));
    let error = run(&mut session, &text).unwrap_err().to_string();
    assert!(error.contains("2 late rows are of a subquery"), "{error}");
}

#[test]
fn what_is_kept_is_the_newest_part_of_the_stream() {
    let (folder, mut session) = (folder(), Session::default());
    ask(&mut session, folder.path(), "SET batch_rows = 1");
    let kept = "CREATE STREAM recent AS SELECT * FROM '$probes.csv' \
                WATERMARK FOR \"Timestamp\" AS \"Timestamp\" - INTERVAL '1' MINUTE KEEP 15 SECONDS";
    ask(&mut session, folder.path(), kept);
    let rows = ask(
        &mut session,
        folder.path(),
        "SELECT v FROM recent ORDER BY v",
    );
    // Batches go from the oldest on: the row at 2 came behind the row at 12, which stays.
    assert_eq!(rows, cells(&[&["2"], &["3"], &["4"], &["5"]]));
}

#[test]
fn explain_says_what_each_operator_did() {
    let (folder, mut session) = (folder(), Session::default());
    ask(&mut session, folder.path(), STREAM);
    let analyze = "EXPLAIN ANALYZE SELECT k, sum(v) FROM probes WHERE v > 1 GROUP BY k ORDER BY k";
    let lines = ask(&mut session, folder.path(), analyze);
    let has = |text: &str| lines.iter().any(|line| line[0].contains(text));
    assert!(
        has("[rows 5 to 4, ") && has("[rows 4 to 2, ") && has("[rows 2 to 2, "),
        "{lines:?}"
    );
    assert!(
        has("planned in") && has("decoded") && has("filter v > 1"),
        "{lines:?}"
    );
    let plain = ask(
        &mut session,
        folder.path(),
        "EXPLAIN SELECT k FROM probes WHERE v > 1",
    );
    assert!(
        plain.iter().all(|line| !line[0].contains("[rows")),
        "{plain:?}"
    );
}

#[test]
fn explain_codecs_lists_ways_to_encode_a_column() {
    let (folder, mut session) = (folder(), Session::default());
    ask(&mut session, folder.path(), STREAM);
    let codecs = ask(
        &mut session,
        folder.path(),
        "EXPLAIN CODECS SELECT sum(v), min(k) FROM probes",
    );
    assert!(codecs.len() > 2);
    assert!(
        codecs.iter().all(|row| !row[3].contains("row")),
        "{codecs:?}"
    );
    for column in ["v", "k"] {
        let chosen = codecs
            .iter()
            .filter(|row| row[1] == column && row[2] != "NULL");
        assert_eq!(chosen.count(), 1, "{codecs:?}");
    }
    // Where values are read once, all of what encoding costs is paid by that read.
    let cost = |codecs: &[Vec<String>], scheme: &str| {
        let row = codecs.iter().find(|row| row[1] == "v" && row[4] == scheme);
        row.map(|row| row[8].parse::<f64>().unwrap()).unwrap()
    };
    let often = cost(&codecs, "run_length");
    ask(&mut session, folder.path(), "SET reads = 1");
    let query = "EXPLAIN CODECS SELECT sum(v), min(k) FROM probes";
    let codecs = ask(&mut session, folder.path(), query);
    assert!(cost(&codecs, "run_length") > often);
    assert!(codecs[0][3].ends_with(" %"), "{codecs:?}");
    ask(&mut session, folder.path(), "SET tier = cold");
    let cold = ask(&mut session, folder.path(), query);
    assert!(cold.iter().any(|row| row[4] == "pco"), "{cold:?}");
    assert!(codecs.iter().all(|row| row[4] != "pco"), "{codecs:?}");
    ask(&mut session, folder.path(), "SET layout = 'row'");
    let wrong = session.set("tier", "lukewarm").unwrap_err();
    assert_eq!(wrong.hint_text(), Some("it is hot or cold"));
}

#[test]
fn explain_codecs_lists_tables_of_subqueries() {
    let (folder, mut session) = (folder(), Session::default());
    let mut ask = |sql: &str| ask(&mut session, folder.path(), sql);
    ask(STREAM);
    ask("CREATE TABLE limits AS SELECT * FROM (VALUES (1.5), (2.5)) AS l(most)");
    let query = "SELECT k FROM probes WHERE v > (SELECT max(most) FROM limits)";
    let codecs = ask(&format!("EXPLAIN CODECS {query}"));
    for (table, column) in [("probes", "k"), ("probes", "v"), ("limits", "most")] {
        let is_it = |row: &&Vec<String>| row[0] == table && row[1] == column;
        assert!(
            codecs.iter().any(|row| is_it(&row)),
            "{table}.{column}: {codecs:?}"
        );
    }
}

#[test]
fn a_view_of_a_join_reads_its_files_anew() {
    let (folder, mut session) = (folder(), Session::default());
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (many, few) = (place("many.parquet"), place("few.parquet"));
    for (sql, path) in [
        (
            "SELECT * FROM (VALUES (1), (2), (3), (4), (5)) AS t(k)",
            &many,
        ),
        (
            "SELECT k, k * 10 AS x FROM (VALUES (1), (2), (3)) AS t(k)",
            &few,
        ),
    ] {
        ask(
            &mut session,
            folder.path(),
            &format!("INSERT INTO '{path}' {sql}"),
        );
    }
    let join =
        format!("SELECT sum(f.x) AS s, count(*) AS n FROM '{many}' m JOIN '{few}' f ON m.k = f.k");
    ask(
        &mut session,
        folder.path(),
        &format!("CREATE VIEW v AS {join}"),
    );
    let of_view = |session: &mut Session| ask(session, folder.path(), "SELECT * FROM v");
    assert_eq!(of_view(&mut session), cells(&[&["60", "3"]]));
    assert_eq!(
        ask(&mut session, folder.path(), &join),
        cells(&[&["60", "3"]])
    );
    std::fs::remove_file(&few).unwrap();
    let sql = "SELECT k, k * 100 AS x FROM (VALUES (2), (3)) AS t(k)";
    ask(
        &mut session,
        folder.path(),
        &format!("INSERT INTO '{few}' {sql}"),
    );
    assert_eq!(of_view(&mut session), cells(&[&["500", "2"]]));
}

#[test]
fn a_statement_reads_files_as_they_are_when_it_runs() {
    let (folder, mut session) = (tempfile::tempdir().unwrap(), Session::default());
    let mut ask = |sql: &str| ask(&mut session, folder.path(), sql);
    ask("INSERT INTO '$a.csv' SELECT 1 AS a");
    let counted = "SELECT count(*) AS n FROM '$*.csv'";
    assert_eq!(ask(counted), cells(&[&["1"]]));
    ask("INSERT INTO '$b.csv' SELECT 2 AS a");
    assert_eq!(ask(counted), cells(&[&["2"]]));
    let between = format!("{counted}; INSERT INTO '$c.csv' SELECT 3 AS a; {counted}");
    assert_eq!(ask(&between), cells(&[&["3"]]));
    ask("COPY (SELECT 'x' AS b, 2.5 AS c) TO '$a.csv'");
    assert_eq!(ask("SELECT * FROM '$a.csv'"), cells(&[&["x", "2.5"]]));
}

#[test]
fn a_stream_of_a_query_reads_files_as_they_are_when_it_is_planned() {
    let (folder, mut session) = (tempfile::tempdir().unwrap(), Session::default());
    let path = folder.path();
    let column = |session: &mut Session| {
        let stream = session.stream(&format!("SELECT * FROM '{}/a.csv'", path.display()));
        stream.unwrap().schema().unwrap().field(0).name().clone()
    };
    ask(&mut session, path, "COPY (SELECT 1 AS a) TO '$a.csv'");
    assert_eq!(column(&mut session), "a");
    ask(&mut session, path, "COPY (SELECT 1 AS b) TO '$a.csv'");
    assert_eq!(column(&mut session), "b");
}
