//! Random joins of random streams agree with nested loops, however they are run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::types::Value;
use tersecades_engine::Result;
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::as_of::Direction;
use tersecades_engine::operator::join::interval::IntervalSpec;
use tersecades_engine::operator::join::table::{JoinSpec, JoinTime};
use tersecades_engine::operator::join::window::WindowJoinSpec;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;
use tersecades_testkit::data::to_batches;
use tersecades_testkit::oracle::join::{Pair, as_of, equal_keys, interval, join, window};
use tersecades_testkit::oracle::{Answer, Row, difference};
use tersecades_testkit::random::Random;
use tersecades_testkit::trial::{self, Cases, Smaller, smaller};

const KINDS: &[JoinKind] = &[
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::LeftSemi,
    JoinKind::LeftAnti,
    JoinKind::RightSemi,
    JoinKind::RightAnti,
];

/// One input: time, key, text key, value.
#[derive(Debug, Clone)]
struct Side {
    schema: SchemaRef,
    rows: Vec<Row>,
    lateness: i64,
}

impl Side {
    fn new(prefix: &str, key: DataType, random: &mut Random) -> Self {
        let units = [
            DataType::Int64,
            DataType::Timestamp(TimeUnit::Millisecond, None),
        ];
        let unit = random.pick(&units).clone();
        let field = |name: &str, kind| Field::new(format!("{prefix}{name}"), kind, true);
        let fields = vec![
            field("time", unit),
            field("key", key.clone()),
            field("text", DataType::Utf8),
            field("value", DataType::Int64),
        ];
        let mut clock = random.between(-200, 200);
        let rows = *random.pick(&[0, 1, 12, 12, 40, 40]);
        let keys = random.between(1, 6);
        let row = |index: i64, random: &mut Random| {
            clock += random.between(0, 12) * i64::from(!random.one_in(3));
            let time = clock - random.between(0, 30) * i64::from(random.one_in(3));
            let null = |random: &mut Random, value: Value| match random.one_in(9) {
                true => Value::Null,
                false => value,
            };
            let number = random.between(0, keys);
            let value = match key {
                DataType::Float64 if random.one_in(4) => Value::Float(f64::NAN),
                DataType::Float64 => Value::Float(-0.0 + number as f64),
                _ => Value::from(number),
            };
            let text = Value::from(format!("t{}", random.below(3)));
            vec![
                null(random, Value::from(time)),
                null(random, value),
                null(random, text),
                Value::from(index),
            ]
        };
        let mut row = row;
        Side {
            schema: Arc::new(Schema::new(fields)),
            rows: (0..rows).map(|index| row(index, random)).collect(),
            lateness: *random.pick(&[0, 10, 30]),
        }
    }

    fn times(&self) -> Vec<Option<i64>> {
        let time = |row: &Row| match row[0] {
            Value::Integer(time) => Some(time as i64),
            _ => None,
        };
        self.rows.iter().map(time).collect()
    }

    fn stream(&self, batch_rows: usize) -> Stream {
        let batches = to_batches(&self.schema, &self.rows, batch_rows);
        let lateness = Duration::from_millis(self.lateness.unsigned_abs());
        Stream::from_batches(Arc::clone(&self.schema), batches)
            .event_time(col(self.schema.field(0).name().as_str()), lateness)
    }
}

#[derive(Debug, Clone, Copy)]
enum How {
    Equal {
        null_equals_null: bool,
        residual: bool,
    },
    Window {
        size: i64,
        slide: i64,
        residual: bool,
    },
    Interval {
        lower: i64,
        upper: i64,
        residual: bool,
    },
    AsOf {
        direction: Direction,
        tolerance: Option<i64>,
    },
}

/// Nanoseconds of a tick.
const NANOS: i64 = 1_000_000;

impl How {
    fn time(self) -> JoinTime {
        let millis = |ticks: i64| Duration::from_millis(ticks.unsigned_abs());
        match self {
            How::Window { size, slide, .. } => JoinTime::Window(WindowJoinSpec {
                window: hop(millis(size), millis(slide)),
            }),
            How::Interval { lower, upper, .. } => JoinTime::Interval(IntervalSpec {
                lower_ns: lower * NANOS,
                upper_ns: upper * NANOS,
            }),
            _ => JoinTime::Any,
        }
    }
}

fn how(random: &mut Random) -> How {
    match random.below(4) {
        0 => How::Equal {
            null_equals_null: random.one_in(2),
            residual: random.one_in(2),
        },
        1 => How::Window {
            size: random.between(1, 40),
            slide: random.between(1, 40),
            residual: random.one_in(2),
        },
        2 => {
            let lower = random.between(-30, 20);
            How::Interval {
                lower,
                upper: lower + random.between(0, 30),
                residual: random.one_in(2),
            }
        }
        _ => How::AsOf {
            direction: *random.pick(&DIRECTIONS),
            tolerance: (!random.one_in(3)).then(|| random.between(0, 25)),
        },
    }
}

