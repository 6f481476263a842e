//! Comparing columns against values compared one by one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int16Array, Int64Array, UInt64Array};

use super::*;
use crate::encoder::ColumnEncoder;
use crate::registry::by_id;

const ROWS: i64 = 2_600;
const ALL: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

fn draw(row: i64, stream: i64) -> i64 {
    let word = (row * 2 + stream).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
    (word ^ (word >> 29)).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 3
}

fn wide(value: impl Fn(i64) -> Option<i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter((0..ROWS).map(value)))
}

/// Deltas of every width, near and far bases, outliers, nulls, and the ends of the types.
fn columns() -> Vec<ArrayRef> {
    let near = |row, spread: i64| 1_000_000 + row + draw(row, 1).rem_euclid(spread);
    let odd = |row: i64| row % 61 == 7;
    vec![
        wide(|row| Some(near(row, 3))),
        wide(|row| Some(1_000_000 + row)),
        wide(|row| (row % 7 > 0).then(|| near(row, 200))),
        wide(|row| {
            Some(if odd(row) {
                draw(row, 2)
            } else {
                near(row, 90)
            })
        }),
        wide(|row| Some(near(row, 40_000))),
        wide(|row| Some(near(row, 3_000_000_000))),
        wide(|row| Some([i64::MIN, i64::MAX, -1, 0, 1][draw(row, 3).rem_euclid(5) as usize])),
        wide(|row| (row / 1_024 != 1).then_some(1_000_700)),
        wide(|row| Some(if row % 400 == 9 { row } else { 1_001_000 })),
        wide(|_| None),
        Arc::new(Int16Array::from_iter_values(
            (0..ROWS).map(|row| draw(row, 4) as i16),
        )),
        Arc::new(UInt64Array::from_iter_values((0..ROWS).map(|row| {
            if odd(row) {
                u64::MAX - row as u64
            } else {
                near(row, 5).cast_unsigned()
            }
        }))),
    ]
}

fn values(array: &ArrayRef) -> Vec<Option<i128>> {
    let value = |row: usize| -> i128 {
        match array.data_type() {
            arrow_schema::DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
            arrow_schema::DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
            _ => array.as_primitive::<Int64Type>().value(row).into(),
        }
    };
    (0..array.len())
        .map(|row| array.is_valid(row).then(|| value(row)))
        .collect()
}

fn holds(how: Comparison, sides: (Option<i128>, Option<i128>)) -> bool {
    let (Some(a), Some(b)) = sides else {
        return false;
    };
    how.symbol() == "<>" && a != b
        || how.symbol().contains('=') && a == b
        || how.symbol().starts_with('<') && how.symbol() != "<>" && a < b
        || how.symbol().starts_with('>') && a > b
}

#[test]
fn columns_compare_as_their_values_do() {
    let mut some = Selection::default();
    let words = some.set_bits(ROWS as usize);
    (0..ROWS as usize)
        .step_by(3)
        .for_each(|row| words[row / 64] |= 1 << (row % 64));
    let mut few = Selection::default();
    few.set_rows(ROWS as usize)
        .extend((0..ROWS as u32).step_by(37));
    let selections = [Selection::all(ROWS as usize), some, few];
    let columns = columns();
    // base_delta, frame_of_reference, constant; varint has no bands.
    let encoded: Vec<Vec<(Vec<Option<i128>>, Chunk)>> = columns
        .iter()
        .map(|array| {
            let chunk = |id: u8| {
                let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
                encoder.pin(by_id(id).unwrap());
                (values(array), encoder.encode_new(array).unwrap())
            };
            [2, 5, 1, 11].map(chunk).into_iter().collect()
        })
        .collect();
    let (mut out, mut work) = (Selection::default(), Work::default());
    let pairs = encoded.iter().flatten().enumerate();
    for (index, (a, chunk)) in pairs {
        for (b, other) in encoded.iter().map(|forms| &forms[index % 3]) {
            for (how, within) in ALL
                .iter()
                .flat_map(|how| selections.iter().map(move |s| (*how, s)))
            {
                chunk.compare_columns(how, other, within, &mut out, &mut work);
                let (mut got, mut expected) = (Vec::new(), Vec::new());
                out.for_each(|row| got.push(row));
                within.for_each(|row| expected.push(row));
                expected.retain(|row| holds(how, (a[*row], b[*row])));
                assert_eq!(got, expected, "{chunk:?} {how:?} {other:?}");
            }
        }
    }
}

#[test]
fn columns_of_bands_are_not_decoded_and_blocks_apart_not_looked_at() {
    let chunk = |id: u8, value: &dyn Fn(i64) -> Option<i64>| {
        let array = wide(value);
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        encoder.pin(by_id(id).unwrap());
        encoder.encode_new(&array).unwrap()
    };
    let low = chunk(2, &|row| Some(row % 100));
    let high = chunk(5, &|row| {
        Some(if row < 1_024 {
            row % 90
        } else {
            500 + row % 90
        })
    });
    let (mut out, mut work) = (Selection::default(), Work::default());
    let all = Selection::all(ROWS as usize);
    low.compare_columns(Comparison::Less, &high, &all, &mut out, &mut work);
    assert_eq!(work.tally.decoded, 0);
    assert_eq!(work.tally.direct, 2 * 1_024);
    assert_eq!(work.tally.skipped, 2 * (ROWS as u64 - 1_024));
}
