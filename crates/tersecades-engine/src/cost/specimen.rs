//! Columns to measure codecs on: of every kind that some codec is made for, and of none.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int32Array, Int64Array,
    StringArray, UInt8Array, UInt32Array,
};

use crate::source::generator::random::CounterStream;

/// Rows of each: few enough that a chunk stays in the second-level cache.
pub(super) const ROWS: usize = 32_768;

const SEED: u64 = 20_180_711;

/// The columns.
pub(super) fn columns() -> Vec<ArrayRef> {
    let mut columns = integers();
    columns.extend(floats());
    columns.extend(texts());
    columns
}

/// Draws below `below`, of stream `stream`.
fn draws(stream: u64, below: u64) -> impl Iterator<Item = u64> {
    let source = CounterStream::new(SEED, stream);
    (0..ROWS as u64).map(move |row| source.draw(row) % below.max(1))
}

/// Sums of draws below `below`.
fn walk(stream: u64, below: u64) -> impl Iterator<Item = u64> {
    draws(stream, below).scan(1_600_000_000_000, |sum, draw| {
        *sum += draw;
        Some(*sum)
    })
}

fn wide(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(values.map(u64::cast_signed).collect::<Int64Array>())
}

fn narrow(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(values.map(|value| value as i32).collect::<Int32Array>())
}

fn integers() -> Vec<ArrayRef> {
    let rows = || 0..ROWS as u64;
    let odd = |stream, odds| draws(stream, odds).map(|draw| if draw == 0 { 10_060 } else { 0 });
    let skewed = draws(1, 1 << 20).map(|draw| {
        let shift = draw.trailing_ones();
        ((draw >> 4) % 1_000) << shift.min(12)
    });
    let decimals = draws(2, 1 << 40).map(i128::from);
    vec![
        Arc::new(draws(3, 200).map(|draw| draw as u8).collect::<UInt8Array>()),
        wide(draws(4, 251)),
        wide(draws(5, 1_000_000)),
        wide(draws(6, 5).map(|draw| draw * 1_000_003)),
        wide(draws(7, u64::MAX)),
        wide(rows().map(|row| row / 32 % 7)),
        wide(rows().map(|row| row / 5 % 7_000)),
        wide(rows().map(|row| 1_600_000_000_000 + 300 * row)),
        wide(walk(8, 20)),
        wide(walk(9, 100_000)),
        wide(skewed),
        narrow(odd(10, 100)),
        narrow(odd(11, 10)),
        narrow(draws(12, 3_000)),
        Arc::new(
            draws(13, 1 << 32)
                .map(|draw| draw as u32)
                .collect::<UInt32Array>(),
        ),
        Arc::new(decimals.collect::<Decimal128Array>()),
    ]
}

fn floats() -> Vec<ArrayRef> {
    let float = |draw: u64| draw as f64;
    let smooth = walk(20, 40).map(move |value| (float(value) / 1_000.0).sin());
    let noise = draws(21, 1 << 60).map(|draw| f64::from_bits(draw | 0x3ff0_0000_0000_0000));
    vec![
        Arc::new(
            draws(22, 10_000)
                .map(|it| float(it) / 100.0)
                .collect::<Float64Array>(),
        ),
        Arc::new(
            draws(23, 12)
                .map(|it| float(it) * 0.37)
                .collect::<Float64Array>(),
        ),
        Arc::new(
            (0..ROWS as u64)
                .map(|row| float(row / 40 % 9) / 10.0)
                .collect::<Float64Array>(),
        ),
        Arc::new(smooth.collect::<Float64Array>()),
        Arc::new(noise.collect::<Float64Array>()),
        Arc::new(
            draws(24, 5_000)
                .map(|it| it as f32 / 10.0)
                .collect::<Float32Array>(),
        ),
    ]
}

fn texts() -> Vec<ArrayRef> {
    let few = |stream, count, name: fn(u64) -> String| -> ArrayRef {
        let names: StringArray = (0..count).map(|it| Some(name(it))).collect();
        let keys: arrow_array::Int32Array = draws(stream, count).map(|key| key as i32).collect();
        Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(names)))
    };
    let logs = draws(32, 1 << 24).map(|it| format!("GET /item/{it}/view status=200"));
    vec![
        Arc::new(logs.map(Some).collect::<StringArray>()),
        few(30, 200, |it| format!("cluster-{it}")),
        few(31, 9_000, |it| {
            format!("https://example.org/item/{}/view", it * 7_919)
        }),
    ]
}
