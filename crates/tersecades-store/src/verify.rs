//! Reads everything there is and says what is damaged.

use std::path::Path;
use std::sync::Arc;

use tersecades_columnar::error::{Error, Result};

use crate::fs::{Directory, FileSystem, RealFileSystem};
use crate::log;
use crate::manifest;
use crate::recovery::open_run;
use crate::run::Run;
use crate::store::Store;
use crate::version::Snapshot;

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// Runs.
    pub runs: usize,
    /// Rows of runs that were decoded and found whole.
    pub rows: u64,
    /// Rows that are in no run: they were read from the log when the store was opened.
    pub log_rows: u64,
    /// Bytes of runs.
    pub bytes: u64,
    /// Bytes at the end of the log that hold no whole record: of rows that a crash cut off before
    /// they were acknowledged, or damaged since.
    pub torn_log_bytes: u64,
    /// Bytes at the end of the manifest that hold no whole record: of a change that a crash cut
    /// off, or damaged since.
    pub torn_manifest_bytes: u64,
    /// What is damaged; empty where all is well.
    pub damage: Vec<Error>,
}

impl Snapshot {
    /// Reads every chunk of every run, its checksums and its values.
    ///
    /// # Errors
    /// Never for damage, which is in the result.
    pub fn verify(&self) -> Result<Verified> {
        let in_log = self.memory.iter().map(|batch| batch.rows() as u64);
        let mut verified = Verified {
            log_rows: in_log.sum(),
            ..Verified::default()
        };
        self.version.runs.iter().for_each(|run| verified.add(run));
        let damaged = self.version.damaged.iter();
        verified
            .damage
            .extend(damaged.map(|(_, error)| error.clone()));
        Ok(verified)
    }
}

impl Verified {
    /// Reads every chunk of a run.
    fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.bytes += run.id().length;
        for index in 0..run.groups().len() {
            match verify_group(run, index) {
                Ok(rows) => self.rows += rows,
                Err(error) => self.damage.push(error),
            }
        }
    }

    /// Adds what of the manifest holds no whole record.
    fn add_manifest(&mut self, directory: &Directory, number: u64, read: &manifest::Read) {
        if let Some(offset) = read.damaged {
            let error = Error::corrupt(format!("the record at byte {offset} is damaged"))
                .hint("what it said is in another: opening the store for writing writes it anew");
            self.damage
                .push(directory.name_file(error, &manifest::file_name(number)));
        }
        self.torn_manifest_bytes = read.torn as u64;
    }
}

/// Reads everything of the store in the folder at `path`, also of one that does not open.
///
/// # Errors
/// `InvalidArgument` where there is none; `Corrupt` where its manifest cannot be read. All other
/// damage is in the result.
pub fn verify(path: &Path) -> Result<Verified> {
    verify_in(Arc::new(RealFileSystem), path)
}

/// As [`verify`], in another file system.
///
/// # Errors
/// As [`verify`].
pub fn verify_in(files: Arc<dyn FileSystem>, path: &Path) -> Result<Verified> {
    match Store::open_read_only_in(Arc::clone(&files), path) {
        Ok(store) => store.verify(),
        Err(_) => verify_parts(&Directory::new(files, path)),
    }
}

/// Reads each part of a store by itself.
fn verify_parts(directory: &Directory) -> Result<Verified> {
    let (number, read) = manifest::read_whole(directory)?;
    let mut verified = Verified::default();
    verified.add_manifest(directory, number, &read);
    let catalog = &read.catalog;
    let directory = &directory.of_store(catalog.identity);
    for id in &catalog.runs {
        match open_run(directory, id.clone(), catalog) {
            Ok(run) => verified.add(&run),
            Err(error) => verified.damage.push(error),
        }
    }
    let (start, first) = (catalog.log_start, catalog.flushed);
    match log::replay(directory, start, first, catalog.closed) {
        Ok(replay) => verified.log_rows = replay.end - first,
        Err(error) => verified.damage.push(error),
    }
    Ok(verified)
}

fn verify_group(run: &Run, index: usize) -> Result<u64> {
    for column in 0..run.fields().fields().len() {
        run.read_chunk(index, column)?;
    }
    Ok(u64::from(run.group(index).rows))
}

impl Store {
    /// As [`Snapshot::verify`], of the store as it is, and of what its log holds besides rows.
    ///
    /// # Errors
    /// As [`Snapshot::verify`]; what reading the log says.
    pub fn verify(&self) -> Result<Verified> {
        let snapshot = self.snapshot();
        let mut verified = snapshot.verify()?;
        let (number, read) = manifest::read_whole(&self.directory)?;
        verified.add_manifest(&self.directory, number, &read);
        for number in log::segments(&self.directory)? {
            let name = log::file_name(number);
            // Another process may have removed it since.
            if number >= snapshot.version.catalog.log_start && self.directory.exists(&name)? {
                let bytes = self.directory.read(&name)?;
                verified.torn_log_bytes += log::salvage(number, &bytes, &mut Vec::new());
            }
        }
        Ok(verified)
    }
}
