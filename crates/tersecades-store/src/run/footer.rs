//! What stands at the end of a run: its columns, where each chunk lies, and what lets chunks be
//! skipped.

use std::ops::Range;

use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::stats::Stats;

use crate::bytes::{Put as _, Take};
use crate::schema::{read_fields, write_fields};

use super::Fences;
use super::bloom::Bloom;

/// Least bytes of a column's entry and of a group's.
const CHUNK_BYTES: usize = 37;
const GROUP_BYTES: usize = 12;

const PRESENT: u8 = 1;
const KNOWN: u8 = 2;

/// One chunk of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChunkEntry {
    /// Where its unit starts; units start at multiples of 64.
    pub(crate) offset: u64,
    /// Bytes of its unit; 0 for a column that came later and is null here.
    pub(crate) length: u32,
    /// CRC-32C of the checksums at the end of the unit.
    pub(crate) checksum: u32,
    /// Rows that are null.
    pub(crate) nulls: u32,
    /// Smallest and largest value.
    pub(crate) stats: Stats,
}

/// Rows that lie together: a chunk of each column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Group {
    /// Number of rows.
    pub(crate) rows: u32,
    /// Sort keys of the first and last row.
    pub(crate) fences: (Vec<u8>, Vec<u8>),
    /// One for each column of the run.
    pub(crate) chunks: Vec<ChunkEntry>,
}

impl Group {
    /// Bytes of all chunks.
    pub(crate) fn bytes(&self) -> u64 {
        self.chunks
            .iter()
            .map(|chunk| u64::from(chunk.length))
            .sum()
    }
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    /// Names and types of the columns.
    pub(crate) fields: SchemaRef,
    /// Numbers of the rows of the store that are here.
    pub(crate) sequences: Range<u64>,
    /// The groups, in the order of their sort keys.
    pub(crate) groups: Vec<Group>,
    /// Which keys there are.
    pub(crate) bloom: Option<Bloom>,
}

impl Footer {
    /// Appends the footer.
    ///
    /// # Errors
    /// `LimitExceeded` for keys of 4 GiB.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.put_blob(&write_fields(&self.fields)?)?;
        out.put_u64(self.sequences.start);
        out.put_u64(self.sequences.end);
        out.put_u32(self.groups.len() as u32);
        for group in &self.groups {
            out.put_u32(group.rows);
            out.put_blob(&group.fences.0)?;
            out.put_blob(&group.fences.1)?;
            for chunk in &group.chunks {
                write_chunk(chunk, out);
            }
        }
        out.put_u8(u8::from(self.bloom.is_some()));
        if let Some(bloom) = &self.bloom {
            bloom.write(out);
        }
        Ok(())
    }

    /// The footer that `bytes` are, of a run whose chunks end at `end`.
    ///
    /// # Errors
    /// `Corrupt` for what [`Footer::write`] cannot have written.
    pub(crate) fn read(bytes: &[u8], end: u64) -> Result<Self> {
        let mut take = Take::new(bytes);
        let fields = read_fields(take.blob()?)?;
        let sequences = take.u64()?..take.u64()?;
        let columns = fields.fields().len();
        let count = take.count(GROUP_BYTES + columns * CHUNK_BYTES)?;
        let mut groups = Vec::with_capacity(count);
        for _ in 0..count {
            let rows = take.u32()?;
            let fences = (take.blob()?.to_vec(), take.blob()?.to_vec());
            let chunks = (0..columns).map(|_| read_chunk(&mut take, rows, end));
            groups.push(Group {
                rows,
                fences,
                chunks: chunks.collect::<Result<_>>()?,
            });
        }
        let bloom = match take.u8()? {
            0 => None,
            1 => Some(Bloom::read(&mut take)?),
            _ => return Err(Error::corrupt("a run has an unknown filter")),
        };
        take.end()?;
        Ok(Footer {
            fields,
            sequences,
            groups,
            bloom,
        })
    }

    /// Sort keys of the first and the last row.
    pub(crate) fn fences(&self) -> Option<Fences> {
        let (first, last) = (self.groups.first()?, self.groups.last()?);
        Some((first.fences.0.clone(), last.fences.1.clone()))
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.rows)).sum()
    }
}

fn write_chunk(chunk: &ChunkEntry, out: &mut Vec<u8>) {
    let present = if chunk.length > 0 { PRESENT } else { 0 };
    let known = if chunk.stats.known { KNOWN } else { 0 };
    out.put_u64(chunk.offset);
    out.put_u32(chunk.length);
    out.put_u32(chunk.checksum);
    out.put_u8(present | known);
    out.put_u32(chunk.nulls);
    out.put_u64(chunk.stats.min);
    out.put_u64(chunk.stats.max);
}

fn read_chunk(take: &mut Take<'_>, rows: u32, end: u64) -> Result<ChunkEntry> {
    let (offset, length, checksum) = (take.u64()?, take.u32()?, take.u32()?);
    let flags = take.u8()?;
    let nulls = take.u32()?;
    let stats = Stats {
        min: take.u64()?,
        max: take.u64()?,
        known: flags & KNOWN != 0,
    };
    let inside = offset
        .checked_add(u64::from(length))
        .is_some_and(|last| last <= end);
    let present = (flags & PRESENT != 0) == (length > 0);
    let sane = flags & !(PRESENT | KNOWN) == 0 && nulls <= rows && stats.min <= stats.max;
    match inside && present && sane {
        true => Ok(ChunkEntry {
            offset,
            length,
            checksum,
            nulls,
            stats,
        }),
        false => Err(Error::corrupt("a chunk lies outside its run")),
    }
}
