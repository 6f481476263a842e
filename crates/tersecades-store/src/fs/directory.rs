//! The folder of one store: where its files lie, and errors that name them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tersecades_columnar::error::{Error, ErrorKind, Result};

use super::{FileSystem, Input, Lock, Output};

/// Log segments.
pub(crate) const LOG_FOLDER: &str = "log";
/// Run files.
pub(crate) const RUN_FOLDER: &str = "runs";
/// What followers leave that come back.
pub(crate) const BOOKMARK_FOLDER: &str = "bookmarks";
/// Held by the one process that writes.
const LOCK_FILE: &str = "LOCK";

/// The folder of a store.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    files: Arc<dyn FileSystem>,
    root: PathBuf,
    /// The identity of the store, 0 where it is not known.
    identity: u32,
}

/// What the system said, with the file it said it of.
///
/// A full disk is `LimitExceeded`: it is the one failure that passes.
fn named(error: &io::Error, path: &Path) -> Error {
    let file = path.display().to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::limit(format!("no space is left: {error}"))
                .hint("reading goes on; writing does as soon as there is space")
        }
        io::ErrorKind::UnexpectedEof => Error::corrupt("the file ends too early"),
        io::ErrorKind::NotFound => Error::corrupt("the file is missing"),
        io::ErrorKind::Interrupted => Error::new(ErrorKind::Interrupted, error.to_string()),
        _ => Error::io(error.to_string()),
    }
    .file(file)
}

/// Whether a file that says it belongs to `store` can be one of the store `identity`: 0 is of any.
pub(crate) fn owns(identity: u32, store: u32) -> bool {
    store == identity || store == 0 || identity == 0
}

impl Directory {
    /// The folder at `root`.
    pub(crate) fn new(files: Arc<dyn FileSystem>, root: &Path) -> Self {
        Directory {
            files,
            root: root.to_owned(),
            identity: 0,
        }
    }

    /// The same folder, of the store with this identity.
    pub(crate) fn of_store(&self, identity: u32) -> Self {
        Directory {
            identity,
            ..self.clone()
        }
    }

    /// The identity of the store, 0 where it is not known: files that are written get it.
    pub(crate) fn identity(&self) -> u32 {
        self.identity
    }

    /// Whether a file that says it belongs to `store` can be one of this store; those that earlier
    /// releases wrote say nothing.
    pub(crate) fn owns(&self, store: u32) -> bool {
        owns(self.identity, store)
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of `name`, as errors show it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn run<T>(&self, name: &str, call: impl FnOnce(&Path) -> io::Result<T>) -> Result<T> {
        let path = self.path(name);
        call(&path).map_err(|error| named(&error, &path))
    }

    /// `error`, naming the file.
    pub(crate) fn name_file(&self, error: Error, name: &str) -> Error {
        error.file(self.path(name).display().to_string())
    }

    /// Makes the folders of a store and makes them last.
    ///
    /// # Errors
    /// What the system says, naming the file, as all calls here.
    pub(crate) fn make(&self) -> Result<()> {
        for folder in ["", LOG_FOLDER, RUN_FOLDER] {
            self.make_folder(folder)?;
        }
        self.sync_names("")?;
        match self.root.parent() {
            Some(above) if above.as_os_str().is_empty() => self.sync_above(Path::new(".")),
            Some(above) => self.sync_above(above),
            None => Ok(()),
        }
    }

    /// Makes the name of the store's folder, which is in `above`, last.
    fn sync_above(&self, above: &Path) -> Result<()> {
        match self.files.sync_folder(above) {
            // It belongs to somebody else, who has made the folder for us.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced.map_err(|error| named(&error, above)),
        }
    }

    /// Makes a folder, unless it is there.
    pub(crate) fn make_folder(&self, folder: &str) -> Result<()> {
        self.run(folder, |path| self.files.make_folder(path))
    }

    /// Takes the lock of the one writer.
    ///
    /// # Errors
    /// `InvalidArgument` while another process holds it.
    pub(crate) fn lock(&self) -> Result<Box<dyn Lock>> {
        let path = self.path(LOCK_FILE);
        self.files.lock(&path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Error::invalid("another process writes to this store")
                .file(self.root.display().to_string())
                .hint("one process writes at a time; any number may read"),
            _ => named(&error, &path),
        })
    }

