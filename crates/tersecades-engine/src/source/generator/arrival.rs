//! Rows that arrive at a fixed rate and happened a little earlier.

use tersecades_columnar::error::{Error, Result};

use super::parameter::{Arguments, Parameter, ParameterKind};
use super::random::{CounterStream, below, low};

/// Room behind the last row for times that rows speak of: 49 days.
const SPARE_MS: i64 = 1 << 32;
const HOUR_MS: u128 = 3_600_000;

/// The parameter `start_ms`.
pub(super) const START_MS: Parameter = Parameter {
    name: "start_ms",
    kind: ParameterKind::Whole,
    default: "1700006400000",
    summary: "first arrival, in ms since 1970 UTC",
};

/// The parameter `jitter_max`.
pub(super) const JITTER_MAX: Parameter = Parameter {
    name: "jitter_max",
    kind: ParameterKind::Duration,
    default: "10ms",
    summary: "how late any row may be",
};

/// The parameter `rate`.
pub(super) const fn rate(default: &'static str) -> Parameter {
    Parameter {
        name: "rate",
        kind: ParameterKind::Count,
        default,
        summary: "rows in one second of event time",
    }
}

/// When rows arrive, and when they happened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrivals {
    start_ms: i64,
    rate: u64,
    jitter_ms: u32,
    delays: CounterStream,
}

impl Arrivals {
    /// Arrivals of `rows` rows by the parameters of this file; delays from `delays`.
    ///
    /// # Errors
    /// `InvalidArgument` that names a parameter.
    pub(super) fn new(rows: u64, delays: CounterStream, arguments: &Arguments<'_>) -> Result<Self> {
        let (start_ms, rate) = (arguments.whole("start_ms")?, arguments.count("rate")?);
        if rate == 0 {
            return Err(Error::invalid("`rate` is 0").hint("use 1 or more"));
        }
        let jitter = arguments.duration("jitter_max")?.as_millis();
        let jitter_ms = match jitter < HOUR_MS {
            // Below an hour.
            true => jitter as u32,
            false => {
                let error = Error::invalid(format!("`jitter_max` is {jitter}ms"));
                return Err(error.hint("use less than 1h"));
            }
        };
        let arrivals = Arrivals {
            start_ms,
            rate,
            jitter_ms,
            delays,
        };
        let length_ms = i64::try_from(arrivals.since_start_ms(rows)).unwrap_or(i64::MAX);
        let last = length_ms.checked_add(SPARE_MS);
        let last = last.and_then(|length_ms| start_ms.checked_add(length_ms));
        match last.and(start_ms.checked_sub(i64::from(jitter_ms))) {
            Some(_) => Ok(arrivals),
            None => Err(
                Error::invalid("event times leave the range of 64-bit milliseconds")
                    .hint("bring `start_ms` nearer to 0, or shorten the stream"),
            ),
        }
    }

    /// When row number `row` arrives, after the first row.
    pub(super) fn since_start_ms(&self, row: u64) -> u64 {
        // The quotient is below 2^60 for 2^50 rows.
        (u128::from(row) * 1_000 / u128::from(self.rate)) as u64
    }

    /// The time `length_ms` after the first arrival.
    pub(super) fn after_start(&self, length_ms: u64) -> i64 {
        self.start_ms.saturating_add_unsigned(length_ms)
    }

    /// When row number `row` arrives.
    pub(super) fn at_ms(&self, row: u64) -> i64 {
        self.after_start(self.since_start_ms(row))
    }

    /// When row number `row` happened.
    pub(super) fn happened_ms(&self, row: u64) -> i64 {
        let delay = below(low(self.delays.draw(row)), self.jitter_ms + 1);
        self.at_ms(row) - i64::from(delay)
    }
}
