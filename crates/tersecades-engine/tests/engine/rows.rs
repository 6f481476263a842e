//! Operators on rows agree with their definitions, however they are run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::time::Duration;

use arrow_array::RecordBatch;
use tersecades_engine::expression::col;
use tersecades_engine::operator::row::Extent;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_testkit::data::{Stream as Rows, TimeShape, TimeStream, random_stream, to_batches};
use tersecades_testkit::oracle::rows::{SortColumn, changes, distinct, lag, limit, sort};
use tersecades_testkit::oracle::{Answer, Row, columns_of, difference};
use tersecades_testkit::random::Random;
use tersecades_testkit::trial::{self, Cases, Smaller, smaller};

use arrow_schema::DataType;

/// One operator.
#[derive(Debug, Clone)]
enum Operation {
    Sort(Vec<SortColumn>),
    TopK(Vec<SortColumn>, usize, usize),
    Limit(usize, usize),
    Distinct(Vec<usize>),
    Lag(usize, usize, Vec<usize>),
    Changes(Vec<usize>, Vec<usize>),
}

fn rows_of(random: &mut Random) -> Rows {
    let time = TimeStream {
        shape: TimeShape::Late,
        step: 7,
        window: 60,
        lateness: 20,
        origin: 0,
    };
    let rows = *random.pick(&[0, 1, 30, 100, 100, 200, 400]);
    random_stream(&DataType::Int64, time, rows, random)
}

fn sort_columns(columns: usize, random: &mut Random) -> Vec<SortColumn> {
    let count = 1 + random.below(3);
    let one = |random: &mut Random| (random.below(columns), random.one_in(2), random.one_in(2));
    (0..count).map(|_| one(random)).collect()
}

fn operation(names: &[String], random: &mut Random) -> Operation {
    let columns = names.len();
    let some = |random: &mut Random| (0..columns).filter(|_| random.one_in(9)).collect();
    let changed = names.iter().any(|name| name.starts_with("previous_"));
    match random.below(6) {
        0 => Operation::Sort(sort_columns(columns, random)),
        1 => {
            let count = *random.pick(&[0, 1, 5, 100]);
            Operation::TopK(sort_columns(columns, random), count, random.below(4))
        }
        2 => Operation::Limit(*random.pick(&[0, 1, 50, 1_000]), random.below(40)),
        3 => Operation::Lag(random.below(columns), 1 + random.below(4), some(random)),
        4 if !changed => Operation::Changes(vec![random.below(columns)], some(random)),
        _ => Operation::Distinct((0..columns).filter(|_| random.one_in(5)).collect()),
    }
}

fn expected(operation: &Operation, names: &mut Vec<String>, rows: &[Row]) -> Vec<Row> {
    match operation {
        Operation::Sort(by) => sort(rows, by),
        Operation::TopK(by, count, offset) => limit(&sort(rows, by), *count, *offset),
        Operation::Limit(count, offset) => limit(rows, *count, *offset),
        Operation::Distinct(kept) => {
            let kept: Vec<usize> = kept.iter().copied().filter(|c| *c < names.len()).collect();
            let kept = if kept.is_empty() { vec![0] } else { kept };
            *names = kept.iter().map(|column| names[*column].clone()).collect();
            let part = |row: &Row| kept.iter().map(|column| row[*column].clone()).collect();
            distinct(&rows.iter().map(part).collect::<Vec<Row>>())
        }
        Operation::Lag(column, count, keys) => {
            names.push(format!("lag_{}", names.len()));
            lag(rows, *column, *count, keys)
        }
        Operation::Changes(columns, keys) => {
            let time = names.iter().position(|name| name == "time");
            let previous = columns.iter().map(|c| format!("previous_{}", names[*c]));
            let previous: Vec<String> = previous.collect();
            names.extend(previous);
            names.extend(time.map(|_| "lasted".to_owned()));
            changes(rows, columns, keys, time)
        }
    }
}

