//! Writing blocks of narrow deltas.

use crate::aligned::CACHE_LINE_BYTES;
use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS};
use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::kernels::{Lane, Narrow, kernels, prefetch};
use crate::lane::KeyLane;

/// Rows of a block that one kernel call takes.
const PART_ROWS: usize = 256;
const PART_GROUPS: usize = PART_ROWS / GROUP_ROWS;

/// A position in the deltas as it is stored.
///
/// # Errors
/// `LimitExceeded` past 256 GiB.
#[inline]
pub(crate) fn line_number(lines: usize) -> Result<u32> {
    u32::try_from(lines).map_err(|_| Error::limit("the deltas of a chunk take at most 256 GiB"))
}

/// Section `index` of a chunk that is being written.
#[inline]
pub(crate) fn section_mut<T: bytemuck::Pod>(out: &mut Chunk, index: usize) -> &mut [T] {
    let (start, length) = out.body.sections[index];
    bytemuck::cast_slice_mut(&mut out.body.bytes.bytes_mut()[start..start + length])
}

/// Asks for the cache lines of one eighth of the block that `next` starts with.
#[inline]
pub(crate) fn prefetch_eighth<T>(next: &[T], eighth: usize) {
    let start = eighth * GROUP_ROWS;
    for index in (start..start + GROUP_ROWS).step_by(CACHE_LINE_BYTES / size_of::<T>()) {
        prefetch(next, index);
    }
}

/// Copies a block of lanes with the smallest key of its group in the holes of nulls.
pub(crate) fn fill_holes<'a, T: KeyLane>(
    values: &[T],
    flip: T,
    min: &[T; GROUPS],
    valid: &[u64],
    filled: &'a mut [T; BLOCK_ROWS],
) -> &'a [T] {
    let filled = &mut filled[..values.len()];
    filled.copy_from_slice(values);
    for (index, word) in valid.iter().enumerate() {
        let rows = values
            .len()
            .saturating_sub(index * WORD_ROWS)
            .min(WORD_ROWS);
        let mut holes = !word & (u64::MAX >> (WORD_ROWS - rows.max(1)));
        while holes != 0 {
            let row = index * WORD_ROWS + holes.trailing_zeros() as usize;
            filled[row] = min[row / GROUP_ROWS] ^ flip;
            holes &= holes - 1;
        }
    }
    filled
}

/// Narrows a block of lanes into `deltas` of `width` bytes, which is never above the lane's.
///
/// `between` is called with 0, 1, … before each quarter of the block, to ask for what is needed
/// next while memory is idle.
#[inline]
pub(crate) fn narrow<T: KeyLane>(
    values: &[T],
    flip: T,
    bases: &[T; GROUPS],
    width: usize,
    deltas: &mut [u8],
    between: impl Fn(usize),
) {
    match (width, size_of::<T>()) {
        (0, _) => {}
        (1, 1) => lanes::<u8, u8>(values, flip, bases, deltas, between),
        (1, 2) => lanes::<u16, u8>(values, flip, bases, deltas, between),
        (2, 2) => lanes::<u16, u16>(values, flip, bases, deltas, between),
        (1, 4) => lanes::<u32, u8>(values, flip, bases, deltas, between),
        (2, 4) => lanes::<u32, u16>(values, flip, bases, deltas, between),
        (4, 4) => lanes::<u32, u32>(values, flip, bases, deltas, between),
        (1, _) => lanes::<u64, u8>(values, flip, bases, deltas, between),
        (2, _) => lanes::<u64, u16>(values, flip, bases, deltas, between),
        (4, _) => lanes::<u64, u32>(values, flip, bases, deltas, between),
        _ => lanes::<u64, u64>(values, flip, bases, deltas, between),
    }
}

/// The lanes are `V`: the cast only tells the compiler.
#[inline]
fn lanes<V: KeyLane + Narrow<D>, D: Lane + bytemuck::Pod>(
    values: &[impl KeyLane],
    flip: impl KeyLane,
    bases: &[impl KeyLane; GROUPS],
    deltas: &mut [u8],
    between: impl Fn(usize),
) {
    let narrow = V::pair(kernels()).narrow;
    let flip = V::cut(flip.key());
    let values: &[V] = bytemuck::cast_slice(values);
    let deltas: &mut [D] = bytemuck::cast_slice_mut(deltas);
    let parts = values.chunks(PART_ROWS).zip(deltas.chunks_mut(PART_ROWS));
    for (part, (values, deltas)) in parts.enumerate() {
        between(part);
        let mut part_bases = [V::cut(0); GROUPS];
        let groups = &bases[part * PART_GROUPS..(part + 1) * PART_GROUPS];
        for (to, base) in part_bases.iter_mut().zip(groups) {
            *to = V::cut(base.key());
        }
        narrow(values, flip, &part_bases, deltas);
    }
}
