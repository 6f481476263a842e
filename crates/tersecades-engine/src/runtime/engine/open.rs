//! Why a window has not come out yet.

use std::fmt;
use std::time::Duration;

use arrow_array::{
    ArrayRef, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray,
};
use arrow_cast::display::array_value_to_string;
use arrow_schema::TimeUnit;
use tersecades_columnar::error::Result;

use super::Running;
use crate::operator::window_aggregate::WindowAggregate;

/// A window that has rows and has not closed, and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWindow {
    /// Its first time, in ticks of the event time.
    pub start: i64,
    /// The first time after it.
    pub end: i64,
    /// How far the watermark is; `None` while it is nowhere.
    pub watermark: Option<i64>,
    /// The partition that holds the watermark back.
    pub held_by: String,
    /// Whether that partition has sent no row yet.
    pub silent: bool,
    /// How far the watermark must still go; `None` while it is nowhere.
    pub behind_by: Option<Duration>,
    /// Unit of the times.
    pub unit: TimeUnit,
}

impl Running {
    /// The windows that have rows and have not closed, in order, and what each waits for.
    ///
    /// # Errors
    /// What the workers say, which are flushed.
    pub fn why_open(&mut self) -> Result<Vec<OpenWindow>> {
        self.flush()?;
        let windows = self.stage.aggregate.as_ref();
        let windows = windows.map_or_else(Vec::new, WindowAggregate::open_windows);
        let current = self.watermark.current();
        let watermark = (current != i64::MIN).then_some(current);
        let partitions = self.watermark.partitions();
        let holder = partitions.holder();
        let held_by = match holder {
            Some(partition) => self.ingest.partition_name(partition),
            None => "the clock".to_owned(),
        };
        let silent = holder.is_some_and(|holder| partitions.newest(holder).is_none());
        let tick_ns = self.tick_ns.unsigned_abs();
        let open = windows.into_iter().map(|window| {
            let end = window.last().saturating_add(1);
            let behind = |watermark| end.saturating_sub(watermark).unsigned_abs();
            OpenWindow {
                start: window.first(),
                end,
                watermark,
                held_by: held_by.clone(),
                silent,
                behind_by: watermark
                    .map(|at| Duration::from_nanos(behind(at).saturating_mul(tick_ns))),
                unit: self.plan.unit,
            }
        });
        Ok(open.collect())
    }
}

impl fmt::Display for OpenWindow {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |at| shown(at, self.unit);
        write!(to, "[{}, {}) is open: ", time(self.start), time(self.end))?;
        match (self.silent, self.watermark, self.behind_by) {
            (true, ..) => write!(to, "no row yet of {}", self.held_by),
            (false, Some(watermark), Some(behind)) => write!(
                to,
                "{} holds the watermark at {}, {behind:?} before the end",
                self.held_by,
                time(watermark)
            ),
            _ => write!(to, "{} has not moved the watermark yet", self.held_by),
        }
    }
}

fn shown(at: i64, unit: TimeUnit) -> String {
    let array: ArrayRef = match unit {
        TimeUnit::Second => std::sync::Arc::new(TimestampSecondArray::from(vec![at])),
        TimeUnit::Millisecond => std::sync::Arc::new(TimestampMillisecondArray::from(vec![at])),
        TimeUnit::Microsecond => std::sync::Arc::new(TimestampMicrosecondArray::from(vec![at])),
        TimeUnit::Nanosecond => std::sync::Arc::new(TimestampNanosecondArray::from(vec![at])),
    };
    array_value_to_string(&array, 0).unwrap_or_else(|_| at.to_string())
}
