//! When the results of windows come out: once, or again and again.

use std::fmt;
use std::time::Duration;

use tersecades_columnar::error::{Error, Result};

use super::{Boundaries, Ticks, floor};

/// When results come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Emit {
    /// When a window closes, and again for groups that late rows change.
    #[default]
    Final,
    /// Behind each batch, for the groups that it changed.
    Update,
    /// Each time the watermark passes a multiple of this, for the groups that changed since, and
    /// when a window closes.
    Every(Duration),
}

/// When results come, and for how long late rows change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Updates {
    /// Rows this far behind the watermark still count.
    pub allowed_lateness: Duration,
    /// When results come.
    pub emit: Emit,
}

impl Updates {
    /// Whether a window may come out more than once.
    pub fn are_possible(&self) -> bool {
        self.emit != Emit::Final || !self.allowed_lateness.is_zero()
    }

    /// The same in ticks; `None` when each window comes out once.
    ///
    /// # Errors
    /// `InvalidArgument` for periods of zero or of no whole number of ticks.
    pub fn bind(&self, ticks: Ticks) -> Result<Option<Emission>> {
        if !self.are_possible() {
            return Ok(None);
        }
        let tick = u128::from(ticks.tick_ns.unsigned_abs());
        let allowed = self.allowed_lateness.as_nanos().div_ceil(tick);
        let allowed =
            i64::try_from(allowed).map_err(|_| Error::invalid("the allowed lateness is too long"));
        Ok(Some(Emission {
            allowed: allowed?,
            rhythm: match self.emit {
                Emit::Final => Rhythm::Final,
                Emit::Update => Rhythm::Batch,
                Emit::Every(period) => Rhythm::Every(ticks.length("emission period", period)?),
            },
        }))
    }
}

impl fmt::Display for Updates {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.emit {
            Emit::Final => {}
            Emit::Update => write!(to, " emit updates")?,
            Emit::Every(period) => write!(to, " emit every {period:?}")?,
        }
        match self.allowed_lateness.is_zero() {
            true => Ok(()),
            false => write!(to, " allow {:?} late", self.allowed_lateness),
        }
    }
}

/// What makes results come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rhythm {
    /// A window that closes.
    Final,
    /// The end of a batch.
    Batch,
    /// The watermark passing a multiple.
    Every(i64),
}

/// When windows come out that may do so more than once, in ticks of the event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emission {
    /// Rows this far behind the watermark still count.
    pub allowed: i64,
    /// What makes results come out.
    pub rhythm: Rhythm,
}

impl Emission {
    /// Whether results come at multiples of a period.
    pub fn is_periodic(&self) -> bool {
        matches!(self.rhythm, Rhythm::Every(_))
    }

    /// The windows that end at or before this take no more rows.
    pub fn finished(&self, watermark: i64) -> i64 {
        match watermark {
            i64::MAX => i64::MAX,
            watermark => watermark.saturating_sub(self.allowed),
        }
    }

    /// Whether a watermark that goes from `before` to `after` closes a window, finishes one, or
    /// passes a multiple of the period.
    pub fn passes(&self, boundaries: &dyn Boundaries, before: i64, after: i64) -> bool {
        let ends = |before: i64, after: i64| {
            after > before && boundaries.last_end(after) > i128::from(before)
        };
        if after == i64::MAX || ends(before, after) {
            return true;
        }
        if ends(self.finished(before), self.finished(after)) {
            return true;
        }
        match self.rhythm {
            Rhythm::Every(period) => after > before && floor(after, period, 0) > i128::from(before),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hop::Hops;
    use super::*;

    #[test]
    fn results_come_where_windows_close_and_finish_and_at_multiples() {
        let ticks = Ticks { tick_ns: 1 };
        let nanos = Duration::from_nanos;
        let hops = Hops::bind(nanos(10), nanos(10), nanos(0), ticks).unwrap();
        let updates = |emit| Updates {
            allowed_lateness: nanos(3),
            emit,
        };
        let passed = |emit| {
            let emission = updates(emit).bind(ticks).unwrap().unwrap();
            (1..30i64)
                .filter(|at| emission.passes(&hops, at - 1, *at))
                .collect::<Vec<_>>()
        };
        assert_eq!(passed(Emit::Final), [3, 10, 13, 20, 23]);
        assert_eq!(
            passed(Emit::Every(nanos(4))),
            [3, 4, 8, 10, 12, 13, 16, 20, 23, 24, 28]
        );
        assert_eq!(Updates::default().bind(ticks).unwrap(), None);
        assert!(updates(Emit::Every(nanos(0))).bind(ticks).is_err());
    }
}
