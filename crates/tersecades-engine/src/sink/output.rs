//! Bytes to a file that appears only when it is whole ([`WholeFile`]), or to any writer.
//!
//! Text that goes into a file whose name ends in `.gz` or `.zst` is packed on the way.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tersecades_columnar::error::{Error, Result};
use tersecades_store::whole_file::WholeFile;

use crate::source::packed::Packing;

/// Where a sink writes to.
pub enum Target {
    /// A file, replaced as a whole when the sink finishes.
    File(PathBuf),
    /// An open writer, such as standard output; it is flushed when the sink finishes.
    Writer(Box<dyn Write + Send>),
}

/// An open [`Target`].
pub struct Output(Writer);

enum Writer {
    File(BufWriter<WholeFile>),
    Gzip(GzEncoder<BufWriter<WholeFile>>),
    Zstd(zstd::Encoder<'static, BufWriter<WholeFile>>),
    Other(BufWriter<Box<dyn Write + Send>>),
}

impl Writer {
    /// Writes to `file`, packed as the name of `path` says.
    fn new(file: WholeFile, path: &Path) -> Result<Self> {
        /// The level of the `zstd` command.
        const ZSTD_LEVEL: i32 = 3;
        let file = BufWriter::new(file);
        Ok(match Packing::of_name(path) {
            Some(Packing::Gzip) => Writer::Gzip(GzEncoder::new(file, Compression::default())),
            Some(Packing::Zstd) => {
                let mut packed = zstd::Encoder::new(file, ZSTD_LEVEL)?;
                packed.include_checksum(true)?;
                Writer::Zstd(packed)
            }
            None => Writer::File(file),
        })
    }

    /// Ends a packed stream, flushes everything and puts a file under its final name.
    fn commit(self) -> Result<()> {
        let file = match self {
            Writer::File(file) => file,
            Writer::Gzip(packed) => packed.finish()?,
            Writer::Zstd(packed) => packed.finish()?,
            Writer::Other(mut other) => return Ok(other.flush()?),
        };
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .commit()
    }
}

impl Output {
    /// Opens `target`.
    ///
    /// # Errors
    /// `Io` if the file cannot be created.
    pub fn create(target: Target) -> Result<Self> {
        Ok(Output(match target {
            Target::Writer(writer) => Writer::Other(BufWriter::new(writer)),
            Target::File(path) => Writer::new(WholeFile::create(&path)?, &path)?,
        }))
    }

    /// Opens `target` for the format `name`, whose readers find their way by places in the file.
    ///
    /// # Errors
    /// As [`Self::create`]; `InvalidArgument` for a file whose name says that it is packed.
    pub fn create_seekable(target: Target, name: &str) -> Result<Self> {
        match &target {
            Target::File(path) if Packing::of_name(path).is_some() => Err(Error::invalid(format!(
                "{name} is not packed as a whole: nobody could read it"
            ))
            .file(path.display().to_string())
            .hint("leave out .gz or .zst, or write csv or jsonl, which may be packed")),
            _ => Self::create(target),
        }
    }

    /// Flushes everything and puts a file under its final name.
    ///
    /// # Errors
    /// `Io` if writing, syncing or renaming fails; the partial file is then removed.
    pub fn commit(self) -> Result<()> {
        self.0.commit()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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

#[cfg(test)]
mod tests {
    use std::fs;

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
}
