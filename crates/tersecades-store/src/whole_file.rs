//! Files that appear under their names only when they are whole.
//!
//! ```text
//! create: .answer.csv.4711.0.partial   write … write   commit: sync, rename to answer.csv
//! drop without commit, or `remove_partial_files` of a program that is told to end: remove it
//! ```
//! Links stay, what they lead to is replaced. A file that is replaced leaves its permission bits to
//! the new one. Devices and pipes cannot be renamed over; they are written directly.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tersecades_columnar::error::{Error, Result};

/// What is said of folders that cannot be synced, but are no worse for it.
const UNSYNCED: [ErrorKind; 3] = [
    ErrorKind::PermissionDenied,
    ErrorKind::Unsupported,
    ErrorKind::InvalidInput,
];

static SERIAL: AtomicU64 = AtomicU64::new(0);

/// The partial files of this process.
static PARTIAL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is being written, or a device or pipe.
///
/// # Examples
/// ```
/// use std::io::Write as _;
/// use tersecades_store::whole_file::WholeFile;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("answer.csv");
/// let mut file = WholeFile::create(&path)?;
/// file.write_all(b"42\n")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"42\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    partial: Option<Partial>,
}

/// A file under its temporary name; removed unless it is kept.
#[derive(Debug)]
struct Partial {
    temporary: PathBuf,
    target: PathBuf,
    kept: bool,
}

impl WholeFile {
    /// Starts a file that is to become `path`.
    ///
    /// # Errors
    /// `Io` if it cannot be created, `InvalidArgument` where `path` is a folder.
    pub fn create(path: &Path) -> Result<Self> {
        let replaced = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(Error::invalid("the output is a folder")),
            Ok(found) if !found.is_file() => {
                return Ok(WholeFile {
                    file: OpenOptions::new().write(true).open(path)?,
                    partial: None,
                });
            }
            Ok(found) => Some(found.permissions()),
            Err(_) => None,
        };
        let (file, partial) = Partial::create(resolve(path)?, replaced)?;
        Ok(WholeFile {
            file,
            partial: Some(partial),
        })
    }

    /// Makes it durable and gives it its name.
    ///
    /// # Errors
    /// `Io` if syncing or renaming fails; the partial file is then removed.
    pub fn commit(self) -> Result<()> {
        let Some(partial) = self.partial else {
            return Ok(());
        };
        self.file.sync_all()?;
        Ok(partial.keep()?)
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Partial {
    fn create(target: PathBuf, replaced: Option<Permissions>) -> Result<(File, Partial)> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if let Some(permissions) = &replaced {
            use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
            // Nobody opens it meanwhile who may not open it at the end.
            options.mode(permissions.mode() & 0o777);
        }
        let mut partial_files = partial_files();
        let (file, temporary) = loop {
            let temporary = partial_path(&target)?;
            match options.open(&temporary) {
                Ok(file) => break (file, temporary),
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        };
        partial_files.push(temporary.clone());
        drop(partial_files);
        let partial = Partial {
            temporary,
            target,
            kept: false,
        };
        if let Some(permissions) = replaced {
            file.set_permissions(permissions)?;
        }
        Ok((file, partial))
    }

    fn keep(mut self) -> io::Result<()> {
        let mut partial_files = partial_files();
        fs::rename(&self.temporary, &self.target)?;
        partial_files.retain(|path| *path != self.temporary);
        drop(partial_files);
        self.kept = true;
        sync_folder(self.target.parent().unwrap_or(Path::new("/")))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.kept {
            let mut partial_files = partial_files();
            // Nobody is left to tell; a leftover keeps its `.partial` name.
            let _ = fs::remove_file(&self.temporary);
            partial_files.retain(|path| *path != self.temporary);
        }
    }
}

/// Makes the names in `folder` last, where the system lets this user and knows how to.
///
/// # Errors
/// What the system says of the device.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if UNSYNCED.contains(&error.kind()) => Ok(()),
        synced => synced,
    }
}