fn step(stream: Stream, operation: &Operation, names: &[String]) -> Stream {
    let by = |columns: &[SortColumn]| {
        let one = |(column, descending, nulls_first): &SortColumn| {
            let order = SortOrder {
                descending: *descending,
                nulls_first: *nulls_first,
            };
            (col(names[*column].as_str()), order)
        };
        columns.iter().map(one).collect::<Vec<_>>()
    };
    match operation {
        Operation::Sort(columns) => stream.sort(by(columns)),
        Operation::TopK(columns, count, offset) => {
            stream.top_k_in(Extent::Whole, (*count, *offset), by(columns))
        }
        Operation::Limit(count, offset) => stream.limit(*count as u64, *offset as u64),
        Operation::Distinct(kept) => {
            let kept: Vec<usize> = kept.iter().copied().filter(|c| *c < names.len()).collect();
            let kept = if kept.is_empty() { vec![0] } else { kept };
            let columns = kept
                .iter()
                .map(|c| (names[*c].clone(), col(names[*c].as_str())));
            stream.project(columns).distinct()
        }
        Operation::Lag(column, count, keys) => {
            let keys = keys.iter().map(|key| names[*key].as_str());
            let output = format!("lag_{}", names.len());
            stream.lag(&names[*column], *count, keys, &output)
        }
        Operation::Changes(columns, keys) => {
            let columns = columns.iter().map(|column| names[*column].as_str());
            stream.changes(columns, keys.iter().map(|key| names[*key].as_str()))
        }
    }
}

/// Runs `build`, with a snapshot after `restart` batches.
fn run(
    build: &dyn Fn(Vec<RecordBatch>) -> Running,
    mut batches: Vec<RecordBatch>,
    restart: Option<usize>,
) -> Vec<RecordBatch> {
    let mut results = Vec::new();
    let mut running = match restart {
        None => build(batches),
        Some(restart) => {
            let rest = batches.split_off(restart.min(batches.len()));
            let steps = batches.len();
            let mut first = build(batches);
            for _ in 0..steps {
                first.step().unwrap();
                results.extend(std::iter::from_fn(|| first.take_result()));
            }
            let mut second = build(rest);
            second.restore(&first.snapshot().unwrap()).unwrap();
            second
        }
    };
    results.extend(running.by_ref().map(Result::unwrap));
    results
}

/// Rows, and operators with the names of the columns before each.
#[derive(Debug, Clone)]
struct Case {
    stream: Rows,
    operations: Vec<(Operation, Vec<String>)>,
}

impl Case {
    fn expected(&self) -> Vec<Row> {
        let rows = self.stream.rows.clone();
        let next = |rows: Vec<Row>, (operation, names): &(Operation, Vec<String>)| {
            expected(operation, &mut names.clone(), &rows)
        };
        self.operations.iter().fold(rows, next)
    }
}

struct RowOperators;

impl Cases for RowOperators {
    type Case = Case;
    type Seen = ();

    fn make(&self, seed: u64) -> Case {
        let mut random = Random::new(seed);
        let stream = rows_of(&mut random);
        let columns = columns_of(&stream.schema).into_iter();
        let mut names: Vec<String> = columns.map(|(name, _)| name).collect();
        let mut operations = Vec::new();
        for _ in 0..1 + random.below(2) {
            let next = operation(&names, &mut random);
            let before = names.clone();
            expected(&next, &mut names, &[]);
            operations.push((next, before));
        }
        Case { stream, operations }
    }

    fn check(&self, case: &Case) -> Result<(), String> {
        let rows = case.expected();
        for (batch_rows, threads, restart) in [(65_536, 1, None), (3, 2, None), (20, 1, Some(4))] {
            let build = |batches: Vec<RecordBatch>| {
                let start = Stream::from_batches(case.stream.schema.clone(), batches)
                    .event_time(col("time"), Duration::ZERO)
                    .threads(threads);
                let add = |stream, (operation, names): &(Operation, Vec<String>)| {
                    step(stream, operation, names)
                };
                case.operations.iter().fold(start, add).run().unwrap()
            };
            let schema = build(Vec::new()).schema();
            let batches = to_batches(&case.stream.schema, &case.stream.rows, batch_rows);
            let got = Answer::from_batches(&schema, &run(&build, batches, restart));
            let expected = Answer {
                columns: got.columns.clone(),
                rows: rows.clone(),
                ..Answer::default()
            };
            if let Some(difference) = difference(&expected, &got) {
                return Err(format!("{difference}\nbatches of {batch_rows}"));
            }
        }
        Ok(())
    }

    fn smaller<'a>(&'a self, case: &'a Case) -> Smaller<'a, Case> {
        let operations = case.operations.len();
        let first = (operations > 1).then(|| Case {
            operations: case.operations[..operations - 1].to_vec(),
            ..case.clone()
        });
        let rows = smaller::rows(&case.stream.rows).map(move |rows| {
            let mut fewer = case.clone();
            fewer.stream.rows = rows;
            fewer
        });
        Box::new(first.into_iter().chain(rows))
    }

    fn show(&self, case: &Case) -> String {
        format!("{:?}\n{:#?}", case.operations, case.stream.rows)
    }
}

#[test]
fn operators_on_rows_agree_with_their_definitions() {
    trial::run("operators on rows", 2_000, &RowOperators);
}
