//! The steps over packed blocks that an instruction set adds.

use super::Lane;
use crate::kernels::level::Level;

/// Bytes of a line: one register of AVX-512, two of AVX2, and two lines make a row.
pub(in crate::kernels) const LINE_BYTES: usize = 64;

/// A line of lanes in registers, and what is done to it.
///
/// # Safety
/// Of every function: the processor has every feature of the level.
pub(in crate::kernels) trait Lines<W: Lane>: Level {
    /// [`LINE_BYTES`] of lanes.
    type Line: Copy;
    /// Running sums of lines, wide enough for a block.
    type Sums: Copy;

    /// `W::BITS` where the rows of its own widths are worth writing out, else 0.
    const WRITTEN_OUT: u32;

    /// `value` in every lane.
    unsafe fn splat(value: W) -> Self::Line;

    /// # Safety
    /// Also, `from` is valid for reads of a line.
    unsafe fn load(from: *const W) -> Self::Line;

    /// # Safety
    /// Also, `to` is valid for writes of a line.
    unsafe fn store(line: Self::Line, to: *mut W);

    /// `lane >> count`; `count` is below `W::BITS`.
    unsafe fn shift_right(line: Self::Line, count: u32) -> Self::Line;

    /// `lane << count`; `count` is below `W::BITS`.
    unsafe fn shift_left(line: Self::Line, count: u32) -> Self::Line;

    /// `a & b`.
    unsafe fn and(a: Self::Line, b: Self::Line) -> Self::Line;

    /// `a | b`.
    unsafe fn or(a: Self::Line, b: Self::Line) -> Self::Line;

    /// The smaller of two lanes.
    unsafe fn min(a: Self::Line, b: Self::Line) -> Self::Line;

    /// The larger of two lanes.
    unsafe fn max(a: Self::Line, b: Self::Line) -> Self::Line;

    /// Bit `i` is `lane[i] - low <= span`, wrapping; bits after the last lane are 0.
    unsafe fn inside(line: Self::Line, low: Self::Line, span: Self::Line) -> u64;

    /// The lane where its bit of `keep` is set, else the lane of `other`.
    unsafe fn keep(line: Self::Line, keep: u64, other: Self::Line) -> Self::Line;

    /// Sums of nothing.
    unsafe fn no_sums() -> Self::Sums;

    /// `sums` and the lanes of `line`.
    unsafe fn add(sums: Self::Sums, line: Self::Line) -> Self::Sums;

    /// What the sums of one block come to.
    unsafe fn total(sums: Self::Sums) -> u128;

    /// Each value plus all before it and `start`, wrapping.
    #[inline(always)]
    unsafe fn prefix_sum(values: &mut [W], start: W) {
        values.iter_mut().fold(start, |sum, value| {
            *value = value.wrapping_add(sum);
            *value
        });
    }
}
