//! Makes a damaged store one that opens, and says what it gives up.
//!
//! ```text
//! newest readable manifest ─▶ its runs ─▶ whole groups kept ─┐
//! whole runs that it does not know, of rows that are nowhere ┤
//! log ─▶ every record that is whole ─▶ a new segment ────────┴─▶ a new manifest
//! ```
//! Damaged files are renamed, never deleted.

use std::path::Path;
use std::sync::Arc;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::wire;

use crate::adopt::{adopt, with_columns};
use crate::catalog::Catalog;
use crate::feed::FeedMark;
use crate::fs::{Directory, FileSystem, RealFileSystem};
use crate::log::{self, Segment};
use crate::manifest::{self, Manifest};
use crate::recovery::{aside, put_aside};
use crate::run::{self, Run, RunId, RunWriter};

/// What a repair found and did.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    /// Everything that was given up, one entry each, naming the file.
    pub given_up: Vec<Error>,
    /// Rows of runs that were given up.
    pub lost_rows: u64,
    /// Rows of the log that are missing: the numbers of those behind them, or the end of a store
    /// that was closed, tell. What a store that was not closed held at its end cannot be known.
    pub lost_log_rows: u64,
    /// Bytes of the log that hold no whole record.
    pub lost_log_bytes: u64,
    /// Rows of runs that the manifest did not know, which are part of the store again.
    pub adopted_rows: u64,
    /// Rows that are there.
    pub rows: u64,
}

/// Repairs the store in the folder at `path`, which nobody may have open.
///
/// # Errors
/// `Corrupt` where no manifest can be read; what the system says.
pub fn repair(path: &Path) -> Result<Repaired> {
    repair_in(Arc::new(RealFileSystem), path)
}

/// As [`repair`], in another file system.
///
/// # Errors
/// As [`repair`].
pub fn repair_in(files: Arc<dyn FileSystem>, path: &Path) -> Result<Repaired> {
    let directory = Directory::new(files, path);
    let _lock = directory.lock()?;
    let mut repaired = Repaired::default();
    let mut catalog = manifest::read_newest(&directory, &mut repaired.given_up)?;
    let is_newest = repaired.given_up.is_empty();
    let ids = std::mem::take(&mut catalog.runs);
    let mut known: Vec<u64> = ids.iter().map(|id| id.number).collect();
    let mut damaged = Vec::new();
    let mut gone = Vec::new();
    for id in ids {
        let kept = repair_run(&directory, &id, (&mut repaired, &mut damaged), &mut gone)?;
        repaired.rows += kept.as_ref().map_or(0, |kept| kept.rows);
        known.extend(kept.iter().map(|kept| kept.number));
        catalog.runs.extend(kept);
    }
    // What a newest manifest does not know is left over from a crash, but in a store without rows.
    let is_empty = catalog.runs.is_empty() && catalog.flushed == 0;
    if !is_newest || is_empty {
        adopt_runs(
            &directory,
            (&mut catalog, is_newest),
            &known,
            (&mut repaired, &mut damaged),
        )?;
    }
    for (id, error) in gone {
        let is_held = |run: &RunId| {
            run.sequences.start <= id.sequences.start && id.sequences.end <= run.sequences.end
        };
        if !catalog.runs.iter().any(is_held) {
            repaired.given_up.push(error);
            repaired.lost_rows += id.rows;
        }
    }
    let salvaged = salvage_log(&directory, &catalog, (&mut repaired, &mut damaged))?;
    for batch in &salvaged {
        catalog.schema = with_columns(batch.schema(), &catalog.schema)?;
    }
    if !repaired.given_up.is_empty() {
        catalog.feeds.iter_mut().for_each(FeedMark::doubt);
    }
    if !is_newest {
        catalog.feeds.push(FeedMark::of_unknown());
    }
    let in_log = salvaged.iter().map(|batch| batch.rows() as u64);
    repaired.rows += in_log.sum::<u64>();
    let number = log::segments(&directory)?.last().copied().unwrap_or(0) + 1;
    let mut segment = Segment::create(&directory, number, catalog.flushed)?;
    let mut row = catalog.flushed;
    for batch in &salvaged {
        let (mut bytes, mut payload) = (Vec::new(), Vec::new());
        wire::write_batch(batch, &mut bytes)?;
        log::write_entry(row, batch.rows(), &bytes, &mut payload)?;
        segment.append(&payload, true)?;
        row += batch.rows() as u64;
    }
    catalog.log_start = number;
    catalog.closed = Some(row);
    let newest = manifest::newest(&directory)?;
    if !is_newest {
        keep_manifests(&directory)?;
    }
    Manifest::begin(&directory, newest, &catalog)?;
    // Whoever repairs again because this was cut short finds them as they were.
    damaged
        .iter()
        .try_for_each(|name| put_aside(&directory, name))?;
    Ok(repaired)
}

/// Copies manifests to names under which nothing reads or removes them: the new one takes the place
/// of the damaged.
fn keep_manifests(directory: &Directory) -> Result<()> {
    for name in directory.names("")? {
        if manifest::is_manifest(&name) {
            let bytes = directory.read(&name)?;
            let copy = aside(directory, &name)?;
            let mut output = directory.create(&copy)?;
            directory.write(output.as_mut(), &copy, &bytes)?;
            directory.sync(output.as_mut(), &copy)?;
        }
    }
    Ok(())
}

