//! Queries over several streams go on from a snapshot behind any batch as if nothing had happened.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef, TimeUnit};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::JoinKind;
use tersecades_engine::operator::process::WindowFunction;
use tersecades_engine::runtime::{Keep, Running};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Span, count as rows_of, hop, session, tumble};
use tersecades_engine::{ErrorKind, Result};
use tersecades_testkit::data::{Stream as Rows, TimeShape, TimeStream, random_stream, to_batches};
use tersecades_testkit::oracle::{Answer, difference};
use tersecades_testkit::random::Random;
use tersecades_testkit::trial::{self, Cases, Smaller, smaller};

const SECOND: Duration = Duration::from_secs(1);

/// Hands on the rows of a window in reverse.
#[derive(Debug)]
struct Backwards;

impl WindowFunction for Backwards {
    fn schema(&self, input: &Schema) -> Result<SchemaRef> {
        Ok(Arc::new(input.clone()))
    }

    fn process(&self, _: &Span, rows: &RecordBatch) -> Result<RecordBatch> {
        let positions = (0..rows.num_rows() as u32).rev();
        let positions = arrow_array::UInt32Array::from_iter_values(positions);
        let columns = rows.columns().iter();
        let columns = columns.map(|column| arrow_select::take::take(column, &positions, None));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(RecordBatch::try_new(rows.schema(), columns)?)
    }
}

/// What is made of two streams.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Union,
    Merge,
    MergeThenSessions,
    Process,
    JoinThenCounts,
    JoinOfWindows,
}

const SHAPES: &[Shape] = &[
    Shape::Union,
    Shape::Merge,
    Shape::MergeThenSessions,
    Shape::Process,
    Shape::JoinThenCounts,
    Shape::JoinOfWindows,
];

#[derive(Debug, Clone)]
struct Case {
    shape: Shape,
    streams: [Rows; 2],
    batch_rows: [usize; 2],
    threads: usize,
    stop: usize,
}

impl Case {
    fn input(&self, side: usize) -> Stream {
        let stream = &self.streams[side];
        let batches = to_batches(&stream.schema, &stream.rows, self.batch_rows[side]);
        let columns = ["time", "c_int8", "c_utf8"].map(|name| (name.to_owned(), col(name)));
        Stream::from_batches(Arc::clone(&stream.schema), batches)
            .event_time(col("time"), SECOND * 5)
            .project(columns)
    }

    fn windows(&self, side: usize) -> Stream {
        let windows = self.input(side).window(tumble(SECOND * 20));
        windows.group_by(["c_int8"]).aggregate([count().alias("n")])
    }

    fn start(&self) -> Running {
        let (left, right) = (self.input(0), self.input(1));
        let on = [("c_int8", "c_int8")];
        let stream = match self.shape {
            Shape::Union => Stream::union([left, right]).unwrap(),
            Shape::Merge => Stream::merge([left, right]).unwrap(),
            Shape::MergeThenSessions => {
                let merged = Stream::merge([left, right]).unwrap();
                let sessions = merged.window(session(SECOND * 8)).group_by(["c_int8"]);
                sessions.aggregate([count(), call("count_distinct", col("c_utf8"))])
            }
            Shape::Process => left
                .process(hop(SECOND * 30, SECOND * 10), Backwards)
                .unwrap(),
            Shape::JoinThenCounts => {
                let near = (-5_000_000_000, 5_000_000_000);
                let joined = left.interval_join(right, &on, near, JoinKind::Full);
                let counts = joined.unwrap().window(rows_of(7)).group_by(["c_utf8"]);
                counts.aggregate([call("max", col("c_int8")), count()])
            }
            Shape::JoinOfWindows => {
                let on = [("c_int8", "c_int8"), ("window_start", "window_start")];
                let options = Default::default();
                let (left, right) = (self.windows(0), self.windows(1));
                left.join(right, JoinKind::Full, &on, options).unwrap()
            }
        };
        stream.threads(self.threads).run().unwrap()
    }

