//! `search`: the rows with a key, where values ascend.

use std::ops::Range;

use crate::chunk::Chunk;
use crate::codec::{Codec, Work};
use crate::types::Physical;

/// The default of [`Codec::search`]: halves the rows at the starts of units, decodes the unit that
/// is left and halves that.
pub fn search_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    key: u64,
    rows: Range<usize>,
    work: &mut Work,
) -> Range<usize> {
    let (found, decoded) = search_unit(codec, chunk, key, rows.clone(), work);
    match key.checked_add(1) {
        Some(above) if found.end == decoded => {
            let rest = search_unit(codec, chunk, above, found.end..rows.end, work).0;
            found.start..rest.start
        }
        _ => found,
    }
}

/// The rows with `key` in the unit in which it first appears if it does, and the end of that unit;
/// where they begin, all rows before are below the key and all after are not.
fn search_unit(
    codec: &dyn Codec,
    chunk: &Chunk,
    key: u64,
    rows: Range<usize>,
    work: &mut Work,
) -> (Range<usize>, usize) {
    if rows.is_empty() {
        return (rows.clone(), rows.end);
    }
    let mut values = std::mem::take(&mut work.values);
    let unit = codec.unit_rows();
    let (mut low, mut high) = (rows.start / unit, (rows.end - 1) / unit);
    while low < high {
        let middle = high - (high - low) / 2;
        values.reset(chunk.physical());
        codec.gather(chunk, &[(middle * unit) as u32], &mut values, work);
        match values.keys.first().is_some_and(|value| *value < key) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    let decoded = rows.start.max(low * unit)..rows.end.min((low + 1) * unit);
    values.reset(chunk.physical());
    codec.decode(chunk, decoded.clone(), &mut values);
    work.tally.decoded += values.len() as u64;
    let start = values.keys.partition_point(|value| *value < key);
    let equal = &values.keys[start..];
    let count = equal.partition_point(|value| *value == key);
    work.values = values;
    let start = decoded.start + start;
    (start..start + count, decoded.end)
}

impl Chunk {
    /// The rows of `rows` whose key is `key`, of a column of integers without nulls whose values
    /// ascend over `rows`; where they do not, some of the rows or none.
    ///
    /// # Cost
    /// A look at a value for each halving of the blocks, and a block decoded.
    pub fn search(&self, key: u64, rows: Range<usize>, work: &mut Work) -> Range<usize> {
        debug_assert!(matches!(self.physical, Physical::Integer { .. }) && self.nulls == 0);
        debug_assert!(rows.end <= self.rows);
        if rows.is_empty()
            || (self.stats.known && !(self.stats.min..=self.stats.max).contains(&key))
        {
            return rows.start..rows.start;
        }
        self.codec.search(self, key, rows, work)
    }
}
