//! The entries of a level over packed blocks: they check, choose a width, and run.

use super::{
    BLOCK_LANES, BlockMask, FoldLines, Folds, Lane, Lines, PackKernels, assert_packed,
    packed_lanes, row_lanes, rows,
};
use crate::kernels::level::Steps;
use crate::kernels::moment::{self, Moments};
use crate::kernels::{GROUPS, assert_block, block};
use std::mem::MaybeUninit;

/// The table of level `L`, which is called as `level::table` says.
pub(in crate::kernels) const fn packs<L: Moments<W> + Lines<W>, W: Lane>() -> PackKernels<W> {
    PackKernels {
        pack: pack::<L, W>,
        unpack: unpack::<L, W>,
        unpack_keys: unpack_keys::<L, W>,
        range_mask: L::FOLDS.range_mask,
        sum: L::FOLDS.sum,
        squares: squares::<L, W>,
        min_max: L::FOLDS.min_max,
    }
}

/// Folds of lines that never leave their registers.
pub(in crate::kernels) const fn folds_of_lines<L: FoldLines<W>, W: Lane>() -> Folds<W> {
    Folds {
        range_mask: range_mask::<L, W>,
        sum: sum::<L, W>,
        min_max: min_max::<L, W>,
    }
}

/// Folds of a block that is unpacked in cache first.
pub(in crate::kernels) const fn folds_of_blocks<L: Moments<W> + Lines<W>, W: Lane>() -> Folds<W> {
    Folds {
        range_mask: block_range_mask::<L, W>,
        sum: block_sum::<L, W>,
        min_max: block_min_max::<L, W>,
    }
}

