//! Checks the lengths that an Arrow IPC file claims, before a decoder allocates by them.
//!
//! The Arrow reader allocates whatever a message claims for its body, and for each buffer after
//! decompression; on damaged input that ends the process, which no fence can catch. This pass
//! reads the metadata alone and skips the bodies:
//! ```text
//! file:   footer -> for each block: offset + metadata + body within the file, then the message
//! stream: message after message, each body within the file
//! message: compressed buffers claim no more than their bytes can unpack to
//! ```

use std::io::{Read, Seek, SeekFrom};

use arrow_ipc::{
    Block, CompressionType, Message, MessageHeader, RecordBatch, root_as_footer, root_as_message,
};
use tersecades_columnar::error::{Error, Result};

/// Most bytes that a byte of a compressed buffer can stand for: in zstd four bytes are a block of
/// 128 KiB of one value, in LZ4 a byte makes a match 255 bytes longer.
const ZSTD_RATIO_LIMIT: u64 = 1 << 15;
const LZ4_RATIO_LIMIT: u64 = 1 << 8;

/// Footer length and magic at the end of a file.
const TAIL_BYTES: u64 = 10;

const CONTINUATION: [u8; 4] = [0xff; 4];

/// Checks every length in an IPC file, of which it gives the footer.
///
/// # Errors
/// `Corrupt` if a length leads out of the file.
pub(super) fn check_file<R: Read + Seek>(input: &mut R) -> Result<Vec<u8>> {
    let end = input.seek(SeekFrom::End(0))?;
    let tail = end.checked_sub(TAIL_BYTES).ok_or_else(cut)?;
    input.seek(SeekFrom::Start(tail))?;
    let footer_bytes = u64::try_from(i32::from_le_bytes(read_array(input)?)).map_err(|_| cut())?;
    let start = tail.checked_sub(footer_bytes).ok_or_else(cut)?;
    let bytes = read_span(input, start, footer_bytes)?;
    let footer = root_as_footer(&bytes).map_err(damaged)?;
    let dictionaries = footer.dictionaries().into_iter().flatten();
    for block in dictionaries.chain(footer.recordBatches().into_iter().flatten()) {
        check_block(input, block, end)?;
    }
    Ok(bytes)
}

/// Checks every length in an IPC stream that starts at the beginning of `input`.
///
/// # Errors
/// `Corrupt` if a length leads out of the stream.
pub(crate) fn check_stream<R: Read + Seek>(input: &mut R) -> Result<()> {
    let end = input.seek(SeekFrom::End(0))?;
    let mut position = 0;
    while end - position >= 4 {
        input.seek(SeekFrom::Start(position))?;
        let mut length: [u8; 4] = read_array(input)?;
        position += 4;
        if length == CONTINUATION {
            length = read_array(input)?;
            position += 4;
        }
        let metadata_bytes = u64::try_from(i32::from_le_bytes(length)).map_err(|_| cut())?;
        if metadata_bytes == 0 {
            break;
        }
        let body = position
            .checked_add(metadata_bytes)
            .filter(|body| *body <= end);
        let body = body.ok_or_else(cut)?;
        let metadata = read_span(input, position, metadata_bytes)?;
        let message = root_as_message(&metadata).map_err(damaged)?;
        position = check_message(input, &message, body, end)?;
    }
    Ok(())
}

fn check_block<R: Read + Seek>(input: &mut R, block: &Block, end: u64) -> Result<()> {
    let start = u64::try_from(block.offset()).map_err(|_| cut())?;
    let metadata_bytes = u64::try_from(block.metaDataLength()).map_err(|_| cut())?;
    let body_bytes = u64::try_from(block.bodyLength()).map_err(|_| cut())?;
    let body = start.checked_add(metadata_bytes).ok_or_else(cut)?;
    if body
        .checked_add(body_bytes)
        .is_none_or(|body_end| body_end > end)
    {
        return Err(cut());
    }
    let metadata = read_span(input, start, metadata_bytes)?;
    let prefix = if metadata.starts_with(&CONTINUATION) {
        8
    } else {
        4
    };
    let message = root_as_message(metadata.get(prefix..).ok_or_else(cut)?).map_err(damaged)?;
    check_message(input, &message, body, end).map(|_| ())
}

/// Checks one message whose body starts at `body`; returns where the body ends.
fn check_message<R: Read + Seek>(
    input: &mut R,
    message: &Message<'_>,
    body: u64,
    end: u64,
) -> Result<u64> {
    let body_bytes = u64::try_from(message.bodyLength()).map_err(|_| cut())?;
    let body_end = body
        .checked_add(body_bytes)
        .filter(|body_end| *body_end <= end);
    let body_end = body_end.ok_or_else(cut)?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message
            .header_as_dictionary_batch()
            .and_then(|dictionary| dictionary.data()),
        _ => None,
    };
    if let Some(batch) = batch {
        check_buffers(input, &batch, body, body_end)?;
    }
    Ok(body_end)
}

/// Checks the lengths that compressed buffers claim for what they unpack to.
fn check_buffers<R: Read + Seek>(
    input: &mut R,
    batch: &RecordBatch<'_>,
    body: u64,
    body_end: u64,
) -> Result<()> {
    let ratio = match batch.compression().map(|compression| compression.codec()) {
        None => return Ok(()),
        Some(CompressionType::LZ4_FRAME) => LZ4_RATIO_LIMIT,
        Some(_) => ZSTD_RATIO_LIMIT,
    };
    for buffer in batch.buffers().into_iter().flatten() {
        let offset = u64::try_from(buffer.offset()).map_err(|_| cut())?;
        let length = u64::try_from(buffer.length()).map_err(|_| cut())?;
        let start = body.checked_add(offset).ok_or_else(cut)?;
        if start
            .checked_add(length)
            .is_none_or(|buffer_end| buffer_end > body_end)
        {
            return Err(cut());
        }
        if length >= 8 {
            input.seek(SeekFrom::Start(start))?;
            let unpacked_bytes = i64::from_le_bytes(read_array(input)?);
            if unpacked_bytes > 0 && unpacked_bytes.unsigned_abs() / ratio > length {
                return Err(Error::corrupt(format!(
                    "a buffer of {length} bytes claims to be {unpacked_bytes} bytes"
                ))
                .hint("the file is damaged"));
            }
        }
    }
    Ok(())
}

fn read_span<R: Read + Seek>(input: &mut R, start: u64, length: u64) -> Result<Vec<u8>> {
    input.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    input.by_ref().take(length).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(read) if read == length => Ok(bytes),
        _ => Err(cut()),
    }
}

fn read_array<R: Read, const N: usize>(input: &mut R) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|_| cut())?;
    Ok(bytes)
}

fn cut() -> Error {
    Error::corrupt("a length leads out of the Arrow IPC file")
        .hint("the file is cut short or damaged")
}

pub(super) fn damaged(error: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("Arrow IPC metadata is damaged: {error}"))
}
