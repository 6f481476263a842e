//! Makes a damaged store one that opens, and says what it gives up.
//!
//! ```text
//! newest readable manifest ─▶ its runs ─▶ whole groups kept ─┐
//! inputs of a damaged run that a crash has left over ────────┤
//! whole runs that it does not know, of rows that are nowhere ┤
//! log ─▶ every record that is whole ─▶ a new segment ────────┴─▶ a new manifest
//! ```
//! Damaged files are renamed, never deleted.
//!
//! The file `REPAIR` is there from the first change to the last.

mod mark;
mod salvage;
mod write;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};

use crate::adopt::{Inputs, adopt, inputs_of, take_identity};
use crate::catalog::Catalog;
use crate::compaction;
use crate::fs::{Directory, FileSystem, LOG_FOLDER, RUN_FOLDER, RealFileSystem};
use crate::log;
use crate::lost::{Lost, stale_rows};
use crate::manifest;
use crate::recovery::check_owner;
use crate::run::{self, Run, RunId, RunWriter};
use crate::sort_key::SortKey;
pub(crate) use mark::require_done;
use mark::{LostCounts, Mark};

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
    /// Bytes of the log that hold no whole record and may have held rows: not those that a crash or
    /// a full disk has cut off, behind which the log goes on with the very next row.
    pub lost_log_bytes: u64,
    /// Rows of runs that the manifest did not know, which are part of the store again.
    pub adopted_rows: u64,
    /// Rows of a store with a primary key that may not be the newest of their keys, at most: they
    /// came before lost ones, which may have taken their place or deleted them.
    pub stale_rows: u64,
    /// Bytes behind the end of runs, which are no part of them.
    pub appended_bytes: u64,
    /// Rows that are there.
    pub rows: u64,
}

impl Repaired {
    /// Adds what a repair that was cut short has given up.
    fn lose(&mut self, lost: LostCounts) {
        let [rows, log_rows, log_bytes, stale_rows] = lost;
        self.lost_rows += rows;
        self.lost_log_rows += log_rows;
        self.lost_log_bytes += log_bytes;
        self.stale_rows += stale_rows;
    }

    /// How much was given up.
    fn lost(&self) -> LostCounts {
        [
            self.lost_rows,
            self.lost_log_rows,
            self.lost_log_bytes,
            self.stale_rows,
        ]
    }
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
    let (number, catalog) = manifest::read_newest(&directory, &mut repaired.given_up)?;
    // A folder that is gone is one whose files are all missing.
    directory.make()?;
    let mark = Mark::begin(&directory)?;
    let mut repair = Repair {
        directory: directory.of_store(catalog.identity),
        is_newest: repaired.given_up.is_empty(),
        is_taken: false,
        known: catalog.runs.iter().map(|id| id.number).collect(),
        catalog,
        repaired,
        damaged: Vec::new(),
        gone: Vec::new(),
        lost: Vec::new(),
    };
    let next = manifest::newest(&directory)? + 1;
    let segments = log::segments(&directory)?;
    let written = repair.find(&mark).and_then(|in_log| {
        // What that manifest gave up, this one does not know of.
        if let Some(lost) = mark.lost_before(number) {
            repair.repaired.lose(lost);
        }
        mark.note(&repair.damaged, repair.repaired.lost(), next)?;
        repair.write(&in_log, next)
    });
    if let Err(error) = written {
        let is_as_before = !manifest::is_in_use(&directory, next)
            && log::segments(&directory).is_ok_and(|left| left == segments)
            && directory.sync_names(LOG_FOLDER).is_ok();
        if is_as_before {
            mark.forget();
        }
        return Err(error);
    }
    repair.give_up_again(&mark);
    mark.end(&repair.damaged)?;
    Ok(repair.repaired)
}

/// A repair that is under way.
struct Repair {
    directory: Directory,
    /// Whether `catalog` is the newest state there was.
    is_newest: bool,
    /// Whether the store had no rows and takes in those of another.
    is_taken: bool,
    /// Numbers of the runs of the manifest, and of those that were written since.
    known: Vec<u64>,
    catalog: Catalog,
    repaired: Repaired,
    /// Files that are put aside when all else is done: whoever repairs again finds them.
    damaged: Vec<String>,
    /// Runs of which nothing is left, and why.
    gone: Vec<(RunId, Error)>,
    lost: Vec<Lost>,
}

