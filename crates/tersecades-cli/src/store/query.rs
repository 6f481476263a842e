//! `store query`: SQL over what is stored, as the table `history`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tersecades::engine::source::history::HistoryTable;
use tersecades::engine::source::live::LiveTable;
use tersecades::engine::source::table::Table;
use tersecades::sql::TableTime;
use tersecades::store::Store;
use tersecades::{Error, Result};

use crate::argument;
use crate::outcome::Outcome;
use crate::reading::ReadingArguments;
use crate::sql::{self, SessionArguments, format_name};

/// Run SQL over a store; its table is `history`
#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// Folder of the store
    dir: PathBuf,

    /// Statements, separated by `;`
    query: String,

    /// Goes on with the rows that arrive, which another process writes, until the stream that feeds
    /// the store ends or the store is closed; windows come out as they close
    #[arg(long)]
    follow: bool,

    /// How far behind rows that arrive may be, as 2s [default: not at all]
    #[arg(long, value_parser = argument::duration, requires = "follow")]
    lateness: Option<Duration>,

    #[command(flatten)]
    session: SessionArguments,

    /// How rows are written [default: by the suffix of -o, else table; csv with --follow]
    #[arg(long, value_parser = format_name)]
    format: Option<String>,

    /// Write the rows of the last statement to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingArguments,
}

/// Runs the statements over the store as it is, or as it grows.
pub(crate) fn run(arguments: &QueryArguments) -> Outcome {
    arguments.reading.finish(query(arguments))
}

fn query(arguments: &QueryArguments) -> Outcome {
    let output = arguments.output.as_deref();
    arguments.reading.require_apart(output)?;
    let store = Arc::new(Store::open_read_only(&arguments.dir)?);
    let (table, time) = match arguments.follow {
        true => live(&store, arguments.lateness.unwrap_or_default())?,
        false => history(&store)?,
    };
    if arguments.session.names("history") {
        let error = Error::invalid("two tables are named `history`, of which the store is one");
        return Err(error.hint("give the --table another name").into());
    }
    let mut session = arguments.session.open(&arguments.reading)?;
    session.register("history", table, time)?;
    // A table is shown as a whole, when it has all rows.
    let going_on = (arguments.follow && arguments.output.is_none()).then_some("csv");
    let format = arguments.format.as_deref().or(going_on);
    let answers = session.sql(&arguments.query)?;
    sql::answer(answers, &mut session, format, output)
}

/// What is in the store.
fn history(store: &Store) -> Result<(Arc<dyn Table>, Option<TableTime>)> {
    let table = HistoryTable::new(store.snapshot());
    let time = match store.schema().is_primary() {
        true => None,
        false => table.event_time()?,
    };
    let time = time.map(|(column, lateness)| TableTime { column, lateness });
    Ok((Arc::new(table), time))
}

/// What is in the store, and what arrives.
fn live(store: &Arc<Store>, lateness: Duration) -> Result<(Arc<dyn Table>, Option<TableTime>)> {
    let schema = store.schema();
    let name = |time: usize| schema.fields().field(time).name().clone();
    let time = schema.time_column().map(|time| TableTime {
        column: name(time),
        lateness,
    });
    Ok((Arc::new(LiveTable::new(store)?), time))
}
