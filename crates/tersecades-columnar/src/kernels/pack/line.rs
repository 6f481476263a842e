//! The steps over packed blocks that an instruction set adds.

use super::{Lane, PackedMinMax, PackedRangeMask, PackedSum};
use crate::kernels::level::Level;

/// Bytes of a line: one register of AVX-512, two of AVX2, and two lines make a row.
pub(in crate::kernels) const LINE_BYTES: usize = 64;

/// The kernels that a level may run on lines, or on an unpacked block.
pub(in crate::kernels) struct Folds<W: Lane> {
    pub(super) range_mask: PackedRangeMask<W>,
    pub(super) sum: PackedSum<W>,
    pub(super) min_max: PackedMinMax<W>,
}

/// A line of lanes, and what unpacking does to it.
///
/// # Safety
/// Of every function: the processor has every feature of the level.
pub(in crate::kernels) trait Lines<W: Lane>: Level {
    /// [`LINE_BYTES`] of lanes.
    type Line: Copy;

    /// Whether the rows of narrow widths are worth writing out.
    const WRITTEN_OUT: bool;
    /// Folded line by line where lines stay in registers.
    const FOLDS: Folds<W>;

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

    /// Each value plus all before it and `start`, wrapping.
    #[inline(always)]
    unsafe fn prefix_sum(values: &mut [W], start: W) {
        values.iter_mut().fold(start, |sum, value| {
            *value = value.wrapping_add(sum);
            *value
        });
    }
}

/// What folding does to a line that is in registers.
///
/// # Safety
/// Of every function: the processor has every feature of the level.
pub(in crate::kernels) trait FoldLines<W: Lane>: Lines<W> {
    /// Running sums of lines, wide enough for a block.
    type Sums: Copy;

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
}
