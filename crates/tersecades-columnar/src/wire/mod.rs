//! The byte format, version 1: encoded chunks and batches as self-contained bytes.
//!
//! ```text
//! chunk unit:  header 192 B │ parts, each 64-aligned │ checksums, one u32 per 4 KiB
//!              zone, validity, sections 0-7, chunks inside (nested headers and parts), texts
//! batch unit:  header 64 B │ directory │ names │ checksums │ chunk units, each 64-aligned
//! ```
//! Everything is little-endian; positions are counted from the start of the unit. The bytes of a
//! section are the bytes of memory, so writing and reading copy and never re-encode. Every field is
//! in `docs/format.md`.
//!
//! Bytes from outside are trusted in three steps: checksums (damage), structure (lengths, counts
//! and types, with nothing allocated that the bytes do not back), and [`Codec::validate`]
//! (everything the primitives rely on). A chunk that passes is as safe to use as an encoded one.
//!
//! [`Codec::validate`]: crate::codec::Codec::validate

mod batch;
mod checksum;
mod content;
mod header;
mod types;

use std::sync::Arc;

use crate::batch::Batch;
use crate::chunk::Chunk;
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};

pub(crate) use header::HEADER_BYTES as CHUNK_HEADER_BYTES;

/// Version that is written, and the only one that is read.
pub const VERSION: u16 = 1;

/// Alignment of every part, relative to the start of its unit.
pub const PART_ALIGN_BYTES: usize = 64;

/// Bytes that one checksum covers.
pub const SLICE_BYTES: usize = 4096;

/// Appends `chunk`, with the texts its codes stand for, to `out`.
///
/// # Errors
/// `LimitExceeded` for more rows than a chunk may have.
///
/// # Cost
/// One copy and one checksum pass; the codes of text are looked at once.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Int64Array};
/// use tersecades_columnar::{encoder::ColumnEncoder, wire};
/// let array: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5_000));
/// let chunk = ColumnEncoder::new(array.data_type()).unwrap().encode_new(&array).unwrap();
/// let mut bytes = Vec::new();
/// wire::write_chunk(&chunk, &mut bytes).unwrap();
/// let (back, length) = wire::read_chunk(&bytes, None).unwrap();
/// assert_eq!((back.rows(), length), (5_000, bytes.len()));
/// ```
pub fn write_chunk(chunk: &Chunk, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    content::write(chunk, out)?;
    checksum::seal(out, start);
    Ok(())
}

/// The chunk at the start of `bytes`, and the length of its unit.
///
/// When `dictionary` holds the chunk's texts under the same codes the chunk shares it, so that the
/// chunks of one column need one table.
///
/// # Errors
/// `Corrupt` for anything [`write_chunk`] could not have written, `Unsupported` for another
/// version.
///
/// # Cost
/// One checksum pass, one copy, one validation; memory in proportion to `bytes`.
pub fn read_chunk(bytes: &[u8], dictionary: Option<&Arc<Dictionary>>) -> Result<(Chunk, usize)> {
    let (content, length) = checksum::open(bytes, header::CHUNK_MAGIC)?;
    let mut chunk = content::read(content)?;
    if let Some(dictionary) = dictionary {
        content::share_dictionary(&mut chunk, dictionary);
    }
    Ok((chunk, length))
}

/// Appends `batch`, names and types included, to `out`.
///
/// # Errors
/// As [`write_chunk`].
pub fn write_batch(batch: &Batch, out: &mut Vec<u8>) -> Result<()> {
    batch::write(batch, out)
}

/// The batch that `bytes` are.
///
/// # Errors
/// As [`read_chunk`], naming the column; `Corrupt` for bytes after the batch.
pub fn read_batch(bytes: &[u8]) -> Result<Batch> {
    batch::read(bytes)
}

/// Computes the checksums of the unit at the start of `unit` anew: those of a chunk, or those of a
/// batch's header, directory and names.
///
/// For tools that change a unit in place, and for tests that want to get past the checksums.
///
/// # Errors
/// `Corrupt` when `unit` is no unit or too short for the length it claims.
pub fn reseal(unit: &mut [u8]) -> Result<()> {
    match unit.starts_with(&batch::MAGIC) {
        true => checksum::reseal(unit, batch::MAGIC),
        false => checksum::reseal(unit, header::CHUNK_MAGIC),
    }
}

/// `length` rounded up to a whole number of aligned parts.
fn padded(length: usize) -> usize {
    length.next_multiple_of(PART_ALIGN_BYTES)
}

/// The `N` bytes at `at`.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<N>());
    field.copied().ok_or_else(truncated)
}

fn truncated() -> Error {
    Error::corrupt("the bytes end inside a unit").hint("the file or message was cut short")
}

/// A length from outside as a length in memory.
fn length(value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| truncated())
}

const _: () = assert!(
    cfg!(target_endian = "little"),
    "sections are written as they lie in memory"
);
