//! Runs: immutable files of encoded chunks, sorted, with what lets chunks be skipped.
//!
//! ```text
//! header 64 B │ group: chunk unit, chunk unit, … │ group … │ footer │ trailer 32 B
//! ```
//! A chunk unit is that of the wire format, so a run's bytes are those of memory and of the log.

mod bloom;
mod footer;
mod id;
mod write;

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use tersecades_columnar::batch::Batch;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::wire;

use crate::bytes::Take;
use crate::encode;
use crate::frame;
use crate::fs::{Directory, Input, RUN_FOLDER};
use crate::placement::Placement;

pub(crate) use bloom::hash;
pub(crate) use footer::{ChunkEntry, Footer, Group};
pub(crate) use id::{Fences, RunId};
pub(crate) use write::RunWriter;

/// First bytes of a run.
const MAGIC: [u8; 4] = *b"TCRN";
/// Last field of a trailer but one.
const TRAILER_MAGIC: [u8; 4] = *b"TCRF";
/// The version that is written; all up to it are read.
const VERSION: u16 = 1;
/// Bytes of the header that its checksum covers, in front of it and behind it.
const CHECKED: (Range<usize>, Range<usize>) = (0..16, 20..24);
const HEADER_BYTES: usize = 64;
const TRAILER_BYTES: usize = 32;

/// What is read at once from the end of a run.
const TAIL_BYTES: u64 = 64 << 10;

/// Name of the file of run `number`, below the store's folder.
pub(crate) fn file_name(number: u64) -> String {
    format!("{RUN_FOLDER}/{number:010}.tcr")
}

/// The number in the name of a run's file.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".tcr")?.parse().ok()?;
    (file_name(number)
        .strip_prefix(RUN_FOLDER)?
        .strip_prefix('/')?
        == name)
        .then_some(number)
}

/// The largest number of a run's file.
///
/// # Errors
/// What the system says.
pub(crate) fn newest(directory: &Directory) -> Result<u64> {
    let names = directory.names(RUN_FOLDER)?;
    Ok(names
        .iter()
        .filter_map(|name| number_of(name))
        .max()
        .unwrap_or(0))
}

/// CRC-32C of the checksums of a chunk unit, which stand for its content.
fn unit_checksum(unit: &[u8]) -> Result<u32> {
    let content = unit.get(40..48).and_then(|field| field.first_chunk::<8>());
    let content = content.map(|field| u64::from_le_bytes(*field));
    let content = content.and_then(|content| usize::try_from(content).ok());
    let table = content.and_then(|content| unit.get(content..));
    let table = table.ok_or_else(|| Error::corrupt("a chunk has an impossible length"))?;
    Ok(crc32c::crc32c(table))
}

/// An open run.
pub(crate) struct Run {
    id: RunId,
    directory: Directory,
    name: String,
    input: Box<dyn Input>,
    footer: Footer,
    /// The store that it belongs to, 0 where it does not say.
    store: u32,
    /// Whether its bytes are in memory.
    is_held: bool,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.id.fmt(f)
    }
}

impl Run {
    /// Opens the run that the manifest knows as `id`.
    ///
    /// # Errors
    /// `Corrupt`, naming the file, where it is not the one that was written.
    pub(crate) fn open(directory: &Directory, id: RunId) -> Result<Self> {
        // What a run holds whose ends are damaged, nobody knows: no scan passes it over.
        Self::open_as(directory, id, u64::MAX).map_err(|error| {
            let repair = "`store repair` puts the run aside and says what it gives up";
            let hint = error.hint_text();
            let hint = hint.map_or_else(|| repair.to_owned(), |own| format!("{own}; {repair}"));
            error.hint(hint)
        })
    }

    /// As [`Run::open`], also where bytes follow that are no part of the run.
    ///
    /// # Errors
    /// As [`Run::open`].
    pub(crate) fn open_in_front(directory: &Directory, id: RunId) -> Result<Self> {
        let length = id.length;
        Self::open_as(directory, id, length)
    }

    fn open_as(directory: &Directory, id: RunId, most: u64) -> Result<Self> {
        let name = file_name(id.number);
        let run = Self::open_front(directory, &name, (id.number, id.level), most);
        let run = run.and_then(|run| match run.is(&id) {
            true => Ok(run),
            false => Err(
                Error::corrupt("the run is not the one that the manifest names")
                    .hint("the file was replaced or cut"),
            ),
        });
        run.map_err(|error| directory.name_file(error, &name))
    }

    /// Whether it is the run that the manifest knows as `id`.
    fn is(&self, id: &RunId) -> bool {
        let fences = id.fences.as_ref().or(self.id.fences.as_ref());
        self.id
            == RunId {
                fences: fences.cloned(),
                ..id.clone()
            }
    }

