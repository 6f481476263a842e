//! Stretches of time, and what a kind of aligned windows must know of its boundaries.

use std::fmt::Debug;

/// The times `[start, end)`; wide enough for windows that reach beyond 64-bit times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first time inside.
    pub start: i128,
    /// The first time after.
    pub end: i128,
}

impl Span {
    /// The first 64-bit time inside.
    pub fn first(&self) -> i64 {
        clamp(self.start)
    }

    /// The last 64-bit time inside.
    pub fn last(&self) -> i64 {
        clamp(self.end - 1)
    }

    /// Whether `time` is inside.
    pub fn holds(&self, time: i64) -> bool {
        self.start <= i128::from(time) && i128::from(time) < self.end
    }
}

/// Which panes neighbouring windows share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// None.
    None,
    /// All but the first ones of the earlier window.
    Hopping,
    /// All of the earlier window, or none.
    Growing,
}

/// Windows whose boundaries are the same for all groups.
///
/// Windows in order of their ends are in order of their starts too, and no two end together.
pub trait Boundaries: Debug + Send + Sync {
    /// The pane that holds `time`: a stretch that no window boundary cuts.
    fn pane(&self, time: i64) -> Span;

    /// The first window that ends after `time`.
    fn ending_after(&self, time: i64) -> Span;

    /// The last window end at or before `time`.
    fn last_end(&self, time: i64) -> i128;

    /// Whether some times are in no window.
    fn leaves_gaps(&self) -> bool {
        false
    }

    /// Step and offset of the ends of panes, where they are evenly spaced.
    fn grid(&self) -> Option<(i64, i64)> {
        None
    }

    /// Which panes windows share.
    fn overlap(&self) -> Overlap {
        Overlap::None
    }
}

/// The largest multiple of `step`, shifted by `offset`, that is not above `time`.
pub fn floor(time: i64, step: i64, offset: i64) -> i128 {
    let narrow = || {
        let shifted = time.checked_sub(offset)?;
        shifted
            .checked_sub(shifted.rem_euclid(step))?
            .checked_add(offset)
    };
    // Divisions of 128 bits are slow and needed only at the ends of time.
    narrow().map_or_else(
        || {
            let (time, step, offset) = (i128::from(time), i128::from(step), i128::from(offset));
            (time - offset).div_euclid(step) * step + offset
        },
        i128::from,
    )
}

fn clamp(time: i128) -> i64 {
    time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Checks `boundaries` against `windows`, of which it lists all around `times`.
    pub(in crate::window) fn agree(
        boundaries: &dyn Boundaries,
        windows: &[Span],
        times: std::ops::Range<i64>,
    ) {
        for time in times {
            let ends = |window: &&Span| window.end > i128::from(time);
            let first = windows.iter().filter(ends).min_by_key(|window| window.end);
            assert_eq!(Some(&boundaries.ending_after(time)), first, "after {time}");
            let closed = windows.iter().map(|window| window.end);
            let last = closed.filter(|end| *end <= i128::from(time)).max();
            assert_eq!(Some(boundaries.last_end(time)), last, "before {time}");
            let pane = boundaries.pane(time);
            assert!(pane.holds(time), "{pane:?} lacks {time}");
            let mut edges = windows.iter().flat_map(|window| [window.start, window.end]);
            let cut = edges.find(|edge| pane.start < *edge && *edge < pane.end);
            assert_eq!(cut, None, "{pane:?}");
            let held = windows.iter().any(|window| window.holds(time));
            assert!(held || boundaries.leaves_gaps(), "{time} is in no window");
        }
    }

    #[test]
    fn floors_are_exact_at_the_ends_of_time() {
        for time in [i64::MIN, i64::MIN + 3, -1, 0, i64::MAX] {
            for (step, offset) in [(1, 0), (7, 3), (i64::MAX, 5), (10, i64::MAX)] {
                let floor = floor(time, step, offset);
                let (time, step) = (i128::from(time), i128::from(step));
                assert!(floor <= time && time < floor + step);
                assert_eq!((floor - i128::from(offset)).rem_euclid(step), 0);
            }
        }
    }
}
