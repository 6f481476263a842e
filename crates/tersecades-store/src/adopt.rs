//! Runs that lie in the folder of a store and that its manifest does not know.
//!
//! Where the manifest is damaged they hold what was written after the state that can still be read.
//! A run is taken in where no other holds any of its rows, and it goes on where the others end.

use std::ops::Range;

use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};

use crate::catalog::Catalog;
use crate::fs::{Directory, RUN_FOLDER};
use crate::log;
use crate::recovery::check_belongs;
use crate::run::{self, Run, RunId};
use crate::schema::StoreSchema;

/// What became of runs that nothing knew of.
#[derive(Debug, Default)]
pub(crate) struct Adopted {
    /// Those that are part of the catalogue now.
    pub(crate) runs: Vec<RunId>,
    /// Files of the others, and why they are not.
    pub(crate) refused: Vec<(String, Error)>,
}

/// Takes the runs that are not `known` into `catalog`, whose runs are those that can be read.
///
/// # Errors
/// What the system says.
pub(crate) fn adopt(
    directory: &Directory,
    catalog: &mut Catalog,
    known: &[u64],
) -> Result<Adopted> {
    let (found, refused) = unknown(directory, catalog, known)?;
    let mut adopted = Adopted {
        refused,
        ..Adopted::default()
    };
    let first_in_log = first_in_log(directory, catalog)?;
    for run in found {
        let id = run.id().clone();
        let overlaps = |known: &RunId| overlap(&known.sequences, &id.sequences);
        let goes_on = id.sequences.start <= catalog.flushed
            || first_in_log.is_none_or(|first| first >= id.sequences.start);
        if goes_on && !catalog.runs.iter().any(overlaps) {
            catalog.schema = with_columns(run.fields(), &catalog.schema)?;
            catalog.flushed = catalog.flushed.max(id.sequences.end);
            // Of rows with one primary key that of the last run counts.
            let later = |known: &RunId| known.sequences.start >= id.sequences.end;
            let place = catalog.runs.iter().position(later);
            let place = place.unwrap_or(catalog.runs.len());
            catalog.runs.insert(place, id.clone());
            run.sync()?;
            adopted.runs.push(id);
            continue;
        }
        let Range { start, end } = id.sequences;
        let message = format!("a run that no manifest names holds rows {start} to {end}");
        let error = Error::corrupt(message).hint("other runs or the log hold some of them too");
        let name = run::file_name(id.number);
        adopted
            .refused
            .push((name.clone(), directory.name_file(error, &name)));
    }
    Ok(adopted)
}

/// Files of runs, and why they cannot be read.
type Refused = Vec<(String, Error)>;

/// The whole runs that are not `known`, oldest first, and the files that are none of `catalog`'s
/// store.
fn unknown(directory: &Directory, catalog: &Catalog, known: &[u64]) -> Result<(Vec<Run>, Refused)> {
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for name in directory.names(RUN_FOLDER)? {
        let Some(number) = run::number_of(&name).filter(|number| !known.contains(number)) else {
            continue;
        };
        let name = run::file_name(number);
        match open(directory, &name, number, catalog) {
            Ok(run) => found.push(run),
            Err(error) => refused.push((name, error)),
        }
    }
    // Of runs that begin together the longest is the one that the others were merged into.
    found.sort_by_key(|run| {
        let rows = &run.id().sequences;
        (rows.start, std::cmp::Reverse(rows.end))
    });
    Ok((found, refused))
}

/// What a crash has left over of the runs that became another.
pub(crate) struct Inputs {
    /// Those that are there, oldest first.
    pub(crate) runs: Vec<RunId>,
    /// Numbers of rows that none of them has.
    pub(crate) gaps: Vec<Range<u64>>,
}

impl Inputs {
    /// Rows that are there.
    pub(crate) fn rows(&self) -> u64 {
        self.runs.iter().map(|input| input.rows).sum()
    }