fn partial_files() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTIAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What [`remove_partial_files`] gives: while it lives, no file is begun and none gets its name.
#[must_use = "files are begun again when it is dropped"]
pub struct NoPartialFiles {
    _held: MutexGuard<'static, Vec<PathBuf>>,
}

/// Removes the partial files of this process, which is about to end.
pub fn remove_partial_files() -> NoPartialFiles {
    let mut held = partial_files();
    for path in held.drain(..) {
        // The process ends either way; a leftover keeps its `.partial` name.
        let _ = fs::remove_file(path);
    }
    NoPartialFiles { _held: held }
}

/// Whether two paths lead to one file, which need not exist yet.
pub fn is_same(one: &Path, other: &Path) -> bool {
    match (resolve(one), resolve(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Where a path leads, behind all links; the file need not exist, its folder must.
fn resolve(path: &Path) -> Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return Ok(found?),
    }
    if let Ok(next) = fs::read_link(path) {
        return resolve(&path.with_file_name(next));
    }
    let name = file_name(path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    Ok(fs::canonicalize(folder.unwrap_or(Path::new(".")))?.join(name))
}

/// A name beside `target` that no file of this process, or of another that runs, has.
fn partial_path(target: &Path) -> Result<PathBuf> {
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(file_name(target)?);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    temporary.push(format!(".{}.{serial}.partial", std::process::id()));
    Ok(target.with_file_name(temporary))
}

fn file_name(path: &Path) -> Result<&std::ffi::OsStr> {
    path.file_name()
        .ok_or_else(|| Error::invalid("the path names no file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    fn write(path: &Path, text: &str) {
        let mut file = WholeFile::create(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.commit().unwrap();
    }

    #[test]
    fn a_file_appears_only_when_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, "old").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        file.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(entries(folder.path()), ["a.csv"]);
    }

    #[test]
    fn an_abandoned_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = WholeFile::create(&folder.path().join("a.csv")).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(entries(folder.path()).len(), 1);
        drop(file);
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn impossible_targets_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none/a.csv");
        for path in [&none, Path::new("/"), Path::new(""), folder.path()] {
            assert!(WholeFile::create(path).is_err(), "{}", path.display());
        }
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn what_a_killed_process_of_the_same_number_left_stands_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let process = std::process::id();
        let next = SERIAL.load(Ordering::Relaxed);
        // Other tests take numbers meanwhile.
        let left = next..next + 100;
        for serial in left.clone() {
            let name = format!(".a.csv.{process}.{serial}.partial");
            fs::write(folder.path().join(name), "half").unwrap();
        }
        write(&path, "whole");
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(entries(folder.path()).len(), left.count() + 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_what_they_lead_to_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link, next, loops] =
            ["real", "link", "next", "loop"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink("next", &link).unwrap();
        std::os::unix::fs::symlink(&real, &next).unwrap();
        std::os::unix::fs::symlink("loop", &loops).unwrap();
        for text in ["first", "second"] {
            write(&link, text);
            assert_eq!(fs::read_to_string(&real).unwrap(), text);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert!(fs::symlink_metadata(&next).unwrap().is_symlink());
        }
        assert!(WholeFile::create(&loops).is_err());
        assert!(is_same(&link, &real) && !is_same(&loops, &real));
        assert!(is_same(
            &folder.path().join("./new"),
            &folder.path().join("new")
        ));
    }

    #[cfg(unix)]
    #[test]
    fn permission_bits_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for mode in [0o600, 0o666, 0o444, 0o755] {
            write(&path, "old");
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            write(&path, "new");
            let found = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o7777, mode, "{mode:o}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn pipes_are_written_directly() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let reads = pipe.clone();
        let reader = std::thread::spawn(move || fs::read_to_string(reads).unwrap());
        write(&pipe, "flows");
        assert_eq!(reader.join().unwrap(), "flows");
        assert!(!fs::metadata(&pipe).unwrap().is_file());
        assert_eq!(entries(folder.path()), ["pipe"]);
    }
}
