//! Sorts, first rows and ranks come in the order of a plain stable sort of row keys.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use arrow_schema::TimeUnit;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::operator::over::{Frame, Over, OverCall, OverFunction};
use tersecades_engine::operator::row::keys::{RowKeys, SortOrder};
use tersecades_engine::operator::row::{Extent, RowInput, RowOperatorPlan};
use tersecades_engine::operator::sort::Sort;
use tersecades_engine::operator::top_k::TopK;
use tersecades_engine::plan::EventTime;
use tersecades_testkit::random::Random;

const BATCH_ROWS: [usize; 3] = [1, 7, 100_000];
const COLUMNS: [&str; 8] = [
    "float", "number", "wide", "text", "long", "word", "flag", "time",
];

type By = Vec<(usize, SortOrder)>;

fn float(random: &mut Random) -> f64 {
    let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, 1.5, -1.5];
    match random.one_in(2) {
        true => *random.pick(&special),
        false => random.between(-50, 50) as f64 / 8.0,
    }
}

/// Text that is equal for long, and may be the start of another.
fn long_text(random: &mut Random) -> String {
    let shared = random.pick(&[0, 7, 8, 9, 31, 32, 33, 64, 100, 200]);
    let end = random.pick(&["", "\0", "a", "aa", "b", "and then some more of it"]);
    format!("{}{end}", "x".repeat(*shared))
}

/// `rows` values, some of which are null.
fn values<T>(rows: usize, random: &mut Random, value: impl Fn(&mut Random) -> T) -> Vec<Option<T>> {
    let nulls = *random.pick(&[0, 3, 50]);
    let one = |_| match nulls > 0 && random.one_in(nulls) {
        true => None,
        false => Some(value(random)),
    };
    (0..rows).map(one).collect()
}

fn random_rows(rows: usize, random: &mut Random) -> RecordBatch {
    let ids = Int64Array::from_iter_values(0..rows as i64);
    let words = values(rows, random, |random| {
        *random.pick(&["", "up", "upper", "down"])
    });
    let words: DictionaryArray<Int32Type> = words.into_iter().collect();
    let text = values(rows, random, |random| {
        format!("host-{}", random.below(2_000))
    });
    let time = values(rows, random, |random| {
        1_700_000_000_000 + random.between(0, 9_999)
    });
    let columns: [ArrayRef; 8] = [
        Arc::new(Float64Array::from(values(rows, random, float))),
        Arc::new(Int64Array::from(values(rows, random, |r| r.between(-2, 2)))),
        Arc::new(Int64Array::from(values(rows, random, |r| r.bits() as i64))),
        Arc::new(StringArray::from(text)),
        Arc::new(StringArray::from(values(rows, random, long_text))),
        Arc::new(words),
        Arc::new(BooleanArray::from(values(rows, random, |r| r.one_in(3)))),
        Arc::new(TimestampNanosecondArray::from(time)),
    ];
    let columns = COLUMNS.into_iter().zip(columns);
    RecordBatch::try_from_iter(columns.chain([("id", Arc::new(ids) as ArrayRef)])).unwrap()
}

fn random_by(random: &mut Random) -> By {
    let one = |random: &mut Random| {
        let order = SortOrder {
            descending: random.one_in(2),
            nulls_first: random.one_in(2),
        };
        (random.below(COLUMNS.len()), order)
    };
    let count = 1 + random.below(3);
    (0..count).map(|_| one(random)).collect()
}

fn expressions(by: &By) -> Vec<(Expression, SortOrder)> {
    let one = |(column, order): &(usize, SortOrder)| (col(COLUMNS[*column]), *order);
    by.iter().map(one).collect()
}

/// What a stable sort that compares whole keys gives.
fn expected(rows: &RecordBatch, by: &By) -> Vec<i64> {
    let types = by.iter().map(|(column, order)| {
        let data_type = rows.column(*column).data_type().clone();
        (data_type, *order)
    });
    let columns: Vec<ArrayRef> = by
        .iter()
        .map(|(at, _)| Arc::clone(rows.column(*at)))
        .collect();
    let keys = RowKeys::new(types).unwrap().of(&columns).unwrap();
    let mut ids: Vec<i64> = (0..rows.num_rows() as i64).collect();
    let compare =
        |a: &i64, b: &i64| -> Ordering { keys.row(*a as usize).cmp(&keys.row(*b as usize)) };
    ids.sort_by(compare);
    ids
}

