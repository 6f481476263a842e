//! Answers as short checksums that do not depend on the order of rows.
//!
//! Every value becomes an integer (a cluster its place among the sorted names, a mean hundredths,
//! a standard deviation tenths), a row the 64-bit mix of its integers, an answer the sum of its
//! rows. `rivals/pingmesh.py` computes the same.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_columnar::{Error, Result};

/// The column of the window's end, which says nothing that its start does not.
const WINDOW_END: usize = 1;

/// How an answer becomes a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// `rows:mix`, over the start of the window and everything behind its end.
    Rows,
    /// As `Rows`; both floats are hundredths.
    Quantiles,
    /// `count:sum`, the totals of the two aggregates.
    Totals,
}

impl Reduction {
    /// Whether rows begin with the ends of their windows, which need the event time.
    pub(crate) fn has_windows(self) -> bool {
        self != Reduction::Totals
    }

    /// What floats are multiplied by, in the order of their columns: means, standard deviations.
    fn float_scales(self) -> [f64; 2] {
        match self {
            Reduction::Quantiles => [100.0, 100.0],
            _ => [100.0, 10.0],
        }
    }
}

/// The checksum of an answer.
///
/// # Errors
/// `SchemaMismatch` when a column is of a type that no query answers with.
pub(crate) fn checksum(
    reduction: Reduction,
    result: &[RecordBatch],
    clusters: &[String],
) -> Result<String> {
    let (mut rows, mut sum) = (0, 0u64);
    let mut totals = [0i64; 2];
    for batch in result {
        let mut hashes = vec![0u64; batch.num_rows()];
        for (index, values) in columns(reduction, batch, clusters)?.iter().enumerate() {
            for (hash, value) in hashes.iter_mut().zip(values) {
                *hash = mix(*hash ^ value.cast_unsigned());
            }
            if let Some(total) = totals.get_mut(index) {
                *total = values
                    .iter()
                    .fold(*total, |sum, value| sum.wrapping_add(*value));
            }
        }
        rows += hashes.len();
        sum = hashes.iter().fold(sum, |sum, hash| sum.wrapping_add(*hash));
    }
    Ok(match reduction {
        Reduction::Rows | Reduction::Quantiles => format!("{rows}:{sum:016x}"),
        Reduction::Totals => format!("{}:{}", totals[0], totals[1]),
    })
}

fn columns(
    reduction: Reduction,
    batch: &RecordBatch,
    clusters: &[String],
) -> Result<Vec<Vec<i64>>> {
    let mut scales = reduction.float_scales().into_iter();
    let columns = batch.columns().iter().enumerate();
    let in_window = |index: usize| reduction.has_windows() && index == WINDOW_END;
    let columns = columns.filter(|(index, _)| !in_window(*index));
    let integers = columns.map(|(_, column)| match column.data_type() {
        DataType::Dictionary(..) => Ok(places(column, clusters)),
        DataType::Float64 => {
            let scale = scales.next().unwrap_or(1.0);
            let values = column.as_primitive::<Float64Type>().values();
            Ok(values
                .iter()
                .map(|value| (value * scale).round_ties_even() as i64)
                .collect())
        }
        DataType::Utf8 => Err(Error::schema("clusters come as a dictionary")),
        _ => Ok(cast(column, &DataType::Int64)?
            .as_primitive::<Int64Type>()
            .values()
            .to_vec()),
    });
    integers.collect()
}

/// Where each name stands among `clusters`; -1 for others.
fn places(column: &ArrayRef, clusters: &[String]) -> Vec<i64> {
    let dictionary = column.as_any_dictionary();
    let place = |name: Option<&str>| {
        let found = clusters.binary_search_by(|known| Some(known.as_str()).cmp(&name));
        found
            .ok()
            .and_then(|place| i64::try_from(place).ok())
            .unwrap_or(-1)
    };
    let names = dictionary.values();
    let places: Vec<i64> = (0..names.len())
        .map(|index| place(names.as_string_opt::<i32>().map(|names| names.value(index))))
        .collect();
    let keys = dictionary.normalized_keys();
    keys.into_iter()
        .map(|key| places.get(key).copied().unwrap_or(-1))
        .collect()
}

/// The finalizer of SplitMix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
