//! `store query`: SQL over what is stored, as the table `history`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tersecades::engine::source::history::HistoryTable;
use tersecades::sql::{Answer, TableTime};
use tersecades::store::Store;

use crate::outcome::Outcome;
use crate::reading::ReadingArguments;
use crate::sql::{SessionArguments, format_name, output};

/// Run SQL over a store; its table is `history`
#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// Folder of the store
    dir: PathBuf,

    /// Statements, separated by `;`
    query: String,

    #[command(flatten)]
    session: SessionArguments,

    /// How rows are written [default: by the suffix of -o, else table]
    #[arg(long, value_parser = format_name)]
    format: Option<String>,

    /// Write the rows of the last statement to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingArguments,
}

/// Runs the statements over the store as it is.
pub(crate) fn run(arguments: &QueryArguments) -> Outcome {
    let store = Store::open_read_only(&arguments.dir)?;
    let table = HistoryTable::new(store.snapshot());
    let is_primary = store.schema().is_primary();
    let time = match is_primary {
        true => None,
        false => table.event_time()?,
    };
    let time = time.map(|(column, lateness)| TableTime { column, lateness });
    let mut session = arguments.session.open(&arguments.reading)?;
    session.register("history", Arc::new(table), time)?;
    let answers = session.sql(&arguments.query)?;
    let last = answers.len().saturating_sub(1);
    for (index, answer) in answers.into_iter().enumerate() {
        let file = arguments.output.as_deref().filter(|_| index == last);
        match answer {
            Answer::Rows(results) => output::write(results, arguments.format.as_deref(), file)?,
            Answer::Done(what) => eprintln!("{what}"),
        }
    }
    Ok(())
}
