//! gzip files of others, read in the middle through an index of places to begin at.
//!
//! ```text
//! file ──decoded once, checksums seen──▶ index: a place a MiB, each with the 32 KiB before it
//! read_at(offset) ──index──▶ nearest place before it ──decode──▶ bytes
//! ```
//! The decoder stops between two blocks and goes on from there with nothing but a few bits and the
//! window; the index keeps both. Containers of ours need no index: `pack` makes better ones.
//!
//! # Source
//! RFC 1951, RFC 1952; `zran.c` of zlib (M. Adler), with places between blocks.

mod index;
mod stream;

use std::fs::{self, File};
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tersecades_columnar::error::{Error, Result};

use super::PARTITION_MAX;
use super::layout::{Layout as _, Zlib};
use super::read_at::ReadAt;
use crate::whole_file::WholeFile;
use index::GzipIndex;
use stream::Stream;

/// What stands behind each partition of a container.
const FLUSH: [u8; 4] = [0, 0, 0xff, 0xff];

/// A gzip file of others in a file.
pub type GzipFile = Gzip<File>;

/// A gzip file that is read at any position, by several threads at once.
///
/// # Cost
/// A read decodes up to a MiB before what is wanted, unless it goes on where the last one ended.
/// The index takes up to 32 KiB for each MiB, compressed.
///
/// # Examples
/// ```
/// use std::io::Write as _;
/// use std::sync::Arc;
/// use tersecades_store::partition::Gzip;
///
/// let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
/// for line in 0..100_000 {
///     writeln!(encoder, "line {line:08}")?;
/// }
/// let file: Arc<[u8]> = encoder.finish()?.into();
/// let gzip = Gzip::new(file)?;
/// assert_eq!(gzip.read_range(14 * 70_000..14 * 70_000 + 13)?, b"line 00070000");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Gzip<S> {
    source: S,
    index: GzipIndex,
    /// Where the last read ended.
    idle: Mutex<Option<Stream>>,
}

/// Whether a file begins as gzip files do.
///
/// # Errors
/// Files that cannot be read.
pub fn is_gzip(path: &Path) -> Result<bool> {
    let named = |error: std::io::Error| Error::from(error).file(path.display().to_string());
    let file = File::open(path).map_err(named)?;
    let mut head = [0; 2];
    match file.read_exact_at(0, &mut head) {
        Ok(()) => Ok(head == stream::MAGIC),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(named(error)),
    }
}

/// Opens a gzip file. Its index is read from the file `index`, and made and written there where
/// there is none yet; without a name for it it is made each time.
///
/// # Errors
/// Files that cannot be read or written; `Corrupt` for a file that is no gzip or damaged, a
/// container of ours that is cut short, and an index that is damaged or of another file.
pub fn open_gzip(path: &Path, index: Option<&Path>) -> Result<GzipFile> {
    let named = |error: Error| error.file(path.display().to_string());
    let file = File::open(path).map_err(|error| named(error.into()))?;
    let decode = |file: File| Gzip::new(file).map_err(|error| named(of_container(error, path)));
    let Some(index_path) = index else {
        return decode(file);
    };
    let index_named = |error: Error| error.file(index_path.display().to_string());
    match fs::read(index_path) {
        Ok(bytes) => Gzip::with_index(file, &bytes).map_err(index_named),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let gzip = decode(file)?;
            write_whole(index_path, &gzip.index_bytes()?).map_err(index_named)?;
            Ok(gzip)
        }
        Err(error) => Err(index_named(error.into())),
    }
}

/// The error of a container of ours that lost its end, or the `error` of another gzip file.
fn of_container(error: Error, path: &Path) -> Error {
    let is_ours = || path.extension().is_some_and(|suffix| suffix == "tcz");
    let is_cut = error.message().ends_with(stream::IS_CUT);
    match is_cut && (is_ours() || begins_as_container(path)) {
        true => Error::corrupt("the packed file is cut short: its index is missing")
            .hint("pack it again; `gunzip` and other readers of gzip files still read its start"),
        false => error,
    }
}

/// Whether a file has the head of a container and the flush behind its first partition.
fn begins_as_container(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let head = Zlib.framing().head();
    let length = file.byte_len().unwrap_or(0).min(PARTITION_MAX as u64);
    let mut front = vec![0; length as usize];
    file.read_exact_at(0, &mut front).is_ok()
        && front.starts_with(head)
        && front.windows(FLUSH.len()).any(|it| it == FLUSH)
}

/// Writes a file that appears when it is whole.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut out = WholeFile::create(path)?;
    out.write_all(bytes)?;
    out.commit()
}

impl<S: ReadAt> Gzip<S> {
    /// Opens the gzip file that is all of `source`, and makes its index.
    ///
    /// # Errors
    /// `Corrupt` for a file that is no gzip or damaged: all of it is decoded and checked.
    pub fn new(source: S) -> Result<Self> {
        let index = GzipIndex::make(&source)?;
        Ok(Gzip {
            source,
            index,
            idle: Mutex::default(),
        })
    }

    /// Opens the gzip file that is all of `source` with the index that was made of it.
    ///
    /// # Errors
    /// `Corrupt` for an index that is damaged or of another file.
    pub fn with_index(source: S, index: &[u8]) -> Result<Self> {
        let index = GzipIndex::from_bytes(index)?;
        index.check_is_of(&source)?;
        Ok(Gzip {
            source,
            index,
            idle: Mutex::default(),
        })
    }

    /// The index, to be kept for [`Gzip::with_index`].
    ///
    /// # Errors
    /// What compressing its windows says.
    pub fn index_bytes(&self) -> Result<Vec<u8>> {
        self.index.to_bytes()
    }

    /// How many bytes the file stands for.
    pub fn len(&self) -> u64 {
        self.index.raw_len
    }

    /// Whether it stands for no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` with the bytes from `offset` and says how many there were: fewer than asked
    /// only at the end.
    ///
    /// # Errors
    /// What reading and decoding say.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let left = self.len().saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        if wanted == 0 {
            return Ok(0);
        }
        let mut stream = self.stream_at(offset)?;
        let mut done = 0;
        while done < wanted {
            let skips = offset > stream.raw();
            let limit = match skips {
                true => usize::try_from(offset - stream.raw()).unwrap_or(usize::MAX),
                false => wanted - done,
            };
            let Some(bytes) = stream.step(&self.source, limit)? else {
                return Err(Error::corrupt("the file is shorter than its index says"));
            };
            if !skips {
                buffer[done..done + bytes.len()].copy_from_slice(bytes);
                done += bytes.len();
            }
        }
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        Ok(wanted)
    }

    /// The bytes of a range, cut at the end.
    ///
    /// # Errors
    /// As [`Gzip::read_at`]; a range that ends before it starts.
    pub fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let Some(length) = range.end.min(self.len()).checked_sub(range.start) else {
            return match range.end < range.start {
                true => Err(Error::invalid("a range ends before it starts")),
                false => Ok(Vec::new()),
            };
        };
        let length = usize::try_from(length)
            .map_err(|_| Error::limit("the range does not fit this machine's memory"))?;
        let mut bytes = vec![0; length];
        self.read_at(range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// The decoder that is nearest before `offset`: where the last read ended, or a place of the
    /// index.
    fn stream_at(&self, offset: u64) -> Result<Stream> {
        let place = self.index.place(offset);
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match idle.filter(|idle| (place.raw..=offset).contains(&idle.raw())) {
            Some(stream) => Ok(stream),
            None => Stream::at(place),
        }
    }
}
