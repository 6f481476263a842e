//! Bytes to a file that appears only when it is whole, or to any writer.
//!
//! ```text
//! create: .answer.csv.4711.0.partial   write … write   commit: flush, sync, rename to answer.csv
//! drop without commit: remove the partial file
//! ```
//! Devices and pipes (`/dev/null`, a FIFO) cannot be renamed over; they are written directly.
//! What goes into a file whose name ends in `.gz` or `.zst` is packed on the way.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use tersecades_columnar::error::{Error, Result};

/// Where a sink writes to.
pub enum Target {
    /// A file, replaced as a whole when the sink finishes.
    File(PathBuf),
    /// An open writer, such as standard output; it is flushed when the sink finishes.
    Writer(Box<dyn Write + Send>),
}

/// An open [`Target`].
pub struct Output {
    writer: Writer,
    partial: Option<Partial>,
}

enum Writer {
    File(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
    Other(BufWriter<Box<dyn Write + Send>>),
}

impl Writer {
    /// Writes to `file`, packed as the name of `path` says.
    fn new(file: File, path: &Path) -> Result<Self> {
        /// The level of the `zstd` command.
        const ZSTD_LEVEL: i32 = 3;
        let file = BufWriter::new(file);
        let suffix = path.extension().map(|suffix| suffix.to_ascii_lowercase());
        Ok(match suffix.as_ref().and_then(|suffix| suffix.to_str()) {
            Some("gz") => Writer::Gzip(GzEncoder::new(file, Compression::default())),
            Some("zst") => Writer::Zstd(zstd::Encoder::new(file, ZSTD_LEVEL)?),
            _ => Writer::File(file),
        })
    }

    /// Ends a packed stream and flushes; gives the file, if it is one.
    fn finish(self) -> io::Result<Option<File>> {
        let file = match self {
            Writer::File(file) => file,
            Writer::Gzip(packed) => packed.finish()?,
            Writer::Zstd(packed) => packed.finish()?,
            Writer::Other(mut other) => {
                other.flush()?;
                return Ok(None);
            }
        };
        file.into_inner()
            .map(Some)
            .map_err(|error| error.into_error())
    }
}

/// A file under its temporary name; dropped before `keep`, it is removed.
struct Partial {
    temporary: PathBuf,
    target: PathBuf,
    renamed: bool,
}

static SERIAL: AtomicU64 = AtomicU64::new(0);

impl Output {
    /// Opens `target`.
    ///
    /// # Errors
    /// `Io` if the file cannot be created.
    pub fn create(target: Target) -> Result<Self> {
        let path = match target {
            Target::Writer(writer) => {
                return Ok(Output {
                    writer: Writer::Other(BufWriter::new(writer)),
                    partial: None,
                });
            }
            Target::File(path) => path,
        };
        let special = fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        if special {
            let file = OpenOptions::new().write(true).open(&path)?;
            return Ok(Output {
                writer: Writer::new(file, &path)?,
                partial: None,
            });
        }
        let target = fs::canonicalize(&path).unwrap_or(path);
        let temporary = partial_path(&target)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)?;
        let partial = Partial {
            temporary,
            target,
            renamed: false,
        };
        Ok(Output {
            writer: Writer::new(file, &partial.target)?,
            partial: Some(partial),
        })
    }

    /// Flushes everything and puts a file under its final name.
    ///
    /// # Errors
    /// `Io` if writing, syncing or renaming fails; the partial file is then removed.
    pub fn commit(self) -> Result<()> {
        let file = self.writer.finish()?;
        let Some(mut partial) = self.partial else {
            return Ok(());
        };
        if let Some(file) = file {
            file.sync_all()?;
        }
        fs::rename(&partial.temporary, &partial.target)?;
        partial.renamed = true;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::File(file) => file.write(bytes),
            Writer::Gzip(packed) => packed.write(bytes),
            Writer::Zstd(packed) => packed.write(bytes),
            Writer::Other(other) => other.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Writer::File(file) => file.flush(),
            Writer::Gzip(packed) => packed.flush(),
            Writer::Zstd(packed) => packed.flush(),
            Writer::Other(other) => other.flush(),
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.renamed {
            // Nobody is left to tell; a leftover keeps its `.partial` name.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// A name beside `target` that no other sink of this or another process uses.
fn partial_path(target: &Path) -> Result<PathBuf> {
    let name = target
        .file_name()
        .ok_or_else(|| Error::invalid("the path names no file"))?;
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.{serial}.partial", std::process::id()));
    Ok(target.with_file_name(temporary))
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

    #[test]
    fn a_file_appears_only_when_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, "old").unwrap();
        let mut output = Output::create(Target::File(path.clone())).unwrap();
        output.write_all(b"new").unwrap();
        output.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        output.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(entries(folder.path()), ["a.csv"]);
    }

    #[test]
    fn an_abandoned_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Output::create(Target::File(folder.path().join("a.csv"))).unwrap();
        output.write_all(b"half").unwrap();
        assert_eq!(entries(folder.path()).len(), 1);
        drop(output);
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn impossible_targets_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().join("none/a.csv"), PathBuf::from("/")] {
            assert!(Output::create(Target::File(path)).is_err());
        }
        let output = Output::create(Target::File(folder.path().to_path_buf()));
        assert!(
            output.and_then(Output::commit).is_err(),
            "a folder is not replaced"
        );
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_links_survive() {
        let mut output = Output::create(Target::File("/dev/null".into())).unwrap();
        output.write_all(b"gone").unwrap();
        output.commit().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut output = Output::create(Target::File(link.clone())).unwrap();
        output.write_all(b"new").unwrap();
        output.commit().unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
