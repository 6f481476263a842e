//! The loops that touch every value, one table of them per instruction set.
//!
//! A block is up to 1,024 lanes in eight groups of 128; lane `i` belongs to group `i / 128` and
//! each group has its own base. Every kernel takes slices and fills slices: no allocation, no
//! state, no value read or written outside what it was given. A caller asks [`kernels`] once
//! and calls through the table:
//!
//! ```text
//! let table = u16::of(kernels());                    // or kernels().u16
//! (table.range_mask)(values, &low, &span, &mut bits)
//! let pair = <u64 as Narrow<u8>>::pair(kernels());   // or kernels().u64_u8
//! (pair.narrow)(values, flip, &bases, &mut bytes)
//! let packs = u8::packs(kernels());                  // or kernels().packed_u8
//! (packs.range_mask)(packed, width, low, span, &mut bits)
//! ```
//!
//! `scalar` is the definition. The other levels share the loops of `block`, `moment` and `bitmap`,
//! which the compiler vectorises once per instruction set, and differ in the few steps of `level`
//! that a compiler gets wrong: lanes to bits and bits to lanes, wide lanes to narrow ones
//! (`avx2_cut`), outliers by their rows (`avx2_outlier`), codes to what they stand for
//! (`avx2_code_sum`), selected lanes to the front (`avx2_compact`), and where one pass over a block
//! beats two (`avx2_moment`, `avx2_range_sum`); `avx512` has the same files. All levels answer the
//! same.

mod based;
mod bit_stream;
mod bitmap;
mod block;
mod cell;
mod code_sum;
mod compact;
mod float;
mod lane;
mod level;
mod moment;
mod order;
mod outlier;
mod pack;
mod portable;
mod range_sum;
mod scalar;
mod take;
#[cfg(test)]
mod tests;
mod try_narrow;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::ops::RangeInclusive;
use std::sync::OnceLock;

pub use cell::Grid;
pub use code_sum::CodeTable;
pub use float::{FLOAT_SUMS, FloatKernels, FloatSums};
pub use lane::{Lane, Narrow};
pub use outlier::{OutlierSums, Outliers};
pub use pack::{BLOCK_WORDS, BlockMask, PackKernels, get_packed, packed_lanes};
pub use pack::{PackedMinMax, PackedRangeMask, PackedSum};

/// Groups of a block, each with its own base.
pub const GROUPS: usize = 8;
/// Lanes of a group.
pub const GROUP_LANES: usize = 128;
/// Lanes of a full block.
pub const BLOCK_LANES: usize = GROUPS * GROUP_LANES;
/// Lanes answered by one word of a bitmap.
pub const WORD_LANES: usize = 64;

/// The environment variable that names the level to run instead of the best one.
pub const LEVEL_VARIABLE: &str = "TERSECADES_KERNELS";

/// One value per group of a block.
pub type PerGroup<W> = [W; GROUPS];

