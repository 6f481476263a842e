//! Searches of ascending rows, against a look at every value.

use std::ops::Range;

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::types::{Physical, Value};

use super::case::Case;
use super::codec::Check;
use crate::random::Random;

/// Rows whose values are searched for in each stretch.
const LOOKED_FOR: usize = 6;

/// Checks searches in the longest stretch of ascending rows, and in the middle of it.
pub(super) fn check_search(chunk: &Chunk, case: &Case, random: &mut Random) -> Check {
    let physical = chunk.physical();
    let integers = matches!(physical, Physical::Integer { .. });
    if !integers || chunk.nulls() > 0 {
        return Ok(());
    }
    let key = |value: &Value| match value {
        Value::Integer(value) => physical.key_of(*value),
        _ => None,
    };
    let keys: Option<Vec<u64>> = case.values.iter().map(key).collect();
    let keys = keys.ok_or("a value has no key")?;
    let whole = longest_ascent(&keys);
    let third = whole.len() / 3;
    let mut work = Work::default();
    for rows in [whole.clone(), whole.start + third..whole.end - third] {
        for _ in 0..LOOKED_FOR.min(rows.len()) {
            let key = keys[whole.start + random.below(whole.len())];
            for wanted in [key, key.saturating_sub(1), key.saturating_add(1)] {
                let found = chunk.search(wanted, rows.clone(), &mut work);
                let inside = &keys[rows.clone()];
                let start = inside.partition_point(|key| *key < wanted);
                let end = inside.partition_point(|key| *key <= wanted);
                let right = rows.start + start..rows.start + end;
                let same = found == right || found.is_empty() && right.is_empty();
                if !same {
                    return Err(format!(
                        "search {wanted} in {rows:?}: {found:?}, not {right:?}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The longest range in which keys never fall.
fn longest_ascent(keys: &[u64]) -> Range<usize> {
    let mut longest = 0..0;
    let mut start = 0;
    for end in 1..=keys.len() {
        if end == keys.len() || keys[end] < keys[end - 1] {
            if end - start > longest.len() {
                longest = start..end;
            }
            start = end;
        }
    }
    longest
}
