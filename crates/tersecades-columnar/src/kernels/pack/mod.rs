//! Blocks of 1,024 lanes packed at any width, and what can be asked of them while packed.
//!
//! A block is a table of `W::BITS` rows of 128 bytes; row `r` holds the lanes from `r * L` on,
//! where `L` lanes of type `W` fill 128 bytes. Packing shortens the columns: the values of a
//! column follow each other as a stream of bits, lowest first, cut into `width` words of type `W`,
//! and word `k` of all columns lies side by side from `packed[k * L]` on:
//!
//! ```text
//! u8, width 3, L = 128: lane 128 * r + c is bits 3 r .. 3 r + 3 of column c
//!
//!   word 0   packed[c]        row 0   row 1   row 2 (2 bits)
//!   word 1   packed[128 + c]  row 2 (1 bit)   row 3   row 4   row 5 (1 bit)
//!   word 2   packed[256 + c]  row 5 (2 bits)  row 6   row 7
//! ```
//!
//! Every row is read by the same shift in all columns, so no bit ever crosses columns, rows come
//! out in the order of the lanes, and a packed block takes `128 * width` bytes for every `W`.
//! A width is cheapest in the narrowest lane that can hold it; those widths up to 16 bits have
//! code of their own, the others share a loop.
//!
//! Source: Afroozeh and Boncz, "The FastLanes Compression Layout", PVLDB 16(9), 2023, for the
//! interleaved columns; its permutation of rows is left out, as nothing here needs it.

mod line;
mod portable;
mod rows;
pub(super) mod scalar;
mod table;
#[cfg(test)]
mod tests;

pub(super) use line::{FoldLines, Folds, LINE_BYTES, Lines};
pub(super) use table::{folds_of_lines, packs};

use super::{BLOCK_LANES, Lane, WORD_LANES};

/// Words of the bitmap of a full block.
pub const BLOCK_WORDS: usize = BLOCK_LANES / WORD_LANES;

/// Bytes of a row of a block, packed or not.
const ROW_BYTES: usize = 128;

/// A bit for each lane of a full block.
pub type BlockMask = [u64; BLOCK_WORDS];

/// The kernels over packed blocks of one lane type.
///
/// # Shape
/// `packed` has at least [`packed_lanes`] lanes, `width` is at most `W::BITS`; both are asserted.
/// A packed block is always full: the lanes after the values that were packed are 0, and masks
/// are how a caller leaves them out.
#[derive(Debug, Clone, Copy)]
pub struct PackKernels<W: Lane> {
    /// `(values, width, out)`: packs the lowest `width` bits of up to [`BLOCK_LANES`] values.
    ///
    /// Exactly the first [`packed_lanes`] lanes of `out` are written.
    pub pack: fn(&[W], u32, &mut [W]),
    /// `(packed, width, out)`: every lane.
    pub unpack: fn(&[W], u32, &mut [W; BLOCK_LANES]),
    /// `(packed, width, base, out)`: `base` plus every lane, as 64 bits, wrapping.
    pub unpack_keys: fn(&[W], u32, u64, &mut [u64; BLOCK_LANES]),
    /// `(packed, width, low, span, out)`: bit `i` is `lane[i] - low <= span`, wrapping.
    pub range_mask: PackedRangeMask<W>,
    /// `(packed, width, mask)`: the sum of the lanes of `mask`, of all when there is none.
    pub sum: PackedSum<W>,
    /// `(packed, width, mask)`: the sum of squares of the lanes of `mask`, modulo 2^128.
    pub squares: PackedSum<W>,
    /// `(packed, width, mask)`: the smallest and the largest lane of `mask`.
    ///
    /// Without a lane the answer is `(MAX, 0)`.
    pub min_max: PackedMinMax<W>,
}

/// The shape of [`PackKernels::range_mask`].
pub type PackedRangeMask<W> = fn(&[W], u32, W, W, &mut BlockMask);
/// The shape of [`PackKernels::sum`] and [`PackKernels::squares`].
pub type PackedSum<W> = fn(&[W], u32, Option<&BlockMask>) -> u128;
/// The shape of [`PackKernels::min_max`].
pub type PackedMinMax<W> = fn(&[W], u32, Option<&BlockMask>) -> (W, W);

/// Lanes that a block takes when packed at `width`.
#[must_use]
pub const fn packed_lanes<W: Lane>(width: u32) -> usize {
    row_lanes::<W>() * width as usize
}

/// Lane `index` of a packed block.
///
/// # Shape
/// As in [`PackKernels`]; `index` is below [`BLOCK_LANES`], asserted.
///
/// # Cost
/// One or two loads.
#[must_use]
#[inline]
pub fn get_packed<W: Lane>(packed: &[W], width: u32, index: usize) -> W {
    assert!(
        index < BLOCK_LANES && width <= W::BITS,
        "a lane of the block"
    );
    if width == 0 {
        return W::default();
    }
    let (row, column) = (index / row_lanes::<W>(), index % row_lanes::<W>());
    let bit = row * width as usize;
    let (word, shift) = (bit / W::BITS as usize, bit as u32 % W::BITS);
    let at = |word: usize| Into::<u64>::into(packed[word * row_lanes::<W>() + column]);
    let mut bits = at(word) >> shift;
    if shift + width > W::BITS {
        bits |= at(word + 1) << (W::BITS - shift);
    }
    W::truncate(bits) & ones(width)
}

/// Lanes of a row.
const fn row_lanes<W: Lane>() -> usize {
    ROW_BYTES / size_of::<W>()
}

/// The largest lane of `width` bits; `width` is from 1 to `W::BITS`.
#[inline(always)]
fn ones<W: Lane>(width: u32) -> W {
    W::truncate(u64::MAX >> (u64::BITS - width))
}

/// Asserts what every kernel over a packed block relies on.
#[inline(always)]
fn assert_packed<W: Lane>(packed: &[W], width: u32) {
    assert!(
        width <= W::BITS && packed.len() >= packed_lanes::<W>(width),
        "a packed block of {width} bits"
    );
}