    /// The same, of a run that lies where `placement` says: a hot one is read into memory whole.
    ///
    /// # Errors
    /// As [`Run::open`]; what reading says.
    pub(crate) fn open_placed(
        directory: &Directory,
        id: RunId,
        placement: Placement,
    ) -> Result<Self> {
        let mut run = Self::open(directory, id)?;
        if placement == Placement::Hot {
            let mut bytes = vec![0; run.id.length as usize];
            directory.read_at(run.input.as_ref(), &run.name, &mut bytes, 0)?;
            run.input = Box::new(bytes);
            run.is_held = true;
        }
        Ok(run)
    }

    /// Makes a run last that somebody else has written, or copied.
    ///
    /// # Errors
    /// What syncing says.
    pub(crate) fn sync(&self) -> Result<()> {
        self.directory.sync_input(self.input.as_ref(), &self.name)?;
        self.directory.sync_names(RUN_FOLDER)
    }

    /// Opens a run that nothing is known of.
    ///
    /// # Errors
    /// `Corrupt` where it is no whole run.
    pub(crate) fn open_file(
        directory: &Directory,
        name: &str,
        number: u64,
        level: u32,
    ) -> Result<Self> {
        Self::open_front(directory, name, (number, level), u64::MAX)
    }

    /// Opens the run that the first `most` bytes of a file are.
    fn open_front(
        directory: &Directory,
        name: &str,
        (number, level): (u64, u32),
        most: u64,
    ) -> Result<Self> {
        let input = directory.open(name)?;
        let length = directory.length(input.as_ref(), name)?.min(most);
        if length < (HEADER_BYTES + TRAILER_BYTES) as u64 {
            return Err(Error::corrupt(
                "the run is shorter than its header and trailer",
            ));
        }
        let tail_at = length.saturating_sub(TAIL_BYTES);
        let mut tail = vec![0; (length - tail_at) as usize];
        directory.read_at(input.as_ref(), name, &mut tail, tail_at)?;
        let (footer_range, footer_checksum) = read_trailer(&tail, length)?;
        let bytes = match footer_range.start.checked_sub(tail_at) {
            Some(start) => {
                let start = start as usize;
                tail[start..start + (footer_range.end - footer_range.start) as usize].to_vec()
            }
            None => {
                let mut bytes = vec![0; (footer_range.end - footer_range.start) as usize];
                directory.read_at(input.as_ref(), name, &mut bytes, footer_range.start)?;
                bytes
            }
        };
        if crc32c::crc32c(&bytes) != footer_checksum {
            return Err(Error::corrupt(format!(
                "the checksum of the footer at byte {} does not fit",
                footer_range.start
            )));
        }
        let footer = Footer::read(&bytes, footer_range.start)?;
        let mut header = [0; HEADER_BYTES];
        directory.read_at(input.as_ref(), name, &mut header, 0)?;
        let store = read_header(&header, number)?;
        Ok(Run {
            id: RunId {
                number,
                level,
                length,
                footer_checksum,
                rows: footer.rows(),
                sequences: footer.sequences.clone(),
                fences: footer.fences(),
            },
            directory: directory.clone(),
            name: name.to_owned(),
            input,
            footer,
            store,
            is_held: false,
        })
    }

    /// What the manifest knows of it.
    pub(crate) fn id(&self) -> &RunId {
        &self.id
    }

    /// The identity of the store that it belongs to, 0 where it does not say.
    pub(crate) fn store(&self) -> u32 {
        self.store
    }

    /// Names and types of its columns.
    pub(crate) fn fields(&self) -> &SchemaRef {
        &self.footer.fields
    }

