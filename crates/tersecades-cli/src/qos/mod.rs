//! `qos`: what tolerances of lossy columns cost in the answers of queries.
//!
//! ```text
//! tables, queries, ladder of tolerances ─▶ Session::qos ─▶ table or JSON, plot, loosest setting
//! ```

mod plot;
mod report;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tersecades::sql::{Experiment, loosest, scheme_within};
use tersecades::{Error, Result};

use crate::console;
use crate::outcome::Outcome;
use crate::progress_bar::Progress;
use crate::reading::ReadingArguments;
use crate::sql::SessionArguments;
use report::Report;

/// Measure what lossy columns cost in the answers of queries
#[derive(Debug, Args)]
#[command(
    after_help = "Rows match by keys and overlapping windows; loss: missing and extra rows for \
    each exact one."
)]
pub(crate) struct QosArguments {
    /// A query; may be repeated
    #[arg(short, long, value_name = "SQL", required_unless_present = "file")]
    query: Vec<String>,

    /// A file with a query; may be repeated
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,

    #[command(flatten)]
    session: SessionArguments,

    /// The table of the lossy columns [default: the first one]
    #[arg(long, value_name = "TABLE")]
    encode: Option<String>,

    /// A column that is; may be repeated [default: all floats]
    #[arg(short, long, value_name = "COLUMN")]
    column: Vec<String>,

    /// What encodes them
    #[arg(long, default_value = "zfp")]
    codec: String,

    /// Bounds, strict to loose
    #[arg(long, value_name = "BOUND", value_delimiter = ',', value_parser = bound,
          default_value = "1e-6,1e-4,0.01,0.1,0.5,1,2,5,10")]
    tolerances: Vec<f64>,

    /// The most that may be lost, as 1% or 0.01
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    max_loss: f64,

    /// The most that matched values may be off on average
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = share)]
    max_error: f64,

    /// A column that identifies a row of an answer; may be repeated [default: what is no number,
    /// and whole numbers that the table has too]
    #[arg(long, value_name = "COLUMN")]
    key: Vec<String>,

    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Draws loss against compression into a file
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingArguments,
}

/// How the result is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// Runs the experiment.
pub(crate) fn run(arguments: &QosArguments) -> Outcome {
    arguments.reading.finish(search(arguments))
}

fn search(arguments: &QosArguments) -> Outcome {
    let experiment = arguments.experiment()?;
    let mut session = arguments.session.open(&arguments.reading)?;
    let mut bar = None;
    let settings = session.qos(&experiment, |done, runs| {
        let bar = bar.get_or_insert_with(|| Progress::runs("running queries", runs));
        bar.show(done as u64);
    })?;
    drop(bar);
    let report = Report {
        settings: &settings,
        queries: &experiment.queries,
        loosest: loosest(&settings, arguments.max_loss, arguments.max_error),
        loss_max: arguments.max_loss,
    };
    if let Some(path) = &arguments.plot {
        let drawn = plot::svg(&settings, &experiment.queries);
        let named = |error: std::io::Error| Error::from(error).file(path.display().to_string());
        std::fs::write(path, drawn).map_err(named)?;
    }
    match arguments.format {
        Format::Table => console::print(report.to_text()),
        Format::Json => console::print(format_args!("{}\n", report.to_json())),
    }
}

impl QosArguments {
    fn experiment(&self) -> Result<Experiment> {
        let mut queries = Vec::new();
        for (index, text) in self.query.iter().enumerate() {
            queries.push((format!("q{}", index + 1), text.clone()));
        }
        for path in &self.file {
            let name = path.file_stem().unwrap_or(path.as_os_str());
            let named = |error: std::io::Error| Error::from(error).file(path.display().to_string());
            let text = std::fs::read_to_string(path).map_err(named)?;
            queries.push((name.to_string_lossy().into_owned(), text));
        }
        let table = self
            .encode
            .as_deref()
            .or_else(|| self.session.first_table());
        let table = table.ok_or_else(|| {
            Error::invalid("there is no table").hint("name a file: --table NAME=PATH")
        })?;
        let tolerances = self.tolerances.iter();
        let ladder = tolerances.map(|tolerance| scheme_within(&self.codec, *tolerance));
        Ok(Experiment {
            table: table.to_owned(),
            columns: self.column.clone(),
            ladder: ladder.collect::<Result<_>>()?,
            queries,
            keys: self.key.clone(),
        })
    }
}

fn bound(text: &str) -> std::result::Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(bound) if bound > 0.0 && bound.is_finite() => Ok(bound),
        _ => Err("a tolerance is a number above 0, as 0.01".to_owned()),
    }
}

fn share(text: &str) -> std::result::Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text.trim(), 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(share) if share >= 0.0 => Ok(share / scale),
        _ => Err("write a share as 1% or 0.01".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_bounds_are_read_as_people_write_them() {
        assert_eq!((share("1%"), share("0.25")), (Ok(0.01), Ok(0.25)));
        assert_eq!(bound("1e-3"), Ok(0.001));
        assert!(share("-1").is_err() && share("one").is_err());
        assert!(bound("0").is_err() && bound("inf").is_err());
    }
}