/// Runs a kernel of `rows` compiled for `width`, or the one for any width.
macro_rules! run {
    ($kernel:ident, $width:ident, $arguments:tt) => {
        match W::BITS * L::WRITTEN_OUT as u32 {
            8 => run!($kernel, $width, $arguments, 1 2 3 4 5 6 7 8),
            16 => run!($kernel, $width, $arguments, 9 10 11 12 13 14 15 16),
            _ => run!($kernel, $width, $arguments,),
        }
    };
    ($kernel:ident, $width:ident, $arguments:tt, $($fixed:literal)*) => {
        match $width {
            $(
                // SAFETY: the caller of `table` promised the features of `L`, and `checked` or
                // `zeros` gave the block.
                $fixed => unsafe {
                    L::run(#[inline(always)] || rows::$kernel::<L, W, $fixed> $arguments)
                },
            )*
            // SAFETY: as above.
            _ => unsafe { L::run(#[inline(always)] || rows::$kernel::<L, W, 0> $arguments) },
        }
    };
}

/// `packed` and `width` after a check; a block of width 0 reads as zeros of width 1.
#[inline(always)]
fn checked<W: Lane>(packed: &[W], width: u32) -> (&[W], u32) {
    static ZEROS: [u64; super::ROW_BYTES / 8] = [0; super::ROW_BYTES / 8];
    assert_packed(packed, width);
    if width > 0 {
        return (packed, width);
    }
    // SAFETY: a row of any lane type is as long as `ZEROS`, and zeros are lanes of any type.
    let zeros = unsafe { std::slice::from_raw_parts(ZEROS.as_ptr().cast(), row_lanes::<W>()) };
    (zeros, 1)
}

fn pack<L: Lines<W>, W: Lane>(values: &[W], width: u32, out: &mut [W]) {
    assert_block(values.len(), None);
    assert_packed(out, width);
    if width == 0 {
        return;
    }
    let mut block = [W::default(); BLOCK_LANES];
    let values = values.first_chunk().unwrap_or_else(|| {
        block[..values.len()].copy_from_slice(values);
        &block
    });
    let out = out[..packed_lanes::<W>(width)].as_mut_ptr();
    // SAFETY: the caller of `table` promised the features of `L`; `out` was checked.
    unsafe {
        L::run(
            #[inline(always)]
            || rows::pack::<L, W>(values, width, out),
        )
    }
}

fn unpack<L: Lines<W>, W: Lane>(packed: &[W], width: u32, out: &mut [W; BLOCK_LANES]) {
    let (packed, width) = checked(packed, width);
    unpack_to::<L, W>(packed, width, out.as_mut_ptr());
}

/// Unpacks to `out`, which has room for a block, what [`checked`] gave.
fn unpack_to<L: Lines<W>, W: Lane>(packed: &[W], width: u32, out: *mut W) {
    run!(unpack, width, (packed, width, out));
}

/// Runs `body` on every lane of a block, unpacked in cache.
fn unpacked<L: Lines<W>, W: Lane, R>(
    packed: &[W],
    width: u32,
    body: impl FnOnce(&[W; BLOCK_LANES]) -> R,
) -> R {
    let (packed, width) = checked(packed, width);
    let mut block = MaybeUninit::<[W; BLOCK_LANES]>::uninit();
    unpack_to::<L, W>(packed, width, block.as_mut_ptr().cast());
    // SAFETY: `unpack_to` wrote every lane; the caller of `table` promised the features of `L`.
    unsafe {
        let block = block.assume_init_ref();
        L::run(
            #[inline(always)]
            || body(block),
        )
    }
}

fn unpack_keys<L: Lines<W>, W: Lane>(
    packed: &[W],
    width: u32,
    base: u64,
    out: &mut [u64; BLOCK_LANES],
) {
    unpacked::<L, W, _>(
        packed,
        width,
        #[inline(always)]
        |block| {
            for (slot, &value) in out.iter_mut().zip(block) {
                *slot = base.wrapping_add(value.into());
            }
        },
    );
}

fn squares<L: Moments<W> + Lines<W>, W: Lane>(
    packed: &[W],
    width: u32,
    mask: Option<&BlockMask>,
) -> u128 {
    let mask = mask.map(|mask| &mask[..]);
    unpacked::<L, W, _>(
        packed,
        width,
        #[inline(always)]
        // SAFETY: the caller of `table` promised the features of `L`.
        |block| unsafe { moment::moments::<L, W>(block, mask, &mut [0; GROUPS]) },
    )
}

fn range_mask<L: FoldLines<W>, W: Lane>(
    packed: &[W],
    width: u32,
    low: W,
    span: W,
    out: &mut BlockMask,
) {
    let (packed, width) = checked(packed, width);
    run!(range_mask, width, (packed, width, low, span, out))
}

fn sum<L: FoldLines<W>, W: Lane>(packed: &[W], width: u32, mask: Option<&BlockMask>) -> u128 {
    let (packed, width) = checked(packed, width);
    run!(sum, width, (packed, width, mask))
}

fn min_max<L: FoldLines<W>, W: Lane>(packed: &[W], width: u32, mask: Option<&BlockMask>) -> (W, W) {
    let (packed, width) = checked(packed, width);
    run!(min_max, width, (packed, width, mask))
}

fn block_range_mask<L: Steps<W> + Lines<W>, W: Lane>(
    packed: &[W],
    width: u32,
    low: W,
    span: W,
    out: &mut BlockMask,
) {
    unpacked::<L, W, _>(
        packed,
        width,
        #[inline(always)]
        // SAFETY: the caller of `table` promised the features of `L`.
        |block| unsafe { block::range_mask_flat::<L, W>(block, low, span, out) },
    );
}

fn block_sum<L: Moments<W> + Lines<W>, W: Lane>(
    packed: &[W],
    width: u32,
    mask: Option<&BlockMask>,
) -> u128 {
    let mut groups = [0; GROUPS];
    let mask = mask.map(|mask| &mask[..]);
    unpacked::<L, W, _>(
        packed,
        width,
        #[inline(always)]
        // SAFETY: the caller of `table` promised the features of `L`.
        |block| unsafe { moment::sum::<L, W>(block, mask, &mut groups) },
    );
    groups.iter().sum()
}

fn block_min_max<L: Steps<W> + Lines<W>, W: Lane>(
    packed: &[W],
    width: u32,
    mask: Option<&BlockMask>,
) -> (W, W) {
    let (mut min, mut max) = ([W::MAX; GROUPS], [W::default(); GROUPS]);
    let mask = mask.map(|mask| &mask[..]);
    unpacked::<L, W, _>(
        packed,
        width,
        #[inline(always)]
        // SAFETY: the caller of `table` promised the features of `L`.
        |block| unsafe {
            block::min_max::<L, W>(block, W::default(), mask, &mut min, &mut max);
        },
    );
    (
        min.into_iter().fold(W::MAX, W::min),
        max.into_iter().fold(W::default(), W::max),
    )
}
