//! What an instruction set adds: a place to run, and the steps between lanes and bits.
//!
//! The loops of `block` and `bitmap` are generic over a level. They are inlined into
//! [`Level::run`], which carries the level's target features, so one source becomes one machine
//! code per level:
//!
//! ```text
//! table entry -> run (target features) -> loop (generic, inlined) -> step (intrinsics, inlined)
//! ```

use super::based::{self, Moved};
use super::bit_stream::{self, BitStream};
use super::code_sum::CodeSums;
use super::compact::{self, Compact};
use super::moment;
use super::order::{self, Order};
use super::outlier::Outlying;
use super::pack::{Lines, packs};
use super::range_sum::{self, RangeSums};
use super::{BitmapKernels, GROUPS, Kernels, Lane, LaneKernels, Narrow, PairKernels, WORD_LANES};
use super::{GROUP_LANES, bitmap, block, cell, float, take, try_narrow};

/// Lanes that share one word of a bitmap.
pub(super) type Word<W> = [W; WORD_LANES];

/// Slots that [`Level::rows`] may write after the last position.
pub(super) const ROWS_SLACK: usize = 16;

/// An instruction set.
pub(super) trait Level: 'static {
    /// Runs `body`, compiled for this level.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn run<R>(body: impl FnOnce() -> R) -> R;

    /// Writes `first_row + position` of each set bit of `word` from `out` on, ascending.
    ///
    /// # Safety
    /// 1. The processor has every feature of the level.
    /// 2. `out` is valid for writes of `word.count_ones()` + [`ROWS_SLACK`] values.
    unsafe fn rows(word: u64, first_row: u32, out: *mut u32);

    /// The sum of at most 2^24 bytes.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn sum_bytes(bytes: &[u8]) -> u64;

    /// Copies a cache line from `line` to `out` without keeping it in the caches.
    ///
    /// # Safety
    /// 1. The processor has every feature of the level.
    /// 2. `line` is valid for reads of [`LINE_BYTES`] bytes.
    /// 3. `out` is valid for writes of as many and a multiple of [`LINE_BYTES`].
    unsafe fn store_past(line: *const u8, out: *mut u8);

    /// Puts the lines of [`Level::store_past`] before every later write of this thread.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn fence();

    /// `out[i]` becomes the low bits of `values[i] - base`, wrapping; answers an OR of all
    /// differences. A lane whose difference does not fit means nothing.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn cut<T: Narrow<D>, D: Lane>(
        values: &[T; GROUP_LANES],
        base: T,
        out: &mut [D; GROUP_LANES],
    ) -> T {
        try_narrow::cut(values, base, out)
    }

    /// The bits (`any`, `all`) of eight groups against `low..=high`; see [`Kernels::overlap`].
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn overlap(
        bases: &[u64; GROUPS],
        maxima: &[u64; GROUPS],
        low: u64,
        high: u64,
    ) -> (u8, u8);
}

/// Bytes that [`Level::store_past`] writes at a time.
pub(super) const LINE_BYTES: usize = 64;

/// The steps of a level that depend on the lane type.
pub(super) trait Steps<W: Lane>: Level {
    /// Bit `i` of `out` becomes `values[i] - low <= span`, wrapping; both ends are
    /// [`Lane::repeated`], which any register is filled from by one load.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn range(values: &Word<W>, low: u64, span: u64, out: &mut u64);

    /// `low..=high` as lanes see it that count from `bases`, at most eight.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn moved<const PER: usize>(bases: &[u64; PER], low: u64, high: u64) -> Moved<PER> {
        Moved::of::<W>(bases, low, high)
    }

    /// `out[i] = values[i]` where bit `i` of `keep` is set, else `fill`.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn select(values: &Word<W>, keep: u64, fill: W, out: &mut Word<W>);
}

/// A call that runs with the features of a level.
macro_rules! at_level {
    ($level:ty, $call:expr) => {
        // SAFETY: the caller of `table` promised the features of the level.
        unsafe {
            <$level>::run(
                #[inline(always)]
                || $call,
            )
        }
    };
}

