//! What a Pingmesh stream looks like, and the checks that it can exist.

use std::time::Duration;

use tersecades_columnar::error::{Error, Result};

use super::super::kind::{ROWS_MAX, SEED_DEFAULT};
use super::super::topology::TopologySize;

/// The most rows a second of event time can have.
const RATE_MAX: u64 = 1_000_000_000_000;

/// Shape of a [`Pingmesh`](super::Pingmesh) stream.
///
/// # Examples
/// ```
/// use tersecades_engine::source::generator::{Pingmesh, PingmeshOptions};
/// let options = PingmeshOptions { rows: 1000, seed: 7, ..PingmeshOptions::default() };
/// let mut stream = Pingmesh::new(options)?;
/// let batch = stream.next_batch(600)?.map_or(0, |batch| batch.num_rows());
/// assert_eq!(batch, 600);
/// # Ok::<(), tersecades_columnar::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PingmeshOptions {
    /// Length of the stream; the rows themselves do not depend on it.
    pub rows: u64,
    /// Chooses one of the streams that fit all other options.
    pub seed: u64,
    /// When the first row arrives, in milliseconds since 1970 UTC.
    pub start_ms: i64,
    /// Rows that arrive in one second of event time.
    pub rows_per_second: u64,
    /// Regions, clusters, racks and servers.
    pub topology: TopologySize,
    /// Zipf exponent over clusters; 0 makes all clusters equally busy.
    pub cluster_skew: f64,
    /// Share of servers that the `tor` table does not know.
    pub tor_missing_share: f64,
    /// Median of the log-normal body of round-trip times, in microseconds.
    pub rtt_median_us: f64,
    /// Standard deviation of the logarithm of the body.
    pub rtt_sigma: f64,
    /// Share of successful probes from the heavy tail (64 Ki microseconds and more).
    pub tail_share: f64,
    /// Share of probes that end in an error, faults apart.
    pub error_share: f64,
    /// Every probe reaches the stream up to this much after its timestamp.
    pub jitter_max: Duration,
    /// Share of probes that come later than `jitter_max` allows.
    pub late_share: f64,
    /// How late those come at most.
    pub late_max: Duration,
    /// When, after the start, the switch of one rack goes bad; `None` for never.
    pub fault_at: Option<Duration>,
    /// How long the switch stays bad.
    pub fault_duration: Duration,
    /// Share of probes through the bad switch that time out.
    pub fault_drop_share: f64,
    /// How many times longer the other probes through it take.
    pub fault_rtt_factor: u32,
}

impl Default for PingmeshOptions {
    /// 100 s of 100,000 rows/s; the paper's "97 % of round trips fit two bytes"; a switch goes
    /// bad after 30 s for 30 s.
    fn default() -> Self {
        PingmeshOptions {
            rows: 10_000_000,
            seed: SEED_DEFAULT,
            start_ms: 1_700_000_003_217,
            rows_per_second: 100_000,
            topology: TopologySize::default(),
            cluster_skew: 0.9,
            tor_missing_share: 0.01,
            rtt_median_us: 250.0,
            rtt_sigma: 0.6,
            tail_share: 0.03,
            error_share: 0.01,
            jitter_max: Duration::from_millis(10),
            late_share: 0.005,
            late_max: Duration::from_millis(2500),
            fault_at: Some(Duration::from_secs(30)),
            fault_duration: Duration::from_secs(30),
            fault_drop_share: 0.5,
            fault_rtt_factor: 20,
        }
    }
}

impl PingmeshOptions {
    /// Checks that every option makes sense and all event times can be represented.
    ///
    /// # Errors
    /// `InvalidArgument` that names the option and its legal values.
    pub fn validate(&self) -> Result<()> {
        self.topology.servers()?;
        let shares = [
            ("tor_missing_share", self.tor_missing_share),
            ("tail_share", self.tail_share),
            ("error_share", self.error_share),
            ("late_share", self.late_share),
            ("fault_drop_share", self.fault_drop_share),
        ];
        for (name, share) in shares {
            check(name, share, 0.0, 1.0)?;
        }
        check("cluster_skew", self.cluster_skew, 0.0, 10.0)?;
        check("rtt_median_us", self.rtt_median_us, 1.0, 1e8)?;
        check("rtt_sigma", self.rtt_sigma, 0.0, 5.0)?;
        check(
            "fault_rtt_factor",
            f64::from(self.fault_rtt_factor),
            1.0,
            1e6,
        )?;
        self.validate_times()
    }

