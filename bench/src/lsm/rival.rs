//! The same rows in fjall, a store of keys and values: built with `--features fjall` alone.
//!
//! Keys are those of the rows, largest byte first; LZ4 below the first levels, as fjall has it by
//! default. Loads keep what they write in the cache of the system; the durable ones call
//! `SyncAll` for each batch.

use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_schema::DataType;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::Value;

use crate::Options;
use crate::report::Report;

use super::folder::Folder;
use super::history::quantiles;
use super::rows::{Distribution, Rows, Series};

const BATCH_ROWS: usize = 1_000;
const DURABLE_ROWS: usize = 2_048;
const WRITERS: usize = 8;
const POINTS: usize = 100_000;

fn said(error: fjall::Error) -> Error {
    Error::internal(format!("fjall: {error}"))
}

/// Loads three kinds of rows and reads them, then writes durably.
///
/// # Errors
/// What fjall says.
pub(super) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let count = options.scaled(10_000_000);
    let cases = [
        (
            "pairs in order",
            Rows::Pairs(Distribution::Sequential, count),
        ),
        (
            "pairs, values below a million",
            Rows::Pairs(Distribution::Uniform, count),
        ),
        ("time series", Rows::Series(Series::of_rows(count))),
    ];
    for (name, rows) in cases {
        let folder = Folder::new()?;
        let database = Database::builder(folder.path()).open().map_err(said)?;
        let items = database
            .keyspace("rows", KeyspaceCreateOptions::default)
            .map_err(said)?;
        let rate = |started: Instant| count as f64 / 1e6 / started.elapsed().as_secs_f64();
        let started = Instant::now();
        for start in (0..count).step_by(BATCH_ROWS) {
            let part = rows.batch(start..count.min(start + BATCH_ROWS))?;
            write(&database, &items, &part, None)?;
        }
        items.rotate_memtable_and_wait().map_err(said)?;
        report.add(format!("fjall, {name}: load"), rate(started), "M rows/s");
        items.major_compact().map_err(said)?;
        let bytes = items.disk_space() as f64 / count as f64;
        report.add(format!("fjall, {name}: size"), bytes, "B/row");
        points(&items, name, &rows, report)?;
        let started = Instant::now();
        let found = items.iter().try_fold(0, |found, item| {
            item.into_inner().map(|_| found + 1).map_err(said)
        })?;
        if found != count {
            return Err(Error::internal(format!("{found} rows of {count}")));
        }
        report.add(format!("fjall, {name}: scan"), rate(started), "M rows/s");
    }
    durable(count / 10, report)
}

/// Writes `part` as one batch.
fn write(
    database: &Database,
    items: &Keyspace,
    part: &RecordBatch,
    persist: Option<PersistMode>,
) -> Result<()> {
    let mut batch = database.batch().durability(persist);
    let (values, keys) = part
        .columns()
        .split_last()
        .ok_or_else(|| Error::internal("rows without columns"))?;
    for row in 0..part.num_rows() {
        let key = keys
            .iter()
            .map(|column| column.as_primitive::<Int64Type>().value(row));
        let key: Vec<u8> = key.flat_map(i64::to_be_bytes).collect();
        let value = match values.data_type() {
            DataType::Float64 => values
                .as_primitive::<Float64Type>()
                .value(row)
                .to_le_bytes(),
            _ => values.as_primitive::<Int64Type>().value(row).to_le_bytes(),
        };
        batch.insert(items, key, value);
    }
    batch.commit().map_err(said)
}

fn points(items: &Keyspace, name: &str, rows: &Rows, report: &mut Report) -> Result<()> {
    let mut times = Vec::with_capacity(POINTS);
    for turn in 0..POINTS {
        let row = turn.wrapping_mul(0x9e37_79b1) % rows.count();
        let key = rows.key(row).into_iter().map(|value| match value {
            Value::Integer(value) => value as i64,
            _ => 0,
        });
        let key: Vec<u8> = key.flat_map(i64::to_be_bytes).collect();
        let started = Instant::now();
        let found = items.get(&key).map_err(said)?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
        if found.is_none() {
            return Err(Error::internal(format!("row {row} is missing")));
        }
    }
    let [p50, p99] = quantiles(&mut times);
    report.add(format!("fjall, {name}: read of a row, p50"), p50, "us");
    report.add(format!("fjall, {name}: read of a row, p99"), p99, "us");
    Ok(())
}

/// Eight threads write pairs, each waiting until its batch lasts.
fn durable(count: usize, report: &mut Report) -> Result<()> {
    let folder = Folder::new()?;
    let database = Database::builder(folder.path()).open().map_err(said)?;
    let items = database
        .keyspace("rows", KeyspaceCreateOptions::default)
        .map_err(said)?;
    let rows = Rows::Pairs(Distribution::Uniform, count);
    let share = count / WRITERS;
    let started = Instant::now();
    let append = |writer: usize| -> Result<Vec<f64>> {
        let (first, last) = (writer * share, (writer + 1) * share);
        let mut waits = Vec::new();
        for start in (first..last).step_by(DURABLE_ROWS) {
            let part = rows.batch(start..last.min(start + DURABLE_ROWS))?;
            let started = Instant::now();
            write(&database, &items, &part, Some(PersistMode::SyncAll))?;
            waits.push(started.elapsed().as_secs_f64() * 1e3);
        }
        Ok(waits)
    };
    let waits = std::thread::scope(|scope| {
        let append = &append;
        let writers = (0..WRITERS).map(|writer| scope.spawn(move || append(writer)));
        let writers: Vec<_> = writers.collect();
        let ended = |_| Err(Error::internal("a writer panicked"));
        let waits = writers
            .into_iter()
            .map(|writer| writer.join().unwrap_or_else(ended));
        waits.collect::<Result<Vec<_>>>()
    })?;
    let rate = (share * WRITERS) as f64 * super::PAIR_BYTES / 1e6 / started.elapsed().as_secs_f64();
    let [p50, p99] = quantiles(&mut waits.concat());
    report.add("fjall, durable ingest, 8 writers", rate, "MB/s raw");
    report.add("fjall, acknowledgement, p50", p50, "ms");
    report.add("fjall, acknowledgement, p99", p99, "ms");
    Ok(())
}
