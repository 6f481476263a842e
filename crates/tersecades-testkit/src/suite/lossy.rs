//! The conformance suite of lossy codecs: values come back within the bound, and every primitive
//! agrees with what came back.
//!
//! Nulls stay null, and what is not finite comes back to the bit.

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{Codec, Work};
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;
use tersecades_columnar::values::Values;

use super::case::Case;
use super::codec::{LENGTHS, check_chunk};
use crate::data::{SHAPES, column, types};
use crate::random::Random;

/// Checks `codec`, set by `parameter`, on every type it accepts, every shape and length.
///
/// # Panics
/// With the first failure: a value further than `bound` from where it was, or a primitive that
/// differs from the values that come back.
pub fn check_lossy_codec(codec: &'static dyn Codec, parameter: f64, bound: f64) {
    let scheme: Scheme = format!("{}({parameter})", codec.name()).parse().unwrap();
    let mut random = Random::new(11);
    let mut accepted = 0;
    for data_type in types() {
        let mut encoder = ColumnEncoder::new(&data_type).unwrap();
        encoder.pin(scheme);
        let mut chunk = Chunk::default();
        for shape in SHAPES {
            for rows in LENGTHS {
                let values = column(&data_type, *shape, *rows, &mut random);
                let case = Case::new(&data_type, values);
                encoder.encode(&case.array, &mut chunk).unwrap();
                if chunk.codec().id() != codec.id() {
                    continue;
                }
                accepted += 1;
                let back = values_of(&chunk);
                for (row, (value, back)) in case.values.iter().zip(&back).enumerate() {
                    let near = is_near(value, back, bound);
                    assert!(near, "{scheme} {shape:?} row {row}: {back:?} for {value:?}");
                }
                let came_back = Case::new(&data_type, back);
                if let Err(error) = check_chunk(&chunk, &came_back, &mut random) {
                    panic!("{scheme} on {data_type} {shape:?}, {rows} rows: {error}");
                }
            }
        }
    }
    assert!(accepted > 0, "{scheme} accepts no column");
}

fn values_of(chunk: &Chunk) -> Vec<Value> {
    let mut values = Values::default();
    let all = Selection::all(chunk.rows());
    chunk.gather(&all, &mut values, &mut Work::default());
    (0..values.len()).map(|row| values.value(row)).collect()
}

fn is_near(value: &Value, back: &Value, bound: f64) -> bool {
    match (value, back) {
        (Value::Float(value), Value::Float(back)) if value.is_finite() => {
            (value - back).abs() <= bound
        }
        (Value::Float(value), Value::Float(back)) => value.to_bits() == back.to_bits(),
        _ => value == back,
    }
}
