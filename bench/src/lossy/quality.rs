//! What lossy counters cost in answers: loss of sessions against ratio (TC figure 12).
//!
//! ```text
//! counters ─▶ sessions in which a machine does badly ─▶ exact
//!        └── zfp(bound), bound after bound ─▶ the same ─▶ missing and extra sessions / exact ones
//! ```
//! Generated machines do badly where their processor works and their network is silent; recorded
//! ones, of which only the processor is known, where it stays below a limit.

use std::path::Path;
use std::time::Duration;

use arrow_schema::DataType;
use tersecades_columnar::Result;
use tersecades_columnar::goal::Tier;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::quality::{compare, key_columns, sizes};
use tersecades_engine::source::SourceOptions;
use tersecades_engine::source::generated::GeneratorTable;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{session, tumble};

use crate::range::answer;
use crate::report::{Point, Report};

/// Machines of a generated set, and of how many of its spans a machine loses its network in one.
const GENERATED: [(&str, u64, &str, &str); 5] = [
    ("generated 1", 1, "60", "0.05"),
    ("generated 2", 2, "200", "0.05"),
    ("generated 3", 3, "200", "0.01"),
    ("generated 4", 4, "500", "0.02"),
    ("generated 5", 5, "1000", "0.002"),
];
const GENERATED_BOUNDS: [f64; 7] = [0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0];
/// A recorded processor: name, file, machine, load, the limit below which it does badly, bounds.
type Recorded = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    f64,
    [f64; 7],
);
const RECORDED: [Recorded; 2] = [
    (
        "bitbrains",
        "bitbrains_small/trace_by_time.parquet",
        "id",
        "cpu_usage",
        50.0,
        [0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0],
    ),
    (
        "planetlab",
        "planetlab_vm_cpu/cpu_5min_20110303_20110403.parquet",
        "vm",
        "cpu_pct",
        3.0,
        [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0],
    ),
];

/// A percent of processor load from which a generated machine works.
const ACTIVE_PERCENT: f64 = 5.0;
/// Reports that are this far apart belong to different sessions.
const GENERATED_GAP: Duration = Duration::from_secs(90);
const RECORDED_GAP: Duration = Duration::from_secs(450);

/// Prints the figure; `rows` rows of each generated set.
///
/// # Errors
/// What reading, encoding and the engine say.
pub(super) fn run(data: Option<&Path>, rows: u64, report: &mut Report) -> Result<()> {
    for (name, seed, machines, losses) in GENERATED {
        let parameters = [("vms", machines), ("loss_share", losses)];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let table = GeneratorTable::new("counters", rows, seed, parameters.to_vec())?;
        let set = Set {
            name,
            stream: Stream::from_table(table).event_time(col("timestamp"), Duration::ZERO),
            lossy: &["average_value", "max_value"],
            sessions: &silent,
        };
        set.sweep(&GENERATED_BOUNDS, report)?;
    }
    for (name, file, machine, load, limit, bounds) in RECORDED {
        let Some(path) = data.map(|it| it.join(file)).filter(|it| it.exists()) else {
            continue;
        };
        let columns = [
            ("timestamp", col("timestamp")),
            (machine, col(machine)),
            (load, col(load).cast(DataType::Float64)),
        ];
        let stream = Stream::open(path, &SourceOptions::default())?;
        let stream = stream.project(columns).as_source()?;
        let set = Set {
            name,
            stream: stream.event_time(col("timestamp"), Duration::ZERO),
            lossy: &[load],
            sessions: &|stream| {
                let low = stream.filter(col(load).lt(limit));
                let windows = low.window(session(RECORDED_GAP)).group_by([machine]);
                Ok(windows.aggregate([count().alias("reports")]))
            },
        };
        set.sweep(&bounds, report)?;
    }
    Ok(())
}

/// The sessions in which a machine works and its network is silent.
fn silent(counters: Stream) -> Result<Stream> {
    let counter = |name: &str| col("counter_name").eq(name);
    let network = counter("network_in_bytes").or(counter("network_out_bytes"));
    let cpu = call("max", col("average_value")).filter(counter("cpu_percent"));
    let minutes = counters
        .window(tumble(Duration::from_secs(60)))
        .group_by(["vm_id"])
        .aggregate([
            cpu.alias("cpu"),
            call("max", col("max_value"))
                .filter(network)
                .alias("network"),
        ])
        .project([
            ("minute", col("window_start")),
            ("vm_id", col("vm_id")),
            ("cpu", col("cpu")),
            ("network", col("network")),
        ])
        .as_source()?
        .event_time(col("minute"), Duration::ZERO);
    let lost = col("cpu").gt_eq(ACTIVE_PERCENT).and(col("network").lt(1.0));
    let windows = minutes.filter(lost).window(session(GENERATED_GAP));
    let sessions = windows.group_by(["vm_id"]);
    Ok(sessions.aggregate([count().alias("minutes")]))
}

/// Counters, and the query over them.
struct Set<'a> {
    name: &'a str,
    stream: Stream,
    /// The columns that lose.
    lossy: &'a [&'a str],
    sessions: &'a dyn Fn(Stream) -> Result<Stream>,
}

impl Set<'_> {
    /// A point for each bound.
    fn sweep(&self, bounds: &[f64], report: &mut Report) -> Result<()> {
        let sessions = (self.sessions)(self.stream.clone())?;
        let keys = key_columns(sessions.schema()?.as_ref(), self.stream.schema()?.as_ref());
        let exact = answer(sessions)?;
        for bound in bounds {
            let encode = |stream: Stream, column: &&str| {
                let scheme = format!("zfp({bound})");
                stream.encoding(*column, scheme)
            };
            let lossy = self.lossy.iter().fold(self.stream.clone(), encode);
            let found = answer((self.sessions)(lossy.clone())?)?;
            let difference = compare(&exact, &found, &keys)?;
            let sizes = sizes(lossy.tier(Tier::Cold))?;
            let ratio = sizes.ratio(|name| self.lossy.contains(&name));
            report.point(&Point {
                figure: "quality",
                series: self.name,
                x: ((ratio * 100.0).round() / 100.0).into(),
                value: difference.loss() * 100.0,
                unit: "%",
                spread: None,
                share: None,
                note: Some(format!("of {} sessions, bound {bound}", difference.rows)),
            });
        }
        Ok(())
    }
}
