//! Random queries over random streams agree with the naive engine, however they are run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_engine::Result;
use tersecades_engine::plan::Query;
use tersecades_engine::runtime::{Keep, Running};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::WINDOWS;
use tersecades_testkit::data::{Stream as Rows, to_batches};
use tersecades_testkit::oracle::{Answer, answer, difference};
use tersecades_testkit::query::random_query;
use tersecades_testkit::random::Random;
use tersecades_testkit::trial::{self, Cases, Smaller, smaller};

/// How one run differs from the next without changing the answer.
#[derive(Debug, Clone, Copy)]
struct Way {
    batch_rows: usize,
    threads: usize,
    kept: bool,
    /// Whether the batches are encoded before the run, which may look ahead in them then.
    encoded: bool,
    /// Batches before a snapshot that a fresh run goes on from.
    restart: Option<usize>,
}

const WHOLE: Way = Way {
    batch_rows: 65_536,
    threads: 1,
    kept: true,
    encoded: false,
    restart: None,
};

/// A query, its rows, and the ways to run it.
struct Case {
    query: Query,
    stream: Rows,
    ways: Vec<Way>,
}

struct Queries;

/// Two of the ways: over all seeds every one of them is taken often.
fn ways(random: &mut Random) -> Vec<Way> {
    let small = Way {
        batch_rows: *random.pick(&[1, 3, 7]),
        kept: random.one_in(4),
        ..WHOLE
    };
    let threads = Way {
        batch_rows: *random.pick(&[3, 20, 64, 100]),
        threads: 2 + random.below(2),
        kept: random.one_in(3),
        ..WHOLE
    };
    let ahead = Way {
        batch_rows: *random.pick(&[1, 3, 20, 64]),
        threads: 1 + random.below(4),
        kept: false,
        encoded: true,
        ..WHOLE
    };
    let medium = Way {
        batch_rows: 20,
        ..WHOLE
    };
    // Early, where most streams still have rows to come, or anywhere.
    let stop = *random.pick(&[10, 80]);
    let restarted = Way {
        restart: Some(random.below(stop)),
        threads: *random.pick(&[1, 1, 3]),
        ..medium
    };
    let all = [WHOLE, small, threads, ahead, medium, restarted];
    let first = random.below(all.len());
    let second = (first + 1 + random.below(all.len() - 1)) % all.len();
    vec![all[first], all[second]]
}

/// The rows as batches that lie encoded in memory.
fn encoded(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Stream> {
    let mut encoder = BatchEncoder::new(schema)?;
    let batches: Result<Vec<Arc<Batch>>> = batches
        .iter()
        .map(|batch| encoder.encode_new(batch).map(Arc::new))
        .collect();
    Ok(Stream::from_encoded(Arc::clone(encoder.schema()), batches?))
}

impl Case {
    fn start(&self, batches: Vec<RecordBatch>, way: Way) -> Result<Running> {
        let stream = match way.encoded {
            true => encoded(&self.stream.schema, &batches)?,
            false => Stream::from_batches(self.stream.schema.clone(), batches),
        };
        let mut built = stream
            .query(self.query.clone())
            .threads(way.threads)
            .keep_late();
        if way.kept {
            built = built.keep(Keep::Bytes(usize::MAX));
        }
        built.run()
    }

    fn run(&self, way: Way) -> Result<(Answer, u64)> {
        let mut batches = to_batches(&self.stream.schema, &self.stream.rows, way.batch_rows);
        let mut results = Vec::new();
        let restart = way.restart.unwrap_or(0).min(batches.len());
        let rest = batches.split_off(restart);
        let mut running = if way.restart.is_some() {
            let mut first = self.start(batches, way)?;
            for _ in 0..restart {
                first.step()?;
                while let Some(batch) = first.take_result() {
                    results.push(batch);
                }
            }
            let snapshot = first.snapshot()?;
            let mut second = self.start(rest, way)?;
            second.restore(&snapshot)?;
            second
        } else {
            self.start(rest, way)?
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

    /// How a run differs from the answer.
    fn check(&self, expected: &Result<Answer>, way: Way) -> std::result::Result<(), String> {
        let (expected, (got, late_rows)) = match (expected, self.run(way)) {
            (Ok(expected), Ok(got)) => (expected, got),
            (Err(_), Err(_)) => return Ok(()),
            (Ok(_), Err(error)) => return Err(format!("{error}\n{way:?}")),
            (Err(error), Ok(_)) => return Err(format!("the oracle refuses: {error}\n{way:?}")),
        };
        if let Some(difference) = difference(expected, &got) {
            return Err(format!("{difference}\n{way:?}"));
        }
        let counts = (late_rows as usize, got.skipped_rows, got.untimed_rows);
        let same = (
            expected.late.len(),
            expected.skipped_rows,
            expected.untimed_rows,
        );
        match counts == same {
            true => Ok(()),
            false => Err(format!(
                "late, skipped, untimed rows: expected {same:?}, got {counts:?}\n{way:?}"
            )),
        }
    }
}

impl Cases for Queries {
    type Case = Case;
    /// Whether there was an answer with rows.
    type Seen = bool;

    fn make(&self, seed: u64) -> Case {
        let (query, stream) = random_query(seed);
        Case {
            query,
            stream,
            ways: ways(&mut Random::new(seed ^ 0x5EED)),
        }
    }

    fn check(&self, case: &Case) -> std::result::Result<bool, String> {
        let expected = answer(&case.query, &case.stream.schema, &case.stream.rows);
        for way in &case.ways {
            case.check(&expected, *way)?;
        }
        Ok(expected.is_ok_and(|expected| !expected.rows.is_empty()))
    }

    fn smaller<'a>(&'a self, case: &'a Case) -> Smaller<'a, Case> {
        let of = |query: Query, stream: Rows, ways: Vec<Way>| Case {
            query,
            stream,
            ways,
        };
        let ways = case.ways.iter().filter(|_| case.ways.len() > 1);
        let ways = ways.map(move |way| of(case.query.clone(), case.stream.clone(), vec![*way]));
        let streams = smaller::streams(&case.stream, &case.query);
        let streams = streams.map(move |rows| of(case.query.clone(), rows, case.ways.clone()));
        let queries = smaller::queries(&case.query);
        let queries = queries.map(move |query| of(query, case.stream.clone(), case.ways.clone()));
        Box::new(ways.chain(queries).chain(streams))
    }

    fn show(&self, case: &Case) -> String {
        let rows = case.stream.rows.iter().map(|row| format!("\n  {row:?}"));
        format!(
            "{}\n{:?}\n{:#?}\n{} rows of {:?}{}",
            case.query,
            case.ways,
            case.query.steps,
            case.stream.rows.len(),
            tersecades_testkit::oracle::columns_of(&case.stream.schema),
            rows.collect::<String>()
        )
    }
}

#[test]
fn random_queries_agree_with_the_oracle() {
    let seen = trial::run("queries", 8_000, &Queries);
    let with_rows = seen.iter().filter(|with_rows| **with_rows).count();
    assert!(
        seen.len() < 100 || with_rows * 4 >= seen.len(),
        "{with_rows} have rows"
    );
}

#[test]
fn every_kind_of_window_is_drawn() {
    let queries = (0..2_000).map(|seed| format!("{:?}", random_query(seed).0));
    let queries: Vec<String> = queries.collect();
    for kind in WINDOWS {
        let (first, rest) = kind.name.split_at(1);
        let shape = format!("shape: {}{rest}", first.to_uppercase());
        let drawn = queries.iter().any(|query| query.contains(&shape));
        assert!(drawn, "no query has a window of kind {}", kind.name);
    }
}
