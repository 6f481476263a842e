//! Reads everything there is and says what is damaged.

use tersecades_columnar::error::{Error, Result};

use crate::log;
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
        for run in &self.version.runs {
            verified.runs += 1;
            verified.bytes += run.id().length;
            for index in 0..run.groups().len() {
                match verify_group(run, index) {
                    Ok(rows) => verified.rows += rows,
                    Err(error) => verified.damage.push(error),
                }
            }
        }
        Ok(verified)
    }
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
