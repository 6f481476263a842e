//! The written cases: our answers, and DuckDB's, are the rows that stand under the queries.

use std::path::{Path, PathBuf};

use tersecades_sql::Session;

use crate::answer::{Rows, difference, run};
use crate::case::{Case, Kind, parse, write};
use crate::duckdb;

fn files() -> Vec<(PathBuf, Vec<Case>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/cases");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let cases = parse(&std::fs::read_to_string(&path).unwrap());
        (path, cases)
    };
    paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "slt"))
        .map(read)
        .collect()
}

fn place(path: &Path, case: &Case) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    format!("{name}:{}: {}", case.line, case.sql.replace('\n', " "))
}

fn check(session: &mut Session, case: &Case) -> Option<String> {
    let answer = run(session, &case.sql);
    match (&case.kind, answer) {
        (Kind::Statement, Ok(_)) => None,
        (
            Kind::Query {
                ordered,
                rows: Some(rows),
                ..
            },
            Ok(ours),
        ) => difference(&ours, rows, *ordered),
        (Kind::Query { rows: None, .. }, Ok(_)) => {
            Some("there are no rows to compare with".to_owned())
        }
        (Kind::Error(text), Err(error)) => {
            let said = error.to_string();
            (!said.contains(text.as_str())).then(|| format!("said: {said}"))
        }
        (Kind::Error(text), Ok(_)) => Some(format!("is no error, expected: {text}")),
        (_, Err(error)) => Some(format!("failed: {error}")),
    }
}

#[test]
fn queries_give_the_rows_that_stand_under_them() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (path, cases) in files() {
        let mut session = Session::default();
        for case in &cases {
            count += usize::from(case.kind != Kind::Statement);
            if let Some(what) = check(&mut session, case) {
                wrong.push(format!("{}\n    {what}", place(&path, case)));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn duckdb_gives_the_same_rows_but_for_the_rules_of_the_dialect() {
    let mut wrong = Vec::new();
    for (path, cases) in files() {
        let asked: Vec<&Case> = cases.iter().filter(|case| is_asked(case)).collect();
        let statements: Vec<String> = asked.iter().map(|case| case.sql.clone()).collect();
        let Some(answers) = duckdb::answers(&statements) else {
            return;
        };
        for (case, theirs) in asked.iter().zip(&answers) {
            if let Some(what) = compare(&case.kind, theirs) {
                wrong.push(format!("{}\n    {what}", place(&path, case)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether DuckDB has something to say about a case.
fn is_asked(case: &Case) -> bool {
    match &case.kind {
        Kind::Statement => !case.sql.starts_with("CREATE STREAM"),
        Kind::Query { rule, .. } => rule.is_none(),
        Kind::Error(_) => false,
    }
}

fn compare(kind: &Kind, theirs: &Result<Rows, String>) -> Option<String> {
    match (kind, theirs) {
        (
            Kind::Query {
                ordered,
                rows: Some(rows),
                ..
            },
            Ok(theirs),
        ) => difference(rows, theirs, *ordered).map(|what| format!("written: {what} by DuckDB")),
        (_, Err(error)) => Some(format!("DuckDB: {error}")),
        _ => None,
    }
}

#[test]
fn rows_of_duckdb_are_written_where_they_are_asked_for() {
    if std::env::var_os("TERSECADES_SQL_WRITE").is_none() {
        return;
    }
    for (path, mut cases) in files() {
        let asked: Vec<String> = cases
            .iter()
            .filter(|case| is_asked(case))
            .map(|case| case.sql.clone())
            .collect();
        let mut answers = duckdb::answers(&asked).unwrap().into_iter();
        for case in &mut cases {
            if !is_asked(case) {
                continue;
            }
            let answer = answers.next().unwrap();
            let at = place(&path, case);
            match (&mut case.kind, answer) {
                (
                    Kind::Query {
                        rows: rows @ None, ..
                    },
                    Ok(theirs),
                ) => *rows = Some(theirs),
                (_, Err(error)) => eprintln!("{at}\n    DuckDB: {error}"),
                _ => {}
            }
        }
        std::fs::write(&path, write(&cases)).unwrap();
    }
}
