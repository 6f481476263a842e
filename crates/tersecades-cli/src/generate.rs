//! `generate`: a seeded stream as a file, with the ground truth of what was broken in it.
//!
//! ```text
//! generate pingmesh -o probes.parquet ─▶ probes.parquet, probes.parquet.truth.jsonl, tor.parquet
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tersecades::engine::sink::{self, SinkOptions, Target, output::Output};
use tersecades::engine::source::generator::topology::TopologySize;
use tersecades::engine::source::generator::write_truth;
use tersecades::prelude::{Pingmesh, PingmeshOptions, RecordBatch};
use tersecades::{Error, Result};

use crate::argument;
use crate::outcome::Outcome;
use crate::progress_bar::Progress;

/// Rows that are generated and written at a time.
const BATCH_ROWS: usize = 65_536;

/// Name of the table of racks, beside the stream.
const TOR_FILE: &str = "tor.parquet";

/// Every generator and what it makes.
pub(crate) const GENERATORS: &[(&str, &str)] = &[(
    "pingmesh",
    "probes between the servers of a data centre, one of whose switches goes bad",
)];

/// Write a seeded stream to a file
#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// The generator: pingmesh
    generator: String,

    /// The file, its format told by its suffix; FILE.truth.jsonl and tor.parquet appear beside it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Rows to generate, as 5000, 20k, 20M or 1G
    #[arg(long, default_value = "1M", value_parser = argument::count)]
    rows: u64,

    /// Chooses one of the streams that fit the other options
    #[arg(long)]
    seed: Option<u64>,

    #[command(flatten)]
    shape: Shape,
}

/// The shape of a Pingmesh stream.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pingmesh options")]
struct Shape {
    /// Rows in one second of event time
    #[arg(long, value_parser = argument::count)]
    rate: Option<u64>,
    /// First arrival, in milliseconds since 1970 UTC
    #[arg(long)]
    start_ms: Option<i64>,
    /// Regions
    #[arg(long)]
    regions: Option<u32>,
    /// Clusters of all regions together
    #[arg(long)]
    clusters: Option<u32>,
    /// Racks in a cluster
    #[arg(long)]
    racks_per_cluster: Option<u32>,
    /// Servers in a rack
    #[arg(long)]
    servers_per_rack: Option<u32>,
    /// Zipf exponent over clusters; 0 makes all equally busy
    #[arg(long)]
    cluster_skew: Option<f64>,
    /// Share of servers that the table of racks does not know
    #[arg(long)]
    tor_missing_share: Option<f64>,
    /// Median round trip
    #[arg(long)]
    rtt_median_us: Option<f64>,
    /// Standard deviation of the logarithm of round trips
    #[arg(long)]
    rtt_sigma: Option<f64>,
    /// Share of round trips from the heavy tail
    #[arg(long)]
    tail_share: Option<f64>,
    /// Share of probes that end in an error, faults apart
    #[arg(long)]
    error_share: Option<f64>,
    /// How late any row may be
    #[arg(long, value_parser = argument::duration)]
    jitter_max: Option<Duration>,
    /// Share of rows that are later than that
    #[arg(long)]
    late_share: Option<f64>,
    /// How late those are at most
    #[arg(long, value_parser = argument::duration)]
    late_max: Option<Duration>,
    /// When one switch goes bad, after the start
    #[arg(long, value_parser = argument::duration, conflicts_with = "no_fault")]
    fault_at: Option<Duration>,
    /// No switch goes bad
    #[arg(long)]
    no_fault: bool,
    /// How long the switch stays bad
    #[arg(long, value_parser = argument::duration)]
    fault_duration: Option<Duration>,
    /// Share of probes through the bad switch that time out
    #[arg(long)]
    fault_drop_share: Option<f64>,
    /// How many times longer the other probes through it take
    #[arg(long)]
    fault_rtt_factor: Option<u32>,
}

