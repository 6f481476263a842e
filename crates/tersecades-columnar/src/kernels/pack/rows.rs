//! The loops over the rows of a packed block that all levels but `scalar` share.
//!
//! Everything here is inlined into a level's `run`. `FIXED` is the width where it is known at
//! compile time, so that rows, at most 16 then, are written
//! out with constant shifts, and 0 where it is not.

use super::{
    BLOCK_LANES, BlockMask, FoldLines, LINE_BYTES, Lane, Lines, ROW_BYTES, WORD_LANES, ones,
    packed_lanes, row_lanes,
};

/// Lanes of a line.
const fn line_lanes<W: Lane>() -> usize {
    LINE_BYTES / size_of::<W>()
}

/// Row `row` of the columns from `words` on.
///
/// # Safety
/// 1. The processor has every feature of `L`.
/// 2. `words` is the start of a line of columns of a block packed at `width`, which is not 0.
#[inline(always)]
unsafe fn row<L: Lines<W>, W: Lane>(
    words: *const W,
    width: u32,
    row: u32,
    ones: L::Line,
) -> L::Line {
    let (word, shift) = (row * width / W::BITS, row * width % W::BITS);
    // SAFETY: the caller promised the features of `L`. `row` is below `W::BITS`, so `word` is
    // below `width`, and where bits are left for a next word there is one.
    unsafe {
        let from = words.add(word as usize * row_lanes::<W>());
        let mut line = L::shift_right(L::load(from), shift);
        if shift + width > W::BITS {
            let next = L::load(from.add(row_lanes::<W>()));
            line = L::or(line, L::shift_left(next, W::BITS - shift));
        }
        if width == W::BITS {
            line
        } else {
            L::and(line, ones)
        }
    }
}

macro_rules! fixed_rows {
    ($row:ident => $body:expr; $($number:literal)*) => {
        $(if $number < W::BITS {
            let $row: u32 = $number;
            $body;
        })*
    };
}

