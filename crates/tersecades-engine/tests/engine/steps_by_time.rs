//! The watermarks of steps by time: what moves them, what holds them back, and silent inputs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::event_time::TestClock;
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::as_of::Direction;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::process::WindowFunction;
use tersecades_engine::runtime::Running;
use tersecades_engine::source::{Rejected, Source};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Span, Window, count as rows_of, session, tumble};
use tersecades_engine::{ErrorKind, Result};

const SECOND: Duration = Duration::from_secs(1);

/// A stream with the step that is looked at.
type Make<'a> = &'a dyn Fn() -> Result<Stream>;

fn batch(rows: &[(&str, i64)]) -> RecordBatch {
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0)));
    let times = rows.iter().map(|row| row.1 * 1_000);
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
    RecordBatch::try_from_iter([("timestamp", times), ("k", keys)]).unwrap()
}

/// Rows of a key and a second.
fn stream(rows: &[(&str, i64)], batch_rows: usize) -> Stream {
    let batches = rows.chunks(batch_rows).map(batch).collect();
    Stream::from_batches(batch(&[]).schema(), batches)
}

/// Seconds of a column of times.
fn seconds(batches: &[RecordBatch], column: &str) -> Vec<i64> {
    let seconds = |batch: &RecordBatch| {
        let times = batch.column_by_name(column).unwrap();
        let times = arrow_cast::cast(times, &DataType::Int64).unwrap();
        let times = times.as_primitive::<Int64Type>().values().to_vec();
        times.into_iter().map(|time| time / 1_000)
    };
    batches.iter().flat_map(seconds).collect()
}

fn sum(batches: &[RecordBatch], column: &str) -> i64 {
    let sum = |batch: &RecordBatch| -> i64 {
        let values = batch.column_by_name(column).unwrap();
        values.as_primitive::<Int64Type>().values().iter().sum()
    };
    batches.iter().map(sum).sum()
}

fn finish(run: &mut Running) -> Vec<RecordBatch> {
    run.collect::<Result<_>>().unwrap()
}

/// All rows, once without a stop and once from a snapshot behind every step.
fn answers(start: &dyn Fn() -> Stream) -> Vec<Vec<RecordBatch>> {
    let mut whole = start().run().unwrap();
    let mut answers = vec![finish(&mut whole)];
    assert_eq!(whole.metrics().late_rows, 0);
    for stop in 0..5 {
        let mut first = start().run().unwrap();
        let mut batches: Vec<RecordBatch> = Vec::new();
        for _ in 0..stop {
            first.step().unwrap();
            batches.extend(std::iter::from_fn(|| first.take_result()));
        }
        let mut second = start().run().unwrap();
        second.resume(&first.snapshot().unwrap()).unwrap();
        batches.extend(finish(&mut second));
        assert_eq!(second.metrics().late_rows, 0);
        answers.push(batches);
    }
    answers
}

/// Of either kind some come out behind one that starts later.
const ROWS: [(&str, i64); 8] = [
    ("a", 0),
    ("b", 5),
    ("a", 9),
    ("a", 18),
    ("b", 40),
    ("a", 41),
    ("c", 42),
    ("a", 50),
];

/// Windows, and where those of the rows start.
fn windows() -> [(Window, [i64; 5]); 2] {
    [
        (session(SECOND * 10), [0, 5, 40, 41, 42]),
        (rows_of(2), [0, 5, 18, 42, 50]),
    ]
}

fn groups(window: Window, batch_rows: usize, threads: usize) -> Stream {
    let groups = stream(&ROWS, batch_rows).window(window).group_by(["k"]);
    groups.aggregate([count().alias("n")]).threads(threads)
}

#[test]
fn results_in_no_order_of_their_starts_are_not_late_in_steps_by_time() {
    for (window, starts) in windows() {
        for (batch_rows, threads) in [(1, 1), (3, 1), (100, 1), (2, 3)] {
            let groups = || groups(window, batch_rows, threads);
            let sources: [&dyn Fn() -> Stream; 4] = [
                &groups,
                &|| groups().as_source().unwrap(),
                &|| groups().as_source().unwrap().filter(col("n").gt(0)),
                &|| {
                    let none = groups().filter(col("n").lt(0));
                    Stream::merge([none, groups()]).unwrap()
                },
            ];
            for source in sources {
                for found in answers(&|| source().in_order().unwrap()) {
                    assert_eq!(seconds(&found, "window_start"), starts, "{window}");
                }
                let on = [("k", "k")];
                let joined = || {
                    source()
                        .interval_join(source(), &on, (0, 0), JoinKind::Full)
                        .unwrap()
                };
                for found in answers(&joined) {
                    assert_eq!(seconds(&found, "window_start"), starts, "{window}");
                    assert_eq!(seconds(&found, "window_start_right"), starts, "{window}");
                }
            }
        }
    }
}

