//! Folders that go away.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tersecades_columnar::error::Result;

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A folder for a store, removed with all that is in it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// An empty folder among the temporary files.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn new() -> Result<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tersecades-lsm-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is found among the temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