/// Calls `step(first_lane, line)` for each line of the block.
///
/// # Safety
/// 1. The processor has every feature of `L`.
/// 2. `width` is from 1 to `W::BITS` and `packed` holds a block of that width.
#[inline(always)]
unsafe fn each_line<L: Lines<W>, W: Lane, const FIXED: u32>(
    packed: &[W],
    width: u32,
    mut step: impl FnMut(usize, L::Line),
) {
    let width = if FIXED == 0 { width } else { FIXED };
    debug_assert!(packed.len() >= packed_lanes::<W>(width));
    for column in (0..row_lanes::<W>()).step_by(line_lanes::<W>()) {
        // SAFETY: the caller promised the features of `L`; a row has two lines, so every line of
        // columns of the block starts inside it.
        unsafe {
            let words = packed.as_ptr().add(column);
            let ones = L::splat(ones(width));
            if FIXED == 0 {
                for number in 0..W::BITS {
                    let line = row::<L, W>(words, width, number, ones);
                    step(number as usize * row_lanes::<W>() + column, line);
                }
            } else {
                fixed_rows!(number => {
                    let line = row::<L, W>(words, width, number, ones);
                    step(number as usize * row_lanes::<W>() + column, line)
                }; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            }
        }
    }
}

/// # Safety
/// As for [`each_line`].
#[inline(always)]
pub(super) unsafe fn unpack<L: Lines<W>, W: Lane, const FIXED: u32>(
    packed: &[W],
    width: u32,
    out: *mut W,
) {
    // SAFETY: the caller promised what `each_line` asks for and a block of room in `out`.
    unsafe {
        each_line::<L, W, FIXED>(
            packed,
            width,
            #[inline(always)]
            |lane, line| L::store(line, out.add(lane)),
        );
    }
}

/// # Safety
/// As for [`each_line`].
#[inline(always)]
pub(super) unsafe fn range_mask<L: FoldLines<W>, W: Lane, const FIXED: u32>(
    packed: &[W],
    width: u32,
    low: W,
    span: W,
    out: &mut BlockMask,
) {
    // SAFETY: the caller promised what `each_line` asks for; `out` has a bit for every lane.
    unsafe {
        let (low, span) = (L::splat(low), L::splat(span));
        let to = out.as_mut_ptr().cast::<u8>();
        let bytes = line_lanes::<W>() / 8;
        each_line::<L, W, FIXED>(
            packed,
            width,
            #[inline(always)]
            |lane, line| {
                let bits = L::inside(line, low, span).to_le_bytes();
                // Lines are folded on little-endian processors, where bit `lane` of the bitmap
                // starts byte `lane / 8`; each line has whole bytes of its own in it.
                std::ptr::copy_nonoverlapping(bits.as_ptr(), to.add(lane / 8), bytes);
            },
        );
    }
}

/// The bits of `mask` for the line from `lane` on, with others above them.
#[inline(always)]
fn line_bits(mask: &BlockMask, lane: usize) -> u64 {
    mask[lane / WORD_LANES] >> (lane % WORD_LANES)
}

/// # Safety
/// As for [`each_line`].
#[inline(always)]
pub(super) unsafe fn sum<L: FoldLines<W>, W: Lane, const FIXED: u32>(
    packed: &[W],
    width: u32,
    mask: Option<&BlockMask>,
) -> u128 {
    // SAFETY: the caller promised what `each_line` asks for.
    unsafe {
        let mut sums = L::no_sums();
        if let Some(mask) = mask {
            let zero = L::splat(W::default());
            each_line::<L, W, FIXED>(
                packed,
                width,
                #[inline(always)]
                |lane, line| sums = L::add(sums, L::keep(line, line_bits(mask, lane), zero)),
            );
        } else {
            each_line::<L, W, FIXED>(
                packed,
                width,
                #[inline(always)]
                |_, line| sums = L::add(sums, line),
            );
        }
        L::total(sums)
    }
}

/// # Safety
/// As for [`each_line`].
#[inline(always)]
pub(super) unsafe fn min_max<L: FoldLines<W>, W: Lane, const FIXED: u32>(
    packed: &[W],
    width: u32,
    mask: Option<&BlockMask>,
) -> (W, W) {
    let (mut low, mut high) = ([W::MAX; ROW_BYTES], [W::default(); ROW_BYTES]);
    // SAFETY: the caller promised what `each_line` asks for; both arrays hold a line.
    unsafe {
        let (most, zero) = (L::splat(W::MAX), L::splat(W::default()));
        let (mut min, mut max) = (most, zero);
        if let Some(mask) = mask {
            each_line::<L, W, FIXED>(
                packed,
                width,
                #[inline(always)]
                |lane, line| {
                    let bits = line_bits(mask, lane);
                    min = L::min(min, L::keep(line, bits, most));
                    max = L::max(max, L::keep(line, bits, zero));
                },
            );
        } else {
            each_line::<L, W, FIXED>(
                packed,
                width,
                #[inline(always)]
                |_, line| {
                    min = L::min(min, line);
                    max = L::max(max, line);
                },
            );
        }
        L::store(min, low.as_mut_ptr());
        L::store(max, high.as_mut_ptr());
    }
    let (low, high) = (&low[..line_lanes::<W>()], &high[..line_lanes::<W>()]);
    (
        low.iter().copied().fold(W::MAX, W::min),
        high.iter().copied().fold(W::default(), W::max),
    )
}

/// Packs a full block; `width` is from 1 to `W::BITS`.
///
/// # Safety
/// 1. The processor has every feature of `L`.
/// 2. `out` is valid for writes of a block packed at `width`.
#[inline(always)]
pub(super) unsafe fn pack<L: Lines<W>, W: Lane>(
    values: &[W; BLOCK_LANES],
    width: u32,
    out: *mut W,
) {
    for column in (0..row_lanes::<W>()).step_by(line_lanes::<W>()) {
        // SAFETY: the caller promised the features of `L`. A word is stored when the bits of
        // all rows so far fill it, which is `width` times in `W::BITS` rows.
        unsafe {
            let ones = L::splat(ones(width));
            let (mut to, mut used) = (out.add(column), 0);
            let mut word = L::splat(W::default());
            for row in 0..W::BITS as usize {
                let from = values.as_ptr().add(row * row_lanes::<W>() + column);
                let line = L::and(L::load(from), ones);
                word = L::or(word, L::shift_left(line, used));
                used += width;
                if used >= W::BITS {
                    L::store(word, to);
                    to = to.add(row_lanes::<W>());
                    used -= W::BITS;
                    word = if used == 0 {
                        L::splat(W::default())
                    } else {
                        L::shift_right(line, width - used)
                    };
                }
            }
        }
    }
}