const DIRECTIONS: [Direction; 5] = [
    Direction::Backward,
    Direction::Forward,
    Direction::Before,
    Direction::After,
    Direction::Nearest,
];

/// One join.
#[derive(Debug, Clone)]
struct Case {
    left: Side,
    right: Side,
    kind: JoinKind,
    on: Vec<(usize, usize)>,
    how: How,
}

fn case(random: &mut Random) -> Case {
    let types = [
        (DataType::Int64, DataType::Int64),
        (DataType::Int32, DataType::UInt64),
        (DataType::Float64, DataType::Float64),
    ];
    let (left, right) = random.pick(&types).clone();
    // Streams that share names, so that right ones get a suffix.
    let prefix = if random.one_in(2) { "" } else { "r_" };
    let on = [vec![], vec![(1, 1)], vec![(2, 2)], vec![(1, 1), (2, 2)]];
    let how = how(random);
    let kinds = match how {
        How::AsOf { .. } => &[
            JoinKind::Inner,
            JoinKind::Left,
            JoinKind::LeftSemi,
            JoinKind::LeftAnti,
        ],
        _ => KINDS,
    };
    Case {
        left: Side::new("", left, random),
        right: Side::new(prefix, right, random),
        kind: *random.pick(kinds),
        on: random.pick(&on).clone(),
        how,
    }
}

impl Case {
    /// Whether two rows are a pair as far as keys and the residual condition go.
    fn pairs(&self, null_equals_null: bool, residual: bool) -> impl Fn(usize, usize) -> bool + '_ {
        let (left, right) = (&self.left.rows, &self.right.rows);
        let value = |row: &Row| match row[3] {
            Value::Integer(value) => value,
            _ => 0,
        };
        move |l, r| {
            equal_keys(&left[l], &right[r], &self.on, null_equals_null)
                && (!residual || value(&left[l]) <= value(&right[r]))
        }
    }

    fn options(&self, null_equals_null: bool, residual: bool) -> JoinOptions {
        let shared = self.right.schema.field(3).name() == "value";
        let right_value = if shared { "value_right" } else { "r_value" };
        JoinOptions {
            null_equals_null,
            residual: residual.then(|| col("value").lt_eq(col(right_value))),
            ..JoinOptions::default()
        }
    }

    fn row(&self, (left, right): Pair) -> Row {
        let side = |side: &Side, at: Option<usize>| match at {
            Some(at) => side.rows[at].clone(),
            None => vec![Value::Null; 4],
        };
        let mut row = Vec::new();
        if !matches!(self.kind, JoinKind::RightSemi | JoinKind::RightAnti) {
            row.extend(side(&self.left, left));
        }
        if !matches!(self.kind, JoinKind::LeftSemi | JoinKind::LeftAnti) {
            row.extend(side(&self.right, right));
        }
        row
    }

    fn expected(&self) -> Vec<Row> {
        let (left, right) = (self.left.times(), self.right.times());
        let times = (left.as_slice(), right.as_slice());
        let lateness = (self.left.lateness, self.right.lateness);
        let pairs = match self.how {
            How::Equal {
                null_equals_null,
                residual,
            } => {
                let both = [&self.left, &self.right];
                let [lefts, rights] = both.map(|side| (0..side.rows.len()).collect::<Vec<_>>());
                let pairs = self.pairs(null_equals_null, residual);
                join(self.kind, &lefts, &rights, pairs)
            }
            How::Window {
                size,
                slide,
                residual,
            } => {
                let pairs = self.pairs(false, residual);
                let joined = window(self.kind, times, lateness, (size, slide), pairs);
                let row = |(start, pair): (i64, Pair)| {
                    let mut row = vec![Value::from(start), Value::from(start + size)];
                    row.extend(self.row(pair));
                    row
                };
                return joined.into_iter().map(row).collect();
            }
            How::Interval {
                lower,
                upper,
                residual,
            } => {
                let pairs = self.pairs(false, residual);
                interval(self.kind, times, lateness, (lower, upper), pairs)
            }
            How::AsOf {
                direction,
                tolerance,
            } => {
                let how = (direction, tolerance);
                as_of(self.kind, times, lateness, how, self.pairs(false, false))
            }
        };
        pairs.into_iter().map(|pair| self.row(pair)).collect()
    }

    fn stream(&self, left_rows: usize, right_rows: usize) -> Result<Stream> {
        let (left, right) = (self.left.stream(left_rows), self.right.stream(right_rows));
        let names = |(l, r): &(usize, usize)| {
            let (l, r) = (self.left.schema.field(*l), self.right.schema.field(*r));
            (l.name().clone(), r.name().clone())
        };
        let on: Vec<(String, String)> = self.on.iter().map(names).collect();
        let on: Vec<(&str, &str)> = on.iter().map(|(l, r)| (l.as_str(), r.as_str())).collect();
        let millis = |ticks: i64| Duration::from_millis(ticks.unsigned_abs());
        let kind = self.kind;
        match self.how {
            How::Equal {
                null_equals_null,
                residual,
            } => left.join(right, kind, &on, self.options(null_equals_null, residual)),
            How::Window {
                size,
                slide,
                residual: false,
            } => left.window_join(right, hop(millis(size), millis(slide)), kind, &on),
            How::Interval {
                lower,
                upper,
                residual: false,
            } => left.interval_join(right, &on, (lower * NANOS, upper * NANOS), kind),
            How::Window { .. } | How::Interval { .. } => {
                let owned = |(l, r): &(&str, &str)| ((*l).to_owned(), (*r).to_owned());
                let spec = JoinSpec {
                    kind,
                    on: on.iter().map(owned).collect(),
                    time: self.how.time(),
                    options: self.options(false, true),
                };
                left.join_with(right, spec)
            }
            How::AsOf {
                direction,
                tolerance,
            } => left.asof_join(right, &on, (direction, tolerance.map(millis)), kind),
        }
    }
}

