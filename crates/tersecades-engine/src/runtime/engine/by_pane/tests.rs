//! Runs in which each worker has whole panes, beside runs on one thread.

use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use tersecades_columnar::batch::BatchEncoder;
use tersecades_testkit::random::Random;

use super::*;
use crate::aggregate::{call, count, quantile};
use crate::expression::col;
use crate::runtime::Metrics;
use crate::stream::Stream;
use crate::window::{Window, cumulate, hop, tumble};

/// Random rows, and what is asked of them.
struct Case {
    schema: SchemaRef,
    batches: Vec<Arc<Batch>>,
    lateness: Duration,
    width: Duration,
    window: Window,
    filtered: bool,
    by_text: bool,
    /// Whether all aggregates can be subtracted.
    invertible: bool,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let rows = 30 + random.below(70);
        let count = 60 + random.below(60);
        let step = 1 + random.below(3);
        // A pane takes a few batches, and rows are behind by less than half of one, but for some.
        let of_pane = 3 + random.below(9);
        let width = rows * step * of_pane;
        let jitter = 1 + random.below(width / 3);
        let (untimed, far) = (random.one_in(3), random.one_in(4));
        let lateness = match (far, random.one_in(2)) {
            (true, _) => 12 * width,
            (false, true) => jitter,
            (false, false) => jitter / 2,
        };
        let mut at = 1_000_000;
        let batches: Vec<Vec<(Option<i64>, i64)>> = (0..count)
            .map(|_| {
                let row = |_| {
                    at += random.below(2 * step + 1) as i64;
                    let behind = match far && at > 1_020_000 && random.one_in(900) {
                        true => 11 * width,
                        false => random.below(jitter),
                    };
                    let time = at - behind as i64;
                    let missing = untimed && random.one_in(40);
                    let value = random.below(1_000) as i64 - 300;
                    ((!missing).then_some(time), value)
                };
                (0..rows).map(row).collect()
            })
            .collect();
        let width = Duration::from_millis(width as u64);
        let window = match random.below(8) {
            // Not by pane.
            0 => cumulate(width * 3, width),
            1 => hop(width * (2 + random.below(5) as u32), width),
            // A pane is half a slide.
            2 => hop(width * 5, width * 2).offset(Duration::from_millis(11)),
            3 | 4 => tumble(width).offset(Duration::from_millis(7)),
            _ => tumble(width),
        };
        let mut encoder = None;
        let encode = |rows: Vec<(Option<i64>, i64)>| {
            let batch = arrow(&rows);
            let encoder =
                encoder.get_or_insert_with(|| BatchEncoder::new(&batch.schema()).unwrap());
            Arc::new(encoder.encode_new(&batch).unwrap())
        };
        let batches: Vec<Arc<Batch>> = batches.into_iter().map(encode).collect();
        Case {
            schema: Arc::clone(batches[0].schema()),
            batches,
            lateness: Duration::from_millis(lateness as u64),
            width,
            window,
            filtered: random.one_in(2),
            by_text: random.one_in(2),
            invertible: random.one_in(2),
        }
    }

    fn start(&self, batches: &[Arc<Batch>], threads: usize) -> Running {
        let stream = Stream::from_encoded(Arc::clone(&self.schema), batches.to_vec())
            .event_time(col("at"), self.lateness)
            .threads(threads)
            .keep_late();
        let stream = match self.filtered {
            true => stream.filter(col("value").gt(0)),
            false => stream,
        };
        let value = |name| call(name, col("value"));
        let mut aggregates = vec![count(), value("sum")];
        if !self.invertible {
            aggregates.extend([value("first"), quantile(col("value"), 0.5)]);
        }
        stream
            .window(self.window)
            .group_by([if self.by_text { "name" } else { "number" }])
            .aggregate(aggregates)
            .run()
            .unwrap()
    }
}

