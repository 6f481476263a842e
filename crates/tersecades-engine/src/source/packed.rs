//! Text as it lies in files and pipes: plain, gzip or zstd, told apart by its first bytes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use tersecades_columnar::error::Result;

use super::trickle::{Patient, Trickle, through_pauses};

/// Size of the buffers that text is read through.
pub const READ_BUFFER_BYTES: usize = 256 << 10;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The text inside the file at `path`; that of a pipe comes as it is written.
///
/// # Errors
/// `Io` if it cannot be opened or read.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let file = File::open(path)?;
    match file.metadata()?.is_file() {
        true => unpack(file),
        false => unpack(Trickle::start(file)?),
    }
}

/// The text inside `input`, whichever way it is packed; packed text waits through pauses.
///
/// # Errors
/// `Io` if the first bytes cannot be read.
pub fn unpack(input: impl Read + Send + 'static) -> Result<Box<dyn BufRead + Send>> {
    let mut input = BufReader::with_capacity(READ_BUFFER_BYTES, input);
    through_pauses(|| input.fill_buf().map(|_| ()))?;
    let start = input.fill_buf()?;
    if start.starts_with(GZIP_MAGIC) {
        let plain = flate2::bufread::MultiGzDecoder::new(Patient(input));
        return Ok(Box::new(BufReader::with_capacity(READ_BUFFER_BYTES, plain)));
    }
    if start.starts_with(ZSTD_MAGIC) {
        let plain = zstd::Decoder::with_buffer(Patient(input))?;
        return Ok(Box::new(BufReader::with_capacity(READ_BUFFER_BYTES, plain)));
    }
    Ok(Box::new(input))
}