/// The kernels over lanes of one type.
///
/// # Shape
/// Block kernels take 0 to [`BLOCK_LANES`] values and assert it; flat kernels take any number.
/// A bitmap of `n` lanes has at least `n.div_ceil(64)` words, bit `i % 64` of word `i / 64` for
/// lane `i`. Written bitmaps have zeros after lane `n` in their last word and leave later words
/// alone; bits after lane `n` of a bitmap that is read do not count.
#[derive(Debug, Clone, Copy)]
pub struct LaneKernels<W: Lane> {
    /// `(values, low, span, out)`: bit `i` is `values[i] - low[g] <= span[g]`, wrapping.
    pub range_mask: RangeMask<W>,
    /// `(values, low, span, out)`: [`Self::range_mask`] with one bound, over any number of lanes.
    pub range_mask_flat: fn(&[W], W, W, &mut [u64]),
    /// `(values, bases, range, out)`: bit `i` is `bases[i / 128] + values[i]` inside `range`.
    ///
    /// Any number of lanes. The sums, and the ends of the range, are below 2^64.
    pub range_mask_groups: RangeMaskBased<W>,
    /// [`Self::range_mask_groups`] with a base for each 1,024 lanes.
    pub range_mask_blocks: RangeMaskBased<W>,
    /// `(values, bases, range, mask, out)`: [`Self::range_mask_groups`] of a block, of the lanes of
    /// `mask` when there is one; answers the sum of those lanes.
    pub range_sum: RangeSum<W>,
    /// `(values, mask, out)`: the sum of each group, of the lanes of `mask` when there is one.
    pub sum: Fold<W>,
    /// `(values)`: the sum of any number of lanes.
    pub sum_flat: fn(&[W]) -> u128,
    /// `(values, mask, sums)`: [`Self::sum`] and, as the answer, the sum of the squares of all its
    /// lanes, modulo 2^128.
    ///
    /// Only 64-bit lanes from 2^59 on can reach the modulus.
    pub moments: Moments<W>,
    /// What the values that deltas cannot hold add to the sums and ends of a block.
    pub outliers: fn(&Outliers<'_, W>) -> OutlierSums,
    /// `(values, flip, mask, min, max)`: the ends of `value ^ flip` in each group, unsigned.
    ///
    /// A group without a lane answers `min = MAX` and `max = 0`.
    pub min_max: MinMax<W>,
    /// `(values, start)`: each value becomes itself plus all before it and `start`, wrapping.
    ///
    /// Any number of lanes.
    pub prefix_sum: fn(&mut [W], W),
    /// `(a, b, out)`: `a[i] + b[i]`, wrapping, for any number of lanes; the lengths are equal.
    pub add: Add<W>,
    /// [`Self::add`], written past the caches where the processor can: for sums nobody reads soon.
    pub add_past: Add<W>,
    /// `(values, indices, found)`: what stands at each index of the sorted values, and behind it.
    ///
    /// Any number of lanes; there is one at each index, of which there are as many as answers.
    /// Behind the last stands itself.
    pub nth: Nth<W>,
    /// `(table, codes, out)`: `out[i] = table[codes[i]]`; false if a code is outside the table.
    ///
    /// Any number of codes, as many as `out` has lanes, which are undefined after false.
    pub take: fn(&[W], &[u32], &mut [W]) -> bool,
}

/// The shape of [`LaneKernels::nth`].
pub type Nth<W> = fn(&[W], &[usize], &mut [[W; 2]]);

/// The shape of [`LaneKernels::add`].
pub type Add<W> = fn(&[W], &[W], &mut [W]);
/// The shape of [`LaneKernels::range_mask`].
pub type RangeMask<W> = fn(&[W], &PerGroup<W>, &PerGroup<W>, &mut [u64]);
/// The shape of [`LaneKernels::range_mask_groups`].
pub type RangeMaskBased<W> = fn(&[W], &[u64], RangeInclusive<u64>, &mut [u64]);
/// The shape of [`LaneKernels::range_sum`].
pub type RangeSum<W> =
    fn(&[W], &PerGroup<u64>, RangeInclusive<u64>, Option<&[u64]>, &mut [u64]) -> u128;
/// The shape of [`LaneKernels::sum`].
pub type Fold<W> = fn(&[W], Option<&[u64]>, &mut PerGroup<u128>);
/// The shape of [`LaneKernels::moments`].
pub type Moments<W> = fn(&[W], Option<&[u64]>, &mut PerGroup<u128>) -> u128;
/// The shape of [`LaneKernels::min_max`].
pub type MinMax<W> = fn(&[W], W, Option<&[u64]>, &mut PerGroup<W>, &mut PerGroup<W>);

/// The shape of [`PairKernels::try_narrow`].
pub type TryNarrow<T, D> = fn(&[T], T, &PerGroup<T>, &mut [D], &mut Reach<D>) -> u8;

/// How far the values of each group lie from its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach<D> {
    /// The smallest differences.
    pub min: PerGroup<D>,
    /// The largest differences.
    pub max: PerGroup<D>,
}

/// The kernels between values of `T` and deltas of `D`, where `D` is not the wider.
///
/// # Shape
/// At most [`BLOCK_LANES`] values; `out` has at least as many lanes, and later ones are kept.
#[derive(Debug, Clone, Copy)]
pub struct PairKernels<T: Narrow<D>, D: Lane> {
    /// `(values, flip, bases, out)`: `(values[i] ^ flip) - bases[g]`, saturated at both ends.
    ///
    /// A value below its base becomes 0, one beyond `D::MAX` above it becomes `D::MAX`, so the
    /// order of lanes is kept even where a patch has to hold the true value.
    pub narrow: fn(&[T], T, &PerGroup<T>, &mut [D]),
    /// `(values, flip, bases, out, reach)`: bit `g` of the answer is set where every
    /// `(values[i] ^ flip) - bases[g]` of a group fits `D`, which is narrower than `T`.
    ///
    /// `reach` has the ends of these differences, and `out` has them less the smallest. In other
    /// groups the lanes that fit have their differences, and nothing else means anything. The block
    /// is full.
    pub try_narrow: TryNarrow<T, D>,
    /// `(values, bases, flip, out)`: `(bases[g] + values[i]) ^ flip`, wrapping.
    pub widen: fn(&[D], &PerGroup<T>, T, &mut [T]),
}

