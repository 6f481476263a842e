//! Files in memory, for bandwidths that are modelled.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tersecades_store::fs::{FileSystem, Input, Lock, Output};

type Files = Arc<Mutex<HashMap<PathBuf, Arc<Vec<u8>>>>>;

/// Files that are created and opened, and nothing else.
#[derive(Debug, Default)]
pub(super) struct MemoryFiles(Files);

struct Writing {
    files: Files,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Output for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let bytes = Arc::new(std::mem::take(&mut self.bytes));
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(self.path.clone(), bytes);
        Ok(())
    }
}

struct Reading(Arc<Vec<u8>>);

impl Input for Reading {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(bytes, offset)
    }
}

impl FileSystem for MemoryFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(Writing {
            files: Arc::clone(&self.0),
            path: path.to_owned(),
            bytes: Vec::new(),
        }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Input>> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Reading(Arc::clone(found))))
    }

    fn names(&self, _folder: &Path) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn make_folder(&self, _folder: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn renew(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn lock(&self, _path: &Path) -> io::Result<Box<dyn Lock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