/// The ids in what an operator hands on.
fn ids(plan: &dyn RowOperatorPlan, rows: &RecordBatch, batch_rows: usize) -> Vec<i64> {
    let input = RowInput {
        schema: rows.schema(),
        event_time: EventTime {
            expression: col("time"),
            unit: TimeUnit::Nanosecond,
            lateness: std::time::Duration::ZERO,
        },
        windowed: false,
        reordered: false,
    };
    let mut operator = plan.bind(&input).unwrap();
    let mut out = Vec::new();
    for first in (0..rows.num_rows()).step_by(batch_rows) {
        let count = batch_rows.min(rows.num_rows() - first);
        operator.push(rows.slice(first, count), &mut out).unwrap();
    }
    operator.finish(&mut out).unwrap();
    let ids = out.iter().map(|batch| batch.column_by_name("id").unwrap());
    ids.flat_map(|ids| ids.as_primitive::<Int64Type>().values().to_vec())
        .collect()
}

fn check_top(rows: &RecordBatch, by: &By, sorted: &[i64], batch_rows: usize) {
    for count in [0, 1, 2, 10, 150, 3_000, 100_000] {
        for offset in [0, 1, 7, 600] {
            let top = TopK {
                by: expressions(by),
                count,
                offset,
                extent: Extent::Whole,
            };
            let wanted: Vec<i64> = sorted.iter().skip(offset).take(count).copied().collect();
            let found = ids(&top, rows, batch_rows);
            assert_eq!(
                found, wanted,
                "{count} after {offset} by {by:?} of {batch_rows}"
            );
        }
    }
}

fn check(rows: &RecordBatch, by: &By, batch_rows: usize) {
    let sorted = expected(rows, by);
    let sort = Sort {
        by: expressions(by),
        extent: Extent::Whole,
    };
    assert_eq!(
        ids(&sort, rows, batch_rows),
        sorted,
        "by {by:?} of {batch_rows}"
    );
    check_top(rows, by, &sorted, batch_rows);
    let (partition, order) = by.split_at(1);
    let partition = partition.iter().map(|(column, _)| *column);
    let over = Over {
        partition: partition
            .clone()
            .map(|column| COLUMNS[column].to_owned())
            .collect(),
        order: expressions(&order.to_vec()),
        calls: vec![OverCall {
            function: OverFunction::RowNumber,
            argument: None,
            default: None,
            frame: Frame::PARTITION,
            output: "place".to_owned(),
        }],
    };
    let partition = partition.map(|column| (column, SortOrder::ASCENDING));
    let joined: By = partition.chain(order.iter().copied()).collect();
    let sorted = expected(rows, &joined);
    assert_eq!(
        ids(&over, rows, batch_rows),
        sorted,
        "over {by:?} of {batch_rows}"
    );
}

#[test]
fn orders_are_those_of_a_stable_sort() {
    for seed in 0..40 {
        let random = &mut Random::new(seed);
        let count = *random.pick(&[0, 1, 20, 21, 300, 1_500]);
        let (rows, by) = (random_rows(count, random), random_by(random));
        BATCH_ROWS
            .iter()
            .for_each(|batch_rows| check(&rows, &by, *batch_rows));
    }
}

#[test]
fn many_rows_are_ordered_as_few_are() {
    for seed in 0..6 {
        let random = &mut Random::new(1_000 + seed);
        let (rows, by) = (random_rows(80_000, random), random_by(random));
        check(&rows, &by, 100_000);
        check_top(&rows, &by, &expected(&rows, &by), 5_000);
    }
}

#[test]
fn rising_rows_come_in_the_order_of_a_stable_sort() {
    let ids: Vec<i64> = (0..150_000).collect();
    let halves = Int64Array::from_iter_values(ids.iter().map(|id| id / 2));
    let rows = RecordBatch::try_from_iter([
        ("float", Arc::new(halves) as ArrayRef),
        ("id", Arc::new(Int64Array::from(ids)) as ArrayRef),
    ]);
    let (rows, by) = (rows.unwrap(), vec![(0, SortOrder::DESCENDING)]);
    check_top(&rows, &by, &expected(&rows, &by), 70_000);
}
