//! Lines, residuals and what is answered from them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, UInt64Array};

use super::*;
use crate::encoder::ColumnEncoder;
use crate::predicate::Comparison;
use crate::registry::by_id;

fn encode(array: ArrayRef) -> Chunk {
    let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
    encoder.pin(by_id(23).unwrap());
    let chunk = encoder.encode_new(&array).unwrap();
    Linear.validate(&chunk).unwrap();
    let back = chunk.to_arrow(&Selection::all(chunk.rows()), &mut Work::default());
    assert_eq!(&back.unwrap(), &array);
    chunk
}

/// Every ten seconds, up to 19 ms late.
fn jittered(row: i64) -> i64 {
    1_700_000_000_000 + row * 10_000 + (row * 7_919 + row / 20) % 20
}

#[test]
fn jitter_is_all_that_is_left_of_times() {
    let chunk = encode(Arc::new(Int64Array::from_iter_values(
        (0..10_000).map(jittered),
    )));
    let residuals = View::of(&chunk).unwrap().residuals;
    assert!(residuals.stats.max < 24, "{:?}", residuals.stats);
    let slopes = (0..10).map(|block| View::of(&chunk).unwrap().line(block).slope);
    assert!(
        slopes
            .into_iter()
            .all(|slope| slope == 10_000 << SLOPE_BITS)
    );
    let falling = |row: i64| -jittered(row) / 3;
    let holes = (0..3_000).map(|row| (row % 5 > 1).then(|| falling(row)));
    let chunk = encode(Arc::new(Int64Array::from_iter(holes)));
    let residuals = View::of(&chunk).unwrap().residuals;
    assert!(residuals.stats.max < 16, "{:?}", residuals.stats);
}

#[test]
fn rows_are_found_by_their_lines() {
    let times: Vec<i64> = (0..10_000).map(jittered).collect();
    let chunk = encode(Arc::new(Int64Array::from(times.clone())));
    let mut work = Work::default();
    for (row, time) in times.iter().enumerate() {
        let key = chunk.physical.key_of((*time).into()).unwrap();
        assert_eq!(chunk.search(key, 0..times.len(), &mut work), row..row + 1);
        let before = chunk.search(key - 1, 0..times.len(), &mut work);
        assert_eq!(before, row..row, "no time is a millisecond earlier");
        assert_eq!(chunk.search(key, 0..row, &mut work), row..row);
        let (least, most) = View::of(&chunk).unwrap().near(row);
        assert!((least..=most).contains(&i128::from(key)) && most - least < 24);
    }
}

#[test]
fn keys_wrap_at_the_ends_of_a_type() {
    let ends = [i8::MIN, i8::MAX, -1, 0, i8::MAX, i8::MIN, i8::MIN, 1];
    encode(Arc::new(Int8Array::from_iter_values(
        ends.into_iter().cycle().take(2_050),
    )));
    let wide = [0, u64::MAX, 1, u64::MAX - 1, 1 << 63];
    encode(Arc::new(UInt64Array::from_iter_values(
        wide.into_iter().cycle().take(1_500),
    )));
    let steep = (0..64).map(|row: u64| row.wrapping_mul(u64::MAX / 32) ^ (row % 3));
    encode(Arc::new(UInt64Array::from_iter_values(steep)));
    encode(Arc::new(Int64Array::from_iter(vec![None; 1_100])));
}

#[test]
fn only_blocks_that_the_ends_leave_open_are_decoded() {
    let chunk = encode(Arc::new(Int64Array::from_iter_values(
        (0..10_000).map(jittered),
    )));
    let limit = jittered(4_500).into();
    let predicate = Predicate::compare(chunk.data_type(), Comparison::Less, &limit).unwrap();
    let (mut found, mut work) = (Selection::default(), Work::default());
    chunk.compare(&predicate, &Selection::all(10_000), &mut found, &mut work);
    assert_eq!(found.count(), 4_500);
    assert!(work.tally.skipped >= 7_500, "{:?}", work.tally);
}

#[test]
fn sums_are_those_of_lines_and_residuals() {
    let slopes = [
        -3_000_001, -1_024, -7, 0, 1, 5, 512, 1_023, 1_024, 1_536, 99_999,
    ];
    for slope in slopes {
        let line = Line { base: 0, slope };
        for rows in [0, 1, 2, 1_000, 1_023, 1_024] {
            let rises = (0..rows).map(|row| i128::from(line.rise(row).cast_signed()));
            assert_eq!(line.rises(rows), rises.sum::<i128>(), "{slope} {rows}");
        }
    }
    let asked = Asked {
        sum: true,
        ..Asked::default()
    };
    let sum_of = |values: Vec<i64>| {
        let expected: i128 = values.iter().map(|value| i128::from(*value)).sum();
        let chunk = encode(Arc::new(Int64Array::from(values)));
        let (mut fold, mut work) = (Fold::default(), Work::default());
        chunk.fold(asked, &Selection::all(chunk.rows()), &mut fold, &mut work);
        assert_eq!((fold.sum, fold.count), (expected, chunk.rows() as u64));
        work.tally.decoded
    };
    assert_eq!(sum_of((0..10_000).map(jittered).collect()), 0);
    assert_eq!(
        sum_of((0..5_000).map(|row| -jittered(row) / 7).collect()),
        0
    );
    let wrapping = |row: i64| [i64::MAX, i64::MIN][row as usize % 2] ^ row;
    assert!(sum_of((0..3_000).map(wrapping).collect()) > 0);
}
