//! The queries of the paper from a Parquet file to their results: nothing is kept between runs.

use std::path::Path;
use std::time::Instant;

use arrow_array::RecordBatch;
use tersecades_columnar::{Error, Result};
use tersecades_engine::expression::col;
use tersecades_engine::source::{self, SourceOptions};
use tersecades_engine::stream::Stream;

use crate::Options;
use crate::data::batches;
use crate::measure::summarise;
use crate::query::answer::checksum;
use crate::query::plan::{QUERIES, Query, REFERENCE_ROWS};
use crate::query::{LATENESS, NO_DATA, tables};
use crate::report::{QueryRate, Report};

/// Runs the queries over the Parquet file in the folder of `--data`.
///
/// # Errors
/// What reading and the engine say; `Internal` when an answer is wrong.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let Some(file) = options.data_file() else {
        report.note(NO_DATA);
        return Ok(());
    };
    let file = file.with_extension("parquet");
    let rows = rows(&file)?;
    let (switches, clusters) = tables(file.parent().unwrap_or(Path::new(".")))?;
    let asked = |query: &&Query| {
        options.queries.is_empty() || options.queries.iter().any(|name| name == query.name)
    };
    let case = |query| (query, Vec::new(), String::new());
    let mut cases: Vec<(&Query, Vec<f64>, String)> =
        QUERIES.iter().filter(asked).map(case).collect();
    for repetition in 0..=options.repetitions {
        for (query, seconds, found) in &mut cases {
            let start = Instant::now();
            let stream = Stream::open(&file, &SourceOptions::default())?;
            let stream = match query.reduction.has_windows() {
                true => stream.event_time(col("timestamp"), LATENESS),
                false => stream,
            };
            let running = (query.plan)(stream, &switches)
                .threads(options.threads)
                .run()?;
            let result = running.collect::<Result<Vec<RecordBatch>>>()?;
            let taken = start.elapsed().as_secs_f64();
            *found = checksum(query.reduction, &result, &clusters)?;
            if rows == REFERENCE_ROWS && found != query.checksum {
                let (name, expected) = (query.name, query.checksum);
                let message = format!("the answer of {name} is {found}, not {expected}");
                return Err(Error::internal(message));
            }
            if repetition > 0 {
                seconds.push(taken);
            }
        }
    }
    for (query, seconds, found) in cases {
        report.query(&QueryRate {
            query: query.name,
            threads: options.threads,
            rows,
            rows_per_s: summarise(seconds).rate(rows as f64),
            checksum: &found,
        });
    }
    Ok(())
}

/// Rows of a file.
fn rows(file: &Path) -> Result<usize> {
    let mut source = source::open(file, &SourceOptions::default())?;
    let rows = batches(source.as_mut()).map(|batch| Ok(batch?.num_rows()));
    rows.sum()
}
