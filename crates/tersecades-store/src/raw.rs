//! Single files of a store, read as the store reads them: for tools, and for hostile bytes.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use tersecades_columnar::error::Result;

use crate::fs::{Directory, FileSystem, Input, Lock, Output};
use crate::log::{self, Replay};
use crate::manifest;
use crate::run::{self, Run};

/// A file system of one file, which is every file that is opened.
#[derive(Debug)]
struct OneFile(Arc<[u8]>);

struct Content(Arc<[u8]>);

impl Input for Content {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(bytes.len());
        let found = end.and_then(|end| self.0.get(start..end));
        bytes.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl FileSystem for OneFile {
    fn create(&self, _: &Path) -> io::Result<Box<dyn Output>> {
        Err(ErrorKind::Unsupported.into())
    }

    fn open(&self, _: &Path) -> io::Result<Box<dyn Input>> {
        Ok(Box::new(Content(Arc::clone(&self.0))))
    }

    fn names(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn make_folder(&self, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn renew(&self, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Lock>> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// Rows of the log segment `number`, the first segment of a store, that `bytes` are.
///
/// # Errors
/// `Corrupt` for damage.
pub fn read_log(number: u64, bytes: &[u8]) -> Result<u64> {
    let mut replay = Replay::default();
    let directory = Directory::new(Arc::new(OneFile(bytes.into())), Path::new(""));
    log::read_segment(&directory, number, (bytes, true), &mut replay)?;
    Ok(replay.batches.iter().map(|batch| batch.rows() as u64).sum())
}

/// Runs that manifest `number`, which `bytes` are, names last.
///
/// # Errors
/// `Corrupt` for damage.
pub fn read_manifest(number: u64, bytes: &[u8]) -> Result<usize> {
    Ok(manifest::last_catalog(number, bytes)?.catalog.runs.len())
}

/// Rows of run `number`, which `bytes` are, all of them decoded.
///
/// # Errors
/// `Corrupt` for damage.
pub fn read_run(number: u64, bytes: &[u8]) -> Result<u64> {
    let directory = Directory::new(Arc::new(OneFile(bytes.into())), Path::new(""));
    let run = Run::open_file(&directory, &run::file_name(number), number, 0)?;
    for group in 0..run.groups().len() {
        crate::encode::decode(&run.read_group(group, run.fields())?)?;
    }
    Ok(run.id().rows)
}
