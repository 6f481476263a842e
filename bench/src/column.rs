//! Columns of each kind that codecs differ on.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use tersecades_columnar::types::Value;

use crate::data::{Random, timestamps};

/// What codecs are shown with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Integers below a hundred.
    Small,
    /// Event times with jitter and late rows.
    Times,
    /// Mostly one value.
    Odd,
    /// The same value 700 times.
    Runs,
    /// A thousand more each row.
    Steps,
    /// Floats of two decimals.
    Decimals,
    /// Floats without a pattern.
    Noise,
    /// Floats that change little from row to row.
    Waves,
    /// One of 200 names.
    Text,
}

impl Kind {
    /// The column, and a value in the middle of it.
    pub(crate) fn column(self, rows: usize) -> (ArrayRef, Value) {
        let mut random = Random::new(31);
        let mut integers = |value: &mut dyn FnMut(usize, &mut Random) -> i64| {
            let values = (0..rows).map(|row| value(row, &mut random));
            Arc::new(Int64Array::from_iter_values(values)) as ArrayRef
        };
        match self {
            Kind::Small => (
                integers(&mut |_, random| random.below(100) as i64),
                50.into(),
            ),
            Kind::Times => {
                let times = timestamps(rows, 5, 3);
                let middle = times[rows / 2];
                (Arc::new(Int64Array::from(times)), middle.into())
            }
            Kind::Odd => {
                let odd = |random: &mut Random| match random.below(50) {
                    0 => random.below(90) as i64,
                    _ => 7,
                };
                (integers(&mut |_, random| odd(random)), 7.into())
            }
            Kind::Runs => (integers(&mut |row, _| (row / 700 % 9) as i64), 4.into()),
            Kind::Steps => {
                let middle = 1_000 * (rows as i64 / 2);
                (integers(&mut |row, _| 1_000 * row as i64), middle.into())
            }
            Kind::Decimals => {
                let values = (0..rows).map(|_| random.below(9_000) as f64 / 100.0);
                (
                    Arc::new(Float64Array::from_iter_values(values)),
                    45.0.into(),
                )
            }
            Kind::Noise => {
                let values = (0..rows).map(|_| random.below(1 << 40) as f64 / 3.0);
                (
                    Arc::new(Float64Array::from_iter_values(values)),
                    1e11.into(),
                )
            }
            Kind::Waves => {
                let values = (0..rows).map(|row| 40.0 * (row as f64 / 300.0).sin());
                (Arc::new(Float64Array::from_iter_values(values)), 0.0.into())
            }
            Kind::Text => {
                let text = (0..rows).map(|_| format!("cluster-{:03}", random.below(200)));
                (
                    Arc::new(StringArray::from_iter_values(text)),
                    "cluster-100".into(),
                )
            }
        }
    }
}
