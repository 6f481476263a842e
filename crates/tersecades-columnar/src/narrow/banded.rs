//! Chunks of bases, maxima, deltas and, under some codecs, patches, in sections from the first on.

use crate::aligned::CACHE_LINE_BYTES;
use crate::block::BLOCK_ROWS;
use crate::chunk::Chunk;
use crate::patch::Patches;

use super::Deltas;

pub(crate) const BASES: usize = 0;
pub(crate) const MAXIMA: usize = 1;
pub(crate) const WIDTHS: usize = 2;
pub(crate) const OFFSETS: usize = 3;
pub(crate) const DELTAS: usize = 4;
pub(crate) const PATCHES: usize = 5;

/// The sections of a chunk of `N` bases a block.
#[derive(Clone, Copy)]
pub(super) struct Banded<'a, const N: usize> {
    pub(super) bases: &'a [u64],
    pub(super) maxima: &'a [u64],
    pub(super) deltas: Deltas<'a>,
    /// None where the codec has none.
    pub(super) patches: Option<Patches<'a>>,
}

impl<'a, const N: usize> Banded<'a, N> {
    /// The sections of `chunk`; `None` where they are others.
    pub(super) fn of(chunk: &'a Chunk) -> Option<Self> {
        let bands = chunk.codec.bands(chunk)?;
        let deltas = bands.deltas.filter(|_| bands.bases_a_block == N)?;
        Some(Banded {
            bases: bands.bases,
            maxima: bands.maxima,
            deltas,
            patches: bands.patches,
        })
    }

    /// [`Banded::of`], or one base a block as `N` equal ones, which `memory` holds.
    pub(super) fn spread(chunk: &'a Chunk, memory: &'a mut Vec<u64>) -> Option<Self> {
        let bands = chunk.codec.bands(chunk)?;
        let deltas = bands.deltas.filter(|_| bands.bases_a_block == 1);
        let Some(deltas) = deltas.filter(|_| N > 1) else {
            return Banded::of(chunk);
        };
        memory.clear();
        let ends = bands.bases.iter().chain(bands.maxima);
        memory.extend(ends.flat_map(|end| [*end; N]));
        let (bases, maxima) = memory.split_at(bands.bases.len() * N);
        Some(Banded {
            bases,
            maxima,
            deltas,
            patches: bands.patches,
        })
    }
}

/// Whether [`Banded::spread`] gives `N` bases a block.
pub(super) fn spreads<const N: usize>(chunk: &Chunk) -> bool {
    let bands = chunk.codec.bands(chunk);
    bands.is_some_and(|bands| bands.deltas.is_some() && [1, N].contains(&bands.bases_a_block))
}

/// Gives `out` the fixed sections for `blocks` blocks; their bytes are stale.
pub(super) fn lay_out_blocks<const N: usize>(out: &mut Chunk, blocks: usize) {
    let lane = size_of::<u64>();
    let sizes = [
        (BASES, blocks * N * lane),
        (MAXIMA, blocks * N * lane),
        (WIDTHS, blocks),
        (OFFSETS, (blocks + 1) * size_of::<u32>()),
    ];
    let mut start = 0;
    for (section, length) in sizes {
        out.body.sections[section] = (start, length);
        start = (start + length).next_multiple_of(CACHE_LINE_BYTES);
    }
    out.body.sections[DELTAS] = (start, 0);
    let held = out.body.bytes.bytes().len();
    out.body.bytes.resize_stale(held.max(start));
    for (section, length) in sizes {
        let end = out.body.sections[section].0 + length;
        let line = end.next_multiple_of(CACHE_LINE_BYTES);
        out.body.bytes.bytes_mut()[end..line].fill(0);
    }
}

/// Gives `out` room for `lines` cache lines of deltas; their bytes are stale.
pub(super) fn lay_out_deltas(out: &mut Chunk, lines: usize) {
    let (start, length) = (out.body.sections[DELTAS].0, lines * CACHE_LINE_BYTES);
    out.body.sections[DELTAS] = (start, length);
    out.body.bytes.resize_stale(start + length);
}

impl<const N: usize> Banded<'_, N> {
    /// The key of one row.
    pub(super) fn key(&self, row: usize) -> u64 {
        let (delta, widest) = self.deltas.get(row);
        if let Some(patches) = self.patches
            && (delta == 0 || delta == widest)
            && let Some(key) = patches.find(row / BLOCK_ROWS, row % BLOCK_ROWS)
        {
            return key;
        }
        self.bases[row / (BLOCK_ROWS / N)].wrapping_add(delta)
    }
}