    fn validate_times(&self) -> Result<()> {
        if !(1..=RATE_MAX).contains(&self.rows_per_second) {
            let message = format!("`rows_per_second` is {}", self.rows_per_second);
            return Err(Error::invalid(message).hint(format!("use 1 to {RATE_MAX}")));
        }
        if self.rows > ROWS_MAX {
            return Err(Error::invalid(format!("`rows` is {}", self.rows))
                .hint(format!("use at most {ROWS_MAX}")));
        }
        let (jitter, late) = (millis_u32("jitter_max", self.jitter_max)?, self.late_max);
        if millis_u32("late_max", late)? <= jitter && self.late_share > 0.0 {
            return Err(Error::invalid("`late_max` is not longer than `jitter_max`")
                .hint("raise `late_max`, or set `late_share` to 0"));
        }
        let fault_end = self
            .fault_at
            .unwrap_or_default()
            .saturating_add(self.fault_duration);
        let length_ms = self.rows * 1000 / self.rows_per_second;
        let fits = i64::try_from(fault_end.as_millis())
            .ok()
            .zip(i64::try_from(length_ms).ok())
            .and_then(|(fault_ms, length_ms)| self.start_ms.checked_add(fault_ms.max(length_ms)))
            .and(self.start_ms.checked_sub(i64::from(u32::MAX)));
        match fits {
            Some(_) => Ok(()),
            None => Err(
                Error::invalid("event times leave the range of 64-bit milliseconds")
                    .hint("bring `start_ms` nearer to 0, or shorten the stream or the fault"),
            ),
        }
    }
}

fn check(name: &str, value: f64, least: f64, most: f64) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(format!("`{name}` is {value}")).hint(format!("use {least} to {most}")))
}

/// A delay in whole milliseconds.
///
/// # Errors
/// `InvalidArgument`, naming the option `name`, for an hour and more.
pub(super) fn millis_u32(name: &str, delay: Duration) -> Result<u32> {
    const HOUR_MS: u32 = 3_600_000;
    u32::try_from(delay.as_millis())
        .ok()
        .filter(|ms| *ms < HOUR_MS)
        .ok_or_else(|| {
            Error::invalid(format!("`{name}` is {delay:?}")).hint("use less than one hour")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        PingmeshOptions::default().validate().unwrap();
    }

    /// Makes valid options senseless.
    type Spoil = fn(&mut PingmeshOptions);

    #[test]
    fn senseless_options_are_refused_by_name() {
        let refused: [(&str, Spoil); 15] = [
            ("error_share", |it| it.error_share = 1.5),
            ("tail_share", |it| it.tail_share = f64::NAN),
            ("late_share", |it| it.late_share = -0.1),
            ("cluster_skew", |it| it.cluster_skew = f64::INFINITY),
            ("rtt_median_us", |it| it.rtt_median_us = 0.0),
            ("fault_rtt_factor", |it| it.fault_rtt_factor = 0),
            ("rows_per_second", |it| it.rows_per_second = 0),
            ("rows_per_second", |it| it.rows_per_second = u64::MAX),
            ("rows", |it| it.rows = ROWS_MAX + 1),
            ("late_max", |it| it.late_max = it.jitter_max),
            ("jitter_max", |it| it.jitter_max = Duration::from_secs(3600)),
            ("event times", |it| it.start_ms = i64::MAX - 1000),
            ("event times", |it| it.start_ms = i64::MIN),
            ("event times", |it| it.fault_duration = Duration::MAX),
            ("clusters", |it| it.topology.clusters = 1),
        ];
        for (name, spoil) in refused {
            let mut options = PingmeshOptions::default();
            spoil(&mut options);
            let error = options.validate().unwrap_err();
            assert!(error.message().contains(name), "{name}: {error}");
            assert!(error.hint_text().is_some(), "{name}: {error}");
        }
    }
}
