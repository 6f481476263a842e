//! `store create`: a folder becomes an empty store.

use std::path::PathBuf;

use clap::Args;
use tersecades::store::{OPTIONS, Store, StoreOptions, StoreSchema, parse_fields};

use crate::argument;
use crate::console;
use crate::outcome::Outcome;

/// Make an empty store
#[derive(Debug, Args)]
#[command(after_help = options_help())]
pub(crate) struct CreateArguments {
    /// Folder of the store
    dir: PathBuf,

    /// Columns, as "k BIGINT, ts TIMESTAMP, v DOUBLE"
    #[arg(long, value_name = "COLUMNS")]
    schema: String,

    /// Columns to sort by, comma-separated; every row counts
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    key: Vec<String>,

    /// Columns of which each value has one row, the last written; comma-separated
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAMES",
        conflicts_with = "key"
    )]
    primary_key: Vec<String>,

    /// Column that says when a row happened
    #[arg(long, value_name = "NAME")]
    time: Option<String>,

    /// Where the runs of level 0, 1 and so on lie, as hot/warm/cold; the last holds for the rest
    #[arg(long, value_name = "TIERS")]
    tier: Option<String>,

    /// Sets an option, as durability=group(4ms); may be repeated
    #[arg(long, value_name = "OPTION=VALUE", value_parser = argument::pair)]
    set: Vec<(String, String)>,
}

fn options_help() -> String {
    let lines = OPTIONS
        .iter()
        .map(|(name, what)| format!("  {name:<13} {what}\n"));
    format!("Options:\n{}", lines.collect::<String>())
}

/// Makes the store.
pub(crate) fn run(arguments: &CreateArguments) -> Outcome {
    let mut schema = StoreSchema::new(&parse_fields(&arguments.schema)?)?;
    let key: Vec<&str> = arguments.key.iter().map(String::as_str).collect();
    let primary: Vec<&str> = arguments.primary_key.iter().map(String::as_str).collect();
    if !key.is_empty() {
        schema = schema.key(&key)?;
    }
    if !primary.is_empty() {
        schema = schema.primary_key(&primary)?;
    }
    if let Some(time) = &arguments.time {
        schema = schema.time(time)?;
    }
    let mut options = StoreOptions::default();
    if let Some(tiers) = &arguments.tier {
        options.set("tiers", tiers)?;
    }
    for (name, value) in &arguments.set {
        options.set(name, value)?;
    }
    Store::create(&arguments.dir, schema, options)?.close()?;
    console::say(format_args!("created {}", arguments.dir.display()));
    Ok(())
}
