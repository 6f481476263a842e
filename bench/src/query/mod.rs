//! The queries of the paper over encoded batches in memory: rows per second, answers checked.
//!
//! The reference input (`bench/rivals/gen_pingmesh.py`) is read and encoded once; what is timed
//! goes from the retained batches to the last result batch, as a rival's time goes from its table
//! in memory to its result. Queries take turns, so that all of them meet the same weather.

pub(crate) mod answer;
pub(crate) mod apart;
pub(crate) mod disorder;
pub(crate) mod flow;
mod overlap;
pub(crate) mod plan;
pub(crate) mod range;
pub(crate) mod standing;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use tersecades_columnar::{Error, Result};
use tersecades_engine::expression::col;
use tersecades_engine::plan::LookupTable;
use tersecades_engine::runtime::{Keep, Retained};
use tersecades_engine::source::{self, SourceOptions};
use tersecades_engine::stream::Stream;

use crate::Options;
use crate::data::batches;
use crate::measure::summarise;
use crate::range::{kept_by, run_through};
use crate::report::{Bar, QueryRate, Report};
use plan::{QUERIES, Query};

/// How late rows of the reference input may come.
pub(crate) const LATENESS: Duration = Duration::from_secs(3);
/// Most encoded bytes kept; the reference input takes 15 bytes a row.
const KEEP_BYTES: usize = 1 << 34;
/// What a hopping window may cost, in costs of a tumbling one of its size.
const HOP_COST_MAX: f64 = 1.3;

/// Why nothing was measured.
pub(crate) const NO_DATA: &str = "skipped: needs --data FOLDER of bench/rivals/gen_pingmesh.py";

/// What queries read.
struct Input {
    stream: Retained,
    /// Address to switch.
    switches: Arc<LookupTable>,
    /// Names of all clusters, sorted.
    clusters: Vec<String>,
}

/// One query on one number of threads, and how long it has taken so far.
struct Case {
    query: &'static Query,
    threads: usize,
    seconds: Vec<f64>,
    checksum: String,
}

/// Runs the queries over `--data`.
///
/// # Errors
/// What reading and the engine say; `Internal` when an answer is wrong.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let Some(path) = options.data_file() else {
        report.note(NO_DATA);
        return Ok(());
    };
    let input = load(&path, report)?;
    let mut cases = cases(options)?;
    for repetition in 0..=options.repetitions {
        for case in &mut cases {
            let seconds = case.run(&input)?;
            // The first run warms up.
            if repetition > 0 {
                case.seconds.push(seconds);
            }
        }
    }
    let rows = input.stream.rows();
    let mut rates: Vec<(&Case, f64)> = Vec::new();
    for case in &cases {
        let rows_per_s = summarise(case.seconds.clone()).rate(rows as f64);
        report.query(&QueryRate {
            query: case.query.name,
            threads: case.threads,
            rows,
            rows_per_s,
            checksum: &case.checksum,
        });
        rates.push((case, rows_per_s));
    }
    for (hop, tumble) in [
        ("q1_hop_1000", "q1_tumble60_1000"),
        ("q1_hop", "q1_tumble60"),
    ] {
        compare_windows(&rates, hop, tumble, report);
    }
    if options.queries.is_empty() {
        overlap::run(&input.stream, options.repetitions, report)?;
        disorder::run(&path, options, report)?;
        range::run(&path, &input.stream, report)?;
    }
    Ok(())
}

/// The queries that are asked for, on one thread and on as many as are asked for.
fn cases(options: &Options) -> Result<Vec<Case>> {
    let known = |name: &String| QUERIES.iter().any(|query| query.name == name);
    if let Some(unknown) = options.queries.iter().find(|name| !known(name)) {
        return Err(Error::invalid(format!("no query is called {unknown}")));
    }
    let wanted = |query: &&Query| {
        options.queries.is_empty() || options.queries.iter().any(|name| name == query.name)
    };
    let mut threads = vec![1, options.threads];
    threads.dedup();
    let of_query = |query: &'static Query| {
        let case = |threads: &usize| Case {
            query,
            threads: *threads,
            seconds: Vec::new(),
            checksum: String::new(),
        };
        threads.iter().map(case).collect::<Vec<_>>()
    };
    Ok(QUERIES.iter().filter(wanted).flat_map(of_query).collect())
}

