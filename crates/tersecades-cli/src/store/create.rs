//! `store create`: a folder becomes an empty store.

use std::path::PathBuf;

use clap::Args;
use tersecades::Result;
use tersecades::store::{OPTIONS, Store, StoreOptions, StoreSchema, parse_fields, parse_names};

use crate::argument;
use crate::console;
use crate::outcome::Outcome;

/// Make an empty store
#[derive(Debug, Args)]
#[command(after_help = options_help())]
pub(crate) struct CreateArguments {
    /// Folder of the store
    dir: PathBuf,

    /// Columns, as 'k BIGINT, ts TIMESTAMP, "a name" DOUBLE'
    #[arg(long, value_name = "COLUMNS")]
    schema: String,

    /// Columns to sort by, comma-separated; every row counts
    #[arg(long, value_name = "NAMES")]
    key: Vec<String>,

    /// Columns of which each value has one row, the last written; comma-separated
    #[arg(long, value_name = "NAMES", conflicts_with = "key")]
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

/// Names of columns in all values of an option.
fn names(values: &[String]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for value in values {
        names.extend(parse_names(value)?);
    }
    Ok(names)
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Makes the store.
pub(crate) fn run(arguments: &CreateArguments) -> Outcome {
    let mut schema = StoreSchema::new(&parse_fields(&arguments.schema)?)?;
    let (key, primary) = (names(&arguments.key)?, names(&arguments.primary_key)?);
    if !key.is_empty() {
        schema = schema.key(&texts(&key))?;
    }
    if !primary.is_empty() {
        schema = schema.primary_key(&texts(&primary))?;
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