/// The kernels over bitmaps of any length.
#[derive(Debug, Clone, Copy)]
pub struct BitmapKernels {
    /// `a &= b`, word by word; the lengths are equal.
    pub and: fn(&mut [u64], &[u64]),
    /// `a &= !b`, word by word; the lengths are equal.
    pub and_not: fn(&mut [u64], &[u64]),
    /// `a |= b`, word by word; the lengths are equal.
    pub or: fn(&mut [u64], &[u64]),
    /// The number of set bits.
    pub count: fn(&[u64]) -> u64,
    /// `(words, out)`: the number of set bits of each group of a block, 0 where words are missing.
    pub count_groups: fn(&[u64], &mut PerGroup<u64>),
    /// The OR of all words, taken from four places in turn and from eight: what reads words as
    /// fast as the machine does.
    pub union: [fn(&[u64]) -> u64; 2],
    /// `(words, base_row, out)`: appends `base_row + position` of each set bit, ascending.
    ///
    /// The last position has to fit a `u32`.
    pub to_rows: fn(&[u64], u32, &mut Vec<u32>),
    /// `(words, lanes)`: moves the lanes whose bits are set to the front, in order; how many. What
    /// follows them means nothing.
    pub compact: fn(&[u64], &mut [u64]) -> usize,
    /// `(rows, out)`: clears `out`, then sets the bit of each row; each row is inside `out`.
    pub from_rows: fn(&[u32], &mut [u64]),
}

/// The shape of [`Kernels::overlap`].
pub type Overlap = fn(&[u64], &[u64], RangeInclusive<u64>, &mut [u8], &mut [u8]);

/// The shape of [`Kernels::code_sum`].
pub type CodeSum = fn(&[u8], &CodeTable, Option<&[u64]>) -> u128;

/// The shape of [`Kernels::cells`].
pub type Cells = fn(&Grid, &[u64], &[u64], &mut [u32]) -> bool;

/// Every kernel of one level.
#[derive(Debug, Clone, Copy)]
pub struct Kernels {
    /// The level: `scalar`, `portable`, `avx2` or `avx512`.
    pub name: &'static str,
    /// Kernels over bytes.
    pub u8: LaneKernels<u8>,
    /// Kernels over 16-bit lanes.
    pub u16: LaneKernels<u16>,
    /// Kernels over 32-bit lanes.
    pub u32: LaneKernels<u32>,
    /// Kernels over 64-bit lanes.
    pub u64: LaneKernels<u64>,
    /// Kernels over packed blocks of bytes.
    pub packed_u8: PackKernels<u8>,
    /// Kernels over packed blocks of 16-bit lanes.
    pub packed_u16: PackKernels<u16>,
    /// Kernels over packed blocks of 32-bit lanes.
    pub packed_u32: PackKernels<u32>,
    /// Kernels over packed blocks of 64-bit lanes.
    pub packed_u64: PackKernels<u64>,
    /// 8-bit values as bytes.
    pub u8_u8: PairKernels<u8, u8>,
    /// 16-bit values as bytes.
    pub u16_u8: PairKernels<u16, u8>,
    /// 16-bit values as 16-bit deltas.
    pub u16_u16: PairKernels<u16, u16>,
    /// 32-bit values as bytes.
    pub u32_u8: PairKernels<u32, u8>,
    /// 32-bit values as 16-bit deltas.
    pub u32_u16: PairKernels<u32, u16>,
    /// 32-bit values as 32-bit deltas.
    pub u32_u32: PairKernels<u32, u32>,
    /// 64-bit values as bytes.
    pub u64_u8: PairKernels<u64, u8>,
    /// 64-bit values as 16-bit deltas.
    pub u64_u16: PairKernels<u64, u16>,
    /// 64-bit values as 32-bit deltas.
    pub u64_u32: PairKernels<u64, u32>,
    /// 64-bit values as 64-bit deltas.
    pub u64_u64: PairKernels<u64, u64>,
    /// Kernels over floats.
    pub float: FloatKernels,
    /// Kernels over bitmaps.
    pub bitmap: BitmapKernels,
    /// `(bases, maxima, low..=high, any, all)`: which groups a range can touch, and fills.
    ///
    /// Eight entries make one byte, entry `8 * b + g` bit `g` of byte `b`. `any`: the group's
    /// `base..=maximum` meets the range. `all`: it lies inside. `bases` and `maxima` have one
    /// length `n`, `any` and `all` have `n.div_ceil(8)`; bits after entry `n` are zero.
    pub overlap: Overlap,
    /// `(bytes, width, out)`: the numbers of `width` bits, at most 32, that lie one behind the
    /// other in `bytes`, the first in the lowest bits.
    ///
    /// Any number of them; `bytes` has all, and may have more.
    pub unpack_stream: fn(&[u8], u32, &mut [u32]),
    /// `(codes, table, mask)`: the sum of what the codes of `mask` stand for, of all without one.
    ///
    /// At most [`BLOCK_LANES`] codes.
    pub code_sum: CodeSum,
    /// `(grid, rows, columns, out)`: the cell of each pair, counted row by row, modulo 2^32; false
    /// if a pair is outside the grid.
    ///
    /// Any number of rows, as many as `out` has lanes, which are undefined after false. `columns`
    /// are as many, or none: then all are the first.
    pub cells: Cells,
}

