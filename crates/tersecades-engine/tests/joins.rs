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
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;
use tersecades_testkit::data::to_batches;
use tersecades_testkit::oracle::join::{Pair, as_of, equal_keys, interval, join, window};
use tersecades_testkit::oracle::{Answer, Row, difference};
use tersecades_testkit::random::Random;

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
    },
    Interval {
        lower: i64,
        upper: i64,
    },
    AsOf {
        direction: Direction,
        tolerance: Option<i64>,
    },
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
        },
        2 => {
            let lower = random.between(-30, 20);
            How::Interval {
                lower,
                upper: lower + random.between(0, 30),
            }
        }
        _ => How::AsOf {
            direction: *random.pick(&[Direction::Backward, Direction::Forward, Direction::Nearest]),
            tolerance: (!random.one_in(3)).then(|| random.between(0, 25)),
        },
    }
}

/// One join.
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
    fn equal(&self, null_equals_null: bool) -> impl Fn(usize, usize) -> bool + '_ {
        let (left, right) = (&self.left.rows, &self.right.rows);
        move |l, r| equal_keys(&left[l], &right[r], &self.on, null_equals_null)
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
        let value = |row: &Row| match row[3] {
            Value::Integer(value) => value,
            _ => 0,
        };
        let pairs = match self.how {
            How::Equal {
                null_equals_null,
                residual,
            } => {
                let equal = self.equal(null_equals_null);
                let both: Vec<Vec<usize>> = [&self.left, &self.right]
                    .map(|side| (0..side.rows.len()).collect())
                    .to_vec();
                let larger =
                    |l: usize, r: usize| value(&self.left.rows[l]) <= value(&self.right.rows[r]);
                join(self.kind, &both[0], &both[1], |l, r| {
                    equal(l, r) && (!residual || larger(l, r))
                })
            }
            How::Window { size, slide } => {
                let joined = window(self.kind, times, lateness, (size, slide), self.equal(false));
                let row = |(start, pair): (i64, Pair)| {
                    let mut row = vec![Value::from(start), Value::from(start + size)];
                    row.extend(self.row(pair));
                    row
                };
                return joined.into_iter().map(row).collect();
            }
            How::Interval { lower, upper } => interval(
                self.kind,
                times,
                lateness,
                (lower, upper),
                self.equal(false),
            ),
            How::AsOf {
                direction,
                tolerance,
            } => {
                let how = (direction, tolerance);
                as_of(self.kind, times, lateness, how, self.equal(false))
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
            } => {
                let shared = self.right.schema.field(3).name() == "value";
                let right_value = if shared { "value_right" } else { "r_value" };
                let options = JoinOptions {
                    null_equals_null,
                    residual: residual.then(|| col("value").lt_eq(col(right_value))),
                    ..JoinOptions::default()
                };
                left.join(right, kind, &on, options)
            }
            How::Window { size, slide } => {
                left.window_join(right, hop(millis(size), millis(slide)), kind, &on)
            }
            How::Interval { lower, upper } => {
                let nanos = 1_000_000;
                left.interval_join(right, &on, (lower * nanos, upper * nanos), kind)
            }
            How::AsOf {
                direction,
                tolerance,
            } => left.asof_join(right, &on, (direction, tolerance.map(millis)), kind),
        }
    }
}

fn check(seed: u64) {
    let mut random = Random::new(seed);
    let case = case(&mut random);
    let context = format!(
        "seed {seed}, {:?} {:?} on {:?}",
        case.kind, case.how, case.on
    );
    let expected = case.expected();
    for (left_rows, right_rows, threads) in [(65_536, 65_536, 1), (1, 7, 1), (5, 1, 2)] {
        if threads > 1 && !seed.is_multiple_of(8) {
            continue;
        }
        let stream = case.stream(left_rows, right_rows).unwrap().threads(threads);
        let run = stream.run().unwrap();
        let schema = run.schema();
        let batches: Vec<RecordBatch> = run.collect::<Result<_>>().unwrap();
        let got = Answer::from_batches(&schema, &batches);
        let whole = Answer {
            columns: got.columns.clone(),
            rows: expected.clone(),
            ..Answer::default()
        };
        if let Some(difference) = difference(&whole, &got) {
            panic!("{difference}\n{context}, batches of {left_rows} and {right_rows}");
        }
        check_narrowed(&case, stream_of(&case), &got, &context);
    }
}

fn stream_of(case: &Case) -> Stream {
    case.stream(9, 9).unwrap()
}

/// One column alone has the values it has among all of them.
fn check_narrowed(case: &Case, stream: Stream, whole: &Answer, context: &str) {
    let (name, _) = &whole.columns[case.left.rows.len() % whole.columns.len()];
    let at = whole
        .columns
        .iter()
        .position(|(known, _)| known == name)
        .unwrap();
    let run = stream
        .project([(name.clone(), col(name.as_str()))])
        .run()
        .unwrap();
    let schema = run.schema();
    let batches: Vec<RecordBatch> = run.collect::<Result<_>>().unwrap();
    let got = Answer::from_batches(&schema, &batches);
    let expected = Answer {
        columns: got.columns.clone(),
        rows: whole.rows.iter().map(|row| vec![row[at].clone()]).collect(),
        ..Answer::default()
    };
    if let Some(difference) = difference(&expected, &got) {
        panic!("only column {name}: {difference}\n{context}");
    }
}

#[test]
fn random_joins_agree_with_nested_loops() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number("TERSECADES_ORACLE_FIRST").unwrap_or(0);
    let seeds = number("TERSECADES_ORACLE_SEEDS").unwrap_or(2_000);
    (first..first + seeds).for_each(check);
}
