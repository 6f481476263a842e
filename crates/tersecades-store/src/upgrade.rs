//! Stores that earlier releases wrote become those of this one.

use std::path::Path;
use std::sync::Arc;

use tersecades_columnar::error::Result;

use crate::frame;
use crate::fs::{Directory, RealFileSystem};
use crate::manifest;
use crate::store::Store;

/// Writes the store in the folder at `path` anew where its format is an earlier one: the manifest,
/// and the rows of the log as a run. Gives the version that was there and the one that is.
///
/// Runs stay as they are: those of every version are read.
///
/// # Errors
/// As [`Store::open`].
pub fn upgrade(path: &Path) -> Result<(u16, u16)> {
    let directory = Directory::new(Arc::new(RealFileSystem), path);
    let before = manifest::version(&directory)?;
    if before < frame::VERSION {
        let store = Store::open(path)?;
        store.flush()?;
        store.close()?;
    }
    Ok((before, manifest::version(&directory)?))
}