impl Case {
    /// Runs the query once, checks its answer and says how long it took.
    fn run(&mut self, input: &Input) -> Result<f64> {
        let stream = (self.query.plan)(Stream::from_retained(&input.stream), &input.switches);
        let start = Instant::now();
        let running = stream.threads(self.threads).run()?;
        let result = running.collect::<Result<Vec<RecordBatch>>>()?;
        let seconds = start.elapsed().as_secs_f64();
        self.checksum = answer::checksum(self.query.reduction, &result, &input.clusters)?;
        let expected = self.query.checksum;
        if input.stream.rows() == plan::REFERENCE_ROWS && self.checksum != expected {
            let (name, checksum) = (self.query.name, &self.checksum);
            let message = format!("the answer of {name} is {checksum}, not {expected}");
            return Err(Error::internal(message)
                .hint("other data than those of gen_pingmesh.py with its own seed, or a bug"));
        }
        Ok(seconds)
    }
}

/// Reads the stream, encodes it and keeps it whole; reads what is joined to it.
fn load(path: &Path, report: &mut Report) -> Result<Input> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let stream = Stream::open(path, &SourceOptions::default())?
        .event_time(col("timestamp"), LATENESS)
        .keep(Keep::Bytes(KEEP_BYTES));
    let running = run_through(stream)?;
    let metrics = running.metrics();
    report.add(
        "encode",
        metrics.encode_ns as f64 / metrics.rows as f64,
        "ns/row",
    );
    let stream = kept_by(&running)?;
    report.add(
        "in memory",
        stream.byte_size() as f64 / stream.rows() as f64,
        "B/row",
    );
    let (switches, clusters) = tables(folder)?;
    Ok(Input {
        stream,
        switches,
        clusters,
    })
}

/// The table of switches, and the sorted names of the clusters.
///
/// # Errors
/// What reading says.
pub(crate) fn tables(folder: &Path) -> Result<(Arc<LookupTable>, Vec<String>)> {
    let switches = Arc::new(LookupTable::new(
        "tor",
        read_table(&folder.join("tor.parquet"))?,
    ));
    let clusters = std::fs::read_to_string(folder.join("clusters.txt"))?;
    let mut clusters: Vec<String> = clusters.lines().map(str::to_owned).collect();
    clusters.sort_unstable();
    Ok((switches, clusters))
}

fn read_table(path: &Path) -> Result<RecordBatch> {
    let mut source = source::open(path, &SourceOptions::default())?;
    let batches = batches(source.as_mut()).collect::<Result<Vec<RecordBatch>>>()?;
    Ok(concat_batches(&source.schema(), &batches)?)
}

/// What a hopping window costs beside a tumbling one of the same size.
fn compare_windows(rates: &[(&Case, f64)], hop: &str, tumble: &str, report: &mut Report) {
    let on_one_thread = |name: &str| {
        let found = rates
            .iter()
            .find(|(case, _)| case.query.name == name && case.threads == 1);
        found.map(|(_, rows_per_s)| *rows_per_s)
    };
    let (Some(hop_rate), Some(tumble_rate)) = (on_one_thread(hop), on_one_thread(tumble)) else {
        return;
    };
    let (name, cost) = (format!("cost of {hop} / {tumble}"), tumble_rate / hop_rate);
    match hop.ends_with("_1000") {
        true => report.judge(name, cost, "x", Bar::AtMost(HOP_COST_MAX)),
        false => report.add(name, cost, "x"),
    }
}
