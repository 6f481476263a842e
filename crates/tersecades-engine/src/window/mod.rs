//! Windows over a stream, and the panes that overlapping windows share.
//!
//! ```text
//! Window       as asked for: durations, no unit
//!   └ bind ──▶ Windowing, in ticks of the event time
//!                ├ Aligned ──▶ Boundaries: pane of a time, windows by their ends
//!                │             (tumble, hop, cumulate, calendar)
//!                └ Session, Count, Global: what their states in the group-by need
//! ```
//! A window is `[start, end)`. Panes are stretches that no window boundary cuts, so a row is
//! aggregated once, whatever the overlap.

pub mod calendar;
mod civil;
pub mod count;
pub mod cumulate;
mod emission;
pub mod global;
pub mod hop;
pub mod session;
mod span;
pub mod tumble;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tersecades_columnar::error::{Error, Result};

pub use calendar::{CALENDAR_UNITS, CalendarUnit, calendar};
pub use chrono_tz::Tz;
pub use count::count;
pub use cumulate::cumulate;
pub use emission::{Emission, Emit, Rhythm, Updates};
pub use global::global;
pub use hop::hop;
pub use session::session;
pub use span::{Boundaries, Overlap, Span, floor};
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
pub const WINDOWS: &[&WindowKind] = &[
    &tumble::KIND,
    &hop::KIND,
    &cumulate::KIND,
    &session::KIND,
    &count::KIND,
    &calendar::KIND,
    &global::KIND,
];

/// What a window is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The whole stream.
    Global,
    /// Windows side by side.
    Tumble {
        /// Length of each.
        size: Duration,
    },
    /// Windows of one size, one starting every slide.
    Hop {
        /// Length of each.
        size: Duration,
        /// Distance between starts of neighbours.
        slide: Duration,
    },
    /// Windows that start every size and grow by steps.
    Cumulate {
        /// Full length.
        size: Duration,
        /// What each is longer than the one before.
        step: Duration,
    },
    /// For each group, rows close to each other.
    Session {
        /// Rows this far apart, or further, are apart.
        gap: Duration,
    },
    /// For each group, so many rows.
    Count {
        /// How many.
        rows: u64,
    },
    /// Units of the calendar in a time zone.
    Calendar {
        /// Which unit.
        unit: CalendarUnit,
        /// Whose clocks.
        zone: Tz,
    },
}

/// A window as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Which windows.
    pub shape: Shape,
    /// Shift of all windows from the epoch.
    pub offset: Duration,
    /// When results come, and for how long late rows change them.
    pub updates: Updates,
}

/// A window in ticks of the event time.
#[derive(Debug, Clone)]
pub enum Windowing {
    /// Windows whose boundaries are the same for all groups.
    Aligned(Arc<dyn Boundaries>),
    /// For each group, rows less than `gap` ticks apart.
    Session {
        /// Ticks.
        gap: i64,
    },
    /// For each group, so many rows.
    Count {
        /// How many.
        rows: u64,
    },
    /// One window that needs no time and has no start and end.
    Global,
}

impl Windowing {
    /// Whether rows without an event time are in no window.
    pub fn needs_time(&self) -> bool {
        matches!(self, Windowing::Aligned(_) | Windowing::Session { .. })
    }

    /// Whether parts of a window that hold any of its rows can be merged; else the order of rows,
    /// or rows of the same group, decide which window a row is in.
    pub fn is_mergeable(&self) -> bool {
        matches!(self, Windowing::Aligned(_) | Windowing::Global)
    }

    /// Whether a row may be in several windows.
    pub fn overlaps(&self) -> bool {
        match self {
            Windowing::Aligned(boundaries) => boundaries.overlap() != Overlap::None,
            _ => false,
        }
    }
}

impl Shape {
    /// Whether the event time of a row says which windows it is in.
    pub fn goes_by_time(&self) -> bool {
        !matches!(self, Shape::Global | Shape::Count { .. })
    }
}

