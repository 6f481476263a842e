//! Names of columns without double quotes, where files and results have them in other letters.

use std::path::Path;
use std::sync::Arc;

use tersecades_sql::{Answer, Session};

use crate::answer::{Rows, run};

const TRIPS: &str = "UserID,City,Ts\n1,a,2024-01-01 00:00:01\n2,b,2024-01-01 00:00:02\n";

/// Runs `sql` over the files of `folder`, which `$` stands for.
fn ask(session: &mut Session, folder: &Path, sql: &str) -> Rows {
    let text = sql.replace('$', &format!("{}/", folder.display()));
    run(session, &text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn names(session: &mut Session, folder: &Path, query: &str) -> Vec<String> {
    let columns = ask(session, folder, &format!("DESCRIBE {query}"));
    columns.into_iter().map(|mut row| row.remove(0)).collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trips.csv"), TRIPS).unwrap();
    folder
}

#[test]
fn files_are_asked_and_written_by_names_in_any_letters() {
    let (folder, mut session) = (folder(), Session::default());
    let mut ask = |sql: &str| ask(&mut session, folder.path(), sql);
    ask("COPY (SELECT UserID, city FROM '$trips.csv' ORDER BY Ts DESC) TO '$copy.parquet'");
    ask("INSERT INTO '$new.csv' SELECT CITY FROM '$copy.parquet' WHERE userid = 2");
    let wanted = vec![vec!["b".to_owned()]];
    assert_eq!(ask("SELECT City FROM '$new.csv'"), wanted);
    assert_eq!(
        ask("FROM '$copy.parquet' SELECT City WHERE UserID > 1"),
        wanted
    );
    let joined = "SELECT b.City FROM '$trips.csv' a JOIN '$copy.parquet' b USING (UserID) \
                  ORDER BY a.Ts DESC LIMIT 1";
    assert_eq!(ask(joined), wanted);
}

#[test]
fn results_are_named_as_the_tables_name_them_and_expressions_as_they_are_written() {
    let (folder, mut session) = (folder(), Session::default());
    for (select, wanted) in [
        ("userid, t.CITY", ["UserID", "City"]),
        ("sum(UserID), City AS Town", ["sum(UserID)", "town"]),
        ("UserID, USERID", ["UserID", "UserID_1"]),
        ("* EXCLUDE (TS)", ["UserID", "City"]),
        ("* EXCLUDE (ts) RENAME (City AS Town)", ["UserID", "town"]),
    ] {
        let group = if select.contains("sum") {
            "GROUP BY City"
        } else {
            ""
        };
        let query = format!("SELECT {select} FROM '$trips.csv' t {group}");
        assert_eq!(
            names(&mut session, folder.path(), &query),
            wanted,
            "{query}"
        );
    }
}

#[test]
fn watermarks_and_rows_in_order_are_of_columns_in_any_letters() {
    let (folder, mut session) = (folder(), Session::default());
    let mut ask = |sql: &str| ask(&mut session, folder.path(), sql);
    for (stream, column) in [("a", "ts"), ("b", "Ts"), ("c", "\"Ts\"")] {
        ask(&format!(
            "CREATE STREAM {stream} AS SELECT * FROM '$trips.csv' \
             WATERMARK FOR {column} AS {column} - INTERVAL '1' SECOND"
        ));
        let last = format!("SELECT City FROM IN_ORDER(TABLE {stream}) WHERE UserID = 2");
        assert_eq!(ask(&last), vec![vec!["b".to_owned()]]);
    }
    let quoted = "CREATE STREAM d AS SELECT 1 AS \"Ts\" WATERMARK FOR \"TS\"";
    let error = run(&mut session, quoted).unwrap_err();
    assert_eq!(error.hint_text(), Some("did you mean `Ts`?"));
}

#[test]
fn columns_that_are_declared_of_a_file_are_exact_in_quotes() {
    let (folder, mut session) = (folder(), Session::default());
    let path = folder.path();
    std::fs::write(path.join("twice.csv"), "Ab,AB,c\n1,2,3\n").unwrap();
    let declared = |columns: &str, file: &str| {
        let file = path.join(file).display().to_string();
        format!("CREATE OR REPLACE STREAM s ({columns}) FROM '{file}'; SELECT * FROM s")
    };
    for (columns, file, names, wanted) in [
        (
            "userid BIGINT, \"City\" VARCHAR",
            "trips.csv",
            ["userid", "City"],
            ["1", "a"],
        ),
        (
            "\"AB\" BIGINT, C BIGINT",
            "twice.csv",
            ["AB", "c"],
            ["2", "3"],
        ),
    ] {
        let query = declared(columns, file);
        assert_eq!(run(&mut session, &query).unwrap()[0], wanted, "{query}");
        assert_eq!(self::names(&mut session, path, "SELECT * FROM s"), names);
    }
    for (columns, file, hint) in [
        (
            "\"CITY\" VARCHAR",
            "trips.csv",
            "the columns are: UserID, City, Ts",
        ),
        ("ab BIGINT", "twice.csv", "did you mean `Ab`?"),
    ] {
        let error = run(&mut session, &declared(columns, file)).unwrap_err();
        assert!(error.message().contains("has no column"), "{error}");
        assert_eq!(error.hint_text(), Some(hint));
    }
}

#[test]
fn tables_that_a_session_asks_for_are_no_others() {
    let mut session = Session::default();
    session.find_tables_with(Arc::new(|name| {
        let rows = "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(\"UserID\", \"City\")";
        let frame = (name == "frame").then(|| Session::default().stream(rows));
        Ok(frame.transpose()?.map(|stream| (stream, None)))
    }));
    let query = "SELECT f.CITY FROM Frame AS f WHERE UserID = (SELECT max(userid) FROM frame)";
    assert_eq!(
        run(&mut session, query).unwrap(),
        vec![vec!["b".to_owned()]]
    );
    let error = run(&mut session, "SELECT City FROM fram").unwrap_err();
    assert!(error.message().contains("unknown table `fram`"), "{error}");
}

#[test]
fn columns_of_a_table_are_encoded_however_its_name_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fares.csv");
    std::fs::write(&path, "fare\n1.5\n2.5\n").unwrap();
    for (name, written) in [("trips", "Trips"), ("Trips", "trips")] {
        let mut session = Session::default();
        session.register_file(name, &path, None).unwrap();
        let option = format!("encoding.{written}.fare");
        session.set(&option, "'zfp(0.5)'").unwrap();
        assert_eq!(session.table_names(), [name]);
        let answer = session.sql("SELECT fare FROM trips").unwrap().pop();
        let Some(Answer::Rows(results)) = answer else {
            panic!("a query has rows");
        };
        let schema = results.schema();
        assert_eq!(schema.field(0).metadata()["tersecades.error_bound"], "0.5");
    }
}