#[test]
fn results_in_no_order_of_their_starts_are_not_late_in_windows_over_other_streams() {
    for (window, _) in windows() {
        for (batch_rows, threads) in [(1, 1), (3, 1), (100, 1), (2, 3)] {
            let groups = || groups(window, batch_rows, threads);
            let names = || stream(&[("a", 0), ("b", 0), ("c", 0)], 2).project([("k", col("k"))]);
            let on = [("k", "k")];
            let join = |kind: JoinKind| {
                let (left, right) = match kind {
                    JoinKind::RightSemi => (names(), groups()),
                    _ => (groups(), names()),
                };
                left.join(right, kind, &on, JoinOptions::default()).unwrap()
            };
            let sources: [&dyn Fn() -> Stream; 5] = [
                &|| groups().as_source().unwrap(),
                &|| groups().as_source().unwrap().as_source().unwrap(),
                &|| Stream::merge([groups()]).unwrap(),
                &|| join(JoinKind::Left),
                &|| join(JoinKind::RightSemi),
            ];
            for source in sources {
                let counted = || {
                    let windows = source().window(tumble(SECOND * 5));
                    windows.aggregate([call("sum", col("n")).alias("n")])
                };
                for found in answers(&counted) {
                    assert_eq!(sum(&found, "n"), ROWS.len() as i64, "{window}");
                }
            }
        }
    }
}

#[test]
fn results_in_no_order_of_their_starts_are_not_late_in_queries_that_stand_over_them() {
    for (window, _) in windows() {
        for batch_rows in [1, 3, 100] {
            let shared = groups(window, batch_rows, 1).as_source().unwrap();
            let counted = |seconds: u32| {
                let windows = shared.clone().window(tumble(SECOND * seconds));
                windows.aggregate([call("sum", col("n")).alias("n")])
            };
            let queries = [("short", counted(10)), ("long", counted(20))];
            let mut standing = shared.clone().standing(queries).unwrap();
            let found: Vec<RecordBatch> = standing.by_ref().map(|it| it.unwrap().1).collect();
            assert_eq!(sum(&found, "n"), 2 * ROWS.len() as i64, "{window}");
        }
    }
}

/// Counts the rows of a window.
#[derive(Debug)]
struct Counted;

impl WindowFunction for Counted {
    fn schema(&self, _: &Schema) -> Result<SchemaRef> {
        let field = Field::new("n", DataType::Int64, true);
        Ok(Arc::new(Schema::new(vec![field])))
    }

    fn process(&self, _: &Span, rows: &RecordBatch) -> Result<RecordBatch> {
        let count: ArrayRef = Arc::new(Int64Array::from(vec![rows.num_rows() as i64]));
        Ok(RecordBatch::try_from_iter([("n", count)]).unwrap())
    }
}

