//! Queries over several streams go on from a snapshot behind any batch as if nothing had happened.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef, TimeUnit};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::operator::join::as_of::Direction;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::process::WindowFunction;
use tersecades_engine::operator::row::Extent;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::plan::LookupTable;
use tersecades_engine::runtime::{Keep, Running};
use tersecades_engine::source::partitioned::PartitionedTable;
use tersecades_engine::source::table::{MemoryTable, Table};
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
    JoinOfJoins,
    MergeOfJoins,
    UnionOfInOrder,
    InOrderThenLag,
}

const SHAPES: &[Shape] = &[
    Shape::Union,
    Shape::Merge,
    Shape::MergeThenSessions,
    Shape::Process,
    Shape::JoinThenCounts,
    Shape::JoinOfWindows,
    Shape::JoinOfJoins,
    Shape::MergeOfJoins,
    Shape::UnionOfInOrder,
    Shape::InOrderThenLag,
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
            Shape::JoinOfJoins => {
                let join = |left: Stream, right, on: &str, suffix: &str| {
                    let options = JoinOptions {
                        suffix: suffix.to_owned(),
                        ..JoinOptions::default()
                    };
                    left.join(right, JoinKind::Left, &[(on, on)], options)
                        .unwrap()
                };
                let joined = join(left.clone(), right, "c_int8", "_second");
                join(joined, left, "time", "_third")
            }
            Shape::MergeOfJoins => {
                let near = |left: Stream, right| {
                    let joined = left.interval_join(right, &on, (0, 9_000_000_000), JoinKind::Left);
                    joined.unwrap()
                };
                let both = [near(left.clone(), right.clone()), near(right, left)];
                Stream::merge(both).unwrap()
            }
            Shape::UnionOfInOrder => Stream::union([left.in_order().unwrap(), right]).unwrap(),
            Shape::InOrderThenLag => {
                let rows = left
                    .in_order()
                    .unwrap()
                    .lag("c_int8", 1, ["c_utf8"], "before");
                let windows = rows.window(tumble(SECOND * 30));
                windows.aggregate([count(), call("sum", col("before"))])
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
            run.resume(&snapshot).unwrap();
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
    // Several threads read such a stream to its end at once.
    (case.batch_rows, case.threads) = ([50, 50], 1);
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

/// Rows of the second `from` on up to `to`, one a second, in batches of `size`.
fn seconds(from: i64, to: i64, size: usize) -> (SchemaRef, Vec<RecordBatch>) {
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values((from..to).map(|s| s * 1_000)));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((from..to).map(|s| s / 3)));
    let rows = RecordBatch::try_from_iter([("time", times), ("v", values)]).unwrap();
    let starts = (0..rows.num_rows()).step_by(size);
    let cut = |start| rows.slice(start, size.min(rows.num_rows() - start));
    (rows.schema(), starts.map(cut).collect())
}

fn stream_of((schema, batches): (SchemaRef, Vec<RecordBatch>)) -> Stream {
    Stream::from_batches(schema, batches)
        .event_time(col("time"), Duration::ZERO)
        .event_time_unit(TimeUnit::Millisecond)
}

fn rows_in(batches: impl Iterator<Item = Result<RecordBatch>>) -> Vec<String> {
    let rows = batches.map(Result::unwrap).flat_map(|batch| {
        let rows = 0..batch.num_rows();
        rows.map(|row| format!("{:?}", batch.slice(row, 1).columns()))
            .collect::<Vec<_>>()
    });
    rows.collect()
}

#[test]
fn steps_before_a_window_go_on_behind_the_rows_that_were_read() {
    type Steps = fn(Stream) -> Stream;
    let steps: [Steps; 4] = [
        |stream| stream.lag("v", 1, [] as [&str; 0], "before"),
        |stream| stream.changes(["v"], [] as [&str; 0]),
        |stream| stream.filter(col("v").gt(2)).limit(70, 5),
        |stream| stream.in_order().unwrap(),
    ];
    for (number, step) in steps.into_iter().enumerate() {
        let query = |rows| {
            let windows = step(stream_of(rows)).window(tumble(SECOND * 30));
            windows.aggregate([count(), call("sum", col("v"))])
        };
        let whole = rows_in(query(seconds(0, 100, 10)).run().unwrap());
        let (mut found, mut read) = (Vec::new(), 0);
        let mut run = query(seconds(0, 100, 10)).run().unwrap();
        // Three runs, each of which goes on where the one before it stood.
        for size in [10, 7] {
            for _ in 0..3 {
                run.step().unwrap();
            }
            found.extend(rows_in(std::iter::from_fn(|| run.take_result()).map(Ok)));
            let (rows, snapshot) = (run.rows_read().unwrap(), run.snapshot().unwrap());
            assert!(rows > read, "{number}");
            read = rows;
            run = query(seconds(read as i64, 100, size)).run().unwrap();
            run.restore(&snapshot).unwrap();
            assert_eq!(run.rows_read(), Some(read), "{number}");
        }
        found.extend(rows_in(run));
        assert_eq!(found, whole, "steps {number}");
    }
}

