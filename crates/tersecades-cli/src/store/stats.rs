//! `store stats`: how large a store is, level by level and column by column.

use std::path::PathBuf;

use clap::Args;
use tersecades::store::{BookmarkStats, Store, StoreStats};

use crate::console;
use crate::figure;
use crate::outcome::Outcome;
use crate::table::Table;

/// Show columns, levels, sizes, codecs and bookmarks
#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// Folder of the store
    dir: PathBuf,
}

/// Prints the numbers.
pub(crate) fn run(arguments: &StatsArguments) -> Outcome {
    let store = Store::open_read_only(&arguments.dir)?;
    let stats = store.snapshot().stats(true)?;
    for error in &stats.damaged {
        console::say(error);
    }
    let mut text = format!(
        "{}\n{}\n{} rows acknowledged, {} of them in the log and in memory ({} encoded)\n",
        levels(&stats),
        columns(&stats),
        figure::grouped(stats.sequence),
        figure::grouped(stats.memory_rows),
        figure::mebibytes(stats.memory_bytes as u64),
    );
    if let Some(floor) = stats.floor {
        text += &format!("rows with a time before {floor} are gone\n");
    }
    let found = store.bookmarks()?;
    if !found.is_empty() {
        text += &format!("\n{}", bookmarks(&found));
    }
    console::print(text)
}

/// What queries that were stopped keep of the log.
fn bookmarks(found: &[BookmarkStats]) -> String {
    let mut table = Table::new(&["bookmark", ">left", ">log kept"]);
    for bookmark in found {
        // The clock of the file system may be ahead.
        let age = bookmark.left.map(|left| left.elapsed().unwrap_or_default());
        table.push([
            bookmark.file.clone(),
            age.map_or_else(|| "?".to_owned(), |age| format!("{} ago", figure::age(age))),
            figure::mebibytes(bookmark.kept_bytes),
        ]);
    }
    table.to_text("")
}

fn levels(stats: &StoreStats) -> String {
    let names = [
        ">level",
        "tier",
        "codec",
        ">runs",
        ">groups",
        ">rows",
        ">bytes",
        ">bytes/row",
        ">in memory",
    ];
    let mut table = Table::new(&names);
    for level in &stats.levels {
        table.push([
            level.level.to_string(),
            level.tier.to_string(),
            level.codec.to_string(),
            level.runs.to_string(),
            figure::grouped(level.groups as u64),
            figure::grouped(level.rows),
            figure::mebibytes(level.bytes),
            format!("{:.3}", level.bytes as f64 / level.rows.max(1) as f64),
            figure::mebibytes(level.resident_bytes as u64),
        ]);
    }
    table.to_text("")
}

fn columns(stats: &StoreStats) -> String {
    let rows: u64 = stats.levels.iter().map(|level| level.rows).sum();
    let mut table = Table::new(&["column", "type", ">bytes", ">bytes/row", ">nulls", "codecs"]);
    for column in &stats.columns {
        let codecs = column
            .codecs
            .iter()
            .map(|(codec, chunks)| format!("{codec} x{chunks}"));
        table.push([
            column.name.clone(),
            column.data_type.clone(),
            figure::mebibytes(column.bytes),
            format!("{:.3}", column.bytes as f64 / rows.max(1) as f64),
            figure::grouped(column.nulls),
            codecs.collect::<Vec<_>>().join(", "),
        ]);
    }
    table.to_text("")
}
