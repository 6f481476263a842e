//! Names: texts that stand once, and columns of codes into them.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::DataType;
use tersecades_columnar::error::Result;

use super::random::{CounterStream, below, high};

/// Letters that one draw makes.
const LETTERS_PER_DRAW: usize = 12;

/// The names of `0..count`.
pub(super) fn names(count: u32, name: impl Fn(u32) -> String) -> Arc<StringArray> {
    Arc::new((0..count).map(|it| Some(name(it))).collect())
}

/// A column of codes into `names`.
///
/// # Errors
/// `Corrupt` for a code that is none.
pub(super) fn coded(codes: impl Into<Int32Array>, names: &Arc<StringArray>) -> Result<ArrayRef> {
    let names = Arc::clone(names);
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
        codes.into(),
        names,
    )?))
}

/// The type of a column of codes.
pub(super) fn coded_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The version 4 UUID number `number`, from three draws of `stream`.
pub(super) fn uuid(stream: CounterStream, number: u64) -> String {
    let (first, second) = (stream.draw(number * 4 + 1), stream.draw(number * 4 + 2));
    let version = (first & 0x0fff) | 0x4000;
    let variant = (second >> 48 & 0x3fff) | 0x8000;
    format!(
        "{:08x}-{:04x}-{version:04x}-{variant:04x}-{:012x}",
        first >> 32,
        first >> 16 & 0xffff,
        second & 0xffff_ffff_ffff
    )
}

/// Small letters, `least` to `most` of them, from the draws of `stream` at `counter` and after it.
pub(super) fn letters(stream: CounterStream, counter: u64, least: u32, most: u32) -> String {
    let more = below(high(stream.draw(counter)), most - least + 1);
    let length = (least + more) as usize;
    let mut text = String::with_capacity(length);
    for counter in counter + 1.. {
        let left = length - text.len();
        if left == 0 {
            break;
        }
        let mut bits = stream.draw(counter);
        for _ in 0..left.min(LETTERS_PER_DRAW) {
            text.push(char::from(b'a' + (bits % 26) as u8));
            bits /= 26;
        }
    }
    text
}
