//! Sorts, first rows and ranks come in the order of a plain stable sort of row keys.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampNanosecondArray,
};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::concat::concat_batches;
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::operator::leading::{Leading, Ties};
use tersecades_engine::operator::over::{Frame, Over, OverCall, OverFunction};
use tersecades_engine::operator::row::keys::{RowKeys, SortOrder};
use tersecades_engine::operator::row::{Extent, RowInput, RowOperator, RowOperatorPlan};
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
    ids_of(&output(plan, rows, batch_rows))
}

fn ids_of(rows: &[RecordBatch]) -> Vec<i64> {
    let ids = rows.iter().map(|batch| batch.column_by_name("id").unwrap());
    ids.flat_map(|ids| ids.as_primitive::<Int64Type>().values().to_vec())
        .collect()
}

/// The operator of `plan` for rows like `rows`.
fn bound(plan: &dyn RowOperatorPlan, rows: &RecordBatch) -> Box<dyn RowOperator> {
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
    plan.bind(&input).unwrap()
}

/// What an operator hands on.
fn output(plan: &dyn RowOperatorPlan, rows: &RecordBatch, batch_rows: usize) -> Vec<RecordBatch> {
    let mut operator = bound(plan, rows);
    let mut out = Vec::new();
    for first in (0..rows.num_rows()).step_by(batch_rows) {
        let count = batch_rows.min(rows.num_rows() - first);
        operator.push(rows.slice(first, count), &mut out).unwrap();
    }
    while operator.finish(&mut out).unwrap() {}
    out
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

/// The ids and ranks up to `most` in what `over` gives of `rows`.
fn ranked(over: &Over, rows: &RecordBatch, (batch_rows, most): (usize, i64)) -> Vec<(i64, i64)> {
    let out = output(over, rows, batch_rows);
    let places = out.iter().flat_map(|batch| {
        let places = batch.column_by_name("place").unwrap();
        places.as_primitive::<Int64Type>().values().to_vec()
    });
    let ranked = ids_of(&out).into_iter().zip(places);
    ranked.filter(|(_, place)| *place <= most).collect()
}

/// Whether words of the order say all of it.
fn is_short(by: &By) -> bool {
    let bits = |(column, _): &(usize, SortOrder)| match COLUMNS[*column] {
        "float" | "number" | "wide" | "time" => 65,
        "flag" => 9,
        _ => 1_000,
    };
    by.iter().map(bits).sum::<usize>() <= 128
}

#[test]
fn rows_behind_the_first_places_change_no_rank_up_to_them() {
    let mut sifted = 0;
    for seed in 0..300 {
        let random = &mut Random::new(0x1ead + seed);
        let count = *random.pick(&[0, 1, 21, 300, 3_000]);
        let (rows, by) = (random_rows(count, random), random_by(random));
        let (keys, order) = by.split_at(random.below(by.len() + 1));
        let function = *random.pick(&[
            OverFunction::RowNumber,
            OverFunction::Rank,
            OverFunction::DenseRank,
        ]);
        let over = Over {
            partition: (keys.iter().map(|(at, _)| COLUMNS[*at].to_owned())).collect(),
            order: expressions(&order.to_vec()),
            calls: vec![OverCall {
                function,
                argument: None,
                default: None,
                frame: Frame::PARTITION,
                output: "place".to_owned(),
            }],
        };
        let most = random.between(1, 5);
        let leading = over.before_filter(&col("place").lt_eq(most)).unwrap();
        for batch_rows in BATCH_ROWS {
            let left = output(&*leading, &rows, batch_rows);
            let whole = match left.is_empty() {
                true => rows.slice(0, 0),
                false => concat_batches(left[0].schema_ref(), &left).unwrap(),
            };
            let wanted = ranked(&over, &rows, (100_000, most));
            let found = ranked(&over, &whole, (100_000, most));
            assert_eq!(found, wanted, "seed {seed}, {leading:?}, {batch_rows}");
            if is_short(&order.to_vec()) {
                assert_eq!(whole.num_rows(), wanted.len(), "seed {seed}, {leading:?}");
                sifted += rows.num_rows() - whole.num_rows();
            }
        }
    }
    assert!(sifted > 50_000, "{sifted}");
}

#[test]
fn first_rows_are_held_without_the_texts_of_others() {
    let names = StringArray::from_iter_values((0..50_000).map(|name| format!("host-{name:020}")));
    let names: ArrayRef = Arc::new(names);
    let batch = |first: i32| {
        let keys = Int32Array::from_iter_values(first..first + 50);
        let hosts = DictionaryArray::new(keys, Arc::clone(&names));
        let ids = (i64::from(first)..).take(50);
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
        RecordBatch::try_from_iter([("host", Arc::new(hosts) as ArrayRef), ("id", ids)]).unwrap()
    };
    let newest = TopK {
        by: vec![(col("id"), SortOrder::DESCENDING)],
        count: 2,
        offset: 0,
        extent: Extent::Whole,
    };
    let mut operator = bound(&newest, &batch(0));
    let mut out = Vec::new();
    for first in (0..50_000).step_by(50) {
        operator.push(batch(first), &mut out).unwrap();
        let held = operator.byte_size();
        assert!(held < 200_000, "{held} bytes after {first} rows");
    }
    operator.finish(&mut out).unwrap();
    assert_eq!(ids_of(&out), [49_999, 49_998]);
    let hosts = arrow_cast::cast(out[0].column(0), &DataType::Utf8).unwrap();
    let wanted = [49_999, 49_998].map(|name| format!("host-{name:020}"));
    assert_eq!(*hosts, StringArray::from(wanted.to_vec()));
}

#[test]
fn rows_that_others_put_out_are_forgotten_while_rows_come() {
    let rows = 1_200_000;
    let numbers = Int64Array::from_iter_values(0..rows);
    let keys = Int64Array::from_iter_values((0..rows).map(|id| id * 7_919 % 30_000));
    let columns = [("number", keys), ("id", numbers)];
    let columns = columns.map(|(name, column)| (name, Arc::new(column) as ArrayRef));
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    for (most, kept) in [(1, 30_000), (3, 90_000)] {
        let leading = Leading {
            keys: vec!["number".to_owned()],
            by: vec![(col("id"), SortOrder::DESCENDING)],
            count: most,
            ties: Ties::Apart,
        };
        let last: Vec<i64> = (1_200_000 - kept..1_200_000).collect();
        assert_eq!(ids(&leading, &rows, 50_000), last);
    }
}

#[test]
fn only_filters_by_ranks_that_hang_on_earlier_rows_leave_out_rows() {
    let call = |function, output: &str| OverCall {
        function,
        argument: Some("number".to_owned()),
        default: None,
        frame: Frame::PARTITION,
        output: output.to_owned(),
    };
    let over = |other| Over {
        partition: vec!["text".to_owned()],
        order: vec![
            (col("text"), SortOrder::ASCENDING),
            (col("time"), SortOrder::DESCENDING),
        ],
        calls: vec![call(OverFunction::RowNumber, "n"), call(other, "other")],
    };
    let shown = |other, condition: &Expression| {
        let before = over(other).before_filter(condition);
        before.map(|plan| plan.describe())
    };
    let first = |count| Some(format!("leading {count} of [text] by [time desc]"));
    let earlier = OverFunction::Shift(2);
    let is = |condition: Expression| shown(earlier, &condition);
    assert_eq!(is(col("n").lt_eq(3)), first(3));
    assert_eq!(is(col("n").lt(3).and(col("number").gt(7))), first(2));
    assert_eq!(is(lit(4).gt_eq(col("n"))), first(4));
    assert_eq!(is(col("n").eq(1).or(col("n").eq(5))), first(5));
    assert_eq!(is(col("n").eq(1).or(col("number").eq(5))), None);
    assert_eq!(is(col("n").gt(1)), None);
    assert_eq!(is(col("n").lt_eq(0)), None);
    assert_eq!(is(col("n").lt_eq(1_000_000)), None);
    assert_eq!(is(col("other").lt_eq(3)), None);
    let later = [
        OverFunction::Shift(-1),
        OverFunction::Count,
        OverFunction::PercentRank,
    ];
    for other in later {
        assert_eq!(shown(other, &col("n").lt_eq(3)), None);
    }
    let dense = shown(OverFunction::DenseRank, &col("other").lt_eq(2));
    assert_eq!(
        dense.unwrap(),
        "leading 2 different ones of [text] by [time desc]"
    );
}
