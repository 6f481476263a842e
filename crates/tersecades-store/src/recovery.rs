//! What is found of a store when it is opened.

use std::sync::Arc;

use tersecades_columnar::error::{Error, ErrorKind, Result};

use crate::bookmark;
use crate::catalog::Catalog;
use crate::follow::LAG_BYTES_MAX;
use crate::frame::FILE_HEADER_BYTES;
use crate::fs::{Directory, RUN_FOLDER, owns};
use crate::log;
use crate::manifest;
use crate::memory::Memory;
use crate::run::{self, Run, RunId};
use crate::version::Version;

/// A store that was read.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Runs and catalogue.
    pub(crate) version: Version,
    /// Rows of the log.
    pub(crate) memory: Memory,
    /// Number of the manifest in use.
    pub(crate) manifest: u64,
    /// The largest number of a manifest.
    pub(crate) newest_manifest: u64,
    /// Number of the next run.
    pub(crate) next_run: u64,
    /// Number of the next log segment.
    pub(crate) next_segment: u64,
    /// Where the next row of the log is to come, unless a segment begins with it.
    pub(crate) place: (u64, usize),
}

/// Reads manifest, runs and log; changes nothing. Damaged runs are part of what is found.
///
/// # Errors
/// `Corrupt`, naming the file, where manifest or log cannot be read.
pub(crate) fn recover(directory: &Directory) -> Result<Recovered> {
    let (manifest, catalog) = manifest::read(directory)?;
    let directory = &directory.of_store(catalog.identity);
    let (mut runs, mut damaged) = (Vec::new(), Vec::new());
    for id in &catalog.runs {
        match open_run(directory, id.clone(), &catalog) {
            Ok(run) => runs.push(Arc::new(run)),
            Err(error) if error.kind() == ErrorKind::Corrupt => damaged.push((id.clone(), error)),
            Err(error) => return Err(error),
        }
    }
    let replay = log::replay(
        directory,
        catalog.log_start,
        catalog.flushed,
        catalog.closed,
    )?;
    let place = replay.place;
    let mut memory = Memory::starting_at(catalog.flushed);
    let policy = catalog.options.codec(0);
    for batch in replay.batches {
        memory.push(Arc::new(batch), policy)?;
    }
    let segments = log::segments(directory)?;
    Ok(Recovered {
        version: Version {
            catalog,
            runs,
            damaged,
        },
        memory,
        manifest,
        newest_manifest: manifest.max(manifest::newest(directory)?),
        next_run: run::newest(directory)? + 1,
        next_segment: segments.last().copied().unwrap_or(0) + 1,
        place,
    })
}

/// The run that `catalog` knows as `id`.
///
/// # Errors
/// `Corrupt`, naming the file, where it is not the one that was written.
pub(crate) fn open_run(directory: &Directory, id: RunId, catalog: &Catalog) -> Result<Run> {
    let placement = catalog.options.tier(id.level as usize);
    let run = Run::open_placed(directory, id, placement)?;
    check_belongs(&run, catalog)
        .map_err(|error| directory.name_file(error, &run::file_name(run.id().number)))?;
    Ok(run)
}

/// A run is one of the store, and every column of it, with its type.
///
/// # Errors
/// `Corrupt`, naming the column.
pub(crate) fn check_belongs(run: &Run, catalog: &Catalog) -> Result<()> {
    check_owner(run, catalog)?;
    let stored = catalog.schema.stored();
    for field in run.fields().fields() {
        let known = stored.field_with_name(field.name());
        if !known.is_ok_and(|known| known.data_type() == field.data_type()) {
            return Err(Error::corrupt("the run has a column that the store lacks")
                .column(field.name().as_str())
                .hint("the manifest is older than the run"));
        }
    }
    Ok(())
}

/// A run is one of the store.
///
/// # Errors
/// `Corrupt` for a run of another store.
pub(crate) fn check_owner(run: &Run, catalog: &Catalog) -> Result<()> {
    match owns(catalog.identity, run.store()) {
        true => Ok(()),
        false => Err(log::of_another_store("the run")),
    }
}

