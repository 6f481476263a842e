//! `hop`: windows that overlap, or leave gaps.

use std::time::Duration;

use tersecades_columnar::error::Result;

use super::{Boundaries, Overlap, Shape, Span, Ticks, Window, WindowKind, check_overlap, floor};

/// What users see of the kind.
pub const KIND: WindowKind = WindowKind {
    name: "hop",
    arguments: "size, slide [, offset]",
    summary: "windows of one size, one starting every slide: a row is in size / slide of them",
};

/// Windows of `size`, one starting every `slide`, aligned to the epoch.
pub fn hop(size: Duration, slide: Duration) -> Window {
    Shape::Hop { size, slide }.into()
}

/// Hopping windows in ticks; panes are as long as the greatest common divisor of size and slide.
#[derive(Debug, Clone, Copy)]
pub struct Hops {
    size: i64,
    slide: i64,
    offset: i64,
    pane: i64,
}

impl Hops {
    /// The windows `[k * slide + offset, k * slide + offset + size)`.
    ///
    /// # Errors
    /// `InvalidArgument` for lengths of zero or of no whole number of ticks, `LimitExceeded` where
    /// a row would be in too many.
    pub fn bind(size: Duration, slide: Duration, offset: Duration, ticks: Ticks) -> Result<Self> {
        let (size, slide) = (ticks.length("size", size)?, ticks.length("slide", slide)?);
        check_overlap("hop", (size, slide), "slide")?;
        Ok(Hops {
            size,
            slide,
            offset: ticks.of("offset", offset)? % slide,
            pane: gcd(size, slide),
        })
    }
}

impl Boundaries for Hops {
    fn pane(&self, time: i64) -> Span {
        let start = floor(time, self.pane, self.offset);
        Span {
            start,
            end: start + i128::from(self.pane),
        }
    }

    fn ending_after(&self, time: i64) -> Span {
        let (size, slide) = (i128::from(self.size), i128::from(self.slide));
        let start = match time.checked_sub(self.size) {
            Some(ended) => floor(ended, self.slide, self.offset) + slide,
            None => {
                let (time, offset) = (i128::from(time), i128::from(self.offset));
                ((time - size - offset).div_euclid(slide) + 1) * slide + offset
            }
        };
        Span {
            start,
            end: start + size,
        }
    }

    fn last_end(&self, time: i64) -> i128 {
        self.ending_after(time).end - i128::from(self.slide)
    }

    fn leaves_gaps(&self) -> bool {
        self.slide > self.size
    }

    fn grid(&self) -> Option<(i64, i64)> {
        Some((self.pane, self.offset))
    }

    fn overlap(&self) -> Overlap {
        match self.slide < self.size {
            true => Overlap::Hopping,
            false => Overlap::None,
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::super::span::tests::agree;
    use super::*;

    #[test]
    fn boundaries_equal_a_search_over_all_windows() {
        for (size, slide, offset) in [(60, 10, 0), (10, 10, 3), (7, 3, 2), (5, 20, 1), (10, 4, 0)] {
            let seconds = Duration::from_secs;
            let ticks = Ticks {
                tick_ns: 1_000_000_000,
            };
            let hops = Hops::bind(seconds(size), seconds(slide), seconds(offset), ticks).unwrap();
            let starts = (-200..200i128).map(|k| k * i128::from(slide) + i128::from(offset));
            let windows: Vec<Span> = starts
                .map(|start| Span {
                    start,
                    end: start + i128::from(size),
                })
                .collect();
            agree(&hops, &windows, -130..130);
        }
    }

    #[test]
    fn the_ends_of_time_are_in_windows() {
        let ticks = Ticks { tick_ns: 1 };
        let (size, slide) = (Duration::from_nanos(60), Duration::from_nanos(7));
        let hops = Hops::bind(size, slide, Duration::ZERO, ticks).unwrap();
        for time in [i64::MIN, i64::MAX] {
            assert!(hops.pane(time).holds(time));
            assert!(hops.ending_after(time).holds(time));
        }
    }
}
