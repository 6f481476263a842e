//! Text as it lies in files and pipes: plain, gzip or zstd, told apart by its first bytes.

use std::io::{BufRead, BufReader, Read};

use tersecades_columnar::error::Result;

/// Size of the buffers that text is read through.
pub const READ_BUFFER_BYTES: usize = 256 << 10;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The text inside `input`, whichever way it is packed.
///
/// # Errors
/// `Io` if the first bytes cannot be read.
pub fn unpack(input: impl Read + Send + 'static) -> Result<Box<dyn BufRead + Send>> {
    let mut input = BufReader::with_capacity(READ_BUFFER_BYTES, input);
    let start = input.fill_buf()?;
    if start.starts_with(GZIP_MAGIC) {
        let plain = flate2::bufread::MultiGzDecoder::new(input);
        return Ok(Box::new(BufReader::with_capacity(READ_BUFFER_BYTES, plain)));
    }
    if start.starts_with(ZSTD_MAGIC) {
        let plain = zstd::Decoder::with_buffer(input)?;
        return Ok(Box::new(BufReader::with_capacity(READ_BUFFER_BYTES, plain)));
    }
    Ok(Box::new(input))
}
