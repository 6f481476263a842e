//! Where classes of event times begin: window boundaries, and the times that close windows.
//!
//! A row moves the watermark to its time less the lateness, so besides a boundary `b` the time
//! `b + lateness` is a cut: the rows from there on close the window that ends at `b`.

use std::sync::Arc;

use crate::window::{Boundaries, floor};

/// Evenly spaced cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grid {
    step: i64,
    offset: i64,
}

/// The boundaries of a calendar, shifted by a lateness.
#[derive(Debug, Clone)]
struct Shifted {
    windows: Arc<dyn Boundaries>,
    shift: i64,
}

impl PartialEq for Shifted {
    fn eq(&self, other: &Self) -> bool {
        // Two bindings of one window print alike.
        self.shift == other.shift && format!("{:?}", self.windows) == format!("{:?}", other.windows)
    }
}

/// A set of cuts of event times, in ticks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimeCuts {
    grids: Vec<Grid>,
    calendars: Vec<Shifted>,
}

impl TimeCuts {
    /// The cuts of windows over a stream in which rows may be so late.
    pub fn of_windows(windows: &Arc<dyn Boundaries>, lateness: i64) -> Self {
        let mut cuts = TimeCuts::default();
        for shift in [0, lateness] {
            match windows.grid() {
                Some((step, offset)) => {
                    let offset = (i128::from(offset) + i128::from(shift)).rem_euclid(step.into());
                    let offset = offset as i64;
                    cuts.add_grid(Grid { step, offset });
                }
                None => cuts.add_calendar(Shifted {
                    windows: Arc::clone(windows),
                    shift,
                }),
            }
        }
        cuts
    }

    fn add_grid(&mut self, grid: Grid) {
        if !self.holds_grid(grid) {
            self.grids.retain(|known| !known.is_in(grid));
            self.grids.push(grid);
        }
    }

    fn add_calendar(&mut self, shifted: Shifted) {
        if !self.calendars.contains(&shifted) {
            self.calendars.push(shifted);
        }
    }

    fn holds_grid(&self, grid: Grid) -> bool {
        self.grids.iter().any(|known| grid.is_in(*known))
    }

    /// Whether all times are one class.
    pub fn is_empty(&self) -> bool {
        self.grids.is_empty() && self.calendars.is_empty()
    }

    /// Adds the cuts of `other`.
    pub fn merge(&mut self, other: TimeCuts) {
        other.grids.into_iter().for_each(|grid| self.add_grid(grid));
        let calendars = other.calendars.into_iter();
        calendars.for_each(|calendar| self.add_calendar(calendar));
    }

    /// Whether every cut of `other` is one of these.
    pub fn covers(&self, other: &TimeCuts) -> bool {
        other.grids.iter().all(|grid| self.holds_grid(*grid))
            && other.calendars.iter().all(|c| self.calendars.contains(c))
    }

    /// The class of `time`: its first time and the first after it, as far as there are cuts.
    pub fn class(&self, time: i64) -> (Option<i128>, Option<i128>) {
        let (mut start, mut end) = (None, None);
        let mut narrow = |from: i128, to: i128| {
            start = start.max(Some(from));
            end = Some(end.map_or(to, |end: i128| end.min(to)));
        };
        for Grid { step, offset } in &self.grids {
            let from = floor(time, *step, *offset);
            narrow(from, from + i128::from(*step));
        }
        for Shifted { windows, shift } in &self.calendars {
            let pane = windows.pane(time.saturating_sub(*shift));
            let at = i128::from(time);
            let shift = i128::from(*shift);
            // Before the first time that a shift can reach there is no cut: the time itself is one.
            narrow((pane.start + shift).min(at), (pane.end + shift).max(at + 1));
        }
        (start, end)
    }

    /// The spacing of the cuts in ticks, for people.
    pub fn describe(&self) -> String {
        let grids = self.grids.iter().map(|grid| match grid.offset {
            0 => format!("every {} ticks", grid.step),
            offset => format!("every {} ticks from {offset}", grid.step),
        });
        let calendars = self.calendars.iter().map(|shifted| match shifted.shift {
            0 => "at calendar boundaries".to_owned(),
            shift => format!("{shift} ticks behind calendar boundaries"),
        });
        grids.chain(calendars).collect::<Vec<_>>().join(" and ")
    }
}

impl Grid {
    /// Whether every cut of this grid is one of `other`.
    fn is_in(self, other: Grid) -> bool {
        let apart = i128::from(self.offset) - i128::from(other.offset);
        self.step % other.step == 0 && apart % i128::from(other.step) == 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::window::{CalendarUnit, Window, Windowing, calendar, cumulate, hop, tumble};

    use super::*;

    fn bound(window: Window) -> Arc<dyn Boundaries> {
        match window.bind(1_000_000_000).unwrap() {
            Windowing::Aligned(boundaries) => boundaries,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn times_of_a_class_are_in_the_same_windows_and_close_the_same() {
        let seconds = Duration::from_secs;
        let windows = [
            tumble(seconds(10)),
            hop(seconds(10), seconds(4)).offset(seconds(3)),
            hop(seconds(3), seconds(20)),
            cumulate(seconds(30), seconds(6)),
            calendar(CalendarUnit::Day, "Europe/Berlin").unwrap(),
        ];
        for window in windows {
            let boundaries = bound(window);
            for lateness in [0, 2, 7, 100, i64::MAX] {
                let cuts = TimeCuts::of_windows(&boundaries, lateness);
                for time in (-200..200).chain([-90_000, 90_000, i64::MIN, i64::MAX]) {
                    let (start, end) = cuts.class(time);
                    let (start, end) = (start.unwrap(), end.unwrap());
                    assert!(start <= time.into() && i128::from(time) < end);
                    let Ok(first) = i64::try_from(start) else {
                        continue;
                    };
                    assert_eq!(boundaries.pane(first), boundaries.pane(time), "{window}");
                    assert_eq!(
                        boundaries.last_end(first.saturating_sub(lateness)),
                        boundaries.last_end(time.saturating_sub(lateness)),
                        "{window}, {lateness} late, {time}"
                    );
                }
            }
        }
    }

    #[test]
    fn coarser_windows_are_covered_and_finer_ones_are_not() {
        let cuts = |size, lateness| {
            TimeCuts::of_windows(&bound(tumble(Duration::from_secs(size))), lateness)
        };
        assert!(cuts(10, 0).covers(&cuts(60, 20)));
        assert!(!cuts(10, 0).covers(&cuts(5, 0)) && !cuts(10, 0).covers(&cuts(10, 3)));
        let mut both = cuts(60, 0);
        both.merge(cuts(10, 0));
        assert_eq!(both, cuts(10, 0));
    }
}
