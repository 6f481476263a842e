//! Runs that do without parts of the engine answer as those with all of it.
//!
//! Sums of floats may differ by what the oracle allows: encoded decimals are added as whole
//! numbers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use arrow_array::RecordBatch;
use tersecades_engine::Result;
use tersecades_engine::runtime::ablation::Ablation;
use tersecades_engine::runtime::{Keep, Running};
use tersecades_engine::stream::Stream;
use tersecades_testkit::data::to_batches;
use tersecades_testkit::oracle::{answer, batch_difference};
use tersecades_testkit::query::random_query;

const CASES: u64 = 300;

/// Results, or that there is an error.
fn outcome(run: Result<Running>) -> Option<Vec<RecordBatch>> {
    run.ok()?.collect::<Result<Vec<RecordBatch>>>().ok()
}

#[test]
fn answers_do_not_depend_on_what_a_run_does_without() {
    let without = |direct, reuse, own_table| Ablation {
        direct,
        reuse,
        own_table,
    };
    let parts = [
        without(true, false, false),
        without(false, true, false),
        without(false, false, true),
        without(true, true, true),
    ];
    let mut answered = 0;
    for seed in 0..CASES {
        let (query, stream) = random_query(seed);
        let oracle = answer(&query, &stream.schema, &stream.rows);
        let slack = oracle.map_or(Vec::new(), |oracle| oracle.slack);
        let batches = to_batches(&stream.schema, &stream.rows, 100);
        let rows = Stream::from_batches(stream.schema.clone(), batches).query(query.clone());
        for kept in [rows.clone(), rows.keep(Keep::Bytes(usize::MAX))] {
            let expected = outcome(kept.clone().run());
            for part in parts {
                let found = outcome(kept.clone().without(part).run());
                let differs = match (&expected, &found) {
                    (Some(expected), Some(found)) => {
                        batch_difference(&query, expected, found, &slack)
                    }
                    (None, None) => None,
                    _ => Some("one of them is an error".to_owned()),
                };
                if let Some(differs) = differs {
                    panic!("seed {seed}, {part:?}: {differs}\n{query:#?}");
                }
            }
            answered += usize::from(expected.is_some());
        }
    }
    assert!(answered > CASES as usize, "{answered} of {CASES}");
}
