//! How a query is run, apart from what it asks.

use std::sync::Arc;
use std::time::Duration;

use crate::event_time::SharedClock;
use crate::observe::Observed;

use super::ablation::Ablation;
use super::encoding::EncodeOptions;
use super::interrupt::Interrupt;
use super::retained::Keep;

/// How long a partition may be silent before it no longer holds the watermark back.
pub const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Most threads that a query is run on.
pub const THREADS_MAX: usize = 1024;

/// How a query is run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Threads that run the first stage, the caller's among them; Parquet files are read by as many
    /// of their own. Without a memory limit what follows the first stage works on as many where it
    /// has much at hand.
    pub threads: usize,
    /// Whether and how much of the stream is kept, encoded, for further queries.
    pub keep: Option<Keep>,
    /// What is kept of each column, where that is less than all.
    pub observed: Option<Arc<Observed>>,
    /// Whether late rows are kept for [`take_late`], not only counted.
    ///
    /// [`take_late`]: super::Running::take_late
    pub keep_late: bool,
    /// Whether late rows are kept with all columns, not only those that the query reads.
    pub keep_late_whole: bool,
    /// Most bytes of window state and retained batches.
    pub memory_bytes_limit: Option<usize>,
    /// What happens at that limit.
    pub on_limit: OnLimit,
    /// Whether the figures of each operator are taken, for its line in explain.
    pub measured: bool,
    /// What moves time.
    pub time: TimeOptions,
    /// How columns are encoded.
    pub encoding: EncodeOptions,
    /// Parts of the engine that it does without.
    pub ablation: Ablation,
    /// What may stop the run between two batches.
    pub interrupt: Interrupt,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            threads: 1,
            keep: None,
            observed: None,
            keep_late: false,
            keep_late_whole: false,
            memory_bytes_limit: None,
            on_limit: OnLimit::default(),
            measured: false,
            time: TimeOptions::default(),
            encoding: EncodeOptions::default(),
            ablation: Ablation::default(),
            interrupt: Interrupt::default(),
        }
    }
}

/// What a run does at its memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLimit {
    /// Stops with an error.
    #[default]
    Refuse,
    /// Drops the oldest retained batches first; stops when that does not help.
    Shorten,
    /// Puts the oldest retained batches into temporary files first, which queries over the range
    /// read; stops when that does not help.
    Spill,
}

/// What a row's time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeKind {
    /// When it happened, which the row says.
    #[default]
    Event,
    /// When it arrived.
    Ingestion,
    /// When it arrived; windows close by the clock, also when nothing arrives.
    Processing,
    /// As [`TimeKind::Processing`], of rows that hold the time of their arrival already.
    Arrived,
}

impl TimeKind {
    /// Whether rows get the time of their arrival as they are read.
    pub(crate) fn stamps(self) -> bool {
        matches!(self, TimeKind::Ingestion | TimeKind::Processing)
    }

    /// Whether windows close by the clock.
    pub(crate) fn goes_by_clock(self) -> bool {
        matches!(self, TimeKind::Processing | TimeKind::Arrived)
    }
}

/// What moves time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeOptions {
    /// What a row's time is.
    pub kind: TimeKind,
    /// What says what time it is.
    pub clock: SharedClock,
    /// A partition that is asked in vain for so long no longer holds the watermark back.
    pub idle_timeout: Duration,
    /// Rows further than this ahead of the clock do not move the watermark.
    pub future_limit: Option<Duration>,
}

impl TimeOptions {
    /// The same for rows that have their times already.
    pub(crate) fn of_timed_rows(&self) -> Self {
        TimeOptions {
            kind: TimeKind::Event,
            ..self.clone()
        }
    }
}

impl Default for TimeOptions {
    fn default() -> Self {
        TimeOptions {
            kind: TimeKind::default(),
            clock: SharedClock::default(),
            idle_timeout: IDLE_TIMEOUT_DEFAULT,
            future_limit: None,
        }
    }
}
