//! Streams over the rows of other streams, run as one.
//!
//! ```text
//! files ──filter──▶ arrow ──encode──▶ filter ──▶      two runs
//! files ──filter──▶ filter ──▶                        one, where nobody asks what time it is
//! ```
//! A query over a stream of rows reads them as they come out, with a watermark of their own. Where
//! it has no use for that, its steps stand behind those of the stream, and no row is handed over.

use crate::plan::Step;
use crate::runtime::option::{RunOptions, TimeKind};

use super::Stream;

impl Stream {
    /// The same results by as few runs as can be, which read no column in vain.
    pub(super) fn flat(mut self) -> Stream {
        while let Some(whole) = self.over_its_source() {
            self = whole;
        }
        if self.options.keep.is_none() {
            self.query.leave_out_unread(None);
        }
        self
    }

    /// The steps behind those of the stream whose rows it reads; `None` where they have to come
    /// out for it.
    fn over_its_source(&self) -> Option<Stream> {
        let inner = self.table.stream()?;
        let on_rows = |step: &Step| !matches!(step, Step::Aggregate { .. } | Step::Rows(_));
        let untimed = |step: &Step| match step {
            Step::Aggregate { window, .. } => !window.needs_time() && !window.reads_time(),
            _ => true,
        };
        let can = inner.query.steps.iter().all(on_rows)
            && self.query.steps.iter().all(untimed)
            && inner.is_run_as_usual()
            && self.is_run_as_usual();
        can.then(|| {
            let mut whole = inner.clone().inherit(&self.options);
            whole.options.on_limit = self.options.on_limit;
            whole.query.event_time = self.query.event_time.clone();
            whole.query.steps.extend(self.query.steps.iter().cloned());
            whole
        })
    }

    /// Whether nothing was said of what it keeps, how it encodes and what its time is.
    fn is_run_as_usual(&self) -> bool {
        let usual = RunOptions {
            threads: self.options.threads,
            measured: self.options.measured,
            keep_late: self.options.keep_late,
            memory_bytes_limit: self.options.memory_bytes_limit,
            on_limit: self.options.on_limit,
            time: self.options.time.clone(),
            interrupt: self.options.interrupt.clone(),
            ..RunOptions::default()
        };
        let by_event = self.options.time.kind == TimeKind::Event;
        by_event && self.registered.is_none() && self.options == usual
    }
}