impl From<Shape> for Window {
    fn from(shape: Shape) -> Self {
        Window {
            shape,
            offset: Duration::ZERO,
            updates: Updates::default(),
        }
    }
}

impl Window {
    /// The same windows shifted by `offset` from the epoch.
    pub fn offset(mut self, offset: Duration) -> Self {
        self.offset = offset;
        self
    }

    /// The same windows, whose results come as `emit` says.
    pub fn emit(mut self, emit: Emit) -> Self {
        self.updates.emit = emit;
        self
    }

    /// The same windows, whose results change with rows up to `late` behind the watermark.
    pub fn allowed_lateness(mut self, late: Duration) -> Self {
        self.updates.allowed_lateness = late;
        self
    }

    /// When windows come out, if that is not once, in ticks of `tick_ns` nanoseconds.
    ///
    /// # Errors
    /// `Unsupported` for allowed lateness where no row can be late; what [`Updates::bind`] says.
    pub fn emission(&self, tick_ns: i64) -> Result<Option<Emission>> {
        let of_what = match self.shape {
            Shape::Global => "a group-by of the whole stream",
            Shape::Count { .. } => "windows of so many rows",
            _ => return self.updates.bind(Ticks { tick_ns }),
        };
        match self.updates.allowed_lateness.is_zero() {
            true => self.updates.bind(Ticks { tick_ns }),
            false => Err(
                Error::unsupported(format!("allowed lateness for {of_what}"))
                    .hint("leave it out: every row counts, whenever it comes"),
            ),
        }
    }

    /// Which kind it is.
    pub fn kind(&self) -> &'static WindowKind {
        match self.shape {
            Shape::Global => &global::KIND,
            Shape::Tumble { .. } => &tumble::KIND,
            Shape::Hop { .. } => &hop::KIND,
            Shape::Cumulate { .. } => &cumulate::KIND,
            Shape::Session { .. } => &session::KIND,
            Shape::Count { .. } => &count::KIND,
            Shape::Calendar { .. } => &calendar::KIND,
        }
    }

    /// Whether the stream must have an event time: for rows to be in windows, or for results to
    /// come by.
    pub fn needs_time(&self) -> bool {
        self.shape.goes_by_time() || matches!(self.updates.emit, Emit::Every(_))
    }

    /// Whether results depend on the event time, if rows have one.
    pub fn reads_time(&self) -> bool {
        !matches!(self.shape, Shape::Global)
    }

    /// The window in ticks of `tick_ns` nanoseconds.
    ///
    /// # Errors
    /// `InvalidArgument` for lengths of zero or of no whole number of ticks.
    pub fn bind(&self, tick_ns: i64) -> Result<Windowing> {
        let ticks = Ticks { tick_ns };
        Ok(match self.shape {
            Shape::Global => {
                self.refuse_offset()?;
                Windowing::Global
            }
            Shape::Tumble { size } => {
                Windowing::Aligned(Arc::new(hop::Hops::bind(size, size, self.offset, ticks)?))
            }
            Shape::Hop { size, slide } => {
                Windowing::Aligned(Arc::new(hop::Hops::bind(size, slide, self.offset, ticks)?))
            }
            Shape::Cumulate { size, step } => {
                let bound = cumulate::Cumulating::bind(size, step, self.offset, ticks)?;
                Windowing::Aligned(Arc::new(bound))
            }
            Shape::Calendar { unit, zone } => {
                let bound = calendar::Calendar::bind(unit, zone, self.offset, ticks)?;
                Windowing::Aligned(Arc::new(bound))
            }
            Shape::Session { gap } => {
                self.refuse_offset()?;
                let gap = ticks.length("gap", gap)?;
                Windowing::Session { gap }
            }
            Shape::Count { rows: 0 } => {
                return Err(
                    Error::invalid("a count window of no rows").hint("ask for at least one row")
                );
            }
            Shape::Count { rows } => {
                self.refuse_offset()?;
                Windowing::Count { rows }
            }
        })
    }

    fn refuse_offset(&self) -> Result<()> {
        match self.offset.is_zero() {
            true => Ok(()),
            false => Err(
                Error::invalid(format!("a {} window has no offset", self.kind().name))
                    .hint("leave the offset out: there is no boundary that it could shift"),
            ),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.kind().name)?;
        match self.shape {
            Shape::Global => {}
            Shape::Tumble { size } => write!(to, " {size:?}")?,
            Shape::Hop { size, slide } => write!(to, " {size:?} every {slide:?}")?,
            Shape::Cumulate { size, step } => write!(to, " {size:?} by {step:?}")?,
            Shape::Session { gap } => write!(to, " gap {gap:?}")?,
            Shape::Count { rows } => write!(to, " {rows} rows")?,
            Shape::Calendar { unit, zone } => write!(to, " {} in {zone}", unit.name())?,
        }
        if !self.offset.is_zero() {
            write!(to, " offset {:?}", self.offset)?;
        }
        write!(to, "{}", self.updates)
    }
}

