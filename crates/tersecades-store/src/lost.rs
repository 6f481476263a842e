//! Rows that a repair has given up, and the older ones that they may have replaced.

use tersecades_columnar::error::Result;

use crate::fs::Directory;
use crate::run::{Run, RunId};
use crate::sort_key::SortKey;

/// Rows that are lost.
pub(crate) struct Lost {
    /// Number of the first, or one before.
    pub(crate) start: u64,
    /// The sort keys between which they lay, where that is known.
    pub(crate) keys: Option<(Vec<u8>, Vec<u8>)>,
}

impl Lost {
    /// Rows from number `start` on, of any keys.
    pub(crate) fn from(start: u64) -> Self {
        Lost { start, keys: None }
    }
}

/// Rows of run `id` with keys that `later` rows, which are lost, may have had.
///
/// # Errors
/// What reading the run says.
pub(crate) fn stale_rows(
    directory: &Directory,
    id: &RunId,
    key: &SortKey,
    later: &[&Lost],
) -> Result<u64> {
    if later.iter().any(|lost| lost.keys.is_none()) {
        return Ok(id.rows);
    }
    let ranges = later.iter().filter_map(|lost| lost.keys.as_ref());
    let ranges: Vec<(&[u8], &[u8])> = ranges
        .map(|(low, high)| (key.series(low), key.series(high)))
        .collect();
    let meets = |first: &[u8], last: &[u8]| {
        let mut ranges = ranges.iter();
        ranges.any(|(low, high)| *low <= last && first <= *high)
    };
    if ranges.is_empty() {
        return Ok(0);
    }
    let run = Run::open(directory, id.clone())?;
    let mut rows = 0;
    for (index, group) in run.groups().iter().enumerate() {
        let (first, last) = &group.fences;
        if meets(key.series(first), key.series(last))
            && let Some(keys) = key.of(&key.rows_of(&run, index)?)?
        {
            let keys = keys.iter();
            rows += keys
                .filter(|row| meets(key.series(row.data()), key.series(row.data())))
                .count() as u64;
        }
    }
    Ok(rows)
}