impl Repair {
    /// What is left, of which the manifest does not know yet: the batches of the log.
    fn find(&mut self, mark: &Mark) -> Result<Vec<(u64, Batch)>> {
        self.keep_runs()?;
        self.adopt_runs()?;
        self.give_up_runs();
        let in_log = self.salvage_log(mark)?;
        self.count_stale(&in_log)?;
        self.raise_floor()?;
        Ok(in_log)
    }

    /// Gives up what a repair that was cut short has given up, of which the manifest that it wrote
    /// says nothing any more.
    fn give_up_again(&mut self, mark: &Mark) {
        for name in mark.given_up(&self.catalog) {
            if !self.damaged.contains(&name) {
                let error = Error::corrupt("a repair that was cut short gave it up");
                self.give_up(error, &name);
                self.damaged.push(name);
            }
        }
    }

    fn give_up(&mut self, error: Error, name: &str) {
        let error = self.directory.name_file(error, name);
        self.repaired.given_up.push(error);
    }

    /// Keeps what is left of the runs of the manifest.
    fn keep_runs(&mut self) -> Result<()> {
        for id in std::mem::take(&mut self.catalog.runs) {
            let kept = self.keep_run(&id)?;
            self.repaired.rows += kept.iter().map(|kept| kept.rows).sum::<u64>();
            self.known.extend(kept.iter().map(|kept| kept.number));
            self.catalog.runs.extend(kept);
        }
        Ok(())
    }

    /// What is left of a run: itself, the runs that became it, or its whole groups.
    fn keep_run(&mut self, id: &RunId) -> Result<Vec<RunId>> {
        let name = run::file_name(id.number);
        let opened = Run::open_in_front(&self.directory, id.clone()).and_then(|run| {
            let owned = check_owner(&run, &self.catalog);
            owned.map_err(|error| self.directory.name_file(error, &name))?;
            Ok(run)
        });
        let damaged = opened.as_ref().map_or_else(|_| Vec::new(), damage);
        let is_whole = opened.is_ok() && damaged.iter().all(Option::is_none);
        if is_whole {
            let file = self.directory.open(&name)?;
            let length = self.directory.length(file.as_ref(), &name)?;
            if length == id.length {
                return Ok(vec![id.clone()]);
            }
            self.repaired.appended_bytes += length - id.length;
        }
        self.damaged.push(name);
        if !is_whole {
            let inputs = inputs_of(&self.directory, &self.catalog, &self.known, id)?;
            let is_all = inputs.are_all_of(id);
            if is_all || (opened.is_err() && inputs.rows() > 0) {
                self.repaired.adopted_rows += inputs.rows();
                if let (false, Err(error)) = (is_all, opened) {
                    self.lose_inputs(id, &inputs, error);
                }
                return Ok(inputs.runs);
            }
        }
        match opened {
            Ok(run) => self.keep_groups(id, &run, damaged),
            Err(error) => {
                self.gone.push((id.clone(), error));
                Ok(Vec::new())
            }
        }
    }

    /// Writes the groups of a run that are whole anew.
    fn keep_groups(
        &mut self,
        id: &RunId,
        run: &Run,
        damaged: Vec<Option<Error>>,
    ) -> Result<Vec<RunId>> {
        // Files of runs that are known may be missing.
        let known = self.known.iter().copied().max().unwrap_or(0);
        let number = run::newest(&self.directory)?.max(known) + 1;
        let (fields, sequences) = (run.fields(), id.sequences.clone());
        let mut writer = RunWriter::create(&self.directory, number, fields, sequences, 0)?;
        for (group, error) in damaged.into_iter().enumerate() {
            let Some(error) = error else {
                writer.splice(run, group)?;
                continue;
            };
            self.repaired.lost_rows += u64::from(run.group(group).rows);
            self.repaired.given_up.push(error);
            self.lost.push(Lost {
                start: id.sequences.start,
                keys: Some(run.group(group).fences.clone()),
            });
        }
        let kept = match writer.is_empty() {
            true => {
                writer.abandon();
                None
            }
            false => Some(writer.finish(id.level)?),
        };
        self.directory.sync_names(RUN_FOLDER)?;
        Ok(kept.into_iter().collect())
    }

    /// Gives up `rows` rows of a run of which nobody knows the keys.
    fn lose_run(&mut self, id: &RunId, rows: u64, error: Error) {
        self.repaired.given_up.push(error);
        self.repaired.lost_rows += rows;
        self.lost.push(Lost::from(id.sequences.start));
    }

