//! The calls on a file system that the store makes, so that tests can fail each of them.

mod directory;
mod real;
mod throttle;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::time::SystemTime;

pub(crate) use directory::{BOOKMARK_FOLDER, Directory, LOG_FOLDER, RUN_FOLDER, owns};
pub use real::RealFileSystem;
pub use throttle::{Bandwidth, Throttled};

/// A file that is written from its start to its end.
pub trait Output: Send {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// What the system says; how much was written is then unknown.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when everything written is on the device.
    ///
    /// # Errors
    /// What the system says; what was written since the last success may be lost.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is read at any place.
pub trait Input: Send + Sync {
    /// Length in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn length(&self) -> io::Result<u64>;

    /// Fills `bytes` with those from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` where the file ends before, and what the system says.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Returns when everything written to the file is on the device, whoever wrote it; nothing is
    /// to be done of files that nobody writes to.
    ///
    /// # Errors
    /// What the system says; what was written may be lost.
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// When the file was last written to, where that is known.
    ///
    /// # Errors
    /// What the system says.
    fn written(&self) -> io::Result<Option<SystemTime>> {
        Ok(None)
    }
}

/// Bytes in memory.
impl Input for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.saturating_add(bytes.len());
        let found = self.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(found);
        Ok(())
    }
}

/// Holds a lock until it is dropped.
pub trait Lock: Send + Sync {}

/// What the store asks of a file system.
///
/// A new name and a changed one are durable after [`FileSystem::sync_folder`], bytes after
/// [`Output::sync`]; until then a power cut may undo them.
pub trait FileSystem: Debug + Send + Sync {
    /// A new, empty file.
    ///
    /// # Errors
    /// `AlreadyExists`, and what the system says, as all calls.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;

    /// A file, to be read.
    ///
    /// # Errors
    /// `NotFound`, and what the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Input>>;

    /// A file, to be read, whose lock nobody gets before it is closed; others may share it.
    ///
    /// # Errors
    /// `WouldBlock` while another holds the lock; as [`FileSystem::open`].
    fn open_shared(&self, path: &Path) -> io::Result<Box<dyn Input>> {
        self.open(path)
    }

    /// Names of what is in a folder.
    ///
    /// # Errors
    /// What the system says.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Makes a folder, and those around it; one that is there is kept.
    ///
    /// # Errors
    /// What the system says.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// Gives a file another name, taking it from whatever had it.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Returns when the names in a folder are on the device.
    ///
    /// # Errors
    /// What the system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Writes all bytes of a file anew, where they are, and returns when they are on the device:
    /// also those that a sync has failed to write, which no later one would.
    ///
    /// # Errors
    /// What the system says; the bytes stay as they are.
    fn renew(&self, path: &Path) -> io::Result<()>;

    /// Takes the lock that a file stands for, which is made if need be.
    ///
    /// # Errors
    /// `WouldBlock` while another holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
}
