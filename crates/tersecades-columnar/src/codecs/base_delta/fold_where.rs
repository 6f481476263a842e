//! Fold of the values in a range, block by block.
//!
//! A hole answers as its patch in most ranges; then one pass over the deltas of a block finds its
//! rows and their sum, and the patches among them change it as in any other fold. Else the rows of
//! a block are found first, in a bitmap that no other block has.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::fold::{Asked, Fold};
use crate::kernels::{Outliers, kernels};
use crate::lane::{KeyLane, with_lanes};
use crate::narrow::{Bounded, Verdict, fold_tested, keep_within, widest, with_deltas};
use crate::patch::mend;
use crate::predicate::KeyRange;
use crate::selection::{Selection, clear_tail};

use super::View;
use super::fold::fold_block;
use super::scan::{WORDS, correct_patches, holes_agree, holes_between, test_keys};

/// [`crate::codec::Codec::range_fold`] over whole blocks.
pub(super) fn fold_range(
    chunk: &Chunk,
    (range, within): (KeyRange, &Selection),
    asked: Asked,
    out: &mut Fold,
    work: &mut Work,
) {
    let view = View::of(chunk);
    let mut zones = chunk.body.zones.test(range);
    if zones.is_empty() {
        work.tally.skipped += chunk.rows as u64;
        return;
    }
    if !view.patches.is_empty() {
        zones = zones.with_outliers();
    }
    with_lanes!(view.patches.keys(), keys => {
        let fold = BlockFold {
            chunk,
            view: &view,
            keys,
            range,
            asked,
            agree: all_agree(chunk, &view, range),
        };
        fold.blocks().visit(range, zones, within, &mut work.tally, |block, verdict, kept| {
            fold.add_block((block, verdict), kept, out);
        });
    }, else {});
}

/// Whether every hole of the chunk answers as its patch where deltas are compared.
fn all_agree(chunk: &Chunk, view: &View<'_>, range: KeyRange) -> bool {
    if view.patches.is_empty() {
        return true;
    }
    let (mut low, mut high) = (u64::MAX, 0);
    let min_max = kernels().u64.min_max;
    for bases in view.bases.chunks(BLOCK_ROWS) {
        let (mut least, mut most) = ([0; GROUPS], [0; GROUPS]);
        min_max(bases, 0, None, &mut least, &mut most);
        low = least.into_iter().fold(low, u64::min);
        high = most.into_iter().fold(high, u64::max);
    }
    let narrowest = view.deltas.widths.iter().copied().min().unwrap_or(0);
    holes_between(chunk, (low, high), narrowest, range)
}

struct BlockFold<'a, K> {
    chunk: &'a Chunk,
    view: &'a View<'a>,
    /// Of the patches.
    keys: &'a [K],
    range: KeyRange,
    asked: Asked,
    /// Whether all holes answer as their patches in blocks whose deltas are compared.
    agree: bool,
}