    /// Whether all rows of the run `id`, which they became, are there.
    pub(crate) fn are_all_of(&self, id: &RunId) -> bool {
        // What is left of the merged run itself, by a repair that was cut short, has fewer rows.
        self.gaps.is_empty() && self.rows() >= id.rows
    }
}

/// The runs that became the run `id`, where a crash has left some of them.
///
/// # Errors
/// What the system says.
pub(crate) fn inputs_of(
    directory: &Directory,
    catalog: &Catalog,
    known: &[u64],
    id: &RunId,
) -> Result<Inputs> {
    let Range { start, end } = id.sequences;
    let (mut runs, mut gaps, mut next) = (Vec::new(), Vec::new(), start);
    for run in unknown(directory, catalog, known)?.0 {
        let rows = run.id().sequences.clone();
        if rows.start >= next && rows.end <= end {
            if rows.start > next {
                gaps.push(next..rows.start);
            }
            next = rows.end;
            runs.push(RunId {
                level: id.level,
                ..run.id().clone()
            });
        }
    }
    if next < end {
        gaps.push(next..end);
    }
    Ok(Inputs { runs, gaps })
}

/// Makes `catalog`, of a store that has had no row, that of the store whose runs and log lie in its
/// folder: they were copied there because no manifest of theirs was left.
///
/// # Errors
/// What the system says.
pub(crate) fn take_identity(directory: &Directory, catalog: &mut Catalog) -> Result<()> {
    if first_in_log(directory, catalog)?.is_some() {
        return Ok(());
    }
    let mut owners = Vec::new();
    for name in directory.names(RUN_FOLDER)? {
        if let Some(number) = run::number_of(&name)
            && let Ok(run) = Run::open_file(directory, &run::file_name(number), number, 0)
        {
            owners.push(run.store());
        }
    }
    for number in log::segments(directory)? {
        let bytes = directory.read(&log::file_name(number))?;
        owners.extend(log::owner_of_rows(number, &bytes));
    }
    owners.retain(|owner| *owner != 0);
    owners.sort_unstable();
    owners.dedup();
    if let [owner] = owners[..] {
        catalog.identity = owner;
        // Numbers of segments are those of the other store.
        catalog.log_start = 0;
    }
    Ok(())
}

/// `schema` with the columns of `fields` that an older state of it lacks.
///
/// # Errors
/// What adding them says.
pub(crate) fn with_columns(fields: &SchemaRef, schema: &StoreSchema) -> Result<StoreSchema> {
    let mut schema = schema.clone();
    for field in fields.fields() {
        if schema.stored().index_of(field.name()).is_err() {
            schema = schema.with_column(field.name(), field.data_type())?;
        }
    }
    Ok(schema)
}

/// The run in the file `name`, all of whose chunks can be read and are those of `catalog`'s store.
fn open(directory: &Directory, name: &str, number: u64, catalog: &Catalog) -> Result<Run> {
    let read = || {
        let run = Run::open_file(directory, name, number, 0)?;
        let extended = Catalog {
            schema: with_columns(run.fields(), &catalog.schema)?,
            ..catalog.clone()
        };
        check_belongs(&run, &extended)?;
        for group in 0..run.groups().len() {
            for column in 0..run.fields().fields().len() {
                run.read_chunk(group, column)?;
            }
        }
        Ok(run)
    };
    read().map_err(|error| directory.name_file(error, name))
}

/// The number of the first row of the log that no run holds.
fn first_in_log(directory: &Directory, catalog: &Catalog) -> Result<Option<u64>> {
    for number in log::segments(directory)? {
        let bytes = directory.read(&log::file_name(number))?;
        let mut found = Vec::new();
        if !log::is_foreign(directory, number, &bytes) {
            log::salvage(number, &bytes, &mut found);
        }
        let rows = found
            .iter()
            .map(|(first, batch)| *first..first.saturating_add(batch.rows() as u64));
        let left = rows.filter(|rows| rows.end > catalog.flushed);
        if let Some(first) = left.map(|rows| rows.start).min() {
            return Ok(Some(first.max(catalog.flushed)));
        }
    }
    Ok(None)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}
