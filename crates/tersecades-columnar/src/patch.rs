//! Values kept apart because they would widen their block: position in the block and true key.
//!
//! Three sections: where each block's patches start (`blocks + 1` counters), the row of each patch
//! inside its block, and its key at the column's lane width.

use std::ops::Range;

use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::chunk::{Body, Chunk};
use crate::codec::EncodeWork;
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold, SquareSum};
use crate::goal::Goal;
use crate::input::Lanes;
use crate::kernels::{Outliers, kernels, prefetch, prefetch_start};
use crate::lane::{KeyLane, add_lanes_section, lanes_section, with_lanes};

/// Nanoseconds that correcting a comparison by one outlier takes, reckoned from scans of set D4, a
/// tenth of it outliers (docs/direct-execution.md).
const COMPARE_NS: f64 = 0.1;

/// Bytes of rows, and of keys, that [`Patches::prefetch_start`] asks for.
const START_BYTES: usize = 4096;

/// Nanoseconds per row and read that correcting takes, where `share` of the rows are outliers and
/// folding one takes `fold_ns`.
pub(crate) fn correction_ns(share: f64, fold_ns: f64, goal: &Goal) -> f64 {
    share * (goal.uses.compare * COMPARE_NS + goal.uses.fold * fold_ns)
}

/// The patches of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct Patches<'a> {
    starts: &'a [u32],
    rows: &'a [u16],
    keys: Lanes<'a>,
}

/// First of the three sections, by codec.
pub(crate) type FirstSection = usize;

impl<'a> Patches<'a> {
    pub(crate) fn of(chunk: &'a Chunk, first: FirstSection) -> Self {
        Patches {
            starts: chunk.body.section(first),
            rows: chunk.body.section(first + 1),
            keys: lanes_section(&chunk.body, first + 2, chunk.physical.lane_bytes()),
        }
    }

    /// Patches of all blocks.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no block has a patch.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Indices of the patches of `block`.
    #[inline]
    pub(crate) fn of_block(&self, block: usize) -> Range<usize> {
        self.starts[block] as usize..self.starts[block + 1] as usize
    }

