//! What disorder costs: the same rows, some of them late by up to three seconds more.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use tersecades_columnar::{Error, Result};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Retained;
use tersecades_engine::source::{self, Rejected, Source, SourceOptions};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;

use super::range::hold;
use super::{LATENESS, NO_DATA};
use crate::Options;
use crate::measure::ratio;
use crate::report::{Bar, Report};

/// Rows that come late, in percent; those of the first stream are as late as they were.
const LATE_PERCENT: [u64; 6] = [0, 1, 2, 5, 10, 20];

/// The percent with a bar, and the least share of the throughput without that such a stream keeps.
const JUDGED: u64 = 5;
const KEPT_MIN: f64 = 0.8;

/// How late rows may come that were late before and come later: what was allowed before, twice.
const TWICE_LATE: Duration = LATENESS.saturating_mul(2);

/// Measures the streams of `--data`; `--queries` names plans.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_alone(options: &Options, report: &mut Report) -> Result<()> {
    match options.data_file() {
        Some(path) => run(&path, options, report),
        None => {
            report.note(NO_DATA);
            Ok(())
        }
    }
}

/// Measures all streams in turns.
///
/// # Errors
/// What reading and the engine say; `Internal` when the answers count different rows.
pub(crate) fn run(path: &Path, options: &Options, report: &mut Report) -> Result<()> {
    let asked = |name: &str| {
        options.queries.is_empty() || options.queries.iter().any(|asked| asked == name)
    };
    let streams = LATE_PERCENT.map(|percent| load(path, percent));
    let streams = streams.into_iter().collect::<Result<Vec<Retained>>>()?;
    for (name, plan) in PLANS.into_iter().filter(|(name, _)| asked(name)) {
        let mut seconds = LATE_PERCENT.map(|_| Vec::new());
        let mut rows = LATE_PERCENT.map(|_| 0);
        for repetition in 0..=options.repetitions {
            for (index, stream) in streams.iter().enumerate() {
                let started = Instant::now();
                let running = plan(Stream::from_retained(stream)).run()?;
                let windows = running.collect::<Result<Vec<RecordBatch>>>()?;
                if repetition > 0 {
                    seconds[index].push(started.elapsed().as_secs_f64());
                }
                rows[index] = windows.iter().map(counted).sum::<i64>();
            }
        }
        if rows.iter().any(|counted| *counted != rows[0]) {
            return Err(Error::internal(format!("{name} counts {rows:?} rows")));
        }
        for (seconds_late, percent) in seconds.iter().zip(LATE_PERCENT).skip(1) {
            let cost = ratio(seconds_late, &seconds[0]);
            report.middle("disorder", (name, percent.into()), cost, "x");
            if percent == JUDGED {
                let name = format!("{name}, throughput of {percent} % late / 0 %");
                let kept = cost.median.recip();
                report.judge(name, kept, "x", Bar::AtLeast(KEPT_MIN));
            }
        }
    }
    for (stream, percent) in streams.iter().zip(LATE_PERCENT).skip(1) {
        let bytes = stream.byte_size() as f64 / streams[0].byte_size() as f64;
        report.plain("disorder", ("bytes", percent.into()), bytes, "x");
    }
    Ok(())
}

type Plan = fn(Stream) -> Stream;

const PLANS: [(&str, Plan); 3] = [
    ("moments", |stream| {
        let rtt = |name| call(name, col("rtt_us"));
        let windows = stream.window(tumble(Duration::from_secs(10)));
        windows.aggregate([count(), rtt("sum"), rtt("max")])
    }),
    ("count of pairs", |stream| {
        let windows = stream.window(tumble(Duration::from_secs(10)));
        windows
            .group_by(["src_cluster", "dst_cluster"])
            .aggregate([count()])
    }),
    ("count of failures", |stream| {
        let failures = stream.filter(col("error_code").not_eq(0));
        let windows = failures.window(tumble(Duration::from_secs(10)));
        windows.group_by(["src_cluster"]).aggregate([count()])
    }),
];

/// The sum of the column `count`.
fn counted(window: &RecordBatch) -> i64 {
    let counts = window
        .column_by_name("count")
        .map(AsArray::as_primitive::<Int64Type>);
    counts.map_or(0, |counts| counts.values().iter().sum())
}

fn load(path: &Path, percent: u64) -> Result<Retained> {
    let source = source::open(path, &SourceOptions::default())?;
    let disturbed = Disturbed {
        source,
        percent,
        random: 0x5EED,
    };
    let stream = Stream::from_source(Box::new(disturbed));
    hold(stream.event_time(col("timestamp"), TWICE_LATE))
}

/// A source of which some rows happened earlier than they say, within the lateness.
struct Disturbed {
    source: Box<dyn Source>,
    /// Rows moved, of a hundred.
    percent: u64,
    random: u64,
}

impl Disturbed {
    fn next_random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(1);
        self.random >> 33
    }
}

/// Ticks of `unit` that rows may be late.
fn lateness(unit: TimeUnit) -> u64 {
    let ticks = match unit {
        TimeUnit::Second => LATENESS.as_secs().into(),
        TimeUnit::Millisecond => LATENESS.as_millis(),
        TimeUnit::Microsecond => LATENESS.as_micros(),
        TimeUnit::Nanosecond => LATENESS.as_nanos(),
    };
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

impl Source for Disturbed {
    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(rows) = self.source.next()? else {
            return Ok(None);
        };
        let at = rows.schema().index_of("timestamp")?;
        let data_type = rows.column(at).data_type().clone();
        let most = match data_type {
            DataType::Timestamp(unit, _) => lateness(unit),
            _ => lateness(TimeUnit::Millisecond),
        };
        let ticks = cast(rows.column(at), &DataType::Int64)?;
        let ticks = ticks.as_primitive::<Int64Type>().values().iter();
        let ticks: Int64Array = ticks
            .map(|at| match self.next_random() % 100 < self.percent {
                true => at - (self.next_random() % most).cast_signed(),
                false => *at,
            })
            .collect::<Vec<i64>>()
            .into();
        let ticks: ArrayRef = Arc::new(ticks);
        let mut columns = rows.columns().to_vec();
        columns[at] = cast(&ticks, &data_type)?;
        Ok(Some(RecordBatch::try_new(rows.schema(), columns)?))
    }

    fn rejected(&self) -> &Rejected {
        self.source.rejected()
    }
}