/// Turns durations into ticks.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    /// Nanoseconds of one tick.
    pub tick_ns: i64,
}

impl Ticks {
    /// `duration`, which is the window's `what`, in ticks.
    ///
    /// # Errors
    /// `InvalidArgument` when it is no whole number of ticks, or too long.
    pub fn of(self, what: &str, duration: Duration) -> Result<i64> {
        let nanos = duration.as_nanos();
        let tick = u128::from(self.tick_ns.unsigned_abs());
        if !nanos.is_multiple_of(tick) {
            return Err(Error::invalid(format!(
                "window {what} {duration:?} is no whole number of ticks of the event time"
            ))
            .hint("use a multiple of the time column's unit"));
        }
        i64::try_from(nanos / tick)
            .map_err(|_| Error::invalid(format!("window {what} {duration:?} is too long")))
    }

    /// As [`Ticks::of`], for lengths, which are longer than zero.
    ///
    /// # Errors
    /// `InvalidArgument` for zero too.
    pub fn length(self, what: &str, duration: Duration) -> Result<i64> {
        match self.of(what, duration)? {
            0 => Err(Error::invalid(format!(
                "window {what} must be longer than zero"
            ))),
            ticks => Ok(ticks),
        }
    }
}

/// Windows that one row may be in: each comes out as rows of its own.
const WINDOWS_MAX: i64 = 100_000;

/// Refuses windows of which a row is in more than anybody reads.
///
/// # Errors
/// `LimitExceeded` for a `size` of so many times its `step`.
fn check_overlap(kind: &str, (size, step): (i64, i64), step_name: &str) -> Result<()> {
    match size / step {
        ..=WINDOWS_MAX => Ok(()),
        windows => Err(Error::limit(format!(
            "a row would be in {windows} windows of {kind}, of at most {WINDOWS_MAX}"
        ))
        .hint(format!("use a longer {step_name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_no_endless_number_of_windows() {
        let (day, tick) = (Duration::from_secs(86_400), 1_000_000);
        for (slide, fits) in [
            (Duration::from_secs(1), true),
            (Duration::from_millis(1), false),
        ] {
            for window in [hop(day, slide), cumulate(day, slide)] {
                assert_eq!(window.bind(tick).is_ok(), fits, "{window:?}");
            }
        }
    }

    #[test]
    fn lengths_must_be_whole_ticks() {
        let millisecond = 1_000_000;
        let uneven = tumble(Duration::from_micros(1500)).bind(millisecond);
        assert!(uneven.unwrap_err().to_string().contains("no whole number"));
        assert!(tumble(Duration::ZERO).bind(millisecond).is_err());
        assert!(tumble(Duration::from_secs(2)).bind(millisecond).is_ok());
    }

    #[test]
    fn offsets_without_a_boundary_are_refused() {
        let shifted = global().offset(Duration::from_secs(1));
        assert!(shifted.bind(1).is_err());
    }
}
