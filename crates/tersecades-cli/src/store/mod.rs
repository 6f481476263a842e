//! `store`: history on disk, made, filled, queried and looked after.

mod create;
mod explain;
mod export;
mod ingest;
#[cfg(feature = "sql")]
mod query;
mod stats;
mod upkeep;

use clap::{Args, Subcommand};

use crate::outcome::Outcome;

/// History on disk: a compressed store that is queried in place
#[derive(Debug, Args)]
#[command(after_help = "docs/store.md describes stores and their options.")]
pub(crate) struct StoreArguments {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    Create(create::CreateArguments),
    Ingest(Box<ingest::IngestArguments>),
    /// Delete the rows with the primary keys of a file or a pipe
    Delete(Box<ingest::IngestArguments>),
    #[cfg(feature = "sql")]
    Query(Box<query::QueryArguments>),
    Stats(stats::StatsArguments),
    Explain(explain::ExplainArguments),
    Verify(upkeep::VerifyArguments),
    Compact(upkeep::CompactArguments),
    Repair(upkeep::RepairArguments),
    Upgrade(upkeep::UpgradeArguments),
    AddColumn(upkeep::AddColumnArguments),
    Export(export::ExportArguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &StoreArguments) -> Outcome {
    match &arguments.command {
        StoreCommand::Create(arguments) => create::run(arguments),
        StoreCommand::Ingest(arguments) => ingest::run(arguments),
        StoreCommand::Delete(arguments) => ingest::delete(arguments),
        #[cfg(feature = "sql")]
        StoreCommand::Query(arguments) => query::run(arguments),
        StoreCommand::Stats(arguments) => stats::run(arguments),
        StoreCommand::Explain(arguments) => explain::run(arguments),
        StoreCommand::Verify(arguments) => upkeep::verify(arguments),
        StoreCommand::Compact(arguments) => upkeep::compact(arguments),
        StoreCommand::Repair(arguments) => upkeep::repair(arguments),
        StoreCommand::Upgrade(arguments) => upkeep::upgrade(arguments),
        StoreCommand::AddColumn(arguments) => upkeep::add_column(arguments),
        StoreCommand::Export(arguments) => export::run(arguments),
    }
}