fn arrow(rows: &[(Option<i64>, i64)]) -> RecordBatch {
    let times = Int64Array::from_iter(rows.iter().map(|(at, _)| *at));
    let values = || rows.iter().map(|(_, value)| *value);
    let names = values().map(|value| format!("n{}", value.rem_euclid(23)));
    let columns: [(&str, ArrayRef); 4] = [
        ("at", Arc::new(times)),
        ("value", Arc::new(Int64Array::from_iter_values(values()))),
        ("name", Arc::new(StringArray::from_iter_values(names))),
        ("number", {
            let numbers = values().map(|value| value.rem_euclid(31));
            Arc::new(Int64Array::from_iter_values(numbers))
        }),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

/// The results in the order they came, and what was counted.
fn finish(running: &mut Running, mut results: Vec<RecordBatch>) -> (Vec<String>, Metrics, usize) {
    results.extend(running.by_ref().map(|batch| batch.unwrap()));
    let late = running.take_late().iter().map(RecordBatch::num_rows).sum();
    let texts = results.iter().map(|batch| format!("{batch:?}"));
    let metrics = running.metrics();
    (texts.collect(), metrics, late)
}

fn same(one: &(Vec<String>, Metrics, usize), many: &(Vec<String>, Metrics, usize), context: &str) {
    assert_eq!(one.0.len(), many.0.len(), "{context}");
    for (one, many) in one.0.iter().zip(&many.0) {
        assert_eq!(one, many, "{context}");
    }
    let counted = |metrics: &Metrics| {
        let late = (metrics.late_rows, metrics.late_by_window.clone());
        (
            late,
            metrics.untimed_rows,
            metrics.rows,
            metrics.result_rows,
        )
    };
    assert_eq!(counted(&one.1), counted(&many.1), "{context}");
    assert_eq!(one.2, many.2, "{context}");
}

/// Results so far, of a run that has taken in some batches.
fn taken(running: &mut Running, steps: usize) -> Vec<RecordBatch> {
    let mut results = Vec::new();
    for _ in 0..steps {
        running.step().unwrap();
        results.extend(std::iter::from_fn(|| running.take_result()));
    }
    results
}

#[test]
fn answers_are_those_of_one_thread_in_their_order() {
    let (mut by_pane, mut ended, mut early) = (0, 0, 0);
    for seed in 0..120 {
        let case = Case::new(seed);
        let one = finish(&mut case.start(&case.batches, 1), Vec::new());
        assert!(one.1.result_rows > 100, "seed {seed}");
        for threads in [2, 3, 5] {
            let mut running = case.start(&case.batches, threads);
            let mut results = taken(&mut running, 1);
            let begun = running.by_pane.is_on();
            results.extend(taken(&mut running, case.batches.len() - 1));
            let midway = results.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
            early += usize::from(begun && midway > 0);
            by_pane += usize::from(begun);
            ended += usize::from(begun && !running.by_pane.is_on());
            let many = finish(&mut running, results);
            same(&one, &many, &format!("seed {seed}, {threads} threads"));
        }
    }
    assert!(by_pane > 180, "{by_pane} runs went by pane");
    assert!(
        early > by_pane / 2,
        "of {by_pane}, {early} had results midway"
    );
    assert!(
        (5..by_pane / 2).contains(&ended),
        "{ended} of them met times far apart"
    );
}

#[test]
fn a_watermark_at_the_end_of_time_may_come_before_the_end() {
    // Rows up to the last pane there is, then some at the last tick, which a filter drops.
    let last_pane = i64::MAX - i64::MAX % 250;
    let batch = |batch: i64| match batch {
        0..60 => {
            let row = |row| (Some(last_pane - 3_000 + batch * 50 + row), row + 1);
            (0..50).map(row).collect()
        }
        _ => vec![(Some(i64::MAX), 0); 50],
    };
    let mut encoder = BatchEncoder::new(&arrow(&[]).schema()).unwrap();
    let mut encode = |rows: Vec<_>| Arc::new(encoder.encode_new(&arrow(&rows)).unwrap());
    let batches: Vec<Arc<Batch>> = (0..70).map(|at| encode(batch(at))).collect();
    let start = |threads: usize| {
        Stream::from_encoded(Arc::clone(batches[0].schema()), batches.clone())
            .event_time(col("at"), Duration::ZERO)
            .threads(threads)
            .filter(col("value").gt(0))
            .window(tumble(Duration::from_millis(250)))
            .group_by(["number"])
            .aggregate([call("sum", col("value"))])
            .run()
            .unwrap()
    };
    let one = finish(&mut start(1), Vec::new());
    assert_eq!(one.0.len(), 12);
    for round in 0..60 {
        let mut running = start(3);
        let results = taken(&mut running, 1);
        assert!(running.by_pane.is_on());
        same(
            &one,
            &finish(&mut running, results),
            &format!("round {round}"),
        );
    }
}

#[test]
fn hops_of_many_panes_are_for_whichever_worker_is_free() {
    let mut by_pane = 0;
    for seed in 0..20 {
        let mut case = Case::new(seed);
        let mut goes = |window| {
            case.window = window;
            let mut running = case.start(&case.batches, 2);
            taken(&mut running, 1);
            running.by_pane.is_on()
        };
        let width = Case::new(seed).width;
        let alone = goes(tumble(width));
        assert_eq!(goes(hop(width * 64, width)), alone, "seed {seed}");
        assert!(!goes(hop(width * 65, width)), "seed {seed}");
        by_pane += usize::from(alone);
    }
    assert!(by_pane > 10, "{by_pane} of 20");
}

#[test]
fn a_run_that_is_looked_at_or_taken_over_goes_on() {
    let mut by_pane = 0;
    for seed in 200..230 {
        let case = Case::new(seed);
        let one = finish(&mut case.start(&case.batches, 1), Vec::new());
        let steps = case.batches.len() * 2 / 3;

        let mut running = case.start(&case.batches, 3);
        let results = taken(&mut running, steps);
        by_pane += usize::from(running.by_pane.is_on());
        let mut alone = case.start(&case.batches, 1);
        taken(&mut alone, steps);
        assert_eq!(running.why_open().unwrap(), alone.why_open().unwrap());
        assert!(!running.by_pane.is_on());
        same(
            &one,
            &finish(&mut running, results),
            &format!("seed {seed}"),
        );

        let mut first = case.start(&case.batches[..steps], 3);
        let results = taken(&mut first, steps);
        let state = first.snapshot().unwrap();
        let mut second = case.start(&case.batches[steps..], 3);
        second.restore(&state).unwrap();
        let (texts, metrics, _) = finish(&mut second, results);
        assert_eq!(texts, one.0, "seed {seed}");
        assert_eq!(metrics.late_rows, one.1.late_rows, "seed {seed}");
    }
    assert!(by_pane > 10, "{by_pane} runs went by pane");
}

#[test]
fn a_sum_beyond_its_type_is_an_error_and_an_abandoned_run_ends() {
    let row = |at: i64| (Some(at), i64::MAX - at);
    let mut batches: Vec<Vec<_>> = (0..60)
        .map(|batch| (batch * 50..batch * 50 + 50).map(row).collect())
        .collect();
    batches.iter_mut().flatten().for_each(|(at, value)| {
        *value = if *at == Some(1_510) || *at == Some(1_511) {
            i64::MAX
        } else {
            1
        };
    });
    let mut encoder = BatchEncoder::new(&arrow(&batches[0]).schema()).unwrap();
    let batches: Vec<Arc<Batch>> = batches
        .iter()
        .map(|rows| Arc::new(encoder.encode_new(&arrow(rows)).unwrap()))
        .collect();
    let start = |window: Window, threads: usize| {
        Stream::from_encoded(Arc::clone(encoder.schema()), batches.clone())
            .event_time(col("at"), Duration::ZERO)
            .threads(threads)
            .window(window)
            .group_by(["number"])
            .aggregate([call("sum", col("value"))])
            .run()
            .unwrap()
    };
    let outcome = |running: Running| -> Vec<Option<crate::ErrorKind>> {
        running
            .map(|batch| batch.err().map(|error| error.kind()))
            .collect()
    };
    let mut expected = vec![None; 6];
    expected.push(Some(crate::ErrorKind::LimitExceeded));
    let width = Duration::from_millis(250);
    for window in [tumble(width), hop(width * 2, width)] {
        assert_eq!(outcome(start(window, 1)), expected);
        let mut running = start(window, 2);
        taken(&mut running, 1);
        assert!(running.by_pane.is_on());
        drop(running);
        for threads in [2, 3, 5] {
            assert_eq!(
                outcome(start(window, threads)),
                expected,
                "{threads} threads"
            );
            // What is wrong stays wrong, whoever goes on.
            let mut running = start(window, threads);
            let failed = std::iter::from_fn(|| match running.step() {
                Ok(true) => Some(None),
                Ok(false) => None,
                Err(error) => Some(Some(error)),
            });
            assert!(failed.flatten().next().is_some());
            assert!(running.why_open().is_err() && running.snapshot().is_err());
            let rows = std::iter::from_fn(|| running.take_result());
            assert!(rows.count() <= 6);
        }
    }
}
