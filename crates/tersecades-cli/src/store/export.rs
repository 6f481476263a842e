//! `store export`: rows of a store as a file.

use std::path::PathBuf;

use clap::Args;
use tersecades::Error;
use tersecades::engine::sink::{self, SinkOptions};
use tersecades::store::{Scan, Snapshot, Store};

use crate::console;
use crate::figure;
use crate::outcome::Outcome;

/// Write rows to a Parquet, Arrow, CSV or JSON file
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Folder of the store
    dir: PathBuf,

    /// The file, its format told by its suffix
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Rows from this time on, in units of the time column
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    from: Option<i64>,

    /// Rows before this time
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    until: Option<i64>,

    /// Rows of the runs of this level, without those that only the log holds
    #[arg(long)]
    level: Option<u32>,
}

/// Scans and writes.
pub(crate) fn run(arguments: &ExportArguments) -> Outcome {
    let store = Store::open_read_only(&arguments.dir)?;
    let schema = store.schema();
    let mut scan = Scan {
        level: arguments.level,
        ..Scan::default()
    };
    if arguments.from.is_some() || arguments.until.is_some() {
        let time = schema
            .time_column()
            .ok_or_else(|| Error::invalid("the store has no time column to choose rows by"))?;
        let (first, last) = match (arguments.from, arguments.until.map(|at| at.checked_sub(1))) {
            (from, None) => (from.unwrap_or(i64::MIN), i64::MAX),
            (from, Some(Some(last))) => (from.unwrap_or(i64::MIN), last),
            // There is no time before the first.
            (_, Some(None)) => (i64::MAX, i64::MIN),
        };
        scan = scan.between(schema.fields().field(time).name(), first, last);
    }
    let snapshot = store.snapshot();
    if let Some(level) = arguments.level {
        check_level(&snapshot, level)?;
    }
    let mut writer = None;
    let mut rows = 0;
    for found in snapshot.scan(&scan)? {
        let batch = found?.to_arrow()?;
        rows += batch.num_rows() as u64;
        let sink = match &mut writer {
            Some(sink) => sink,
            None => writer.insert(sink::create(
                &arguments.output,
                &batch.schema(),
                &SinkOptions::default(),
            )?),
        };
        sink.write(&batch)?;
    }
    let mut sink = match writer {
        Some(sink) => sink,
        None => sink::create(&arguments.output, schema.fields(), &SinkOptions::default())?,
    };
    sink.finish()?;
    console::say(format_args!("{} rows written", figure::grouped(rows)));
    Ok(())
}

/// Refuses a level that has no runs.
fn check_level(snapshot: &Snapshot, level: u32) -> Outcome {
    let levels = snapshot.stats(false)?.levels;
    let levels: Vec<String> = levels.iter().map(|it| it.level.to_string()).collect();
    match levels.contains(&level.to_string()) {
        true => Ok(()),
        false => {
            let error = Error::invalid(format!("no run is of level {level}"));
            Err(error
                .hint(format!("runs are of the levels: {}", levels.join(", ")))
                .into())
        }
    }
}