impl<K: KeyLane> BlockFold<'_, K> {
    fn blocks(&self) -> Bounded<'_, GROUPS> {
        Bounded {
            deltas: self.view.deltas,
            bases: self.view.bases,
            maxima: self.view.maxima,
        }
    }

    fn add_block(&self, (block, verdict): (usize, Verdict), kept: Option<&[u64]>, out: &mut Fold) {
        let patches = self.view.patches.of_block(block);
        let agree = || self.agree || holes_agree(self.chunk, self.view, block, self.range);
        let agree = patches.is_empty() || verdict == Verdict::Read && agree();
        let by_sum = !self.asked.squares && !self.asked.ends;
        if agree && by_sum && verdict == Verdict::Read && self.view.deltas.widths[block] > 0 {
            return self.add_sum(block, kept, out);
        }
        let mut words = [0; WORDS];
        let rows = self.view.deltas.block_len(block);
        let words = &mut words[..rows.div_ceil(WORD_ROWS)];
        match verdict {
            Verdict::Skip => {}
            Verdict::Take => words.fill(u64::MAX),
            Verdict::Read => self.blocks().read(block..block + 1, self.range, words),
        }
        if !agree {
            let mut passing = [0; WORDS];
            let passing = &mut passing[..patches.len().div_ceil(WORD_ROWS)];
            test_keys(&self.keys[patches.clone()], self.range, passing);
            correct_patches(&self.view.patches.rows()[patches], (passing, 0), words);
        }
        clear_tail(words, rows);
        keep_within(words, kept);
        if words.iter().any(|word| *word != 0) {
            let parts = (self.chunk.physical, self.view, self.keys);
            fold_block(parts, (block, Some(words)), self.asked, out);
        }
    }

    /// Adds a block whose holes answer as their patches.
    fn add_sum(&self, block: usize, kept: Option<&[u64]>, out: &mut Fold) {
        let view = self.view;
        let bases = view.block_bases(block);
        let physical = self.chunk.physical;
        let mut words = [0; WORDS];
        let words = &mut words[..view.deltas.block_len(block).div_ceil(WORD_ROWS)];
        let any = with_deltas!(view.deltas, block, deltas => {
            let wanted = (&mut *words, self.asked.sum);
            fold_tested((physical, &bases), deltas, (self.range, kept), wanted, out)
        }, zero { false });
        let patches = view.patches.of_block(block);
        if patches.is_empty() || !self.asked.sum || !any {
            return;
        }
        let outliers = Outliers {
            rows: &view.patches.rows()[patches.clone()],
            keys: &self.keys[patches],
            bases: &bases,
            reach: widest(usize::from(view.deltas.widths[block])),
            mask: Some(words),
            zero: physical.flip(),
            squares: false,
            ends: false,
        };
        mend(&outliers, self.asked, out);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::super::scan::tests::SHAPES;
    use super::*;
    use crate::encoder::ColumnEncoder;
    use crate::registry::by_id;

    const ROWS: usize = 9_300;

    /// The fold of the values in `range` of rows that `keep` keeps, one after the other.
    fn expected(keys: &[u64], range: KeyRange, keep: impl Fn(usize) -> bool) -> Fold {
        let mut fold = Fold::default();
        let rows = keys.iter().enumerate();
        for (_, key) in rows.filter(|(row, key)| keep(*row) && range.contains(**key)) {
            let value = i128::from(*key) - (1 << 63);
            fold.count += 1;
            fold.add_sum(value);
            fold.squares.add_square(value);
            fold.add_end(i128::from(*key));
        }
        fold
    }

    #[test]
    fn folds_are_those_of_the_values_in_the_range() {
        for (shape, value) in SHAPES.iter().enumerate() {
            let values = Int64Array::from_iter_values((0..ROWS as i64).map(value));
            let array: ArrayRef = Arc::new(values.clone());
            let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
            encoder.pin(by_id(2).unwrap());
            let chunk = encoder.encode_new(&array).unwrap();
            let key = |value: &i64| value.cast_unsigned() ^ 1 << 63;
            let keys: Vec<u64> = values.values().iter().map(key).collect();
            let near = [0, 3, 5, 1_025, 3_000, 9_299].map(|row| keys[row]);
            let near = near.iter().flat_map(|key| [key.saturating_sub(1), *key]);
            let ends: Vec<u64> = near.chain([0, 1, u64::MAX]).collect();
            let pairs = ends
                .iter()
                .flat_map(|low| ends.iter().map(move |high| (*low, *high)));
            for (low, high) in pairs.filter(|(low, high)| low <= high) {
                check(&chunk, KeyRange { low, high }, &keys, shape);
            }
        }
    }

    /// All rows, most of them, those of some blocks alone.
    fn check(chunk: &Chunk, range: KeyRange, keys: &[u64], shape: usize) {
        let keeps: [fn(usize) -> bool; 3] = [
            |_| true,
            |row| row % 97 > 0,
            |row| row / 2_048 % 2 > 0 && row % 3 > 0,
        ];
        for (kept, keep) in keeps.into_iter().enumerate() {
            let mut within = Selection::all(ROWS);
            if kept > 0 {
                let words = within.set_bits(ROWS);
                (0..ROWS).for_each(|row| words[row / 64] |= u64::from(keep(row)) << (row % 64));
            }
            let truth = expected(keys, range, keep);
            for parts in 0..8 {
                let asked = Asked {
                    sum: parts & 1 > 0,
                    squares: parts & 2 > 0,
                    ends: parts & 4 > 0,
                };
                let (mut fold, mut work) = (Fold::default(), Work::default());
                fold_range(chunk, (range, &within), asked, &mut fold, &mut work);
                let what = format!("shape {shape}, {range:?}, {kept}, {asked:?}");
                assert_eq!(fold.count, truth.count, "{what}");
                assert!(!asked.sum || fold.sum == truth.sum, "{what}");
                assert!(!asked.squares || fold.squares == truth.squares, "{what}");
                let ends = (fold.min, fold.max) == (truth.min, truth.max);
                assert!(!asked.ends || ends, "{what}");
            }
        }
    }
}
