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
pub(in crate::kernels) trait Lines<W: Lane>: Level {
    /// [`LINE_BYTES`] of lanes.
    type Line: Copy;

    /// Whether the rows of narrow widths are worth writing out.
    const WRITTEN_OUT: bool;
    /// Folded line by line where lines stay in registers.
    const FOLDS: Folds<W>;

    /// `value` in every lane.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn splat(value: W) -> Self::Line;

    /// The line from `from` on.
    ///
    /// # Safety
    /// 1. The processor has every feature of the level.
    /// 2. `from` is valid for reads of a line.
    unsafe fn load(from: *const W) -> Self::Line;

    /// Writes the line from `to` on.
    ///
    /// # Safety
    /// 1. The processor has every feature of the level.
    /// 2. `to` is valid for writes of a line.
    unsafe fn store(line: Self::Line, to: *mut W);

    /// `lane >> count`; `count` is below `W::BITS`.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn shift_right(line: Self::Line, count: u32) -> Self::Line;

    /// `lane << count`; `count` is below `W::BITS`.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn shift_left(line: Self::Line, count: u32) -> Self::Line;

    /// `a & b`.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn and(a: Self::Line, b: Self::Line) -> Self::Line;

    /// `a | b`.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn or(a: Self::Line, b: Self::Line) -> Self::Line;

    /// Each value plus all before it and `start`, wrapping.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn prefix_sum(values: &mut [W], start: W) {
        values.iter_mut().fold(start, |sum, value| {
            *value = value.wrapping_add(sum);
            *value
        });
    }
}

/// What folding does to a line that is in registers.
pub(in crate::kernels) trait FoldLines<W: Lane>: Lines<W> {
    /// Running sums of lines, wide enough for a block.
    type Sums: Copy;

    /// The smaller of two lanes.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn min(a: Self::Line, b: Self::Line) -> Self::Line;

    /// The larger of two lanes.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn max(a: Self::Line, b: Self::Line) -> Self::Line;

    /// Bit `i` is `lane[i] - low <= span`, wrapping; bits after the last lane are 0.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn inside(line: Self::Line, low: Self::Line, span: Self::Line) -> u64;

    /// The lane where its bit of `keep` is set, else the lane of `other`.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn keep(line: Self::Line, keep: u64, other: Self::Line) -> Self::Line;

    /// Sums of nothing.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn no_sums() -> Self::Sums;

    /// `sums` and the lanes of `line`.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn add(sums: Self::Sums, line: Self::Line) -> Self::Sums;

    /// What the sums of one block come to.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    unsafe fn total(sums: Self::Sums) -> u128;
}