/// Whether there are rows of a store, whatever its manifest says: runs, or a log that goes on
/// behind a header.
///
/// # Errors
/// What the system says.
pub(crate) fn holds_rows(directory: &Directory) -> Result<bool> {
    if run::newest(directory)? > 0 {
        return Ok(true);
    }
    for number in log::segments(directory)? {
        let name = log::file_name(number);
        let length = directory.length(directory.open(&name)?.as_ref(), &name)?;
        if length > FILE_HEADER_BYTES as u64 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes runs and log segments that the state `catalog`, which lasts, has no use for: of crashes,
/// and of changes that have come about. A run with rows from `end` on, which neither manifest nor
/// log knows, is renamed instead: such a manifest is not the newest that there was. So is a run of
/// another store.
///
/// # Errors
/// What the system says.
pub(crate) fn remove_orphans(directory: &Directory, catalog: &Catalog, end: u64) -> Result<()> {
    for name in directory.names(RUN_FOLDER)? {
        let number = run::number_of(&name);
        let known = |number: u64| catalog.runs.iter().any(|run| run.number == number);
        let Some(number) = number.filter(|number| !known(*number)) else {
            continue;
        };
        let name = run::file_name(number);
        match Run::open_file(directory, &name, number, 0) {
            Ok(run) if run.id().sequences.end > end || check_owner(&run, catalog).is_err() => {
                put_aside(directory, &name)?;
            }
            Ok(_) => directory.remove(&name)?,
            // What a crash has cut off.
            Err(error) if error.kind() == ErrorKind::Corrupt => directory.remove(&name)?,
            // Nobody knows what it is, and no row of the store needs it.
            Err(_) => put_aside(directory, &name)?,
        }
    }
    remove_segments(directory, catalog)
}

/// Renames a file so that nothing reads or removes it.
///
/// # Errors
/// What the system says.
pub(crate) fn put_aside(directory: &Directory, name: &str) -> Result<()> {
    match directory.exists(name)? {
        true => directory.rename(name, &aside(directory, name)?),
        false => Ok(()),
    }
}

/// A name that no file has, under which nothing reads or removes what `name` is.
///
/// # Errors
/// What the system says.
pub(crate) fn aside(directory: &Directory, name: &str) -> Result<String> {
    let mut aside = format!("{name}.damaged");
    for number in 1.. {
        if !directory.exists(&aside)? {
            break;
        }
        aside = format!("{name}.damaged.{number}");
    }
    Ok(aside)
}

/// Removes the segments of the log whose rows are in runs; from one on that somebody reads, or has
/// left a bookmark at, as many stay as a follower may be behind. Those of another store stay, and
/// those that cannot be read.
///
/// # Errors
/// What the system says.
pub(crate) fn remove_segments(directory: &Directory, catalog: &Catalog) -> Result<()> {
    let mut segments = log::segments(directory)?;
    segments.retain(|number| *number < catalog.log_start);
    segments.retain(|number| is_foreign(directory, *number).is_ok_and(|foreign| !foreign));
    let marked = bookmark::first_kept(directory)?;
    let mut first_left = catalog.log_start;
    for (index, number) in segments.iter().enumerate() {
        let is_marked = marked.is_some_and(|first| first <= *number);
        if is_marked || !directory.remove_unread(&log::file_name(*number))? {
            let limit = LAG_BYTES_MAX as u64;
            first_left = keep_newest(directory, &segments[index..], limit)?.min(first_left);
            break;
        }
    }
    match marked {
        Some(_) => bookmark::remove_before(directory, first_left),
        None => Ok(()),
    }
}

/// Whether segment `number` of the log is one of another store.
fn is_foreign(directory: &Directory, number: u64) -> Result<bool> {
    let name = log::file_name(number);
    let file = directory.open(&name)?;
    let length = directory.length(file.as_ref(), &name)?;
    let mut header = vec![0; (length as usize).min(FILE_HEADER_BYTES)];
    directory.read_at(file.as_ref(), &name, &mut header, 0)?;
    Ok(log::is_foreign(directory, number, &header))
}

/// Removes all of `segments` but the last, which have `bytes` together at most; the first of those.
fn keep_newest(directory: &Directory, segments: &[u64], bytes: u64) -> Result<u64> {
    let (mut kept, mut first) = (0, u64::MAX);
    for number in segments.iter().rev() {
        let name = log::file_name(*number);
        kept += directory.length(directory.open(&name)?.as_ref(), &name)?;
        match kept > bytes {
            true => directory.remove(&name)?,
            false => first = *number,
        }
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::frame::FILE_HEADER_BYTES;
    use crate::fs::RealFileSystem;
    use crate::option::StoreOptions;
    use crate::schema::StoreSchema;

    #[test]
    fn segments_that_somebody_reads_stay_with_those_behind_them_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::new(Arc::new(RealFileSystem), folder.path());
        directory.make().unwrap();
        for number in 1..=6 {
            log::Segment::create(&directory, number, 0).unwrap();
        }
        let left = || log::segments(&directory).unwrap();
        let fields = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        let schema = StoreSchema::new(&fields).unwrap();
        let catalog = Catalog {
            log_start: 6,
            ..Catalog::new(schema, StoreOptions::default())
        };
        let read = directory.open_shared(&log::file_name(2)).unwrap().unwrap();
        remove_segments(&directory, &catalog).unwrap();
        assert_eq!(left(), [2, 3, 4, 5, 6]);
        keep_newest(&directory, &[2, 3, 4, 5], 2 * FILE_HEADER_BYTES as u64).unwrap();
        assert_eq!(left(), [4, 5, 6]);
        drop(read);
        // One of another store is not ours to remove.
        log::Segment::create(&directory.of_store(8), 3, 0).unwrap();
        remove_segments(&directory.of_store(9), &catalog).unwrap();
        assert_eq!(left(), [3, 6]);
        directory.remove(&log::file_name(3)).unwrap();
        for number in 4..=5 {
            log::Segment::create(&directory, number, 0).unwrap();
        }
        // A bookmark does the same without a process, and goes with its segment.
        let mut keeper = bookmark::Keeper::new();
        keeper.keep(&directory, 5, 0).unwrap();
        remove_segments(&directory, &catalog).unwrap();
        assert_eq!(
            (left(), bookmark::first_kept(&directory).unwrap()),
            (vec![5, 6], Some(5))
        );
        directory.remove(&log::file_name(5)).unwrap();
        remove_segments(&directory, &catalog).unwrap();
        assert_eq!(
            (left(), bookmark::first_kept(&directory).unwrap()),
            (vec![6], None)
        );
    }
}