#[test]
fn partitions_are_passed_over_each_by_itself() {
    let partitions = |size: [usize; 2]| {
        let table = |size, from| {
            let (schema, batches) = seconds(from, from + 100, size);
            Arc::new(MemoryTable::new(schema, batches)) as Arc<dyn Table>
        };
        let tables = vec![table(size[0], 0), table(size[1], 1_000_000)];
        let stream = Stream::from_table(PartitionedTable::new(tables).unwrap());
        let windows = stream
            .event_time(col("time"), Duration::ZERO)
            .event_time_unit(TimeUnit::Millisecond)
            .window(tumble(SECOND * 30));
        windows
            .aggregate([count(), call("sum", col("v"))])
            .run()
            .unwrap()
    };
    let whole = rows_in(partitions([10, 10]));
    for sizes in [[10, 10], [7, 25], [100, 1], [1, 100]] {
        let mut first = partitions([10, 10]);
        for _ in 0..5 {
            first.step().unwrap();
        }
        let mut found = rows_in(std::iter::from_fn(|| first.take_result()).map(Ok));
        assert_eq!(first.rows_read(), Some(50));
        let mut rest = partitions(sizes);
        rest.resume(&first.snapshot().unwrap()).unwrap();
        found.extend(rows_in(rest));
        assert_eq!(found, whole, "{sizes:?}");
    }
}

/// Sixty rows.
fn sixty() -> Stream {
    stream_of(seconds(0, 60, 10))
}

/// Joins that differ in one thing each from another of them.
fn joins() -> Vec<(&'static str, Stream)> {
    let other = || sixty().project([("time", col("time")), ("w", col("v"))].map(named));
    let inner = JoinKind::Inner;
    let join = |kind, options| {
        let on = [("v", "v"), ("time", "time")];
        sixty().join(sixty(), kind, &on, options).unwrap()
    };
    let window = |seconds, kind| {
        let window = tumble(SECOND * seconds);
        let joined = sixty().window_join(sixty(), window, kind, &[("v", "v")]);
        joined.unwrap()
    };
    let on = [("v", "w")];
    let near = |bounds| sixty().interval_join(other(), &on, bounds, inner).unwrap();
    let as_of = |direction, seconds: Option<u64>| {
        let how = (direction, seconds.map(Duration::from_secs));
        sixty().asof_join(other(), &on, how, inner).unwrap()
    };
    let null_equals_null = JoinOptions {
        null_equals_null: true,
        ..JoinOptions::default()
    };
    vec![
        ("join", join(inner, JoinOptions::default())),
        ("left join", join(JoinKind::Left, JoinOptions::default())),
        ("join of nulls", join(inner, null_equals_null)),
        ("window join", window(20, inner)),
        ("longer window join", window(30, inner)),
        ("semi window join", window(20, JoinKind::LeftSemi)),
        ("interval join", near((0, 1_000_000_000))),
        ("wider interval join", near((0, 2_000_000_000))),
        ("as-of join", as_of(Direction::Backward, None)),
        ("forward as-of join", as_of(Direction::Forward, None)),
        ("near as-of join", as_of(Direction::Backward, Some(5))),
        ("strict as-of join", as_of(Direction::Before, None)),
    ]
}

/// Other queries that do.
fn others() -> Vec<(&'static str, Stream)> {
    let looked_up = |first: i64| {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20));
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 20));
        let table = RecordBatch::try_from_iter([("key", keys), ("x", values)]).unwrap();
        let table = Arc::new(LookupTable::new("t", table));
        sixty().lookup_join(&table, ("v", "key"), &[("x", "x")])
    };
    let windows = || {
        let windows = sixty().window(tumble(SECOND * 20)).group_by(["v"]);
        windows.aggregate([count()])
    };
    let by = || [(col("v"), SortOrder::DESCENDING)];
    let wide = col("v").cast(DataType::Float64);
    let retyped = sixty().project([("time", col("time")), ("v", wide)].map(named));
    let lag = |stream: Stream| stream.lag("v", 1, [] as [&str; 0], "before");
    let process = |seconds| {
        sixty()
            .process(tumble(SECOND * seconds), Backwards)
            .unwrap()
    };
    let copies = |count| vec![sixty(); count];
    vec![
        ("lookup", looked_up(0)),
        ("lookup in other rows", looked_up(1)),
        ("process", process(20)),
        ("longer process", process(30)),
        ("top of windows", windows().top_k(1, by())),
        (
            "top of all",
            windows().top_k_in(Extent::Whole, (1, 0), by()),
        ),
        ("sort of windows", windows().sort(by())),
        ("sort of all", windows().sort_in(Extent::Whole, by())),
        ("union", Stream::union(copies(2)).unwrap()),
        ("longer union", Stream::union(copies(3)).unwrap()),
        ("merge", Stream::merge(copies(2)).unwrap()),
        ("longer merge", Stream::merge(copies(3)).unwrap()),
        ("integers", lag(sixty())),
        ("floats", lag(retyped)),
    ]
}

fn named((name, column): (&str, Expression)) -> (String, Expression) {
    (name.to_owned(), column)
}

#[test]
fn a_snapshot_of_another_query_is_refused() {
    let queries = [joins(), others()].concat();
    for (taken, first) in &queries {
        let mut first = first.clone().run().unwrap();
        first.step().unwrap();
        let snapshot = first.snapshot().unwrap();
        for (given, other) in &queries {
            let restored = other.clone().run().unwrap().resume(&snapshot);
            match restored {
                Ok(()) => assert_eq!(taken, given),
                Err(error) => {
                    assert_ne!(taken, given, "{error}");
                    assert_eq!(
                        error.kind(),
                        ErrorKind::Corrupt,
                        "{taken}, {given}: {error}"
                    );
                    assert!(error.to_string().contains("another query"), "{error}");
                }
            }
        }
    }
}