    /// Its groups, in order.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.footer.groups
    }

    /// One group.
    pub(crate) fn group(&self, index: usize) -> &Group {
        &self.footer.groups[index]
    }

    /// Whether the run has a filter.
    pub(crate) fn has_filter(&self) -> bool {
        self.footer.bloom.is_some()
    }

    /// Whether a key with this hash may be in the run.
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        self.footer
            .bloom
            .as_ref()
            .is_none_or(|bloom| bloom.may_hold(hash))
    }

    /// Bytes that stay in memory: filter and fences, and of hot runs the file.
    pub(crate) fn resident_bytes(&self) -> usize {
        let fences = self.footer.groups.iter().map(|group| {
            group.fences.0.len()
                + group.fences.1.len()
                + size_of_val(group.chunks.as_slice())
                + size_of::<Group>()
        });
        let bloom = self
            .footer
            .bloom
            .as_ref()
            .map_or(0, |bloom| bloom.byte_size());
        fences.sum::<usize>()
            + bloom
            + match self.is_held {
                true => self.id.length as usize,
                false => 0,
            }
    }

    /// The bytes of a chunk unit, seen to be the ones that were written.
    ///
    /// # Errors
    /// `Corrupt`, naming the file and the offset; what reading says.
    pub(crate) fn read_unit(&self, entry: &ChunkEntry) -> Result<Vec<u8>> {
        let mut unit = vec![0; entry.length as usize];
        self.directory
            .read_at(self.input.as_ref(), &self.name, &mut unit, entry.offset)?;
        if entry.length > 0 && unit_checksum(&unit).ok() != Some(entry.checksum) {
            return Err(self.damaged(entry, "its checksums are not those that were written"));
        }
        Ok(unit)
    }

    fn damaged(&self, entry: &ChunkEntry, why: &str) -> Error {
        let error = Error::corrupt(format!(
            "the chunk at byte {} is damaged: {why}",
            entry.offset
        ));
        let error = error.hint("the other runs are readable; `store repair` gives up this one");
        self.directory.name_file(error, &self.name)
    }

    /// Column `column` of group `index`.
    ///
    /// # Errors
    /// `Corrupt`, naming the file and the offset; what reading says.
    pub(crate) fn read_chunk(&self, index: usize, column: usize) -> Result<Chunk> {
        let group = self.group(index);
        let entry = &group.chunks[column];
        let field = self.footer.fields.field(column);
        if entry.length == 0 {
            return encode::nulls(field.data_type(), group.rows as usize);
        }
        let unit = self.read_unit(entry)?;
        let (chunk, _) = wire::read_chunk(&unit, None).map_err(|error| {
            self.damaged(entry, error.message())
                .column(field.name().as_str())
        })?;
        let fits = chunk.rows() == group.rows as usize
            && chunk.data_type() == field.data_type()
            && chunk.stats() == entry.stats;
        match fits {
            true => Ok(chunk),
            false => Err(self.damaged(entry, "it is another chunk")),
        }
    }

    /// Group `index` with the columns of `fields`, by name; those the run lacks are null.
    ///
    /// # Errors
    /// As [`Run::read_chunk`].
    pub(crate) fn read_group(&self, index: usize, fields: &SchemaRef) -> Result<Batch> {
        let rows = self.group(index).rows as usize;
        let columns =
            fields
                .fields()
                .iter()
                .map(|field| match self.footer.fields.index_of(field.name()) {
                    Ok(column) => self.read_chunk(index, column),
                    Err(_) => encode::nulls(field.data_type(), rows),
                });
        Batch::new(Arc::clone(fields), columns.collect::<Result<_>>()?)
    }
}

/// Where the footer lies, and its checksum.
fn read_trailer(tail: &[u8], length: u64) -> Result<(Range<u64>, u32)> {
    let at = length - TRAILER_BYTES as u64;
    let wrong = || {
        Error::corrupt(format!("the run has no whole trailer at byte {at}"))
            .hint("the file was cut short, or its end is damaged")
    };
    let trailer = &tail[tail.len() - TRAILER_BYTES..];
    let mut take = Take::new(trailer);
    let (start, bytes, checksum) = (take.u64()?, take.u64()?, take.u32()?);
    let magic = take.bytes(4)?;
    let sum = take.u32()?;
    let sealed = crc32c::crc32c(&trailer[..24]) == sum && take.rest().iter().all(|b| *b == 0);
    let end = start.checked_add(bytes).ok_or_else(wrong)?;
    let ends_there = end == at && start >= HEADER_BYTES as u64;
    match magic == TRAILER_MAGIC && sealed && ends_there {
        true => Ok((start..end, checksum)),
        false => Err(wrong()),
    }
}

/// The store that run `number` belongs to.
fn read_header(header: &[u8; HEADER_BYTES], number: u64) -> Result<u32> {
    let wrong = || Error::corrupt("the header of the run, at byte 0, is damaged");
    let mut take = Take::new(header);
    let magic = take.bytes(4)?;
    let [low, high, 0, 0] = *take.bytes(4)? else {
        return Err(wrong());
    };
    let (named, sum, store) = (take.u64()?, take.u32()?, take.u32()?);
    let version = u16::from_le_bytes([low, high]);
    let sealed = match version {
        0 => crc32c::crc32c(&header[..16]) == sum && store == 0,
        _ => header_sum(header) == sum,
    };
    let rests = take.rest().iter().all(|byte| *byte == 0);
    if magic != MAGIC || !sealed || !rests || named != number {
        return Err(wrong());
    }
    match version {
        0..=VERSION => Ok(store),
        _ => Err(Error::unsupported("another version of run files")
            .hint(format!("this release reads versions up to {VERSION}"))),
    }
}

fn header_sum(header: &[u8]) -> u32 {
    frame::header_sum(&header[CHECKED.0], &header[CHECKED.1])
}

/// Names and types of some columns of `fields`.
pub(crate) fn project(fields: &SchemaRef, names: &[String]) -> Result<SchemaRef> {
    let columns = names.iter().map(|name| match fields.index_of(name) {
        Ok(index) => Ok(Arc::clone(&fields.fields()[index])),
        Err(_) => Err(Error::invalid(format!("the store has no column `{name}`"))),
    });
    Ok(Arc::new(Schema::new(columns.collect::<Result<Vec<_>>>()?)))
}
