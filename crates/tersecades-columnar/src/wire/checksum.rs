//! Checksums: CRC-32C of every 4 KiB slice, in a table behind the content.
//!
//! ```text
//! content (a multiple of 64 bytes) │ u32 for content[0..4096], u32 for content[4096..8192], …, 0
//! ```
//! The table itself needs no checksum: a damaged entry does not fit its slice. A reader of a part
//! verifies only the slices the part lies in.

use crate::error::{Error, Result};

use super::header::{CONTENT_BYTES_AT, FIXED_BYTES, VERSION_AT};
use super::{PART_ALIGN_BYTES, SLICE_BYTES, VERSION, field, length, padded, truncated};

const ENTRY_BYTES: usize = size_of::<u32>();

fn table_bytes(content: usize) -> usize {
    padded(content.div_ceil(SLICE_BYTES) * ENTRY_BYTES)
}

/// Appends the checksums of `out[start..]`, whose length is a multiple of 64.
pub(super) fn seal(out: &mut Vec<u8>, start: usize) {
    let content = out.len() - start;
    out.resize(out.len() + table_bytes(content), 0);
    let (content, table) = out[start..].split_at_mut(content);
    fill(content, table);
}

fn fill(content: &[u8], table: &mut [u8]) {
    for (slice, entry) in content
        .chunks(SLICE_BYTES)
        .zip(table.chunks_exact_mut(ENTRY_BYTES))
    {
        entry.copy_from_slice(&crc32c::crc32c(slice).to_le_bytes());
    }
}

/// Length of the content of the unit at the start of `bytes`; its table is inside `bytes` too.
fn content_bytes(bytes: &[u8], magic: [u8; 4]) -> Result<usize> {
    if field::<4>(bytes, 0)? != magic {
        return Err(
            Error::corrupt("the bytes do not start with the mark of this format")
                .hint(format!("expected `{}`", String::from_utf8_lossy(&magic))),
        );
    }
    let version = u16::from_le_bytes(field(bytes, VERSION_AT)?);
    if version != VERSION {
        return Err(
            Error::unsupported(format!("byte format version {version} cannot be read"))
                .hint(format!("this release reads version {VERSION}")),
        );
    }
    let content = length(u64::from_le_bytes(field(bytes, CONTENT_BYTES_AT)?))?;
    if content < FIXED_BYTES || !content.is_multiple_of(PART_ALIGN_BYTES) {
        return Err(Error::corrupt("a unit has an impossible length"));
    }
    if content > bytes.len() || table_bytes(content) > bytes.len() - content {
        return Err(truncated());
    }
    Ok(content)
}

/// The verified content of the unit at the start of `bytes`, and the length of the unit.
///
/// # Errors
/// `Corrupt`, naming the slice, where a checksum does not fit.
pub(super) fn open(bytes: &[u8], magic: [u8; 4]) -> Result<(&[u8], usize)> {
    let (content, rest) = bytes.split_at(content_bytes(bytes, magic)?);
    let (table, _) = rest.split_at(table_bytes(content.len()));
    let slices = content.chunks(SLICE_BYTES);
    for (index, (slice, entry)) in slices.zip(table.chunks_exact(ENTRY_BYTES)).enumerate() {
        if crc32c::crc32c(slice).to_le_bytes() != entry {
            let first = index * SLICE_BYTES;
            return Err(Error::corrupt(format!(
                "the checksum of bytes {first} to {} does not fit",
                first + slice.len()
            ))
            .hint("the bytes were damaged after they were written"));
        }
    }
    Ok((content, content.len() + table.len()))
}

/// Writes the checksums of the unit at the start of `unit` anew.
pub(super) fn reseal(unit: &mut [u8], magic: [u8; 4]) -> Result<()> {
    let content = content_bytes(unit, magic)?;
    let (content, table) = unit.split_at_mut(content);
    fill(content, table);
    Ok(())
}
