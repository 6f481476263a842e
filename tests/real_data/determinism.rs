//! Arrival order within the lateness, and a restart at any batch, never change an answer.

use std::time::Duration;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

use crate::data_set::{DataSet, FLIGHTS, Loaded, RIPE_ATLAS};
use crate::late::{epoch_seconds, scheduled_seconds};
use crate::question::{Question, Way};
use crate::questions;
use crate::row::{Row, assert_rows_agree};

/// Rows that are shuffled or replayed.
const ROWS: usize = 60_000;
const BATCH_ROWS: usize = 4_096;
const JITTER_S: i64 = 7_200;

/// Pseudo-random numbers that are the same in every run.
///
/// # Source
/// SplitMix64, Steele, Lea and Flood, OOPSLA 2014.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// The first `rows` rows, in the order of their times plus up to `jitter_s` each.
///
/// A row then comes at most `jitter_s` after a newer one.
pub(crate) fn jittered(
    loaded: &Loaded,
    seconds: fn(&RecordBatch) -> Vec<i64>,
    (rows, jitter_s): (usize, i64),
    seed: u64,
) -> Loaded {
    let whole = concat_batches(&loaded.schema, &loaded.cut(BATCH_ROWS, rows)).unwrap();
    let mut random = Random(seed);
    let mut order: Vec<(i64, u64)> = seconds(&whole)
        .into_iter()
        .zip(0..)
        .map(|(at, row)| (at + random.below(jitter_s.unsigned_abs()) as i64, row))
        .collect();
    order.sort_unstable();
    let order: UInt64Array = order.into_iter().map(|(_, row)| row).collect();
    let batches = vec![take_record_batch(&whole, &order).unwrap()];
    Loaded {
        folder: loaded.folder.clone(),
        schema: loaded.schema.clone(),
        batches,
    }
}

fn check_order(set: &DataSet, questions: &[Question], seconds: fn(&RecordBatch) -> Vec<i64>) {
    let Some(loaded) = set.load() else { return };
    let lateness = Duration::from_secs(JITTER_S.unsigned_abs());
    for question in questions {
        let in_order = jittered(&loaded, seconds, (ROWS, 1), 0);
        let plain = Way {
            lateness,
            ..Way::plain(set)
        };
        let expected = question.answer(&in_order, plain);
        for seed in 1..4 {
            let shuffled = jittered(&loaded, seconds, (ROWS, JITTER_S), seed);
            for (threads, batch_rows) in [(1, 65_536), (3, 1_000)] {
                let way = Way {
                    threads,
                    batch_rows,
                    ..plain
                };
                let what = format!("{} {}, order {seed}", set.name, question.name);
                assert_rows_agree(&what, &question.answer(&shuffled, way), &expected);
            }
        }
    }
}

/// What a run came to: rows, and rows that no window took.
struct Outcome {
    rows: Vec<Row>,
    late_rows: u64,
    untimed_rows: u64,
}

/// A run that is stopped after `stop` batches and goes on, on as many threads, in another.
fn restarted(
    question: &Question,
    loaded: &Loaded,
    way: Way,
    (stop, threads): (usize, usize),
) -> Outcome {
    let mut before = loaded.cut(way.batch_rows, way.rows_limit);
    let after = before.split_off(stop);
    let mut results = Vec::new();
    let mut first = question.start(loaded, before, way);
    for _ in 0..stop {
        assert!(first.step().unwrap());
        results.extend(std::iter::from_fn(|| first.take_result()));
    }
    let snapshot = first.snapshot().unwrap();
    drop(first);
    let mut second = question.start(loaded, after, Way { threads, ..way });
    second.restore(&snapshot).unwrap();
    results.extend(second.by_ref().map(Result::unwrap));
    let metrics = second.metrics();
    Outcome {
        rows: question.checked_rows(&results),
        late_rows: metrics.late_rows,
        untimed_rows: metrics.untimed_rows,
    }
}

fn check_restarts(set: &DataSet, questions: &[Question], seed: u64) {
    let Some(loaded) = set.load() else { return };
    let mut random = Random(seed);
    for question in questions {
        // So little lateness lets windows close, and rows be late, on both sides of the stop.
        let lateness = Duration::from_secs(3_600);
        let plain = Way {
            batch_rows: BATCH_ROWS,
            rows_limit: ROWS,
            lateness,
            ..Way::plain(set)
        };
        let batches = loaded.cut(BATCH_ROWS, ROWS);
        let stops = batches.len() as u64 + 1;
        let expected = restarted(question, &loaded, plain, (0, 1));
        let whole = question.answer(&loaded, plain);
        assert_rows_agree(
            &format!("{} {}", set.name, question.name),
            &expected.rows,
            &whole,
        );
        for threads in [(1, 1), (1, 3), (3, 1), (3, 3)] {
            let stop = random.below(stops) as usize;
            let way = Way {
                threads: threads.0,
                ..plain
            };
            let what = format!("{} {}, stopped at {stop}", set.name, question.name);
            let outcome = restarted(question, &loaded, way, (stop, threads.1));
            assert_rows_agree(&what, &outcome.rows, &expected.rows);
            assert_eq!(outcome.late_rows, expected.late_rows, "{what}: late rows");
            assert_eq!(
                outcome.untimed_rows, expected.untimed_rows,
                "{what}: untimed rows"
            );
        }
    }
}

#[test]
fn arrival_order_of_probes_never_changes_an_answer() {
    check_order(&RIPE_ATLAS, &questions::ripe_atlas(), epoch_seconds);
}

#[test]
fn arrival_order_of_flights_never_changes_an_answer() {
    check_order(&FLIGHTS, &questions::flights()[..3], scheduled_seconds);
}

#[test]
fn a_restart_at_any_batch_never_changes_an_answer_over_probes() {
    check_restarts(&RIPE_ATLAS, &questions::ripe_atlas(), 11);
}

#[test]
fn a_restart_at_any_batch_never_changes_an_answer_over_flights() {
    check_restarts(&FLIGHTS, &questions::flights(), 12);
}
