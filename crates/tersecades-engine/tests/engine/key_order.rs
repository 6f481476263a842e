//! Groups of a whole stream come out in the order of their keys, nulls last, whatever the keys.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int8Array, Int64Array, RecordBatch,
    StringArray, TimestampMillisecondArray,
};
use arrow_select::concat::concat_batches;
use tersecades_engine::aggregate::count;
use tersecades_engine::operator::row::keys::RowKeys;
use tersecades_engine::stream::Stream;
use tersecades_testkit::random::Random;

/// One in so many values is null; none where there is no number.
fn column(random: &mut Random, rows: usize, kind: usize, nulls: Option<usize>) -> ArrayRef {
    let mut value = |value: &dyn Fn(&mut Random) -> i128| -> Vec<Option<i128>> {
        let one = |_| {
            let is_null = nulls.is_some_and(|nulls| random.one_in(nulls));
            let value = value(random);
            (!is_null).then_some(value)
        };
        (0..rows).map(one).collect()
    };
    let wide = |random: &mut Random| i128::from(random.bits() as i64);
    let ends = [i128::from(i64::MAX), i128::from(i64::MIN), -1, 0];
    match kind {
        0 => Arc::new(BooleanArray::from_iter(
            value(&|random| random.below(2) as i128)
                .iter()
                .map(|v| v.map(|v| v == 1)),
        )),
        1 => Arc::new(Int8Array::from_iter(
            value(&|random| random.below(200) as i128 - 100)
                .iter()
                .map(|v| v.map(|v| v as i8)),
        )),
        2 => Arc::new(Int64Array::from_iter(
            value(&|random| {
                if random.one_in(3) {
                    *random.pick(&ends)
                } else {
                    wide(random)
                }
            })
            .iter()
            .map(|v| v.map(|v| v as i64)),
        )),
        3 => Arc::new(TimestampMillisecondArray::from_iter(
            value(&|random| random.below(40) as i128 - 20)
                .iter()
                .map(|v| v.map(|v| v as i64)),
        )),
        4 => Arc::new(Float64Array::from_iter(value(&wide).iter().map(|v| {
            v.map(|v| match v % 9 {
                0 => f64::NAN,
                1 => -0.0,
                2 => f64::NEG_INFINITY,
                _ => v as f64 / 3.0,
            })
        }))),
        5 => {
            let decimals = value(&|random| wide(random) << random.below(60));
            let decimals = Decimal128Array::from_iter(decimals);
            Arc::new(decimals.with_precision_and_scale(38, 2).unwrap())
        }
        _ => {
            let texts = value(&|random| random.below(300) as i128);
            let text = |v: i128| {
                let start = ["", "a", "a common start, ", "é"][v as usize % 4];
                format!("{start}{}", v * 7_919 % 311)
            };
            Arc::new(StringArray::from_iter(texts.iter().map(|v| v.map(text))))
        }
    }
}

#[test]
fn groups_come_in_the_order_of_their_keys() {
    let mut random = Random::new(0x0DE2);
    for round in 0..150 {
        let rows = *random.pick(&[1, 40, 255, 700, 4_000]);
        let names = ["a", "b", "c", "d"];
        let names = &names[..1 + random.below(4)];
        let columns = names.iter().map(|name| {
            let nulls = *random.pick(&[None, Some(3), Some(200)]);
            let kind = random.below(7);
            (*name, column(&mut random, rows, kind, nulls), true)
        });
        let columns: Vec<_> = columns.collect();
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let parts = vec![
            batch.slice(0, rows / 2),
            batch.slice(rows / 2, rows - rows / 2),
        ];
        let threads = 1 + round % 2;
        let stream = Stream::from_batches(batch.schema(), parts).threads(threads);
        let groups = stream.group_by(names.iter().copied()).aggregate([count()]);
        let groups: Vec<RecordBatch> = groups.run().unwrap().map(Result::unwrap).collect();
        let groups = concat_batches(&groups[0].schema(), &groups).unwrap();
        let keys = &groups.columns()[..names.len()];
        let types = keys.iter().map(|key| key.data_type().clone());
        let keys = RowKeys::unordered(types).unwrap().of(keys).unwrap();
        let context = format!("{rows} rows of {:?}", batch.schema());
        for row in 1..groups.num_rows() {
            assert!(keys.row(row - 1) < keys.row(row), "{context}, group {row}");
        }
        let distinct = RowKeys::unordered(batch.columns().iter().map(|c| c.data_type().clone()));
        let all = distinct.unwrap().of(batch.columns()).unwrap();
        let mut all: Vec<_> = all.iter().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(groups.num_rows(), all.len(), "{context}");
    }
}
