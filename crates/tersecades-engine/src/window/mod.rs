//! Windows over event time, and the panes that overlapping windows share.
//!
//! A window is `[start, end)` in ticks of the event time. Panes are the longest stretches that no
//! window boundary cuts: their length is the greatest common divisor of size and slide, so a row
//! is aggregated once, whatever the overlap.

pub mod hop;
pub mod tumble;

use std::time::Duration;

use tersecades_columnar::error::{Error, Result};

pub use hop::hop;
pub use tumble::tumble;

/// A kind of window users can ask for.
#[derive(Debug)]
pub struct WindowKind {
    /// The name in plans and docs.
    pub name: &'static str,
    /// Its arguments, as written.
    pub arguments: &'static str,
    /// One line of explanation.
    pub summary: &'static str,
}

/// Every kind of window.
pub const WINDOWS: &[&WindowKind] = &[&tumble::KIND, &hop::KIND];

/// A window as asked for: any size, slide and offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Which kind it is, for plans.
    pub kind: &'static str,
    /// Length of each window.
    pub size: Duration,
    /// Distance between starts of neighbouring windows.
    pub slide: Duration,
    /// Shift of all windows from the epoch.
    pub offset: Duration,
}

impl Window {
    /// The same windows shifted by `offset` from the epoch.
    pub fn offset(mut self, offset: Duration) -> Self {
        self.offset = offset;
        self
    }

    /// The window in ticks of `tick` nanoseconds.
    ///
    /// # Errors
    /// `InvalidArgument` when size or slide is zero or no whole number of ticks.
    pub fn in_ticks(&self, tick_ns: i64) -> Result<WindowTicks> {
        let ticks = |what: &str, duration: Duration| {
            let nanos = duration.as_nanos();
            let tick = u128::from(tick_ns.unsigned_abs());
            if !nanos.is_multiple_of(tick) {
                return Err(Error::invalid(format!(
                    "window {what} {duration:?} is no whole number of ticks of the event time"
                ))
                .hint("use a multiple of the time column's unit"));
            }
            i64::try_from(nanos / tick)
                .map_err(|_| Error::invalid(format!("window {what} {duration:?} is too long")))
        };
        let (size, slide) = (ticks("size", self.size)?, ticks("slide", self.slide)?);
        if size == 0 || slide == 0 {
            return Err(Error::invalid(
                "window size and slide must be longer than zero",
            ));
        }
        let offset = ticks("offset", self.offset)? % slide;
        Ok(WindowTicks {
            size,
            slide,
            offset,
            pane: gcd(size, slide),
        })
    }
}

/// A window in ticks, and the arithmetic of its panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowTicks {
    /// Length.
    pub size: i64,
    /// Distance between starts.
    pub slide: i64,
    /// Shift from the epoch, `0..slide`.
    pub offset: i64,
    /// Length of a pane.
    pub pane: i64,
}

impl WindowTicks {
    /// Start of the pane that holds `time`; exact for negative times too.
    pub fn pane_start(&self, time: i64) -> i64 {
        floor(time, self.pane, self.offset)
    }

    /// Start of the last window that begins at or before `time`.
    pub fn last_start(&self, time: i64) -> i64 {
        floor(time, self.slide, self.offset)
    }

    /// Start of the first window that ends after `time`.
    pub fn first_start(&self, time: i64) -> i64 {
        let in_range = || {
            let ended = time.checked_sub(self.size)?;
            floor(ended, self.slide, self.offset).checked_add(self.slide)
        };
        in_range().unwrap_or_else(|| {
            let (slide, offset) = (i128::from(self.slide), i128::from(self.offset));
            let shifted = i128::from(time) - offset - i128::from(self.size);
            clamp((shifted.div_euclid(slide) + 1) * slide + offset)
        })
    }

    /// Whether some window holds `time`; only false when windows leave gaps (slide above size).
    pub fn covers(&self, time: i64) -> bool {
        time.saturating_sub(self.last_start(time)) < self.size
    }
}

/// The largest multiple of `step`, shifted by `offset`, that is not above `time`.
fn floor(time: i64, step: i64, offset: i64) -> i64 {
    let in_range = || {
        let shifted = time.checked_sub(offset)?;
        shifted
            .checked_sub(shifted.rem_euclid(step))?
            .checked_add(offset)
    };
    in_range().unwrap_or_else(|| {
        let (time, step, offset) = (i128::from(time), i128::from(step), i128::from(offset));
        clamp((time - offset).div_euclid(step) * step + offset)
    })
}

fn clamp(time: i128) -> i64 {
    time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pane_arithmetic_equals_a_search_over_all_windows() {
        for (size, slide, offset) in [(60, 10, 0), (10, 10, 3), (7, 3, 2), (5, 20, 1), (10, 4, 0)] {
            let ticks = WindowTicks {
                size,
                slide,
                offset,
                pane: gcd(size, slide),
            };
            for time in -130..130i64 {
                let starts: Vec<i64> = (-100..100)
                    .map(|k| k * slide + offset)
                    .filter(|start| (*start..start + size).contains(&time))
                    .collect();
                assert_eq!(ticks.covers(time), !starts.is_empty());
                if let (Some(first), Some(last)) = (starts.first(), starts.last()) {
                    assert_eq!(
                        (ticks.first_start(time), ticks.last_start(time)),
                        (*first, *last)
                    );
                }
                let pane = ticks.pane_start(time);
                assert!(pane <= time && time < pane + ticks.pane);
                for edge in starts.iter().flat_map(|start| [*start, start + size]) {
                    assert!(edge <= pane || edge >= pane + ticks.pane);
                }
            }
        }
    }

    #[test]
    fn sizes_must_be_whole_ticks() {
        let millisecond = 1_000_000;
        assert!(
            tumble(Duration::from_micros(1500))
                .in_ticks(millisecond)
                .is_err()
        );
        assert!(tumble(Duration::ZERO).in_ticks(millisecond).is_err());
        assert_eq!(
            tumble(Duration::from_secs(2))
                .in_ticks(millisecond)
                .unwrap()
                .size,
            2_000
        );
    }
}