impl Case {
    /// Runs the join and compares every column, then one column alone.
    fn check(&self, rows: (usize, usize), threads: usize) -> std::result::Result<(), String> {
        let context = format!("batches of {rows:?}, {threads} threads");
        let stream = self.stream(rows.0, rows.1).unwrap().threads(threads);
        let got = answer_of(stream);
        let whole = Answer {
            columns: got.columns.clone(),
            rows: self.expected(),
            ..Answer::default()
        };
        if let Some(difference) = difference(&whole, &got) {
            return Err(format!("{difference}\n{context}"));
        }
        self.check_narrowed(&got)
            .map_err(|difference| format!("{difference}\n{context}"))
    }

    /// A run that goes on from a snapshot behind any batch gives the same rows.
    fn check_restarted(&self, stop: usize) -> std::result::Result<(), String> {
        let start = || self.stream(3, 5).unwrap().run().unwrap();
        let mut first = start();
        let mut batches: Vec<RecordBatch> = Vec::new();
        for _ in 0..stop {
            first.step().unwrap();
            batches.extend(std::iter::from_fn(|| first.take_result()));
        }
        let mut second = start();
        second.restore(&first.snapshot().unwrap()).unwrap();
        batches.extend(second.by_ref().map(Result::unwrap));
        let got = Answer::from_batches(&second.schema(), &batches);
        let whole = Answer {
            columns: got.columns.clone(),
            rows: self.expected(),
            ..Answer::default()
        };
        match difference(&whole, &got) {
            Some(difference) => Err(format!("restarted behind batch {stop}: {difference}")),
            None => Ok(()),
        }
    }

    /// One column alone has the values it has among all of them.
    fn check_narrowed(&self, whole: &Answer) -> std::result::Result<(), String> {
        let at = self.left.rows.len() % whole.columns.len();
        let name = whole.columns[at].0.as_str();
        let one = self.stream(9, 9).unwrap().project([(name, col(name))]);
        let got = answer_of(one);
        let expected = Answer {
            columns: got.columns.clone(),
            rows: whole.rows.iter().map(|row| vec![row[at].clone()]).collect(),
            ..Answer::default()
        };
        match difference(&expected, &got) {
            Some(difference) => Err(format!("only column {name}: {difference}")),
            None => Ok(()),
        }
    }
}

fn answer_of(stream: Stream) -> Answer {
    let run = stream.run().unwrap();
    let schema = run.schema();
    let batches: Vec<RecordBatch> = run.collect::<Result<_>>().unwrap();
    Answer::from_batches(&schema, &batches)
}

struct Joins;

impl Cases for Joins {
    type Case = (u64, Case);
    /// Whether rows came out.
    type Seen = bool;

    fn make(&self, seed: u64) -> Self::Case {
        (seed, case(&mut Random::new(seed)))
    }

    fn check(&self, (seed, case): &Self::Case) -> std::result::Result<bool, String> {
        case.check((65_536, 65_536), 1)?;
        case.check((1, 7), 1)?;
        if seed.is_multiple_of(8) {
            case.check((5, 1), 2)?;
        }
        case.check_restarted((seed % 7) as usize)?;
        Ok(!case.expected().is_empty())
    }

    fn smaller<'a>(&'a self, (seed, case): &'a Self::Case) -> Smaller<'a, Self::Case> {
        let seed = *seed;
        let lefts = smaller::rows(&case.left.rows).map(move |rows| {
            let mut fewer = case.clone();
            fewer.left.rows = rows;
            (seed, fewer)
        });
        let rights = smaller::rows(&case.right.rows).map(move |rows| {
            let mut fewer = case.clone();
            fewer.right.rows = rows;
            (seed, fewer)
        });
        Box::new(lefts.chain(rights))
    }

    fn show(&self, (_, case): &Self::Case) -> String {
        format!("{case:#?}")
    }
}

#[test]
fn random_joins_agree_with_nested_loops() {
    let seen = trial::run("joins", 5_000, &Joins);
    let with_rows = seen.iter().filter(|rows| **rows).count();
    assert!(
        seen.len() < 100 || with_rows * 2 > seen.len(),
        "{with_rows} have rows"
    );
}
