//! The same random queries in both engines.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use tersecades_sql::Session;
use tersecades_testkit::random::Random;

use crate::answer::{Rows, difference, run};
use crate::duckdb;
use crate::random::file::{Made, file_query, file_tables};
use crate::random::table::{random_tables, real_rows, real_tables};
use crate::random::{Query, query};

/// Queries over one pair of tables.
const QUERIES_PER_TABLE: u64 = 50;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .map_or(default, |value| value.parse().unwrap())
}

struct Round {
    seed: u64,
    /// How our engine runs them.
    settings: String,
    tables: Vec<Made>,
    queries: Vec<Query>,
}

/// The tables of a few rows each of a seed; every fourth has real rows, where there are any.
fn small(random: &mut Random, seed: u64, real: Option<&Path>) -> Vec<String> {
    match real.filter(|_| seed.is_multiple_of(4)) {
        Some(rows) => real_tables(random, rows),
        None => random_tables(random),
    }
}

/// The tables and queries of a seed; every fourth has real rows, where there are any.
fn round(seed: u64, real: Option<&Path>, folder: &Path) -> Round {
    let mut random = Random::new(seed);
    let every = number("TERSECADES_SQL_FILES", 16);
    let of_files = seed % every == 1 % every;
    let same = |text: String| Made {
        ours: text.clone(),
        theirs: text,
    };
    let tables = match of_files {
        true => file_tables(&mut random, folder, seed),
        false => small(&mut random, seed, real)
            .into_iter()
            .map(same)
            .collect(),
    };
    let sizes = match of_files {
        true => [100, 1024, 65_536],
        false => [1, 3, 1024],
    };
    let (rows, threads) = (random.pick(&sizes), random.pick(&[1, 2, 3]));
    let settings = format!("SET batch_rows = {rows}; SET threads = {threads}");
    let queries = (0..QUERIES_PER_TABLE)
        .map(|_| match of_files {
            true => file_query(&mut random),
            false => query(&mut random),
        })
        .collect();
    Round {
        seed,
        settings,
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

/// What came of the queries of some rounds.
#[derive(Default)]
struct Tally {
    /// What is wrong.
    failures: Vec<String>,
    /// How many queries both engines gave rows for.
    compared: usize,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.failures.extend(other.failures);
        self.compared += other.compared;
    }
}

/// What our engine says to a round beside DuckDB's `answers`.
fn compared(round: &Round, answers: &[Result<Rows, String>]) -> Tally {
    let mut session = Session::default();
    let mut answers = answers.iter();
    answers.next();
    run(&mut session, &round.settings).unwrap();
    for table in &round.tables {
        run(&mut session, &table.ours).unwrap();
        let theirs = answers.next().unwrap();
        assert!(
            theirs.is_ok(),
            "seed {}: {}: {theirs:?}",
            round.seed,
            table.theirs
        );
    }
    let mut tally = Tally::default();
    for (query, theirs) in round.queries.iter().zip(answers) {
        let ours = run(&mut session, &query.ours);
        tally.compared += usize::from(ours.is_ok() && theirs.is_ok());
        if let Some(what) = wrong(&ours, theirs, query.ordered) {
            let failure = format!("seed {}: {}\n    {what}", round.seed, query.ours);
            tally.failures.push(failure);
        }
    }
    tally
}

/// Compares the rounds, on all processors.
fn compare_all(rounds: &[Round], answers: &[Result<Rows, String>]) -> Tally {
    let mut jobs = Vec::with_capacity(rounds.len());
    let mut rest = answers;
    for round in rounds {
        let (own, others) = rest.split_at(1 + round.tables.len() + round.queries.len());
        jobs.push((round, own));
        rest = others;
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut tally = Tally::default();
        while let Some((round, answers)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            tally.add(compared(round, answers));
        }
        tally
    };
    std::thread::scope(|scope| {
        let threads = available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut tally = Tally::default();
        for thread in threads {
            tally.add(thread.join().unwrap());
        }
        tally
    })
}

#[test]
fn random_queries_give_what_duckdb_gives() {
    let first = number("TERSECADES_SQL_SEED", 1);
    let count = number("TERSECADES_SQL_QUERIES", 5_000);
    let folder = tempfile::tempdir().unwrap();
    let real = real_rows(folder.path());
    let rounds: Vec<Round> = (0..count.div_ceil(QUERIES_PER_TABLE))
        .map(|index| round(first + index, real.as_deref(), folder.path()))
        .collect();
    let mut statements = Vec::new();
    for round in &rounds {
        statements.push(duckdb::RESET.to_owned());
        statements.extend(round.tables.iter().map(|table| table.theirs.clone()));
        statements.extend(round.queries.iter().map(|query| query.theirs.clone()));
    }
    let Some(answers) = duckdb::answers(&statements) else {
        return;
    };
    let Tally { failures, compared } = compare_all(&rounds, &answers);
    let total = rounds.len() as u64 * QUERIES_PER_TABLE;
    eprintln!("{compared} of {total} random queries gave rows in both engines");
    assert!(
        compared * 10 >= total as usize * 9,
        "{compared} of {total} queries were compared"
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
