//! Random queries over random streams agree with the naive engine, however they are run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use arrow_array::RecordBatch;
use tersecades_engine::plan::Query;
use tersecades_engine::runtime::{Keep, Running};
use tersecades_engine::stream::Stream;
use tersecades_testkit::data::{Stream as Rows, to_batches};
use tersecades_testkit::oracle::{Answer, answer, difference};
use tersecades_testkit::query::random_query;
use tersecades_testkit::random::Random;

/// Queries of one run; `TERSECADES_ORACLE_SEEDS` asks for more.
const SEEDS: u64 = 400;

/// How one run differs from the next without changing the answer.
#[derive(Debug, Clone, Copy)]
struct Way {
    batch_rows: usize,
    threads: usize,
    kept: bool,
    /// Batches before a snapshot that a fresh run goes on from.
    restart: Option<usize>,
}

fn start(query: &Query, stream: &Rows, batches: Vec<RecordBatch>, way: Way) -> Running {
    let mut built = Stream::from_batches(stream.schema.clone(), batches)
        .query(query.clone())
        .threads(way.threads)
        .keep_late();
    if way.kept {
        built = built.keep(Keep::Bytes(usize::MAX));
    }
    built.run().unwrap()
}

fn run(query: &Query, stream: &Rows, way: Way) -> tersecades_engine::Result<(Answer, u64)> {
    let mut batches = to_batches(&stream.schema, &stream.rows, way.batch_rows);
    let mut results = Vec::new();
    let restart = way.restart.unwrap_or(0).min(batches.len());
    let rest = batches.split_off(restart);
    let mut running = if way.restart.is_some() {
        let mut first = start(query, stream, batches, way);
        for _ in 0..restart {
            first.step()?;
            while let Some(batch) = first.take_result() {
                results.push(batch);
            }
        }
        let snapshot = first.snapshot()?;
        let mut second = start(query, stream, rest, way);
        second.restore(&snapshot)?;
        second
    } else {
        start(query, stream, rest, way)
    };
    for batch in running.by_ref() {
        results.push(batch?);
    }
    let metrics = running.metrics();
    let mut got = Answer::from_batches(&running.schema(), &results);
    got.skipped_rows = metrics.skipped_rows as usize;
    got.untimed_rows = metrics.untimed_rows as usize;
    Ok((got, metrics.late_rows))
}

fn check(seed: u64) {
    let (query, stream) = random_query(seed);
    let expected = answer(&query, &stream.schema, &stream.rows);
    let mut random = Random::new(seed ^ 0x5EED);
    let whole = Way {
        batch_rows: 65_536,
        threads: 1,
        kept: true,
        restart: None,
    };
    let ways = [
        whole,
        Way {
            batch_rows: 7,
            kept: false,
            ..whole
        },
        Way {
            batch_rows: *random.pick(&[1, 3, 64, 100]),
            threads: 3,
            ..whole
        },
        Way {
            batch_rows: 20,
            ..whole
        },
        Way {
            batch_rows: 20,
            restart: Some(random.below(10)),
            ..whole
        },
    ];
    for way in ways {
        let context = || format!("seed {seed}, {way:?}, {query:#?}");
        match (&expected, run(&query, &stream, way)) {
            (Ok(expected), Ok((got, late_rows))) => {
                if let Some(difference) = difference(expected, &got) {
                    panic!("{difference}\n{}", context());
                }
                assert_eq!(
                    late_rows,
                    expected.late.len() as u64,
                    "late rows, {}",
                    context()
                );
                assert_eq!(
                    got.skipped_rows,
                    expected.skipped_rows,
                    "skipped, {}",
                    context()
                );
                assert_eq!(
                    got.untimed_rows,
                    expected.untimed_rows,
                    "untimed, {}",
                    context()
                );
            }
            (Err(_), Err(_)) => {}
            (Ok(_), Err(error)) => panic!("{error}\n{}", context()),
            (Err(error), Ok(_)) => panic!("the oracle refuses: {error}\n{}", context()),
        }
    }
}

#[test]
fn random_queries_agree_with_the_oracle() {
    let seeds = std::env::var("TERSECADES_ORACLE_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok());
    let first = std::env::var("TERSECADES_ORACLE_FIRST")
        .ok()
        .and_then(|n| n.parse().ok());
    let first = first.unwrap_or(0);
    for seed in first..first + seeds.unwrap_or(SEEDS) {
        check(seed);
    }
}
