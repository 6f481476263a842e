//! Batches of a retained range that lie in files.
//!
//! ```text
//! folder of the range (removed with it)
//!   0.batch  1.batch  …     one batch unit each: the bytes of its chunks, names, checksums
//! ```
//! A file goes when the range has dropped its batch and no query reads it any more.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use tempfile::TempDir;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::Result;
use tersecades_columnar::wire;

/// Where a range puts its files.
#[derive(Debug)]
pub struct SpillFolder {
    folder: Arc<TempDir>,
    files: u64,
    bytes: Vec<u8>,
}

impl SpillFolder {
    /// An empty folder among the temporary files of the system.
    ///
    /// # Errors
    /// `Io`.
    pub fn new() -> Result<Self> {
        Ok(SpillFolder {
            folder: Arc::new(tempfile::Builder::new().prefix("tersecades-").tempdir()?),
            files: 0,
            bytes: Vec::new(),
        })
    }

    /// Writes `batch` to a file of its own.
    ///
    /// # Errors
    /// `Io`, what [`wire::write_batch`] says.
    pub fn write(&mut self, batch: &Batch) -> Result<SpilledBatch> {
        self.bytes.clear();
        wire::write_batch(batch, &mut self.bytes)?;
        let path = self.folder.path().join(format!("{}.batch", self.files));
        self.files += 1;
        let spilled = SpilledBatch {
            path,
            schema: Arc::clone(batch.schema()),
            rows: batch.rows(),
            bytes: batch.byte_size(),
            _folder: Arc::clone(&self.folder),
        };
        std::fs::write(&spilled.path, &self.bytes)?;
        Ok(spilled)
    }
}

/// A batch in a file, which is removed with it.
#[derive(Debug)]
pub struct SpilledBatch {
    path: PathBuf,
    /// Its fields hold more than their names and types.
    schema: SchemaRef,
    /// Rows of the batch.
    pub rows: usize,
    /// Encoded bytes of the batch, as when it was in memory.
    pub bytes: usize,
    /// Held until the last file is gone.
    _folder: Arc<TempDir>,
}

impl SpilledBatch {
    /// The batch.
    ///
    /// # Errors
    /// `Io`; `Corrupt` for bytes that have changed.
    pub fn read(&self) -> Result<Batch> {
        let bytes = std::fs::read(&self.path)?;
        let read = wire::read_batch(&bytes)
            .map_err(|error| error.file(self.path.display().to_string()))?;
        Batch::new(Arc::clone(&self.schema), read.columns().to_vec())
    }
}

impl Drop for SpilledBatch {
    fn drop(&mut self) {
        // What cannot be removed here goes with the folder.
        let _ = std::fs::remove_file(&self.path);
    }
}