    /// Gives up the rows of a run that none of `inputs`, which are kept in its place, has. Whatever
    /// is older than one of them may be out of date.
    fn lose_inputs(&mut self, id: &RunId, inputs: &Inputs, error: Error) {
        let missing: u64 = inputs.gaps.iter().map(|gap| gap.end - gap.start).sum();
        // The keys of rows that an input itself has lost are not known either.
        let fewer = id.rows.saturating_sub(inputs.rows());
        self.lose_run(id, missing.min(id.rows).max(fewer), error);
        let gaps = inputs.gaps.iter();
        self.lost.extend(gaps.map(|gap| Lost::from(gap.start)));
    }

    /// Takes in runs that the catalogue does not know. Where it is the newest one, they are left
    /// over from a crash and go when the store is opened, but in a store without rows; of an older
    /// one those that do not fit are put aside.
    fn adopt_runs(&mut self) -> Result<()> {
        let is_empty = self.catalog.runs.is_empty() && self.catalog.flushed == 0;
        if self.is_newest && !is_empty {
            return Ok(());
        }
        if is_empty {
            take_identity(&self.directory, &mut self.catalog)?;
            self.is_taken = self.catalog.identity != self.directory.identity();
            self.directory = self.directory.of_store(self.catalog.identity);
        }
        let mut next = self.catalog.flushed;
        let adopted = adopt(&self.directory, &mut self.catalog, &self.known)?;
        let rows: u64 = adopted.runs.iter().map(|run| run.rows).sum();
        self.repaired.rows += rows;
        self.repaired.adopted_rows += rows;
        if self.is_newest {
            return Ok(());
        }
        for run in &adopted.runs {
            let Range { start, end } = run.sequences;
            if start > next {
                let error = Error::corrupt(format!("rows {next} to {} are in no run", start - 1));
                self.give_up(error, &run::file_name(run.number));
                self.repaired.lost_rows += start - next;
                self.lost.push(Lost::from(next));
            }
            next = next.max(end);
        }
        for (name, error) in adopted.refused {
            self.repaired.given_up.push(error);
            self.damaged.push(name);
        }
        Ok(())
    }

    /// Gives up the runs of which nothing is left, and whose rows no other holds.
    fn give_up_runs(&mut self) {
        for (id, error) in std::mem::take(&mut self.gone) {
            let is_held = |run: &RunId| {
                run.sequences.start <= id.sequences.start && id.sequences.end <= run.sequences.end
            };
            if !self.catalog.runs.iter().any(is_held) {
                self.lose_run(&id, id.rows, error);
            }
        }
    }

    /// Counts the rows whose keys lost ones may have changed or deleted.
    fn count_stale(&mut self, in_log: &[(u64, Batch)]) -> Result<()> {
        if !self.catalog.schema.is_primary() || self.lost.is_empty() {
            return Ok(());
        }
        let key = SortKey::new(&self.catalog.schema)?;
        let mut stale = 0;
        for id in &self.catalog.runs {
            let later = self.lost.iter();
            let later = later.filter(|lost| lost.start >= id.sequences.end);
            stale += stale_rows(&self.directory, id, &key, &later.collect::<Vec<_>>())?;
        }
        for (first, batch) in in_log {
            let is_stale = self.lost.iter().any(|lost| lost.start > *first);
            stale += if is_stale { batch.rows() as u64 } else { 0 };
        }
        if stale > 0 {
            let message = format!(
                "up to {stale} rows may not be the newest of their keys: later rows, or \
                 deletions, are lost"
            );
            self.give_up(Error::corrupt(message), "");
            self.repaired.stale_rows = stale;
        }
        Ok(())
    }

    /// Lets rows go again that an older state did not know to be too old.
    fn raise_floor(&mut self) -> Result<()> {
        let (Some(keep), false) = (self.catalog.options.keep_time, self.is_newest) else {
            return Ok(());
        };
        let mut newest = None;
        for id in &self.catalog.runs {
            let run = Run::open(&self.directory, id.clone())?;
            newest = newest.max(compaction::newest_of(&run, &self.catalog.schema));
        }
        self.catalog.raise_floor(newest, keep);
        Ok(())
    }
}

/// What is wrong with each group of a run.
fn damage(run: &Run) -> Vec<Option<Error>> {
    let columns = run.fields().fields().len();
    let damage = |group: usize| (0..columns).find_map(|column| run.read_chunk(group, column).err());
    (0..run.groups().len()).map(damage).collect()
}