    fn answer(&self, restarted: bool) -> Answer {
        let mut batches: Vec<RecordBatch> = Vec::new();
        let mut run = self.start();
        if restarted {
            for step in 0..self.stop {
                run.step().unwrap();
                // Of every other case what waits comes out of the run that is restored.
                if (self.stop + step).is_multiple_of(2) {
                    batches.extend(std::iter::from_fn(|| run.take_result()));
                }
            }
            let snapshot = run.snapshot().unwrap();
            run = self.start();
            run.restore(&snapshot).unwrap();
        }
        batches.extend(run.by_ref().map(Result::unwrap));
        Answer::from_batches(&run.schema(), &batches)
    }
}

struct Restarts;

impl Cases for Restarts {
    type Case = Case;
    /// Whether rows came out.
    type Seen = bool;

    fn make(&self, seed: u64) -> Case {
        let mut random = Random::new(seed);
        let time = TimeStream {
            shape: *random.pick(&[TimeShape::Late, TimeShape::InOrder, TimeShape::Gaps]),
            step: 3,
            window: 20,
            lateness: 5,
            origin: 0,
        };
        let unit = DataType::Timestamp(TimeUnit::Second, None);
        let stream = |random: &mut Random| {
            let rows = *random.pick(&[0, 1, 30, 60, 120]);
            let mut stream = random_stream(&unit, time, rows, random);
            for index in (0..stream.schema.fields().len()).rev() {
                let name = stream.schema.field(index).name();
                if !["time", "c_int8", "c_utf8"].contains(&name.as_str()) {
                    stream = smaller::without_column(&stream, index);
                }
            }
            stream
        };
        Case {
            streams: [stream(&mut random), stream(&mut random)],
            shape: *random.pick(SHAPES),
            batch_rows: [1 + random.below(30), 1 + random.below(30)],
            threads: 1 + random.below(2),
            stop: random.below(12),
        }
    }

    fn check(&self, case: &Case) -> std::result::Result<bool, String> {
        let expected = case.answer(false);
        match difference(&expected, &case.answer(true)) {
            Some(difference) => Err(difference),
            None => Ok(!expected.rows.is_empty()),
        }
    }

    fn smaller<'a>(&'a self, case: &'a Case) -> Smaller<'a, Case> {
        let fewer = [0, 1].into_iter().flat_map(move |side| {
            smaller::rows(&case.streams[side].rows).map(move |rows| {
                let mut fewer = case.clone();
                fewer.streams[side].rows = rows;
                fewer
            })
        });
        Box::new(fewer)
    }

    fn show(&self, case: &Case) -> String {
        format!("{case:#?}")
    }
}

#[test]
fn snapshots_of_queries_over_several_streams_lose_nothing() {
    let seen = trial::run("restarts", 1_400, &Restarts);
    let with_rows = seen.iter().filter(|rows| **rows).count();
    assert!(
        seen.len() < 100 || with_rows * 2 > seen.len(),
        "{with_rows} have rows"
    );
}

#[test]
fn an_input_with_fewer_rows_than_were_read_is_refused() {
    let case = (0..).map(|seed| Restarts.make(seed));
    let mut case = case
        .filter(|case| matches!(case.shape, Shape::Union))
        .find(|case| case.streams[0].rows.len() == 120)
        .unwrap();
    case.batch_rows = [50, 50];
    let mut run = case.start();
    run.step().unwrap();
    while run.take_result().is_some() {}
    let snapshot = run.snapshot().unwrap();
    case.streams[0].rows.truncate(10);
    let mut shorter = case.start();
    shorter.restore(&snapshot).unwrap();
    let error = shorter.find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn snapshots_over_a_retained_range_are_refused() {
    let case = Restarts.make(3);
    let mut kept = case.input(0).keep(Keep::Bytes(usize::MAX)).run().unwrap();
    kept.by_ref().for_each(|batch| drop(batch.unwrap()));
    let retained = Stream::from_retained(kept.retained().unwrap());
    let both = Stream::union([retained, case.input(1)]).unwrap();
    let error = both.run().unwrap().snapshot().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}