impl GenerateArguments {
    fn to_options(&self) -> PingmeshOptions {
        let (asked, usual) = (&self.shape, PingmeshOptions::default());
        let size = usual.topology;
        PingmeshOptions {
            rows: self.rows,
            seed: self.seed.unwrap_or(usual.seed),
            start_ms: asked.start_ms.unwrap_or(usual.start_ms),
            rows_per_second: asked.rate.unwrap_or(usual.rows_per_second),
            topology: TopologySize {
                regions: asked.regions.unwrap_or(size.regions),
                clusters: asked.clusters.unwrap_or(size.clusters),
                racks_per_cluster: asked.racks_per_cluster.unwrap_or(size.racks_per_cluster),
                servers_per_rack: asked.servers_per_rack.unwrap_or(size.servers_per_rack),
            },
            cluster_skew: asked.cluster_skew.unwrap_or(usual.cluster_skew),
            tor_missing_share: asked.tor_missing_share.unwrap_or(usual.tor_missing_share),
            rtt_median_us: asked.rtt_median_us.unwrap_or(usual.rtt_median_us),
            rtt_sigma: asked.rtt_sigma.unwrap_or(usual.rtt_sigma),
            tail_share: asked.tail_share.unwrap_or(usual.tail_share),
            error_share: asked.error_share.unwrap_or(usual.error_share),
            jitter_max: asked.jitter_max.unwrap_or(usual.jitter_max),
            late_share: asked.late_share.unwrap_or(usual.late_share),
            late_max: asked.late_max.unwrap_or(usual.late_max),
            fault_at: if asked.no_fault {
                None
            } else {
                asked.fault_at.or(usual.fault_at)
            },
            fault_duration: asked.fault_duration.unwrap_or(usual.fault_duration),
            fault_drop_share: asked.fault_drop_share.unwrap_or(usual.fault_drop_share),
            fault_rtt_factor: asked.fault_rtt_factor.unwrap_or(usual.fault_rtt_factor),
        }
    }
}

/// Writes the stream, its truth and its table.
pub(crate) fn run(arguments: &GenerateArguments) -> Outcome {
    if !GENERATORS
        .iter()
        .any(|(name, _)| *name == arguments.generator)
    {
        let names: Vec<&str> = GENERATORS.iter().map(|(name, _)| *name).collect();
        let message = format!("there is no generator `{}`", arguments.generator);
        let hint = format!("generators: {}", names.join(", "));
        return Err(Error::unsupported(message).hint(hint).into());
    }
    let mut probes = Pingmesh::new(arguments.to_options())?;
    let path = &arguments.output;
    write_stream(&mut probes, path)?;
    write_truth_beside(&probes, path)?;
    let racks = path.with_file_name(TOR_FILE);
    write_table(&probes.tor_table()?, &racks)?;
    eprintln!(
        "{} rows in {}, ground truth beside it, racks in {}",
        probes.position(),
        path.display(),
        racks.display()
    );
    Ok(())
}

fn write_stream(probes: &mut Pingmesh, path: &Path) -> Result<()> {
    let mut sink = sink::create(path, &probes.schema(), &SinkOptions::default())?;
    let progress = Progress::start("generating", probes.rows_hint());
    while let Some(batch) = probes.next_batch(BATCH_ROWS)? {
        sink.write(&batch)
            .map_err(|error| error.file(path.display().to_string()))?;
        progress.show(probes.position());
    }
    sink.finish()
        .map_err(|error| error.file(path.display().to_string()))
}

fn write_truth_beside(probes: &Pingmesh, path: &Path) -> Result<()> {
    let mut name = OsString::from(path);
    name.push(".truth.jsonl");
    let path = PathBuf::from(name);
    let write = || {
        let mut output = Output::create(Target::File(path.clone()))?;
        write_truth(&probes.truth(), &mut output)?;
        output.commit()
    };
    write().map_err(|error: Error| error.file(path.display().to_string()))
}

fn write_table(rows: &RecordBatch, path: &Path) -> Result<()> {
    let mut sink = sink::create(path, &rows.schema(), &SinkOptions::default())?;
    sink.write(rows)?;
    sink.finish()
        .map_err(|error| error.file(path.display().to_string()))
}