/// The table of level `L`.
///
/// # Safety
/// No entry is called on a processor that lacks a feature of `L`.
pub(super) const unsafe fn table<L>(name: &'static str) -> Kernels
where
    L: Steps<u8> + Steps<u16> + Steps<u32> + Steps<u64>,
    L: Lines<u8> + Lines<u16> + Lines<u32> + Lines<u64>,
    L: Order<u8> + Order<u16> + Order<u32> + Order<u64> + BitStream + CodeSums + Compact,
    L: RangeSums<u8> + RangeSums<u16> + RangeSums<u32> + RangeSums<u64>,
    L: Outlying<u8> + Outlying<u16> + Outlying<u32> + Outlying<u64>,
{
    Kernels {
        name,
        u8: lanes::<L, u8>(),
        u16: lanes::<L, u16>(),
        u32: lanes::<L, u32>(),
        u64: lanes::<L, u64>(),
        packed_u8: packs::<L, u8>(),
        packed_u16: packs::<L, u16>(),
        packed_u32: packs::<L, u32>(),
        packed_u64: packs::<L, u64>(),
        u8_u8: pair::<L, u8, u8>(),
        u16_u8: pair::<L, u16, u8>(),
        u16_u16: pair::<L, u16, u16>(),
        u32_u8: pair::<L, u32, u8>(),
        u32_u16: pair::<L, u32, u16>(),
        u32_u32: pair::<L, u32, u32>(),
        u64_u8: pair::<L, u64, u8>(),
        u64_u16: pair::<L, u64, u16>(),
        u64_u32: pair::<L, u64, u32>(),
        u64_u64: pair::<L, u64, u64>(),
        // SAFETY: the caller of `table` promised the features of `L`.
        float: unsafe { float::floats::<L>() },
        bitmap: bitmaps::<L>(),
        overlap: |bases, maxima, range, any, all| {
            // SAFETY: the caller of `table` promised the features of `L`.
            unsafe {
                L::run(
                    #[inline(always)]
                    || bitmap::overlap::<L>(bases, maxima, range, any, all),
                )
            }
        },
        unpack_stream: |bytes, width, out| at_level!(L, bit_stream::unpack::<L>(bytes, width, out)),
        code_sum: |codes, table, mask| at_level!(L, L::code_sum(codes, table, mask)),
        cells: |grid, rows, columns, out| at_level!(L, cell::cells(grid, rows, columns, out)),
    }
}

const fn lanes<L: RangeSums<W> + Outlying<W> + Lines<W> + Order<W>, W: Lane>() -> LaneKernels<W> {
    LaneKernels {
        range_mask: |values, low, span, out| {
            at_level!(L, block::range_mask::<L, W>(values, low, span, out))
        },
        range_mask_flat: |values, low, span, out| {
            at_level!(L, block::range_mask_flat::<L, W>(values, low, span, out))
        },
        range_mask_groups: |values, bases, range, out| {
            at_level!(
                L,
                based::range_mask::<L, W, GROUPS>(values, bases, range, out)
            )
        },
        range_mask_blocks: |values, bases, range, out| {
            at_level!(L, based::range_mask::<L, W, 1>(values, bases, range, out))
        },
        range_sum: |values, bases, range, mask, out| {
            at_level!(
                L,
                range_sum::range_sum::<L, W>(values, bases, range, mask, out)
            )
        },
        sum: |values, mask, out| at_level!(L, moment::sum::<L, W>(values, mask, out)),
        sum_flat: |values| at_level!(L, moment::sum_flat::<L, W>(values)),
        moments: |values, mask, sums| at_level!(L, moment::moments::<L, W>(values, mask, sums)),
        outliers: |outliers| at_level!(L, L::outliers(outliers)),
        min_max: |values, flip, mask, min, max| {
            at_level!(L, block::min_max::<L, W>(values, flip, mask, min, max))
        },
        add: |a, b, out| at_level!(L, block::add(a, b, out)),
        prefix_sum: |values, start| at_level!(L, L::prefix_sum(values, start)),
        add_past: |a, b, out| at_level!(L, block::add_past::<L, W>(a, b, out)),
        nth: |values, indices, found| at_level!(L, order::nth::<L, W>(values, indices, found)),
        take: |table, codes, out| at_level!(L, take::take(table, codes, out)),
    }
}

const fn pair<L: Level, T: Narrow<D>, D: Lane>() -> PairKernels<T, D> {
    PairKernels {
        narrow: |values, flip, bases, out| {
            // SAFETY: the caller of `table` promised the features of `L`.
            unsafe {
                L::run(
                    #[inline(always)]
                    || block::narrow(values, flip, bases, out),
                )
            }
        },
        try_narrow: |values, flip, bases, out, ends| {
            // SAFETY: the caller of `table` promised the features of `L`.
            unsafe {
                L::run(
                    #[inline(always)]
                    || try_narrow::try_narrow::<L, T, D>(values, flip, bases, out, ends),
                )
            }
        },
        widen: |values, bases, flip, out| {
            // SAFETY: the caller of `table` promised the features of `L`.
            unsafe {
                L::run(
                    #[inline(always)]
                    || block::widen(values, bases, flip, out),
                )
            }
        },
    }
}

const fn bitmaps<L: Compact>() -> BitmapKernels {
    BitmapKernels {
        // SAFETY: the caller of `table` promised the features of `L`.
        and: |a, b| unsafe {
            L::run(
                #[inline(always)]
                || bitmap::zip(a, b, |a, b| a & b),
            )
        },
        // SAFETY: the caller of `table` promised the features of `L`.
        and_not: |a, b| unsafe {
            L::run(
                #[inline(always)]
                || bitmap::zip(a, b, |a, b| a & !b),
            )
        },
        // SAFETY: the caller of `table` promised the features of `L`.
        or: |a, b| unsafe {
            L::run(
                #[inline(always)]
                || bitmap::zip(a, b, |a, b| a | b),
            )
        },
        // SAFETY: the caller of `table` promised the features of `L`.
        count: |words| unsafe {
            L::run(
                #[inline(always)]
                || bitmap::count(words),
            )
        },
        count_groups: |words, out| at_level!(L, bitmap::count_groups(words, out)),
        union: [
            |words| at_level!(L, bitmap::union::<4>(words)),
            |words| at_level!(L, bitmap::union::<8>(words)),
        ],
        to_rows: |words, base_row, out| {
            // SAFETY: the caller of `table` promised the features of `L`.
            unsafe {
                L::run(
                    #[inline(always)]
                    || bitmap::to_rows::<L>(words, base_row, out),
                )
            }
        },
        compact: |words, lanes| at_level!(L, compact::compact::<L>(words, lanes)),
        // SAFETY: the caller of `table` promised the features of `L`.
        from_rows: |rows, out| unsafe {
            L::run(
                #[inline(always)]
                || bitmap::from_rows(rows, out),
            )
        },
    }
}
