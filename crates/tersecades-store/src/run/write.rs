//! Writing a run: groups one after the other, then the footer.

use std::ops::Range;

use arrow_cast::cast;
use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;
use tersecades_columnar::{registry, wire};

use crate::bytes::Put as _;
use crate::fs::{Directory, Output};

use super::bloom::Bloom;
use super::footer::{ChunkEntry, Footer, Group};
use super::{
    HEADER_BYTES, MAGIC, Run, RunId, TRAILER_BYTES, TRAILER_MAGIC, VERSION, header_sum,
    unit_checksum,
};

/// Bytes that are collected before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// A filter larger than this part of what it guards is left out.
const FILTER_SHARE: u64 = 8;

/// A run that is being written.
pub(crate) struct RunWriter {
    directory: Directory,
    output: Box<dyn Output>,
    number: u64,
    name: String,
    buffer: Vec<u8>,
    written: u64,
    footer: Footer,
    hashes: Vec<u64>,
    bloom_bits: usize,
}

impl RunWriter {
    /// Creates the file of run `number`.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn create(
        directory: &Directory,
        number: u64,
        fields: &SchemaRef,
        sequences: Range<u64>,
        bloom_bits: usize,
    ) -> Result<Self> {
        let name = super::file_name(number);
        let mut buffer = Vec::with_capacity(2 * WRITE_BYTES);
        write_header(number, directory.identity(), &mut buffer);
        Ok(RunWriter {
            output: directory.create(&name)?,
            directory: directory.clone(),
            number,
            name,
            buffer,
            written: 0,
            footer: Footer {
                fields: SchemaRef::clone(fields),
                sequences,
                groups: Vec::new(),
                bloom: None,
            },
            hashes: Vec::new(),
            bloom_bits,
        })
    }

    /// Adds a group: the columns of `batch`, and the sort keys of its first and last row.
    ///
    /// # Errors
    /// What writing says.
    pub(crate) fn add(&mut self, batch: &Batch, fences: (Vec<u8>, Vec<u8>)) -> Result<()> {
        let mut chunks = Vec::with_capacity(batch.columns().len());
        for chunk in batch.columns() {
            let start = self.buffer.len();
            write_checked(chunk, can_be_read, &mut self.buffer)?;
            let unit = &self.buffer[start..];
            chunks.push(ChunkEntry {
                offset: self.written + start as u64,
                length: u32::try_from(unit.len())
                    .map_err(|_| Error::limit("a chunk of 4 GiB").hint("lower chunk_rows"))?,
                checksum: unit_checksum(unit)?,
                nulls: chunk.nulls() as u32,
                stats: chunk.stats(),
            });
        }
        self.footer.groups.push(Group {
            rows: batch.rows() as u32,
            fences,
            chunks,
        });
        self.spill(WRITE_BYTES)
    }

    /// Adds group `index` of `run` as its bytes are, without decoding.
    ///
    /// # Errors
    /// `Corrupt` where the bytes are not those that were written; what reading and writing say.
    pub(crate) fn splice(&mut self, run: &Run, index: usize) -> Result<()> {
        let group = run.group(index);
        let mut chunks = Vec::with_capacity(self.footer.fields.fields().len());
        for field in self.footer.fields.fields() {
            let Ok(column) = run.fields().index_of(field.name()) else {
                chunks.push(ChunkEntry {
                    nulls: group.rows,
                    ..ChunkEntry::default()
                });
                continue;
            };
            let mut entry = group.chunks[column];
            let unit = run.read_unit(&entry)?;
            if entry.length > 0 {
                entry.offset = self.written + self.buffer.len() as u64;
            }
            self.buffer.extend_from_slice(&unit);
            chunks.push(entry);
        }
        self.footer.groups.push(Group {
            chunks,
            ..group.clone()
        });
        self.spill(WRITE_BYTES)
    }

    /// Takes note of keys that are in the run, by their hashes, in the order of the keys.
    pub(crate) fn note_keys(&mut self, hashes: impl Iterator<Item = u64>) {
        if self.bloom_bits == 0 {
            return;
        }
        for hash in hashes {
            if self.hashes.last() != Some(&hash) {
                self.hashes.push(hash);
            }
        }
    }

    /// Whether no group was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.footer.groups.is_empty()
    }

    /// Whether a filter is made of the keys.
    pub(crate) fn wants_keys(&self) -> bool {
        self.bloom_bits > 0
    }

    /// Writes the footer and makes the file last.
    ///
    /// # Errors
    /// What writing says; nothing is left of the file then.
    pub(crate) fn finish(mut self, level: u32) -> Result<RunId> {
        let finished = self.write_end(level);
        if finished.is_err() {
            self.abandon();
        }
        finished
    }

    fn write_end(&mut self, level: u32) -> Result<RunId> {
        let footer_at = self.written + self.buffer.len() as u64;
        let filter_bytes = (self.hashes.len() * self.bloom_bits / 8) as u64;
        if filter_bytes > 0 && filter_bytes <= footer_at / FILTER_SHARE {
            self.footer.bloom = Some(Bloom::new(&self.hashes, self.bloom_bits));
        }
        let start = self.buffer.len();
        self.footer.write(&mut self.buffer)?;
        let footer_checksum = crc32c::crc32c(&self.buffer[start..]);
        let footer_bytes = (self.buffer.len() - start) as u64;
        write_trailer(footer_at, footer_bytes, footer_checksum, &mut self.buffer);
        self.spill(0)?;
        self.directory.sync(self.output.as_mut(), &self.name)?;
        Ok(RunId {
            number: self.number,
            level,
            length: self.written,
            footer_checksum,
            rows: self.footer.rows(),
            sequences: self.footer.sequences.clone(),
            fences: self.footer.fences(),
        })
    }

    /// Removes what was written of a run that did not come about.
    pub(crate) fn abandon(self) {
        // What is left over is removed when the store is opened again.
        let _ = self.directory.remove(&self.name);
    }

    /// Writes what was collected when it is more than `limit` bytes.
    fn spill(&mut self, limit: usize) -> Result<()> {
        if self.buffer.len() <= limit {
            return Ok(());
        }
        self.directory
            .write(self.output.as_mut(), &self.name, &self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Appends the unit of a chunk that can be read back; one that cannot is written plain.
///
/// The log that holds the rows goes once the run lasts, so a fault of a codec must not pass here.
///
/// # Errors
/// `Internal` for a chunk that cannot be read back either way.
fn write_checked(
    chunk: &Chunk,
    check: impl Fn(&[u8]) -> Result<()>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    wire::write_chunk(chunk, out)?;
    if check(&out[start..]).is_ok() {
        return Ok(());
    }
    out.truncate(start);
    let values = chunk.to_arrow(&Selection::all(chunk.rows()), &mut Work::default())?;
    let mut encoder = ColumnEncoder::new(chunk.data_type())?;
    encoder.pin(match chunk.physical() {
        Physical::Text => Scheme::of_two(registry::text_codes(), registry::fallback()),
        _ => registry::fallback().into(),
    });
    let plain = encoder.encode_new(&cast(&values, chunk.data_type())?)?;
    wire::write_chunk(&plain, out)?;
    check(&out[start..]).map_err(|error| {
        let message = format!("a column encodes to bytes that cannot be read back: {error}");
        Error::internal(message)
    })
}

fn can_be_read(unit: &[u8]) -> Result<()> {
    wire::read_chunk(unit, None).map(drop)
}

fn write_header(number: u64, store: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out.put_u64(number);
    out.put_u32(0);
    out.put_u32(store);
    out.resize(HEADER_BYTES, 0);
    let sum = header_sum(out).to_le_bytes();
    out[16..20].copy_from_slice(&sum);
}

fn write_trailer(footer_at: u64, footer_bytes: u64, checksum: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.put_u64(footer_at);
    out.put_u64(footer_bytes);
    out.put_u32(checksum);
    out.extend_from_slice(&TRAILER_MAGIC);
    let sum = crc32c::crc32c(&out[start..]);
    out.put_u32(sum);
    out.resize(start + TRAILER_BYTES, 0);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use tersecades_columnar::goal::Tier;

    use super::*;
    use crate::codec_policy::CodecPolicy;
    use crate::encode::Encoder;
    use crate::fs::{RUN_FOLDER, RealFileSystem};
    use crate::run::hash;

    #[test]
    fn a_small_run_has_a_filter_where_its_rows_outweigh_it() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::new(Arc::new(RealFileSystem), folder.path());
        directory.make_folder(RUN_FOLDER).unwrap();
        // Numbers of which no codec makes less.
        let numbers = (0..3_000_u64).map(|n| hash(&n.to_le_bytes()).cast_signed());
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let mut encoder = Encoder::new(&rows.schema(), CodecPolicy::Auto, Tier::Cold).unwrap();
        let batch = encoder.encode(&rows).unwrap();
        for (number, keys) in [(1, 1_000), (2, 3_000)] {
            let mut writer =
                RunWriter::create(&directory, number, &rows.schema(), 0..3_000, 10).unwrap();
            writer.add(&batch, (Vec::new(), Vec::new())).unwrap();
            writer.note_keys(0..keys);
            let id = writer.finish(0).unwrap();
            let run = Run::open(&directory, id).unwrap();
            assert_eq!(run.has_filter(), keys == 1_000, "{keys} keys");
        }
    }

    #[test]
    fn a_chunk_that_cannot_be_read_back_is_written_plain() {
        let texts = (0..3_000).map(|row| (row % 7 > 0).then(|| format!("host {}", row % 20)));
        let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
        let mut encoder = ColumnEncoder::new(texts.data_type()).unwrap();
        let chunk = encoder.encode_new(&texts).unwrap();
        let mut out = vec![7; 64];
        let only_plain = |unit: &[u8]| {
            let (chunk, _) = wire::read_chunk(unit, None)?;
            match chunk.codec_label() == "dictionary(plain)" {
                true => Ok(()),
                false => Err(Error::corrupt("a codec that is at fault")),
            }
        };
        write_checked(&chunk, only_plain, &mut out).unwrap();
        let (read, _) = wire::read_chunk(&out[64..], None).unwrap();
        let all = Selection::all(read.rows());
        let back = read.to_arrow(&all, &mut Work::default()).unwrap();
        assert_eq!(&cast(&back, texts.data_type()).unwrap(), &texts);
        let never = |_: &[u8]| Err(Error::corrupt("nothing can be read"));
        assert!(write_checked(&chunk, never, &mut out).is_err());
    }
}
