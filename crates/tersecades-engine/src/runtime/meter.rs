//! What one operator of a measured run did: rows in and out, time, and how it worked on values.

use std::fmt;
use std::time::Instant;

use tersecades_columnar::codec::{Tally, Work};

use crate::frame::Frame;

/// Figures of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meter {
    /// Rows that went in.
    pub rows_in: u64,
    /// Rows that came out.
    pub rows_out: u64,
    /// Nanoseconds it took, of all threads together.
    pub ns: u64,
    /// How it worked on values.
    pub tally: Tally,
}

impl Meter {
    /// Adds what happened since `start`.
    pub fn add(&mut self, start: Instant, (rows_in, rows_out): (usize, usize), tally: Tally) {
        self.rows_in += rows_in as u64;
        self.rows_out += rows_out as u64;
        self.ns += start.elapsed().as_nanos() as u64;
        self.tally.merge(tally);
    }

    /// Adds the figures of another thread.
    pub fn merge(&mut self, other: &Meter) {
        self.rows_in += other.rows_in;
        self.rows_out += other.rows_out;
        self.ns += other.ns;
        self.tally.merge(other.tally);
    }
}

/// A measurement that has begun.
pub struct Reading<'m> {
    meter: &'m mut Meter,
    start: Instant,
    rows: usize,
    tally: Tally,
}

impl<'m> Reading<'m> {
    /// Begins to measure what happens to `frame`, where there is a meter.
    pub fn of(meter: Option<&'m mut Meter>, frame: &Frame, work: &Work) -> Option<Self> {
        let meter = meter?;
        Some(Reading {
            meter,
            rows: frame.selection.count(),
            tally: work.tally,
            start: Instant::now(),
        })
    }

    /// Ends it; without a frame no rows came out.
    pub fn finish(reading: Option<Self>, frame: Option<&Frame>, work: &Work) {
        if let Some(reading) = reading {
            let tally = between(reading.tally, work.tally);
            let out = frame.map_or(0, |frame| frame.selection.count());
            reading.meter.add(reading.start, (reading.rows, out), tally);
        }
    }
}

/// What was done between two tallies.
fn between(before: Tally, after: Tally) -> Tally {
    Tally {
        skipped: after.skipped - before.skipped,
        direct: after.direct - before.direct,
        decoded: after.decoded - before.decoded,
        gathered: after.gathered - before.gathered,
    }
}

impl fmt::Display for Meter {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.ns as f64 / 1e6;
        write!(
            to,
            "rows {} to {}, {millis:.1} ms",
            self.rows_in, self.rows_out
        )?;
        let Tally {
            skipped,
            direct,
            decoded,
            gathered,
        } = self.tally;
        for (values, how) in [
            (skipped, "skipped"),
            (direct, "run encoded"),
            (decoded, "decoded"),
            (gathered, "fetched"),
        ] {
            if values > 0 {
                write!(to, ", {values} values {how}")?;
            }
        }
        Ok(())
    }
}

/// The line of an operator, with its figures where the run is measured.
pub fn line(text: String, meter: Option<&Meter>) -> String {
    match meter {
        Some(meter) => format!("{text} [{meter}]"),
        None => text,
    }
}
