//! Values of groups counted in cells: one for each pair of a group and a key of a narrow range.
//!
//! ```text
//! keys 7 and 8     group 0: 7 7 8     group 1: 8     cells 2 1 │ 0 1
//! ```
//! What is kept of the values is then told once of each pair, not of each row. The chunk adds rows
//! as its codec has them: runs and constants without decoding.

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::primitive::fold_by::GroupFold;
use tersecades_columnar::primitive::repeat::Repeats;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

/// Fewer rows for each pair than this are not counted.
const PAIR_ROWS_MIN: usize = 4;

/// Cells, and the groups of those that counted something.
#[derive(Debug, Default)]
pub(super) struct PairCounts {
    base: u64,
    keys: usize,
    cells: Vec<u32>,
    /// The group of each pair that was found.
    pub(super) ids: Vec<u32>,
}

/// The least and the greatest key of a column of integers, or code of one of texts.
fn ends(column: &Chunk) -> Option<(u64, u64)> {
    let stats = column.stats();
    match column.physical() {
        Physical::Integer { .. } => stats.known.then_some((stats.min, stats.max)),
        Physical::Text => {
            let codes = column.codes()?;
            Some((0, codes.dictionary.len().checked_sub(1)? as u64))
        }
        _ => None,
    }
}

impl PairCounts {
    /// Fills `found` with the values of each group and how many rows have them; false, and nothing
    /// done, where pairs are too many.
    pub(super) fn count(
        &mut self,
        column: &Chunk,
        (within, ids): (&Selection, &[u32]),
        found: &mut Repeats,
        work: &mut Work,
    ) -> bool {
        if !self.cover(column, ids) {
            return false;
        }
        column.fold_by(within, ids, self, work);
        found.reset(column.physical());
        self.ids.clear();
        for (id, cells) in (0..).zip(self.cells.chunks_exact(self.keys)) {
            for (distance, count) in cells.iter().enumerate() {
                if *count > 0 {
                    self.ids.push(id);
                    found.values.keys.push(self.base + distance as u64);
                    found.counts.push(u64::from(*count));
                }
            }
        }
        found.values.dictionary = column.codes().map(|codes| codes.dictionary.clone());
        true
    }

    /// Makes a cell for each pair, where that pays.
    fn cover(&mut self, column: &Chunk, ids: &[u32]) -> bool {
        let groups = ids.iter().max().map_or(0, |id| *id as usize + 1);
        let span = ends(column).and_then(|(low, high)| Some((low, (high - low).checked_add(1)?)));
        let Some((base, keys)) = span else {
            return false;
        };
        let cells = (groups as u64).checked_mul(keys);
        let Some(cells) = cells.filter(|cells| *cells <= (ids.len() / PAIR_ROWS_MIN) as u64) else {
            return false;
        };
        (self.base, self.keys) = (base, keys as usize);
        self.cells.clear();
        self.cells.resize(cells as usize, 0);
        true
    }
}

impl GroupFold for PairCounts {
    fn add(&mut self, ids: &[u32], values: &Values) {
        let (base, keys) = (self.base, self.keys);
        for (id, key) in ids.iter().zip(&values.keys) {
            self.cells[*id as usize * keys + (key - base) as usize] += 1;
        }
    }

    fn add_same(&mut self, ids: &[u32], value: &Values) {
        let distance = (value.keys[0] - self.base) as usize;
        for id in ids {
            self.cells[*id as usize * self.keys + distance] += 1;
        }
    }
}
