//! Text as it lies in files and pipes: plain, gzip or zstd, told apart by its first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use tersecades_columnar::error::{Error, Result};

use super::trickle::{Patient, Trickle, through_pauses};

/// Size of the buffers that text is read through.
pub const READ_BUFFER_BYTES: usize = 256 << 10;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// First bytes of a zstd frame that holds nothing, behind the first.
const SKIPPABLE_MAGIC: &[u8] = &[0x2a, 0x4d, 0x18];

/// How text is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    /// What the suffix of `path` promises.
    pub(crate) fn of_name(path: &Path) -> Option<Packing> {
        let suffix = path.extension()?.to_ascii_lowercase();
        match suffix.to_str()? {
            "gz" => Some(Packing::Gzip),
            "zst" => Some(Packing::Zstd),
            _ => None,
        }
    }

    /// Whether so few first bytes may become those of packed text.
    fn may_begin(start: &[u8]) -> bool {
        let begins = |magic: &[u8]| start.len() < magic.len() && magic.starts_with(start);
        let is_skippable = start.first().is_some_and(|first| first & 0xf0 == 0x50);
        let rest = start.get(1..).unwrap_or_default();
        begins(GZIP_MAGIC)
            || begins(ZSTD_MAGIC)
            || is_skippable
                && rest.len() < SKIPPABLE_MAGIC.len()
                && SKIPPABLE_MAGIC.starts_with(rest)
    }

    /// What the first bytes say.
    fn of_bytes(start: &[u8]) -> Option<Packing> {
        let is_skippable = |first: &u8| first & 0xf0 == 0x50;
        match start {
            _ if start.starts_with(GZIP_MAGIC) => Some(Packing::Gzip),
            _ if start.starts_with(ZSTD_MAGIC) => Some(Packing::Zstd),
            [first, rest @ ..] if is_skippable(first) && rest.starts_with(SKIPPABLE_MAGIC) => {
                Some(Packing::Zstd)
            }
            _ => None,
        }
    }
}

/// The text inside members of gzip, one after the other, and zeros that may fill up the file.
struct Gzip<R: BufRead>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            let rest = self.0.take().map(GzDecoder::into_inner);
            self.0 = rest.map(next_member).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// The member that `rest` begins with; `None` where nothing or only zeros are left.
fn next_member<R: BufRead>(mut rest: R) -> io::Result<Option<GzDecoder<R>>> {
    match rest.fill_buf()?.first() {
        None => return Ok(None),
        Some(first) if *first == GZIP_MAGIC[0] => return Ok(Some(GzDecoder::new(rest))),
        Some(_) => {}
    }
    loop {
        let filling = rest.fill_buf()?;
        match filling.len() {
            0 => return Ok(None),
            _ if filling.iter().any(|byte| *byte != 0) => {
                let behind = "other bytes lie behind the end of what gzip packed";
                return Err(io::Error::new(io::ErrorKind::InvalidData, behind));
            }
            length => rest.consume(length),
        }
    }
}

/// The text inside the file at `path`; that of a pipe comes as it is written.
///
/// # Errors
/// `Io` if it cannot be opened or read; `Corrupt` if its name says that it is packed, and its bytes
/// do not.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let file = File::open(path)?;
    let promised = Packing::of_name(path);
    match file.metadata()?.is_file() {
        true => unpack_as(file, promised),
        false => unpack_as(Trickle::start(file)?, promised),
    }
}

/// The text inside `input`, whichever way it is packed; packed text waits through pauses.
///
/// # Errors
/// `Io` if the first bytes cannot be read.
pub fn unpack(input: impl Read + Send + 'static) -> Result<Box<dyn BufRead + Send>> {
    unpack_as(input, None)
}

/// Appends the next byte, unless there is none.
fn read_byte(input: &mut impl Read, start: &mut Vec<u8>) -> Result<bool> {
    let mut byte = [0];
    let read = through_pauses(|| input.read(&mut byte))?;
    start.extend(&byte[..read]);
    Ok(read > 0)
}

fn unpack_as(
    input: impl Read + Send + 'static,
    promised: Option<Packing>,
) -> Result<Box<dyn BufRead + Send>> {
    let mut input = BufReader::with_capacity(READ_BUFFER_BYTES, input);
    through_pauses(|| input.fill_buf().map(|_| ()))?;
    let mut start = Vec::new();
    if Packing::may_begin(input.fill_buf()?) {
        // The first bytes of a pipe may come one by one.
        while Packing::may_begin(&start) && read_byte(&mut input, &mut start)? {}
    }
    let mut input = Cursor::new(start).chain(input);
    Ok(match (Packing::of_bytes(input.fill_buf()?), promised) {
        (Some(Packing::Gzip), _) => {
            let plain = Gzip(Some(GzDecoder::new(Patient(input))));
            Box::new(BufReader::with_capacity(READ_BUFFER_BYTES, plain))
        }
        (Some(Packing::Zstd), _) => {
            let plain = zstd::Decoder::with_buffer(Patient(input))?;
            Box::new(BufReader::with_capacity(READ_BUFFER_BYTES, plain))
        }
        (None, Some(promised)) => {
            return Err(
                Error::corrupt(format!("the file is not packed by {promised:?}"))
                    .hint("it is damaged, or plain text under a wrong name"),
            );
        }
        (None, None) => Box::new(input),
    })
}
