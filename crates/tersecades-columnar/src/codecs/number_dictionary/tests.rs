//! Tables of numbers and their codes.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array};

use super::*;
use crate::encoder::ColumnEncoder;
use crate::registry::by_id;
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
