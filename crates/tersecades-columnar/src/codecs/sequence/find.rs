//! Cutting a column into segments, in one pass and without looking ahead.

use std::ops::Range;

use crate::input::Input;
use crate::stats::Stats;

use super::segment::Segment;

/// The segment that rows are being added to.
struct Open {
    /// Its first row and key.
    start: usize,
    first: u64,
    /// What the second value made of it.
    step: Option<i64>,
    /// The key that the next row should have, once there is a step.
    next: u64,
    /// The row at which keys would leave the range of the column.
    limit: usize,
}

impl Open {
    fn new(start: usize, first: u64) -> Self {
        Open {
            start,
            first,
            step: None,
            next: first,
            limit: usize::MAX,
        }
    }

    /// Whether `row`, with this key if it is not null, belongs here.
    #[inline]
    fn takes(&mut self, row: usize, key: Option<u64>, bounds: &Bounds) -> bool {
        match (self.step, key) {
            (Some(step), key) => {
                let fits = row < self.limit && key.is_none_or(|key| key == self.next);
                self.next = self.next.wrapping_add_signed(if fits { step } else { 0 });
                fits
            }
            (None, None) => true,
            (None, Some(key)) => {
                self.step = self.set_step(row, key, bounds);
                self.step.is_some()
            }
        }
    }

    /// The step that leads from the first row to `key` at `row`, if a lane holds it.
    fn set_step(&mut self, row: usize, key: u64, bounds: &Bounds) -> Option<i64> {
        let (gap, distance) = ((row - self.start) as u64, key.abs_diff(self.first));
        let rises = key >= self.first;
        let most = bounds.step_max + u64::from(!rises);
        if !distance.is_multiple_of(gap) || distance / gap > most {
            return None;
        }
        let size = distance / gap;
        let room = match rises {
            true => bounds.stats.max - self.first,
            false => self.first - bounds.stats.min,
        };
        let rows = room.checked_div(size).map(|rows| rows as usize);
        self.limit = rows.map_or(usize::MAX, |rows| {
            self.start.saturating_add(rows).saturating_add(1)
        });
        let step = if rises {
            size as i64
        } else {
            (size as i64).wrapping_neg()
        };
        self.next = key.wrapping_add_signed(step);
        Some(step)
    }

    /// The segment, ending before `end`.
    fn close(&self, end: usize) -> Segment {
        Segment {
            first: self.first,
            step: self.step.unwrap_or(0),
            rows: self.start..end,
        }
    }

    /// The key of the last row it took.
    fn last(&self) -> u64 {
        self.step.map_or(self.first, |step| {
            self.next.wrapping_add_signed(step.wrapping_neg())
        })
    }
}

/// What keys and steps may be.
struct Bounds {
    stats: Stats,
    step_max: u64,
}

/// Calls `visit` with the segments of `rows`, whose keys are within `stats`.
///
/// # Cost
/// One comparison a row, two divisions a segment.
pub(super) fn for_each_segment(
    input: &Input<'_>,
    rows: Range<usize>,
    stats: Stats,
    mut visit: impl FnMut(Segment),
) {
    let bounds = Bounds {
        stats,
        step_max: u64::MAX >> (65 - 8 * input.physical.lane_bytes()),
    };
    let Some(valid) = rows.clone().find(|row| input.is_valid(*row)) else {
        if !rows.is_empty() {
            visit(Open::new(rows.start, 0).close(rows.end));
        }
        return;
    };
    let mut open = Open::new(rows.start, input.key(valid));
    for row in rows.start + 1..rows.end {
        let key = input.is_valid(row).then(|| input.key(row));
        if !open.takes(row, key, &bounds) {
            visit(open.close(row));
            open = Open::new(row, key.unwrap_or(open.last()));
        }
    }
    visit(open.close(rows.end));
}