    /// A new file.
    pub(crate) fn create(&self, name: &str) -> Result<Box<dyn Output>> {
        self.run(name, |path| self.files.create(path))
    }

    /// A file, to be read.
    pub(crate) fn open(&self, name: &str) -> Result<Box<dyn Input>> {
        self.run(name, |path| self.files.open(path))
    }

    /// A file, to be read, that [`Directory::remove_unread`] leaves alone until it is closed;
    /// `None` where there is none, or it is about to be removed.
    pub(crate) fn open_shared(&self, name: &str) -> Result<Option<Box<dyn Input>>> {
        let opened = self.run(name, |path| match self.files.open_shared(path) {
            Ok(input) => Ok(Some(input)),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(error),
            },
        })?;
        // It may have been removed before it was locked.
        match opened.is_some() && self.exists(name)? {
            true => Ok(opened),
            false => Ok(None),
        }
    }

    /// Removes a file unless somebody reads it who has opened it with [`Directory::open_shared`];
    /// whether it is gone.
    pub(crate) fn remove_unread(&self, name: &str) -> Result<bool> {
        let path = self.path(name);
        match self.files.lock(&path) {
            Ok(_held) => self.remove(name).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(named(&error, &path)),
        }
    }

    /// Length in bytes of `input`, a file named `name`.
    pub(crate) fn length(&self, input: &dyn Input, name: &str) -> Result<u64> {
        self.run(name, |_| input.length())
    }

    /// When a file was last written to, where that is known.
    pub(crate) fn written(&self, name: &str) -> Result<Option<SystemTime>> {
        self.run(name, |path| self.files.open(path)?.written())
    }

    /// All bytes of a file.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>> {
        self.run(name, |path| {
            let file = self.files.open(path)?;
            let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
            let mut bytes = vec![0; length];
            file.read_at(&mut bytes, 0)?;
            Ok(bytes)
        })
    }

    /// Names in a folder, sorted.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>> {
        let mut names = self.run(folder, |path| match self.files.names(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names,
        })?;
        names.sort();
        Ok(names)
    }

    /// Whether a file is there.
    pub(crate) fn exists(&self, name: &str) -> Result<bool> {
        self.run(name, |path| match self.files.open(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        })
    }

    /// Gives a file another name.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.run(from, |path| self.files.rename(path, &self.path(to)))
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        self.run(name, |path| match self.files.remove(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        })
    }

    /// Makes the names in a folder last.
    pub(crate) fn sync_names(&self, folder: &str) -> Result<()> {
        self.run(folder, |path| self.files.sync_folder(path))
    }

    /// Writes `bytes` with `output`, a file named `name`.
    pub(crate) fn write(&self, output: &mut dyn Output, name: &str, bytes: &[u8]) -> Result<()> {
        self.run(name, |_| output.write(bytes))
    }

    /// Makes what was written with `output`, a file named `name`, last.
    pub(crate) fn sync(&self, output: &mut dyn Output, name: &str) -> Result<()> {
        self.run(name, |_| output.sync())
    }

    /// Makes what was written to `input`, a file named `name`, last, whoever wrote it.
    pub(crate) fn sync_input(&self, input: &dyn Input, name: &str) -> Result<()> {
        self.run(name, |_| input.sync())
    }

    /// Writes all bytes of a file anew, where they are, and makes them last.
    pub(crate) fn renew(&self, name: &str) -> Result<()> {
        self.run(name, |path| self.files.renew(path))
    }

    /// Fills `bytes` from `offset` of `input`, a file named `name`.
    pub(crate) fn read_at(
        &self,
        input: &dyn Input,
        name: &str,
        bytes: &mut [u8],
        offset: u64,
    ) -> Result<()> {
        self.run(name, |_| input.read_at(bytes, offset))
    }
}