    /// The row, inside its block, of each patch.
    pub(crate) fn rows(&self) -> &'a [u16] {
        self.rows
    }

    /// The true key of each patch.
    pub(crate) fn keys(&self) -> Lanes<'a> {
        self.keys
    }

    /// The row, inside its block, of patch `index`.
    #[inline]
    pub(crate) fn row(&self, index: usize) -> usize {
        usize::from(self.rows[index])
    }

    /// The true key of patch `index`.
    #[inline]
    pub(crate) fn key(&self, index: usize) -> u64 {
        self.keys.bits(index)
    }

    /// Calls `see` with each of `rows` of the chunk and its true key, if it is patched.
    ///
    /// # Cost
    /// A step for each row and each patch between two of them, or a search where those are many;
    /// rows that do not ascend are searched for.
    pub(crate) fn for_each_row(&self, rows: &[u32], see: impl FnMut(u32, Option<u64>)) {
        with_lanes!(self.keys, keys => self.walk(keys, rows, see), else {})
    }

    #[inline(always)]
    fn walk<T: KeyLane>(&self, keys: &[T], rows: &[u32], mut see: impl FnMut(u32, Option<u64>)) {
        const STEPS_MAX: usize = 8;
        let (mut block, mut last) = (usize::MAX, 0);
        let (mut patched, mut keys_of_block): (&[u16], &[T]) = (&[], &[]);
        let mut at = 0;
        for row in rows {
            let (of, wanted) = (
                *row as usize / BLOCK_ROWS,
                (*row as usize % BLOCK_ROWS) as u16,
            );
            if of != block || wanted < last {
                let range = self.of_block(of);
                (patched, keys_of_block) = (&self.rows[range.clone()], &keys[range]);
                (block, at) = (of, 0);
            }
            last = wanted;
            let mut steps = 0;
            while steps < STEPS_MAX && patched.get(at).is_some_and(|patched| *patched < wanted) {
                (at, steps) = (at + 1, steps + 1);
            }
            if steps == STEPS_MAX {
                at += patched[at..].partition_point(|patched| *patched < wanted);
            }
            let found = patched.get(at) == Some(&wanted);
            let key = keys_of_block.get(at).filter(|_| found);
            see(*row, key.map(|key| key.key()));
        }
    }

    /// The true key of `row` of `block`, if it is patched.
    #[inline]
    pub(crate) fn find(&self, block: usize, row: usize) -> Option<u64> {
        let range = self.of_block(block);
        let rows = &self.rows[range.clone()];
        let at = rows.partition_point(|patched| usize::from(*patched) < row);
        (rows.get(at).copied().map(usize::from) == Some(row)).then(|| self.key(range.start + at))
    }

    /// Asks for what is read first of the rows and keys, for whoever reads all of them later.
    pub(crate) fn prefetch_start(&self) {
        prefetch_start(bytemuck::cast_slice(self.rows), START_BYTES);
        with_lanes!(self.keys, keys => {
            prefetch_start(bytemuck::cast_slice(keys), START_BYTES);
        }, else {});
    }

    /// Asks for what [`Patches::find`] reads of `row` of the chunk, where patches lie evenly.
    #[inline]
    pub(crate) fn prefetch(&self, row: usize) {
        let range = self.of_block(row / BLOCK_ROWS);
        let near = range.start + range.len() * (row % BLOCK_ROWS) / BLOCK_ROWS;
        prefetch(self.rows, near);
        with_lanes!(self.keys, keys => prefetch(keys, near), else {});
    }

    /// Collects the patches inside `kept`, rows of the chunk, as patches of a chunk of just those
    /// rows, their keys changed by `change`.
    pub(crate) fn collect(
        &self,
        rows: usize,
        kept: Range<usize>,
        work: &mut EncodeWork,
        change: impl Fn(u64) -> u64,
    ) {
        begin(work);
        let blocks = kept.start / BLOCK_ROWS..block_count(kept.end.min(rows));
        let patches =
            blocks.flat_map(|block| self.of_block(block).map(move |index| (block, index)));
        for (block, index) in patches {
            let row = block * BLOCK_ROWS + self.row(index);
            if !kept.contains(&row) {
                continue;
            }
            let row = row - kept.start;
            while work.patch_starts.len() <= row / BLOCK_ROWS {
                begin_block(work);
            }
            work.patch_rows.push((row % BLOCK_ROWS) as u16);
            work.patch_keys.push(change(self.key(index)));
        }
        while work.patch_starts.len() <= block_count(kept.len()) {
            begin_block(work);
        }
    }

    /// Checks what the accessors rely on.
    ///
    /// # Errors
    /// `Corrupt` with the block.
    pub(crate) fn validate(&self, rows: usize) -> Result<()> {
        let blocks = block_count(rows);
        let ends = self.starts.first().zip(self.starts.last());
        let all = ends.is_some_and(|(first, end)| *first == 0 && *end as usize == self.len());
        if self.starts.len() != blocks + 1 || !all || self.keys.len() != self.len() {
            return Err(Error::corrupt(
                "patch sections do not fit the number of blocks",
            ));
        }
        for block in 0..blocks {
            let corrupt =
                || Error::corrupt("patches are out of order or range").block(block as u32);
            let range = self.of_block(block);
            let patched = self.rows.get(range).ok_or_else(corrupt)?;
            let ascending = patched.windows(2).all(|pair| pair[0] < pair[1]);
            let inside = patched
                .last()
                .is_none_or(|row| usize::from(*row) < block_rows(block, rows).len());
            if !ascending || !inside {
                return Err(corrupt());
            }
        }
        Ok(())
    }
}

/// Adds outliers to a fold in place of their holes, which it has; no end of it may be a hole's.
pub(crate) fn mend<K: KeyLane>(outliers: &Outliers<'_, K>, asked: Asked, out: &mut Fold) {
    let sums = (K::of(kernels()).outliers)(outliers);
    if asked.sum {
        out.add_sum(sums.more);
    }
    let mut squares = SquareSum::default();
    squares.add(sums.squares.unsigned_abs());
    match sums.squares < 0 {
        true => out.squares.unmerge(squares),
        false => out.squares.merge(squares),
    }
    if asked.ends && sums.min <= sums.max {
        out.add_end(i128::from(sums.min));
        out.add_end(i128::from(sums.max));
    }
}

/// Starts collecting the patches of a chunk.
pub(crate) fn begin(work: &mut EncodeWork) {
    work.patch_starts.clear();
    work.patch_rows.clear();
    work.patch_keys.clear();
}

/// Marks the start of the next block's patches; called once more after the last block.
pub(crate) fn begin_block(work: &mut EncodeWork) {
    work.patch_starts.push(work.patch_rows.len() as u32);
}

/// Writes the collected patches as three sections.
pub(crate) fn write(body: &mut Body, first: FirstSection, bytes: usize, work: &EncodeWork) {
    body.add_section::<u32>(first, work.patch_starts.len())
        .copy_from_slice(&work.patch_starts);
    body.add_section::<u16>(first + 1, work.patch_rows.len())
        .copy_from_slice(&work.patch_rows);
    add_lanes_section(body, first + 2, bytes, &work.patch_keys);
}
