//! Rows to stdout or a file, and what there is to say about the run on stderr.

use std::path::Path;

use tersecades::engine::sink::{self, Sink, Target};
use tersecades::sql::Results;
use tersecades::{Error, Result};

use crate::console::Stdout;
use crate::log::{self, Level};
use crate::outcome::{Outcome, Stop};
use crate::progress_bar::Progress;

/// Writes all rows of `results`.
pub(crate) fn write(mut results: Results, format: Option<&str>, file: Option<&Path>) -> Outcome {
    let written = write_rows(&mut results, format, file);
    match file {
        // It needs no reader of stdout.
        Some(_) => written.map_err(Stop::Failed),
        None => match written.map_err(Stop::from) {
            Err(Stop::PipeClosed) => pass(results).and(Err(Stop::PipeClosed)),
            done => done,
        },
    }
}

/// Passes over the rows of `results`, which nobody reads, for what is written beside them.
pub(crate) fn pass(mut results: Results) -> Outcome {
    if !results.writes_late_rows() {
        return Ok(());
    }
    let passed = results.try_for_each(|batch| batch.map(drop));
    passed.map_err(Stop::Failed)
}

fn write_rows(results: &mut Results, format: Option<&str>, file: Option<&Path>) -> Result<()> {
    let mut sink = open(results, format, file)?;
    let progress = Progress::start("reading", results.rows_hint());
    let named = |error: Error| match file {
        Some(path) => error.file(path.display().to_string()),
        None => error,
    };
    while let Some(batch) = results.next() {
        sink.write(&batch?).map_err(named)?;
        if file.is_none() {
            // Who reads a pipe need not wait for the end.
            sink.flush()?;
        }
        if let Some(metrics) = results.metrics() {
            progress.show(metrics.rows);
        }
    }
    drop(progress);
    sink.finish().map_err(named)?;
    report(results);
    Ok(())
}

fn open(results: &Results, format: Option<&str>, file: Option<&Path>) -> Result<Box<dyn Sink>> {
    file.map_or(Ok(()), |file| results.require_apart(file))?;
    let (schema, options) = (results.schema(), results.sink_options());
    match (file, format) {
        (Some(path), None) => sink::create(path, &schema, &options),
        (Some(path), Some(format)) => {
            let target = Target::File(path.to_path_buf());
            (sink::find_kind(format)?.create)(target, &schema, &options)
        }
        (None, format) => {
            let target = Target::Writer(Box::new(Stdout));
            (sink::find_kind(format.unwrap_or("table"))?.create)(target, &schema, &options)
        }
    }
}

/// Rows that did not count, which nobody should miss.
pub(crate) fn report(results: &Results) {
    let Some(metrics) = results.metrics() else {
        return;
    };
    let late_hint = match results.writes_late_rows() {
        true => "LATE INTO wrote those of windows; a longer lateness counts them",
        false => {
            "give a longer lateness; of windows, ALLOWED LATENESS and LATE INTO 'file' keep them"
        }
    };
    let lost = [
        (
            metrics.late_rows,
            ("row came too late", "rows came too late"),
            "",
            late_hint,
        ),
        (
            metrics.untimed_rows,
            ("row has", "rows have"),
            " no event time",
            "filter them out, or fill the column",
        ),
        (
            metrics.skipped_rows,
            ("row lies", "rows lie"),
            " between windows",
            "the slide is longer than the size",
        ),
        (
            metrics.rejected_rows,
            ("row", "rows"),
            " could not be read",
            "see --on-error",
        ),
    ];
    for (rows, (one, many), what, hint) in lost {
        if rows > 0 {
            let subject = if rows == 1 { one } else { many };
            let warning = format!("warning: {rows} {subject}{what}\n  hint: {hint}");
            log::say(Level::Warn, warning);
        }
    }
}
