//! The same random queries in both engines.

use tersecades_sql::Session;
use tersecades_testkit::random::Random;

use crate::answer::{Rows, difference, run};
use crate::duckdb;
use crate::random::{Query, query, tables};

/// Queries over one pair of tables.
const QUERIES_PER_TABLE: u64 = 50;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .map_or(default, |value| value.parse().unwrap())
}

struct Round {
    seed: u64,
    tables: Vec<String>,
    queries: Vec<Query>,
}

fn round(seed: u64) -> Round {
    let mut random = Random::new(seed);
    let tables = tables(&mut random);
    let queries = (0..QUERIES_PER_TABLE).map(|_| query(&mut random)).collect();
    Round {
        seed,
        tables,
        queries,
    }
}

/// Why an answer of ours is wrong beside theirs.
fn wrong(
    ours: &tersecades_engine::Result<Rows>,
    theirs: &Result<Rows, String>,
    ordered: bool,
) -> Option<String> {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => difference(ours, theirs, ordered),
        (Err(error), Ok(_)) => Some(format!("failed: {error}")),
        // Where both refuse there is nothing to compare; where DuckDB alone does, an overflow of
        // a narrower type is one, which ours computes in 64 bits.
        (Ok(_), Err(error)) if error.contains("Out of Range") => None,
        (Ok(_), Err(error)) => Some(format!("DuckDB alone refuses: {error}")),
        (Err(_), Err(_)) => None,
    }
}

#[test]
fn random_queries_give_what_duckdb_gives() {
    let first = number("TERSECADES_SQL_SEED", 1);
    let count = number("TERSECADES_SQL_QUERIES", 300);
    let rounds: Vec<Round> = (0..count.div_ceil(QUERIES_PER_TABLE))
        .map(|index| round(first + index))
        .collect();
    let mut statements = Vec::new();
    for round in &rounds {
        statements.push(duckdb::RESET.to_owned());
        statements.extend(round.tables.iter().cloned());
        statements.extend(round.queries.iter().map(|query| query.theirs.clone()));
    }
    let Some(answers) = duckdb::answers(&statements) else {
        return;
    };
    let mut answers = answers.iter();
    let (mut failures, mut refused) = (Vec::new(), 0);
    for round in &rounds {
        let mut session = Session::default();
        answers.next();
        for table in &round.tables {
            run(&mut session, table).unwrap();
            assert!(
                answers.next().unwrap().is_ok(),
                "seed {}: {table}",
                round.seed
            );
        }
        for query in &round.queries {
            let theirs = answers.next().unwrap();
            let ours = run(&mut session, &query.ours);
            refused += usize::from(ours.is_err());
            if let Some(what) = wrong(&ours, theirs, query.ordered) {
                failures.push(format!("seed {}: {}\n    {what}", round.seed, query.ours));
            }
        }
    }
    let total = rounds.len() as u64 * QUERIES_PER_TABLE;
    assert!(
        refused * 10 < total as usize,
        "{refused} of {total} queries were refused"
    );
    let shown = failures
        .iter()
        .take(20)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        failures.is_empty(),
        "{} of {total} queries:\n{shown}",
        failures.len()
    );
}
