//! Tables of numbers and their codes.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, UInt8Array};

use super::*;
use crate::encoder::ColumnEncoder;
use crate::registry::by_id;
use crate::scheme::Scheme;
use crate::types::Value;

fn encode(array: ArrayRef) -> Chunk {
    let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
    encoder.pin(by_id(8).unwrap());
    let chunk = encoder.encode_new(&array).unwrap();
    NumberDictionary.validate(&chunk).unwrap();
    let back = chunk.to_arrow(&Selection::all(chunk.rows()), &mut Work::default());
    assert_eq!(back.unwrap().to_data(), array.to_data());
    chunk
}

#[test]
fn floats_keep_their_bits_and_their_order() {
    let odd = [
        0.0,
        -0.0,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7FF0_0000_0000_0001),
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.5,
        f64::MIN_POSITIVE / 4.0,
    ];
    let array = Float64Array::from_iter_values((0..2_000).map(|row| odd[row * 7 % odd.len()]));
    let chunk = encode(Arc::new(array.clone()));
    let view = View::of(&chunk).unwrap();
    assert_eq!(view.table.len(), odd.len());
    let mut work = Work::default();
    let mut found = Selection::default();
    for constant in odd {
        let constant = Value::Float(constant);
        let how = crate::predicate::Comparison::LessOrEqual;
        let predicate = Predicate::compare(chunk.data_type(), how, &constant).unwrap();
        chunk.compare(&predicate, &Selection::all(2_000), &mut found, &mut work);
        let passing = array.values().iter();
        let passing = passing.filter(|value| predicate.matches_key(float_key(**value)));
        assert_eq!(found.count(), passing.count(), "{constant:?}");
    }
}

#[test]
fn codes_grow_with_the_table() {
    for (distinct, bytes) in [(1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4)] {
        let value = |row: i64| (row * 7_919 % distinct) * 1_000_000_007 - 5;
        let rows = distinct.max(3_000);
        let array = Int64Array::from_iter_values((0..rows).map(value));
        let chunk = encode(Arc::new(array));
        let view = View::of(&chunk).unwrap();
        assert_eq!(view.table.len() as i64, distinct);
        assert_eq!(view.codes.physical.lane_bytes(), bytes);
    }
}

#[test]
fn numbers_are_summed_and_changed_without_decoding() {
    for inner in [
        "plain",
        "bit_pack",
        "frame_of_reference",
        "base_delta",
        "patched",
    ] {
        let scheme: Scheme = format!("number_dictionary({inner})").parse().unwrap();
        let value = |row: i64| i64::MIN / 2 + (row * row % 200) * 1_000_000_007;
        let values: Vec<i64> = (0..5_000).map(value).collect();
        let array: ArrayRef = Arc::new(Int64Array::from(values.clone()));
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        encoder.require(scheme).unwrap();
        let chunk = encoder.encode_new(&array).unwrap();
        let (mut work, mut encode) = (Work::default(), EncodeWork::default());
        let mut changed = Chunk::default();
        for change in [Change::Add(-5), Change::Add(i64::MAX), Change::Multiply(2)] {
            let mapped = chunk.map(change, &mut changed, &mut work, &mut encode);
            mapped.unwrap();
            NumberDictionary.validate(&changed).unwrap();
            let (mut fold, mut odd) = (Fold::default(), Selection::default());
            odd.set_rows(5_000).extend((1..5_000).step_by(2));
            odd.to_bits();
            let sum = Asked {
                sum: true,
                ..Asked::default()
            };
            changed.fold(sum, &Selection::all(5_000), &mut fold, &mut work);
            changed.fold(sum, &odd, &mut fold, &mut work);
            let results = values.iter().map(|value| change.apply(i128::from(*value)));
            let odd = results.clone().skip(1).step_by(2).sum::<i128>();
            assert_eq!(fold.sum, results.sum::<i128>() + odd, "{inner} {change:?}");
            assert_eq!(fold.count, 7_500);
        }
        assert_eq!(work.tally.decoded, 0, "{inner}");
    }
}

/// The products of numbers and their counts are rounded to 3,000 and -3,000.
#[test]
fn sums_of_floats_lose_nothing_in_products() {
    let value = |row: usize| if row % 13 < 9 { 1.0 / 3.0 } else { -0.75 };
    let array = Float64Array::from_iter_values((0..13_000).map(value));
    let chunk = encode(Arc::new(array));
    let (mut fold, mut work) = (Fold::default(), Work::default());
    let sum = Asked {
        sum: true,
        ..Asked::default()
    };
    chunk.fold(sum, &Selection::all(13_000), &mut fold, &mut work);
    assert_eq!(fold.count, 13_000);
    assert_eq!(fold.float_sum.total(), -3_000.0 / (1u64 << 54) as f64);
}

#[test]
fn a_number_that_no_row_needs_may_leave_64_bits() {
    let array = Int64Array::from_iter((0..100).map(|row| (row > 0).then_some(row % 3)));
    let mut chunk = encode(Arc::new(array));
    let codes = View::of(&chunk).unwrap().codes.clone();
    add_lanes_section(
        &mut chunk.body,
        TABLE,
        8,
        &[0, 1, 2, i64::MAX as u64].map(|v| v ^ 1 << 63),
    );
    chunk.body.inner[0] = Some(Box::new(codes));
    NumberDictionary.validate(&chunk).unwrap();
    let (mut work, mut encode) = (Work::default(), EncodeWork::default());
    let mut out = Chunk::default();
    let change = Change::Add(7);
    chunk.map(change, &mut out, &mut work, &mut encode).unwrap();
    let (mut fold, all) = (Fold::default(), Selection::all(100));
    let ends = Asked {
        ends: true,
        ..Asked::default()
    };
    out.fold(ends, &all, &mut fold, &mut work);
    let values = [fold.min, fold.max].map(|key| out.physical.value_of(key as u64));
    assert_eq!(values, [7, 9]);
}

/// Statistics of chunks inside leave out null rows, whose codes are looked up as others are.
#[test]
fn codes_that_statistics_leave_out_have_numbers_too() {
    fn leave_out(chunk: &mut Chunk) {
        chunk.stats.max = chunk.stats.min;
        let inner = chunk.body.inner.iter_mut().flatten();
        inner.for_each(|inner| leave_out(inner));
    }
    let mut chunk = encode(Arc::new(Int64Array::from(vec![Some(7), None])));
    for scheme in ["plain", "patched(frame_of_reference)", "gcd(plain)"] {
        for (code, valid) in [(0, true), (200, false)] {
            let codes: ArrayRef = Arc::new(UInt8Array::from(vec![0, code]));
            let mut encoder = ColumnEncoder::new(codes.data_type()).unwrap();
            encoder.require(scheme.parse::<Scheme>().unwrap()).unwrap();
            let mut codes = encoder.encode_new(&codes).unwrap();
            leave_out(&mut codes);
            chunk.body.inner[0] = Some(Box::new(codes));
            assert_eq!(NumberDictionary.validate(&chunk).is_ok(), valid, "{scheme}");
        }
    }
}