/// The best kernels this processor runs, or those that [`LEVEL_VARIABLE`] names.
///
/// The choice is made at the first call. A name this processor cannot run is ignored.
///
/// # Cost
/// One atomic load after the first call.
pub fn kernels() -> &'static Kernels {
    static PICKED: OnceLock<&'static Kernels> = OnceLock::new();
    PICKED.get_or_init(|| {
        let levels = levels();
        let named = std::env::var(LEVEL_VARIABLE).ok();
        let chosen = levels
            .iter()
            .find(|level| Some(level.name) == named.as_deref());
        chosen
            .or(levels.last())
            .copied()
            .unwrap_or(&scalar::KERNELS)
    })
}

/// Every level this processor runs, from the plainest to the fastest.
pub fn levels() -> Vec<&'static Kernels> {
    #[allow(unused_mut, reason = "only some architectures add levels")]
    let mut levels = vec![&scalar::KERNELS, &portable::KERNELS];
    #[cfg(target_arch = "x86_64")]
    levels.extend(x86_64::detect());
    levels
}

/// Asks for the cache lines of the listed positions, into the second-level cache.
///
/// For a list that is read soon but not at once: the second level has more requests under way than
/// the first, so a whole list costs little more than its last line.
///
/// # Cost
/// One instruction a position where the processor has it.
#[inline]
pub fn prefetch_rows<T>(slice: &[T], rows: &[u32]) {
    #[cfg(target_arch = "x86_64")]
    for row in rows {
        if let Some(value) = slice.get(*row as usize) {
            x86_64::prefetch_far(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, rows);
}

/// Asks for the cache line of `slice[index]`; does nothing when `index` is outside.
///
/// # Cost
/// One instruction where the processor has it; worth it a few hundred cycles before the use.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = slice.get(index) {
        x86_64::prefetch(value);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// Asks for the cache line `bytes` after the start of `values`, which may be past their end.
///
/// # Cost
/// One instruction where the processor has it; for what is likely to be read next in memory.
#[inline(always)]
pub(crate) fn prefetch_past<T>(values: &[T], bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    x86_64::prefetch_address(values.as_ptr().cast::<u8>().wrapping_add(bytes));
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, bytes);
}

/// [`prefetch_past`] into the second-level cache: for what is read in order, of which the first
/// level has too few requests under way.
///
/// # Cost
/// One instruction where the processor has it.
#[inline(always)]
pub(crate) fn prefetch_far_past<T>(values: &[T], bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    x86_64::prefetch_far(values.as_ptr().cast::<u8>().wrapping_add(bytes));
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, bytes);
}

/// Asks for the first `bytes` bytes of `slice`, into the second-level cache; fewer where it ends.
#[inline]
pub(crate) fn prefetch_start(slice: &[u8], bytes: usize) {
    (0..bytes.min(slice.len()))
        .step_by(level::LINE_BYTES)
        .for_each(|at| prefetch_far_past(slice, at));
}

/// Asserts what every block kernel with a bitmap relies on.
#[inline(always)]
fn assert_block(lanes: usize, mask: Option<&[u64]>) {
    assert!(
        lanes <= BLOCK_LANES,
        "a block has at most {BLOCK_LANES} lanes"
    );
    assert!(
        mask.is_none_or(|words| words.len() >= lanes.div_ceil(WORD_LANES)),
        "short bitmap"
    );
}

/// Asserts what additions rely on.
#[inline(always)]
fn assert_add(a: usize, b: usize, out: usize) {
    assert!(a == b && b == out, "lanes of one length");
}

/// Asserts what comparisons with bases rely on.
#[inline(always)]
fn assert_based(lanes: usize, lanes_each: usize, bases: usize, words: usize) {
    assert!(bases >= lanes.div_ceil(lanes_each), "too few bases");
    assert!(words >= lanes.div_ceil(WORD_LANES), "short bitmap");
}

/// Asserts what `overlap` relies on.
#[inline(always)]
fn assert_overlap(entries: usize, maxima: usize, any: usize, all: usize) {
    assert_eq!(entries, maxima, "one maximum per base");
    assert!(
        any == entries.div_ceil(GROUPS) && all == any,
        "one byte per eight bases"
    );
}
