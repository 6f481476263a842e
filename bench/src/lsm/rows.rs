//! Rows that stores are filled with; each follows from its number.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

/// How the values of pairs lie; keys are 0, 1, 2 and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distribution {
    /// The value is the key.
    Sequential,
    /// Any below a million.
    Uniform,
    /// Small ones far more often than large ones.
    Skewed,
    /// The same a hundred times, then another.
    Repeated,
}

impl Distribution {
    pub(crate) const ALL: [Distribution; 4] = [
        Distribution::Sequential,
        Distribution::Uniform,
        Distribution::Skewed,
        Distribution::Repeated,
    ];

    /// What tables call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Distribution::Sequential => "sequential",
            Distribution::Uniform => "uniform",
            Distribution::Skewed => "skewed",
            Distribution::Repeated => "repeated",
        }
    }

    fn value(self, number: usize) -> i64 {
        let value = match self {
            Distribution::Sequential => number as u64,
            Distribution::Uniform => mixed(number) % 1_000_000,
            Distribution::Skewed => 1_000_000 >> (mixed(number) % 20),
            Distribution::Repeated => mixed(number / 100) % 1_000_000,
        };
        value.cast_signed()
    }
}

/// Readings of many series every ten seconds, not quite, with two digits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Series {
    rows: usize,
    series: usize,
}

impl Series {
    /// So many rows of a thousand series, in the order of time.
    pub(crate) fn of_rows(rows: usize) -> Self {
        Series {
            rows,
            series: 1_000,
        }
    }

    /// The same of so many series.
    pub(crate) fn of_series(self, series: usize) -> Self {
        Series { series, ..self }
    }

    fn key(self, row: usize) -> i64 {
        (row % self.series) as i64
    }

    /// The time of a reading, to within 20 ms of every ten seconds.
    fn time(self, row: usize) -> i64 {
        (row / self.series * 10_000) as i64 + (mixed(row) % 20) as i64
    }
}

/// Rows of a store.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rows {
    /// Pairs of a key and a value, and how many.
    Pairs(Distribution, usize),
    /// Key, time and value.
    Series(Series),
}

impl Rows {
    /// How many.
    pub(crate) fn count(&self) -> usize {
        match self {
            Rows::Pairs(_, count) => *count,
            Rows::Series(series) => series.rows,
        }
    }

    /// Bytes of a row as it is given.
    pub(crate) fn row_bytes(&self) -> f64 {
        match self {
            Rows::Pairs(..) => 16.0,
            Rows::Series(_) => 24.0,
        }
    }

    /// The key of the row with this number, and its time where it has one.
    pub(crate) fn key(&self, row: usize) -> Vec<Value> {
        match self {
            Rows::Pairs(..) => vec![(row as i64).into()],
            Rows::Series(series) => vec![series.key(row).into(), series.time(row).into()],
        }
    }

    /// The rows with these numbers.
    ///
    /// # Errors
    /// Never: lengths are the same.
    pub(crate) fn batch(&self, rows: Range<usize>) -> Result<RecordBatch> {
        let integers = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.clone().map(value)))
        };
        let columns = match self {
            Rows::Pairs(distribution, _) => vec![
                ("k", integers(&|n| n as i64)),
                ("v", integers(&|n| distribution.value(n))),
            ],
            Rows::Series(series) => {
                let cents = |n: usize| 2_000 + mixed(n / 7) % 900;
                let values = rows.clone().map(|n| cents(n) as f64 / 100.0);
                vec![
                    ("k", integers(&|n| series.key(n))),
                    ("ts", integers(&|n| series.time(n))),
                    (
                        "v",
                        Arc::new(Float64Array::from_iter_values(values)) as ArrayRef,
                    ),
                ]
            }
        };
        Ok(RecordBatch::try_from_iter(columns)?)
    }
}

/// A number that looks like any.
fn mixed(number: usize) -> u64 {
    let mut mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 31)
}
