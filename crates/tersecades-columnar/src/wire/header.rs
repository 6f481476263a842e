//! The header of a chunk: fixed fields, then the length of every part.

use std::ops::Range;

use crate::chunk::{CHUNK_ROWS_MAX, Chunk, INNER_MAX, SECTIONS_MAX};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::registry;
use crate::stats::Stats;

use super::{VERSION, field, length, padded, truncated};

/// First bytes of a chunk unit.
pub(super) const CHUNK_MAGIC: [u8; 4] = *b"TCDC";

/// Bytes before the lengths of the parts; also the whole header of a batch.
pub(super) const FIXED_BYTES: usize = 64;

/// Bytes of a chunk's header.
pub(crate) const HEADER_BYTES: usize = 192;

pub(super) const VERSION_AT: usize = 4;
pub(super) const CONTENT_BYTES_AT: usize = 40;
const CODEC_AT: usize = 6;
const TYPE_AT: usize = 7;
const FLAGS_AT: usize = 10;
const ROWS_AT: usize = 12;
const NULLS_AT: usize = 16;
const MIN_AT: usize = 24;
const MAX_AT: usize = 32;
const LENGTHS_AT: usize = FIXED_BYTES;
const LENGTHS_END: usize = LENGTHS_AT + PARTS * 8;

/// Bytes that mean nothing and are zero.
const RESERVED: [Range<usize>; 4] = [
    FLAGS_AT + 1..ROWS_AT,
    NULLS_AT + 4..MIN_AT,
    CONTENT_BYTES_AT + 8..FIXED_BYTES,
    LENGTHS_END..HEADER_BYTES,
];

const STATS_KNOWN: u8 = 1;

/// Name of a time zone.
pub(super) const ZONE: usize = 0;
/// A bit per row, 1 for values, in words of eight bytes.
pub(super) const VALIDITY: usize = 1;
/// First of the codec's own sections.
pub(super) const SECTIONS: usize = 2;
/// First of the chunks inside: header and parts without checksums.
pub(super) const INNER: usize = SECTIONS + SECTIONS_MAX;
/// End of each text, u32.
pub(super) const TEXT_ENDS: usize = INNER + INNER_MAX;
/// All texts.
pub(super) const TEXTS: usize = TEXT_ENDS + 1;
/// Parts of a chunk.
pub(super) const PARTS: usize = TEXTS + 1;

/// What a header says, its own consistency checked.
pub(super) struct Header {
    pub(super) codec: &'static dyn Codec,
    pub(super) type_bytes: [u8; 3],
    pub(super) rows: usize,
    pub(super) nulls: usize,
    pub(super) stats: Stats,
    parts: [Range<usize>; PARTS],
}

impl Header {
    /// The header of `content`, which ends where the last part does.
    ///
    /// # Errors
    /// `Corrupt` for lengths that do not add up and values out of range.
    pub(super) fn read(content: &[u8]) -> Result<Self> {
        if field::<4>(content, 0)? != CHUNK_MAGIC
            || u16::from_le_bytes(field(content, VERSION_AT)?) != VERSION
        {
            return Err(Error::corrupt("a chunk lacks its mark"));
        }
        let zero = |range: &Range<usize>| {
            let reserved = content.get(range.clone());
            reserved.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
        };
        let [codec] = field(content, CODEC_AT)?;
        let [flags] = field(content, FLAGS_AT)?;
        if flags & !STATS_KNOWN != 0 || !RESERVED.iter().all(zero) {
            return Err(Error::corrupt("a chunk uses fields that mean nothing"));
        }
        let number = |at| field(content, at).map(u32::from_le_bytes);
        let rows = length(u64::from(number(ROWS_AT)?))?;
        let nulls = length(u64::from(number(NULLS_AT)?))?;
        if rows > CHUNK_ROWS_MAX || nulls > rows {
            return Err(Error::corrupt("a chunk has an impossible number of rows"));
        }
        Ok(Header {
            codec: registry::by_id(codec)?,
            type_bytes: field(content, TYPE_AT)?,
            rows,
            nulls,
            stats: Stats {
                min: u64::from_le_bytes(field(content, MIN_AT)?),
                max: u64::from_le_bytes(field(content, MAX_AT)?),
                known: flags & STATS_KNOWN != 0,
            },
            parts: read_parts(content)?,
        })
    }

    /// The length of a part.
    pub(super) fn bytes(&self, index: usize) -> usize {
        self.parts[index].len()
    }

    /// The bytes of a part.
    pub(super) fn part<'a>(&self, content: &'a [u8], index: usize) -> Result<&'a [u8]> {
        content.get(self.parts[index].clone()).ok_or_else(truncated)
    }
}

/// Where each part lies: one after the other, each from the next multiple of 64.
fn read_parts(content: &[u8]) -> Result<[Range<usize>; PARTS]> {
    let mut parts: [Range<usize>; PARTS] = Default::default();
    let mut start = HEADER_BYTES;
    for (index, part) in parts.iter_mut().enumerate() {
        let bytes = length(u64::from_le_bytes(field(content, LENGTHS_AT + index * 8)?))?;
        if bytes > content.len().saturating_sub(start) {
            return Err(truncated());
        }
        *part = start..start + bytes;
        start = padded(start + bytes);
    }
    let claimed = length(u64::from_le_bytes(field(content, CONTENT_BYTES_AT)?))?;
    match start == content.len() && claimed == start {
        true => Ok(parts),
        false => Err(Error::corrupt("the parts of a chunk do not add up")),
    }
}

/// Writes the header of `chunk` over the first bytes of `content`.
///
/// # Errors
/// `LimitExceeded` for more rows than a chunk may have.
pub(super) fn write(
    chunk: &Chunk,
    type_bytes: [u8; 3],
    lengths: &[usize; PARTS],
    content: &mut [u8],
) -> Result<()> {
    if chunk.rows > CHUNK_ROWS_MAX {
        return Err(Error::limit("a chunk holds at most 16 Mi rows").hint("slice the batch"));
    }
    let bytes = content.len() as u64;
    let mut put = |at: usize, field: &[u8]| content[at..at + field.len()].copy_from_slice(field);
    put(0, &CHUNK_MAGIC);
    put(VERSION_AT, &VERSION.to_le_bytes());
    put(CODEC_AT, &[chunk.codec.id()]);
    put(TYPE_AT, &type_bytes);
    put(ROWS_AT, &(chunk.rows as u32).to_le_bytes());
    put(NULLS_AT, &(chunk.nulls as u32).to_le_bytes());
    if chunk.stats.known {
        put(FLAGS_AT, &[STATS_KNOWN]);
        put(MIN_AT, &chunk.stats.min.to_le_bytes());
        put(MAX_AT, &chunk.stats.max.to_le_bytes());
    }
    put(CONTENT_BYTES_AT, &bytes.to_le_bytes());
    for (index, length) in lengths.iter().enumerate() {
        put(LENGTHS_AT + index * 8, &(*length as u64).to_le_bytes());
    }
    Ok(())
}

const _: () = assert!(LENGTHS_END <= HEADER_BYTES && HEADER_BYTES.is_multiple_of(64));
const _: () = assert!(CHUNK_ROWS_MAX <= u32::MAX as usize);