#[test]
fn a_row_of_the_far_future_makes_no_other_late_in_steps_by_time() {
    const FAR: i64 = 900_000;
    let rows = [("a", 1), ("a", FAR), ("a", 2), ("a", 13), ("a", 25)];
    let careful = || {
        let stream = stream(&rows, 2).clock(TestClock::at(SECOND * 20));
        stream.future_limit(SECOND * 60)
    };
    let right = || stream(&[("a", 1), ("a", 2), ("a", 13), ("a", 25)], 2);
    let (on, all) = ([("k", "k")], [1, 2, 13, 25, FAR]);
    let window = tumble(SECOND * 10);
    let steps: [(Make<'_>, &[i64], &str); 6] = [
        (&|| careful().in_order(), &all, "timestamp"),
        (
            &|| careful().process(window, Counted),
            &[0, 10, 20, FAR],
            "window_start",
        ),
        (
            &|| careful().window_join(right(), window, JoinKind::LeftSemi, &on),
            &[0, 0, 10, 20],
            "window_start",
        ),
        (
            &|| careful().interval_join(right(), &on, (0, 0), JoinKind::Left),
            &all,
            "timestamp",
        ),
        (
            &|| careful().asof_join(right(), &on, (Direction::Backward, None), JoinKind::Left),
            &all,
            "timestamp",
        ),
        (
            &|| Stream::merge([careful(), right()]),
            &[1, FAR, 1, 2, 2, 13, 13, 25, 25],
            "timestamp",
        ),
    ];
    for (step, expected, column) in steps {
        let mut run = step().unwrap().run().unwrap();
        assert_eq!(seconds(&finish(&mut run), column), expected);
        let metrics = run.metrics();
        assert_eq!((metrics.future_rows, metrics.late_rows), (1, 0));
    }
}

/// Gives a batch, nothing for some times, and another batch.
struct Halting {
    batches: VecDeque<RecordBatch>,
    rejected: Rejected,
}

const SILENCES: usize = 7;

fn halting() -> Stream {
    let silence = std::iter::repeat_n(batch(&[]), SILENCES);
    let batches = std::iter::once(batch(&[("a", 1)])).chain(silence);
    Stream::from_source(Box::new(Halting {
        batches: batches.chain([batch(&[("a", 2)])]).collect(),
        rejected: Rejected::default(),
    }))
}

impl Source for Halting {
    fn schema(&self) -> SchemaRef {
        batch(&[]).schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        Ok(self.batches.pop_front())
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

#[test]
fn a_step_of_several_streams_does_not_wait_for_one_that_is_silent() {
    let other = || stream(&[("a", 1), ("a", 2)], 1);
    let (on, window) = ([("k", "k")], tumble(SECOND));
    let kind = JoinKind::LeftSemi;
    let steps: [(&str, Make<'_>, usize); 9] = [
        (
            "as source",
            &|| halting().filter(col("k").eq("a")).as_source(),
            2,
        ),
        ("in order", &|| halting().in_order(), 2),
        ("process", &|| halting().process(window, Counted), 2),
        (
            "window join",
            &|| halting().window_join(other(), window, kind, &on),
            2,
        ),
        (
            "right",
            &|| other().window_join(halting(), window, kind, &on),
            2,
        ),
        (
            "interval",
            &|| halting().interval_join(other(), &on, (0, 0), kind),
            2,
        ),
        (
            "as of",
            &|| halting().asof_join(other(), &on, (Direction::Backward, None), kind),
            2,
        ),
        (
            "join",
            &|| halting().join(other(), kind, &on, JoinOptions::default()),
            2,
        ),
        ("merge", &|| Stream::merge([halting(), other()]), 4),
    ];
    for (name, step, expected) in steps {
        let mut run = step().unwrap().run().unwrap();
        let (mut steps, mut rows) = (0, 0);
        while run.step().unwrap() {
            steps += 1;
            rows += std::iter::from_fn(|| run.take_result())
                .map(|it| it.num_rows())
                .sum::<usize>();
        }
        rows += std::iter::from_fn(|| run.take_result())
            .map(|it| it.num_rows())
            .sum::<usize>();
        assert_eq!(rows, expected, "{name}");
        assert!(steps >= SILENCES, "{name}: {steps} steps");
    }
}

#[test]
fn windows_whose_rows_are_taken_come_out_once() {
    let rows = || stream(&[("a", 1)], 1);
    let on = [("k", "k")];
    let (plain, late) = (tumble(SECOND), tumble(SECOND).allowed_lateness(SECOND));
    let joined = |left: Stream, right: Stream, window: Window| {
        left.window_join(right, window, JoinKind::Inner, &on)
    };
    let lasting = || rows().allowed_lateness(SECOND);
    for refused in [
        joined(rows(), rows(), late),
        joined(lasting(), rows(), plain),
        joined(rows(), lasting(), plain),
        rows().process(late, Counted),
        lasting().process(plain, Counted),
    ] {
        let error = refused.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(
            error
                .hint_text()
                .unwrap()
                .contains("leave allowed lateness")
        );
    }
    let behind = [
        lasting().in_order().unwrap(),
        lasting().as_source().unwrap(),
        lasting()
            .interval_join(rows(), &on, (0, 0), JoinKind::Left)
            .unwrap(),
    ];
    for behind in behind {
        let counted = behind.window(tumble(SECOND)).aggregate([count()]);
        let last = counted.schema().unwrap();
        assert_eq!(last.fields().last().unwrap().name(), "change");
    }
}
