//! The pairs of a window with the most probes.

use tersecades::arrow_array::cast::AsArray;
use tersecades::arrow_array::types::{Int64Type, TimestampMillisecondType, UInt32Type};
use tersecades::arrow_array::{Array, ArrayRef, RecordBatch};
use tersecades::{Error, Result};

/// A pair of clusters or racks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    /// Where the probes came from.
    pub(crate) source: String,
    /// Where they went.
    pub(crate) target: String,
    /// How many there were.
    pub(crate) probes: i64,
}

/// What is shown of one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ranking {
    /// First millisecond.
    pub(crate) start_ms: i64,
    /// First millisecond after it.
    pub(crate) end_ms: i64,
    /// Probes of all pairs.
    pub(crate) probes: i64,
    /// Number of pairs.
    pub(crate) pairs: usize,
    /// The pairs with most probes, at most as many as asked for; ties go by name.
    pub(crate) top: Vec<Pair>,
}

/// Ranks the result of one window.
///
/// # Errors
/// `Internal` when the columns are not those of a probe query.
pub(crate) fn rank(window: &RecordBatch, top: usize) -> Result<Option<Ranking>> {
    let [start, end, source, target, probes] = window.columns() else {
        return Err(Error::internal(
            "a probe query gives window, pair and count",
        ));
    };
    let probes = probes
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(wrong_type)?
        .values();
    let time = |column: &ArrayRef| {
        let times = column
            .as_primitive_opt::<TimestampMillisecondType>()
            .ok_or_else(wrong_type)?;
        Ok::<_, Error>(times.values().first().copied())
    };
    let (Some(start_ms), Some(end_ms)) = (time(start)?, time(end)?) else {
        return Ok(None);
    };
    let mut pairs = Vec::new();
    for row in leaders(probes, top) {
        let (source, target) = (name(source, row)?, name(target, row)?);
        pairs.push(Pair {
            source,
            target,
            probes: probes[row],
        });
    }
    pairs.sort_by(|a, b| {
        let names = (&a.source, &a.target).cmp(&(&b.source, &b.target));
        b.probes.cmp(&a.probes).then(names)
    });
    pairs.truncate(top);
    Ok(Some(Ranking {
        start_ms,
        end_ms,
        probes: probes.iter().sum(),
        pairs: probes.len(),
        top: pairs,
    }))
}

/// Rows with as many probes as the row in place `top`, or more.
fn leaders(probes: &[i64], top: usize) -> Vec<usize> {
    let mut sorted = probes.to_vec();
    let least = match top.checked_sub(1) {
        None => return Vec::new(),
        Some(last) if last < sorted.len() => {
            *sorted.select_nth_unstable_by(last, |a, b| b.cmp(a)).1
        }
        Some(_) => i64::MIN,
    };
    (0..probes.len())
        .filter(|row| probes[*row] >= least)
        .collect()
}

/// The text, or the number, in a key column.
fn name(column: &ArrayRef, row: usize) -> Result<String> {
    if column.is_null(row) {
        return Ok("NULL".to_owned());
    }
    if let Some(numbers) = column.as_primitive_opt::<UInt32Type>() {
        return Ok(numbers.value(row).to_string());
    }
    let dictionary = column.as_any_dictionary_opt().ok_or_else(wrong_type)?;
    let keys = dictionary
        .keys()
        .as_primitive_opt::<UInt32Type>()
        .ok_or_else(wrong_type)?;
    let texts = dictionary
        .values()
        .as_string_opt::<i32>()
        .ok_or_else(wrong_type)?;
    Ok(texts.value(keys.value(row) as usize).to_owned())
}

fn wrong_type() -> Error {
    Error::internal("a result column of a probe query has another type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_include_all_ties_for_the_last_place() {
        assert_eq!(leaders(&[3, 1, 2, 2, 5], 3), [0, 2, 3, 4]);
        assert_eq!(leaders(&[3, 1], 5), [0, 1]);
        assert!(leaders(&[3, 1], 0).is_empty() && leaders(&[], 2).is_empty());
    }
}