/// Takes in runs that the catalogue does not know. Where it is the newest one, the others are left
/// over from a crash and go when the store is opened; else they are put aside.
fn adopt_runs(
    directory: &Directory,
    (catalog, is_newest): (&mut Catalog, bool),
    known: &[u64],
    (repaired, damaged_files): (&mut Repaired, &mut Vec<String>),
) -> Result<()> {
    let flushed = catalog.flushed;
    let adopted = adopt(directory, catalog, known)?;
    let rows: u64 = adopted.runs.iter().map(|run| run.rows).sum();
    repaired.rows += rows;
    repaired.adopted_rows += rows;
    if is_newest {
        return Ok(());
    }
    let mut next = flushed;
    for run in &adopted.runs {
        if run.sequences.start > next {
            let (first, last) = (next, run.sequences.start - 1);
            let error = Error::corrupt(format!("rows {first} to {last} are in no run"));
            let error = directory.name_file(error, &run::file_name(run.number));
            repaired.given_up.push(error);
            repaired.lost_rows += run.sequences.start - next;
        }
        next = next.max(run.sequences.end);
    }
    for (name, error) in adopted.refused {
        repaired.given_up.push(error);
        damaged_files.push(name);
    }
    Ok(())
}

/// What is left of a run; its file is added to `damaged` unless that is all, and one that is no run
/// is noted in `gone`.
fn repair_run(
    directory: &Directory,
    id: &RunId,
    (repaired, damaged_files): (&mut Repaired, &mut Vec<String>),
    gone: &mut Vec<(RunId, Error)>,
) -> Result<Option<RunId>> {
    let name = run::file_name(id.number);
    let run = match Run::open(directory, id.clone()) {
        Ok(run) => run,
        Err(error) => {
            gone.push((id.clone(), error));
            damaged_files.push(name);
            return Ok(None);
        }
    };
    let columns = run.fields().fields().len();
    let damage = |group: usize| (0..columns).find_map(|column| run.read_chunk(group, column).err());
    let damaged: Vec<Option<Error>> = (0..run.groups().len()).map(damage).collect();
    if damaged.iter().all(Option::is_none) {
        return Ok(Some(id.clone()));
    }
    let number = run::newest(directory)? + 1;
    let fields = run.fields();
    let mut writer = RunWriter::create(directory, number, fields, id.sequences.clone(), 0)?;
    for (group, error) in damaged.into_iter().enumerate() {
        match error {
            None => writer.splice(&run, group)?,
            Some(error) => {
                repaired.lost_rows += u64::from(run.group(group).rows);
                repaired.given_up.push(error);
            }
        }
    }
    let kept = match writer.is_empty() {
        true => {
            writer.abandon();
            None
        }
        false => Some(writer.finish(id.level)?),
    };
    directory.sync_names(crate::fs::RUN_FOLDER)?;
    damaged_files.push(name);
    Ok(kept)
}

/// Every batch of the log that can be read; notes what is missing between them, and damaged files.
fn salvage_log(
    directory: &Directory,
    catalog: &Catalog,
    (repaired, damaged): (&mut Repaired, &mut Vec<String>),
) -> Result<Vec<Batch>> {
    let mut batches = Vec::new();
    let mut next = catalog.flushed;
    let mut name = log::file_name(catalog.log_start);
    for number in log::segments(directory)? {
        if number < catalog.log_start {
            continue;
        }
        name = log::file_name(number);
        let bytes = directory.read(&name)?;
        if let Ok(begins) = log::read_header(number, &bytes) {
            miss_rows(directory, &name, &mut next, begins, repaired);
        }
        let mut found = Vec::new();
        let lost = log::salvage(number, &bytes, &mut found);
        for (first, batch) in found {
            miss_rows(directory, &name, &mut next, first, repaired);
            // A repair that was cut short has written rows anew.
            let end = first.saturating_add(batch.rows() as u64);
            if end > next {
                next = end;
                batches.push(batch);
            }
        }
        if lost > 0 {
            repaired.lost_log_bytes += lost;
            let message = format!("{lost} bytes of the log hold no whole record");
            repaired
                .given_up
                .push(directory.name_file(Error::corrupt(message), &name));
            damaged.push(name.clone());
        }
    }
    let end = catalog.closed.unwrap_or(next);
    miss_rows(directory, &name, &mut next, end, repaired);
    Ok(batches)
}

/// Notes that the rows from `next` up to `found`, which comes with the file `name`, are missing.
fn miss_rows(
    directory: &Directory,
    name: &str,
    next: &mut u64,
    found: u64,
    repaired: &mut Repaired,
) {
    if found <= *next {
        return;
    }
    let message = format!("rows {next} to {} of the log are missing", found - 1);
    repaired.lost_log_rows += found - *next;
    let error = Error::corrupt(message);
    repaired.given_up.push(directory.name_file(error, name));
    *next = found;
}
