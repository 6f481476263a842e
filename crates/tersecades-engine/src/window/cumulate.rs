//! `cumulate`: windows that share a start and grow, step by step, to their full size.

use std::time::Duration;

use tersecades_columnar::error::{Error, Result};

use super::{Boundaries, Overlap, Shape, Span, Ticks, Window, WindowKind, check_overlap, floor};

/// What users see of the kind.
pub const KIND: WindowKind = WindowKind {
    name: "cumulate",
    arguments: "size, step [, offset]",
    summary: "windows that start every size and grow by a step: running totals",
};

/// Windows that start every `size` and end a step, two steps, ... up to `size` later.
pub fn cumulate(size: Duration, step: Duration) -> Window {
    Shape::Cumulate { size, step }.into()
}

/// Cumulating windows in ticks; a pane is a step.
#[derive(Debug, Clone, Copy)]
pub struct Cumulating {
    size: i64,
    step: i64,
    offset: i64,
}

impl Cumulating {
    /// The windows `[k * size + offset, k * size + offset + i * step)`, `i * step` up to `size`.
    ///
    /// # Errors
    /// `InvalidArgument` for lengths of zero or of no whole number of ticks, and for steps that do
    /// not divide the size; `LimitExceeded` where a row would be in too many.
    pub fn bind(size: Duration, step: Duration, offset: Duration, ticks: Ticks) -> Result<Self> {
        let length = ticks.length("size", size)?;
        let short = ticks.length("step", step)?;
        if length % short != 0 {
            return Err(Error::invalid(format!(
                "a window of {size:?} does not grow by whole steps of {step:?}"
            ))
            .hint("make the size a multiple of the step"));
        }
        check_overlap("cumulate", (length, short), "step")?;
        Ok(Cumulating {
            size: length,
            step: short,
            offset: ticks.of("offset", offset)? % length,
        })
    }
}

impl Boundaries for Cumulating {
    fn pane(&self, time: i64) -> Span {
        let start = floor(time, self.step, self.offset);
        Span {
            start,
            end: start + i128::from(self.step),
        }
    }

    fn ending_after(&self, time: i64) -> Span {
        Span {
            start: floor(time, self.size, self.offset),
            end: self.pane(time).end,
        }
    }

    fn last_end(&self, time: i64) -> i128 {
        self.pane(time).start
    }

    fn grid(&self) -> Option<(i64, i64)> {
        Some((self.step, self.offset))
    }

    fn overlap(&self) -> Overlap {
        match self.step < self.size {
            true => Overlap::Growing,
            false => Overlap::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::span::tests::agree;
    use super::*;

    #[test]
    fn boundaries_equal_a_search_over_all_windows() {
        let seconds = Duration::from_secs;
        let ticks = Ticks {
            tick_ns: 1_000_000_000,
        };
        for (size, step, offset) in [(60, 10, 0), (10, 10, 3), (12, 3, 17), (7, 1, 2)] {
            let bound = Cumulating::bind(seconds(size), seconds(step), seconds(offset), ticks);
            let (size, step, offset) = (i128::from(size), i128::from(step), i128::from(offset));
            let starts = (-200..200i128).map(|k| k * size + offset);
            let windows: Vec<Span> = starts
                .flat_map(|start| {
                    let ends = (1..=size / step).map(move |i| start + i * step);
                    ends.map(move |end| Span { start, end })
                })
                .collect();
            agree(&bound.unwrap(), &windows, -130..130);
        }
        let uneven = Cumulating::bind(seconds(10), seconds(3), Duration::ZERO, ticks);
        assert!(uneven.unwrap_err().to_string().contains("whole steps"));
    }
}
