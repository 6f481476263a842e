//! `store verify`, `compact`, `repair`, `upgrade` and `add-column`.

use std::path::PathBuf;

use clap::Args;
use tersecades::Error;
use tersecades::store::{self, Store, parse_fields};

use crate::console;
use crate::figure;
use crate::outcome::Outcome;

/// Read everything and say what is damaged
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Folder of the store
    dir: PathBuf,
}

/// Reads every chunk.
pub(crate) fn verify(arguments: &VerifyArguments) -> Outcome {
    let verified = store::verify(&arguments.dir)?;
    for error in &verified.damage {
        console::say(error);
    }
    console::print(format_args!(
        "{} rows in {} runs of {} and {} in the log: {} damaged places\n",
        figure::grouped(verified.rows),
        verified.runs,
        figure::mebibytes(verified.bytes),
        figure::grouped(verified.log_rows),
        verified.damage.len()
    ))?;
    if verified.torn_log_bytes > 0 {
        console::say(format_args!(
            "note: {} bytes at the end of the log hold no whole record: rows that were cut off \
             before they were acknowledged, or damaged since",
            figure::grouped(verified.torn_log_bytes)
        ));
    }
    if verified.torn_manifest_bytes > 0 {
        console::say(format_args!(
            "note: {} bytes at the end of the manifest hold no whole record: of a change that was \
             cut off, or damaged since",
            figure::grouped(verified.torn_manifest_bytes)
        ));
    }
    match verified.damage.is_empty() {
        true => Ok(()),
        false => Err(Error::corrupt("the store is damaged")
            .hint("`tersecades store repair` keeps the rest")
            .into()),
    }
}

/// Merge all runs into one
#[derive(Debug, Args)]
pub(crate) struct CompactArguments {
    /// Folder of the store
    dir: PathBuf,
}

/// Merges.
pub(crate) fn compact(arguments: &CompactArguments) -> Outcome {
    let store = Store::open(&arguments.dir)?;
    store.compact()?;
    let done = store.activity();
    store.close()?;
    console::print(format_args!(
        "{} written, {} of it copied without decoding; {} decoded\n",
        figure::mebibytes(done.written_bytes),
        figure::mebibytes(done.spliced_bytes),
        figure::mebibytes(done.decoded_bytes)
    ))
}

/// Make a damaged store one that opens, and say what is given up
#[derive(Debug, Args)]
pub(crate) struct RepairArguments {
    /// Folder of the store
    dir: PathBuf,
}

/// Repairs.
pub(crate) fn repair(arguments: &RepairArguments) -> Outcome {
    let repaired = store::repair(&arguments.dir)?;
    for error in &repaired.given_up {
        console::print(format_args!("given up: {error}\n"))?;
    }
    if repaired.adopted_rows > 0 {
        console::print(format_args!(
            "{} rows are of runs that the manifest did not know\n",
            figure::grouped(repaired.adopted_rows)
        ))?;
    }
    if repaired.appended_bytes > 0 {
        console::print(format_args!(
            "{} bytes behind the end of runs are left out\n",
            figure::grouped(repaired.appended_bytes)
        ))?;
    }
    console::print(format_args!(
        "{} rows kept; {} of runs and {} of the log given up, and {} of it unreadable\n",
        figure::grouped(repaired.rows),
        figure::grouped(repaired.lost_rows),
        figure::grouped(repaired.lost_log_rows),
        figure::mebibytes(repaired.lost_log_bytes)
    ))
}

/// Add a column, null in rows that are there already
#[derive(Debug, Args)]
pub(crate) struct AddColumnArguments {
    /// Folder of the store
    dir: PathBuf,

    /// Name and type, as "v DOUBLE"
    column: String,
}

/// Adds the column.
pub(crate) fn add_column(arguments: &AddColumnArguments) -> Outcome {
    let fields = parse_fields(&arguments.column)?;
    let store = Store::open(&arguments.dir)?;
    store.add_columns(&fields)?;
    Ok(store.close()?)
}

/// Write a store of an earlier release anew, in the format of this one
#[derive(Debug, Args)]
pub(crate) struct UpgradeArguments {
    /// Folder of the store
    dir: PathBuf,
}

/// Opens the store for writing, which writes its manifest anew, and empties its log into a run.
pub(crate) fn upgrade(arguments: &UpgradeArguments) -> Outcome {
    let (before, after) = store::upgrade(&arguments.dir)?;
    match before == after {
        true => console::print(format_args!("version {after}, as this release writes it\n")),
        false => console::print(format_args!("version {before} became version {after}\n")),
    }
}
