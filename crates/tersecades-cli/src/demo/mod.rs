//! `demo`: the two queries of the paper on a generated stream, and what running them took.
//!
//! ```text
//! generator ─▶ encode ─▶ C2cProbeCount
//! generator ─▶ encode ─▶ T2tProbeCount
//!                 └────▶ retained range, encoded ─▶ C2cProbeCount, T2tProbeCount
//! ```
//! The stream is kept up to a limit, so memory does not grow with the number of rows.

mod query;
mod ranking;
mod report;

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use clap::Args;
use tersecades::engine::source::BATCH_ROWS_DEFAULT;
use tersecades::engine::source::generator::InjectedFault;
use tersecades::prelude::{
    Keep, LookupTable, Metrics, Pingmesh, PingmeshOptions, PingmeshSource, Retained, Stream, col,
};
use tersecades::{Error, Result};

use crate::argument;
use crate::console;
use crate::outcome::Outcome;
use crate::progress_bar::Progress;
use ranking::{Ranking, rank};

/// Run the two queries of the paper on a generated stream; nothing else is needed
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Rows to generate, as 5000, 20k, 20M or 1G
    #[arg(long, default_value = "100M", value_parser = argument::count)]
    rows: u64,

    /// Chooses one of many streams
    #[arg(long)]
    seed: Option<u64>,

    /// Rows in one second of event time
    #[arg(long, default_value = "500k", value_parser = argument::count)]
    rate: u64,

    /// Worker threads [default: one for each processor]
    #[arg(long)]
    threads: Option<NonZero<usize>>,

    /// Pairs to show for each window
    #[arg(long, default_value_t = 5)]
    top: usize,

    /// Show every window, not only a few
    #[arg(long)]
    all_windows: bool,

    /// Most encoded MiB to keep of the stream; the oldest rows go first
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    keep: usize,
}

/// A query that has run.
#[derive(Debug)]
struct Run {
    rankings: Vec<Ranking>,
    metrics: Metrics,
    operators: Vec<String>,
    elapsed: Duration,
    retained: Option<Retained>,
}

/// Everything the demo ran: each query over the stream, then over the end of it that was kept.
#[derive(Debug)]
struct Demo {
    threads: usize,
    fault: Option<InjectedFault>,
    retained: Retained,
    clusters: Run,
    racks: Run,
    clusters_retained: Run,
    racks_retained: Run,
}

/// Runs the demo and prints what came out.
pub(crate) fn run(arguments: &DemoArguments) -> Outcome {
    let demo = Demo::run(arguments)?;
    let text = report::text(&demo, arguments.all_windows);
    console::print(text)
}

impl DemoArguments {
    fn threads(&self) -> usize {
        self.threads
            .or_else(|| available_parallelism().ok())
            .map_or(1, NonZero::get)
    }

    fn generator(&self) -> Result<Pingmesh> {
        let usual = PingmeshOptions::default();
        Pingmesh::new(PingmeshOptions {
            rows: self.rows,
            seed: self.seed.unwrap_or(usual.seed),
            rows_per_second: self.rate,
            ..usual
        })
    }

    /// The generated stream, encoded as it comes in, its end kept.
    fn stream(&self) -> Result<Stream> {
        let probes = PingmeshSource::new(self.generator()?, BATCH_ROWS_DEFAULT);
        Ok(Stream::from_source(Box::new(probes))
            .event_time(col("timestamp"), query::LATENESS)
            .keep(Keep::Bytes(self.keep.saturating_mul(1 << 20)))
            .threads(self.threads()))
    }
}

impl Demo {
    fn run(arguments: &DemoArguments) -> Result<Self> {
        let (threads, top) = (arguments.threads(), arguments.top);
        let generator = arguments.generator()?;
        let fault = generator.truth().into_iter().next();
        let tor = Arc::new(LookupTable::new("tor", generator.tor_table()?));

        let clusters = query::clusters(arguments.stream()?);
        let clusters = Run::of(clusters, top, "C2cProbeCount")?.without_retained();
        let mut racks = Run::of(
            query::racks(arguments.stream()?, &tor),
            top,
            "T2tProbeCount",
        )?;
        let retained = racks.retained.take();
        let retained = retained.ok_or_else(|| Error::internal("the stream was to be kept"))?;
        let kept = || Stream::from_retained(&retained).threads(threads).measured();
        let clusters_retained = Run::of(query::clusters(kept()), top, "C2c, retained")?;
        let racks_retained = Run::of(query::racks(kept(), &tor), top, "T2t, retained")?;

        let is_whole = retained.rows() as u64 == racks.metrics.rows;
        let are_equal = clusters.rankings == clusters_retained.rankings
            && racks.rankings == racks_retained.rankings;
        if is_whole && !are_equal {
            return Err(Error::internal(
                "the retained range answers other than the stream",
            ));
        }
        Ok(Demo {
            threads,
            fault,
            retained,
            clusters,
            racks,
            clusters_retained,
            racks_retained,
        })
    }
}

impl Run {
    /// The run without the batches it kept, whose memory is free again.
    fn without_retained(self) -> Self {
        Run {
            retained: None,
            ..self
        }
    }

    /// Runs a query to its end.
    fn of(stream: Stream, top: usize, what: &'static str) -> Result<Self> {
        let started = Instant::now();
        let mut running = stream.run()?;
        let progress = Progress::start(what, running.rows_hint());
        let mut rankings = Vec::new();
        loop {
            let more = running.step()?;
            while let Some(window) = running.take_result() {
                rankings.extend(rank(&window, top)?);
            }
            if !more {
                break;
            }
            progress.show(running.metrics().rows);
        }
        Ok(Run {
            rankings,
            metrics: running.metrics(),
            operators: running.describe(),
            elapsed: started.elapsed(),
            retained: running.retained().cloned(),
        })
    }
}
