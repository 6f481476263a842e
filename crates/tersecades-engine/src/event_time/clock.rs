//! What time it is: the system's clock, or one that tests and replays move.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Says what time it is; it never goes back.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time since the epoch.
    fn now(&self) -> Duration;
}

/// The system's clock as it was at the start, and the time that has passed since.
///
/// Someone setting the system's clock back does not set this one back.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started_at: Duration,
    started: Instant,
}

impl SystemClock {
    /// A clock that starts at the system's time.
    pub fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        SystemClock {
            started_at: since_epoch.unwrap_or_default(),
            started: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.started_at + self.started.elapsed()
    }
}

/// A clock that stands until it is moved; clones show the same time.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tersecades_engine::event_time::{Clock, TestClock};
/// let clock = TestClock::at(Duration::from_secs(100));
/// clock.clone().advance(Duration::from_secs(5));
/// assert_eq!(clock.now(), Duration::from_secs(105));
/// ```
#[derive(Debug, Clone, Default)]
pub struct TestClock {
    nanos: Arc<AtomicU64>,
}

impl TestClock {
    /// A clock that stands at `now` since the epoch.
    pub fn at(now: Duration) -> Self {
        let clock = TestClock::default();
        clock.set(now);
        clock
    }

    /// Moves it to `now` since the epoch; to an earlier time it does not move.
    pub fn set(&self, now: Duration) {
        self.nanos.fetch_max(nanos(now), Ordering::SeqCst);
    }

    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        self.nanos.fetch_add(nanos(by), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::SeqCst))
    }
}

/// A clock that several parts read; two are equal when they are the same one.
#[derive(Debug, Clone)]
pub struct SharedClock(pub Arc<dyn Clock>);

impl Default for SharedClock {
    fn default() -> Self {
        SharedClock(Arc::new(SystemClock::new()))
    }
}

impl PartialEq for SharedClock {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// `duration` in ticks of `tick_ns` nanoseconds, a part of a tick left out.
pub fn whole_ticks(duration: Duration, tick_ns: i64) -> i64 {
    let ticks = duration.as_nanos() / u128::from(tick_ns.unsigned_abs().max(1));
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

/// A lateness in ticks, a part of a tick as a whole one; one longer than all of time means that
/// nothing is late.
pub fn ticks_late(lateness: Duration, tick_ns: i64) -> i64 {
    let ticks = lateness.as_nanos().div_ceil(tick_ns.unsigned_abs().into());
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_never_go_back() {
        let clock = TestClock::at(Duration::from_secs(9));
        clock.set(Duration::from_secs(3));
        assert_eq!(clock.now(), Duration::from_secs(9));
        let system = SystemClock::new();
        let before = system.now();
        assert!(system.now() >= before);
        assert!(before > Duration::from_secs(1_600_000_000));
    }
}
