//! A stream as it flows: Arrow batches in, encoded and kept once, queries over it, results out.
//!
//! Batches wait in memory; what is timed goes from handing over the first to taking the last
//! result, event time and late rows handled. The time of a step that closes windows is what their
//! results take after the batch that let them close.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::{Error, Result};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Keep;
use tersecades_engine::source::{self, SourceOptions};
use tersecades_engine::stream::Stream;

use super::plan::{QUERIES, Query, REFERENCE_ROWS};
use super::{LATENESS, NO_DATA, answer, tables};
use crate::Options;
use crate::data::batches;
use crate::measure::summarise;
use crate::report::{Point, Report};

/// How much of the stream is kept.
const KEPT: Duration = Duration::from_secs(60);
/// What the slowest results are to take at most.
const LATENCY_AIM_MS: f64 = 10.0;

/// Runs for each repetition that is asked for: one has a dozen results to take a percentile of.
const RUNS: usize = 3;

/// Sets of queries that run together, and the million rows a second that they aim at.
const SETS: [(&str, &[&str], Option<f64>); 3] = [
    ("kept, no query", &[], None),
    ("q1", &["q1"], Some(120.0)),
    ("q1 to q5", &["q1", "q2", "q3", "q4", "q5"], Some(60.0)),
];

/// Runs each set of queries over the stream of `--data`, and each of `--queries` alone.
///
/// # Errors
/// What reading and the engine say; `Internal` when an answer is wrong.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let Some(path) = options.data_file() else {
        report.note(NO_DATA);
        return Ok(());
    };
    let input = Input::read(&path)?;
    let asked: Vec<&str> = options.queries.iter().map(String::as_str).collect();
    let mut sets = SETS.to_vec();
    sets.extend(asked.chunks(1).map(|query| (query[0], query, None)));
    let mut runs: Vec<Vec<Run>> = sets.iter().map(|_| Vec::new()).collect();
    for repetition in 0..=options.repetitions * RUNS {
        for ((_, queries, _), runs) in sets.iter().zip(&mut runs) {
            let run = input.run(queries)?;
            // The first run warms up.
            if repetition > 0 {
                runs.push(run);
            }
        }
    }
    for ((name, _, aim), runs) in sets.into_iter().zip(runs) {
        told((name, aim), runs, input.rows, report);
    }
    Ok(())
}

/// Reports the rate of a set of queries, and what its slowest results took.
fn told((name, aim): (&str, Option<f64>), runs: Vec<Run>, rows: usize, report: &mut Report) {
    let timing = summarise(runs.iter().map(|run| run.seconds).collect());
    let aim_of = |aim: f64| format!("aim {aim}");
    let rate = Point {
        figure: "continuous",
        series: "rows",
        x: name.into(),
        value: timing.rate(rows as f64) / 1e6,
        unit: "M rows/s",
        spread: timing.spread,
        share: None,
        note: aim.map(aim_of),
    };
    report.point(&rate);
    let mut steps: Vec<f64> = runs.into_iter().flat_map(|run| run.closing_ms).collect();
    steps.sort_by(f64::total_cmp);
    // Of fewer than three hundred the hundredth part is hardly more than the slowest.
    let (series, slow) = match steps.len() {
        few @ ..300 => ("slowest results", few.checked_sub(1)),
        many => ("p99 of results", Some(many * 99 / 100)),
    };
    let slow = slow.and_then(|place| steps.get(place));
    if let Some(slow) = slow {
        report.point(&Point {
            series,
            value: *slow,
            unit: "ms",
            spread: None,
            note: Some(aim_of(LATENCY_AIM_MS)),
            ..rate
        });
    }
}

/// What one run took.
struct Run {
    seconds: f64,
    /// Milliseconds of each step that gave results.
    closing_ms: Vec<f64>,
}

/// The stream, and what its queries need besides.
struct Input {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    switches: Arc<tersecades_engine::plan::LookupTable>,
    clusters: Vec<String>,
}

impl Input {
    fn read(path: &Path) -> Result<Self> {
        let mut source = source::open(path, &SourceOptions::default())?;
        let batches = batches(source.as_mut()).collect::<Result<Vec<RecordBatch>>>()?;
        let (switches, clusters) = tables(path.parent().unwrap_or(Path::new(".")))?;
        Ok(Input {
            schema: source.schema(),
            rows: batches.iter().map(RecordBatch::num_rows).sum(),
            batches,
            switches,
            clusters,
        })
    }

    fn run(&self, names: &[&str]) -> Result<Run> {
        let stream = Stream::from_batches(Arc::clone(&self.schema), self.batches.clone())
            .event_time(col("timestamp"), LATENESS)
            .keep(Keep::Duration(KEPT));
        let queries: Vec<&Query> = QUERIES
            .iter()
            .filter(|query| names.contains(&query.name))
            .collect();
        let of = |query: &&Query| {
            let over = (query.plan)(stream.clone(), &self.switches);
            (query.name, over)
        };
        let mut standing = stream.clone().standing(queries.iter().map(of))?;
        let mut results: HashMap<Arc<str>, Vec<RecordBatch>> = HashMap::new();
        let mut closing_ms = Vec::new();
        let start = Instant::now();
        loop {
            let step = Instant::now();
            let goes_on = standing.step()?;
            let mut closed = false;
            while let Some((name, rows)) = standing.take_result() {
                closed = true;
                results.entry(name).or_default().push(rows);
            }
            if closed {
                closing_ms.push(step.elapsed().as_secs_f64() * 1e3);
            }
            if !goes_on {
                break;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        for query in queries {
            self.check(query, results.get(query.name).map_or(&[][..], |rows| rows))?;
        }
        Ok(Run {
            seconds,
            closing_ms,
        })
    }

    fn check(&self, query: &Query, results: &[RecordBatch]) -> Result<()> {
        let found = answer::checksum(query.reduction, results, &self.clusters)?;
        match self.rows == REFERENCE_ROWS && found != query.checksum {
            true => Err(Error::internal(format!(
                "the answer of {} over the flowing stream is {found}, not {}",
                query.name, query.checksum
            ))),
            false => Ok(()),
        }
    }
}
