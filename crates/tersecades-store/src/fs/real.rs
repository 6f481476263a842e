//! The file system of the operating system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::SystemTime;

use super::{FileSystem, Input, Lock, Output};

/// Files of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFileSystem;

/// Bytes of a file that are written anew at once.
const PIECE_BYTES: usize = 1 << 20;

impl Output for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl Input for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn written(&self) -> io::Result<Option<SystemTime>> {
        self.metadata()?.modified().map(Some)
    }
}

/// A lock lasts as long as the open file.
impl Lock for Locked {}

impl FileSystem for RealFileSystem {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(File::create_new(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Input>> {
        Ok(Box::new(File::open(path)?))
    }

    fn open_shared(&self, path: &Path) -> io::Result<Box<dyn Input>> {
        let file = File::open(path)?;
        of_lock(file.try_lock_shared())?;
        Ok(Box::new(file))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn renew(&self, path: &Path) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let (mut piece, length) = (vec![0; PIECE_BYTES], Input::length(&file)?);
        for offset in (0..length).step_by(PIECE_BYTES) {
            let piece = &mut piece[..(length - offset).min(PIECE_BYTES as u64) as usize];
            file.read_exact_at(piece, offset)?;
            file.write_all_at(piece, offset)?;
        }
        file.sync_data()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        of_lock(file.try_lock())?;
        Ok(Box::new(Locked(file)))
    }
}

fn of_lock(locked: Result<(), TryLockError>) -> io::Result<()> {
    locked.map_err(|error| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })
}

/// A file locked by this process.
struct Locked(File);

impl Drop for Locked {
    /// Gives the lock back at once: closing would not while a program that another thread is
    /// starting holds a copy of the file, as it does until it runs.
    fn drop(&mut self) {
        // The lock is gone with the last copy in any case.
        let _ = self.0.unlock();
    }
}
