//! Arrow IPC: the file format (Feather 2) and the stream format, told apart by their first bytes.
//!
//! Dictionaries stay dictionaries. Batches larger than `batch_rows` are handed out as slices that
//! share the buffers of the batch that was read; smaller ones are passed on as they are.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, StreamReader};
use arrow_ipc::{Block, MetadataVersion, root_as_footer};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use tersecades_columnar::error::{Error, Result};

use super::guard::guard;
use super::ipc_bounds::{check_file, check_stream, damaged};
use super::{Rejected, Source, SourceKind, SourceOptions};

/// The line of this format in [`super::SOURCES`].
pub const KIND: SourceKind = SourceKind {
    name: "arrow",
    suffixes: &[".arrow", ".arrows", ".ipc", ".feather"],
    summary: "Arrow IPC file or stream (Feather 2); dictionaries kept",
    open: |path, options| Ok(Box::new(ArrowSource::open(path, options)?)),
    read: None,
};

const FILE_MAGIC: &[u8] = b"ARROW1";
const FEATHER_1_MAGIC: &[u8] = b"FEA1";

type Batches = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send>;

/// Rows of one Arrow IPC file or stream.
pub struct ArrowSource {
    batches: Batches,
    file: Option<String>,
    schema: SchemaRef,
    batch_rows: usize,
    rest: Option<RecordBatch>,
    rejected: Rejected,
}

impl ArrowSource {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// `Io` if it cannot be opened, `Corrupt` if it is damaged, `Unsupported` for Feather 1,
    /// `InvalidArgument` for unknown columns.
    pub fn open(path: &Path, options: &SourceOptions) -> Result<Self> {
        let mut source = Self::new(BufReader::new(File::open(path)?), options)?;
        source.file = Some(path.display().to_string());
        Ok(source)
    }

    /// Reads a whole IPC file or stream that lies in memory.
    ///
    /// # Errors
    /// As [`Self::open`]; any bytes may be given.
    pub fn from_bytes(bytes: Bytes, options: &SourceOptions) -> Result<Self> {
        Self::new(Cursor::new(bytes), options)
    }

    fn new<R>(mut input: R, options: &SourceOptions) -> Result<Self>
    where
        R: Read + Seek + Send + 'static,
    {
        options.validate()?;
        let mut start = Vec::new();
        input
            .by_ref()
            .take(FILE_MAGIC.len() as u64)
            .read_to_end(&mut start)?;
        input.seek(SeekFrom::Start(0))?;
        if start.starts_with(FEATHER_1_MAGIC) {
            return Err(Error::unsupported("Feather version 1")
                .hint("rewrite the file as Arrow IPC, which is Feather version 2"));
        }
        let (schema, batches) = guard("Arrow IPC", || match start == FILE_MAGIC {
            true => read_file(input, options),
            false => read_stream(input, options),
        })?;
        Ok(ArrowSource {
            batches,
            file: None,
            schema,
            batch_rows: options.batch_rows,
            rest: None,
            rejected: Rejected::default(),
        })
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.rest.take() {
                return Ok(Some(self.split(batch)));
            }
            match guard("Arrow IPC", || Ok(self.batches.next().transpose()?))? {
                Some(batch) if batch.num_rows() > 0 => self.rest = Some(batch),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The first `batch_rows` rows of `batch`; what is left stays for the next call.
    fn split(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = batch.num_rows();
        if rows <= self.batch_rows {
            return batch;
        }
        self.rest = Some(batch.slice(self.batch_rows, rows - self.batch_rows));
        batch.slice(0, self.batch_rows)
    }
}

impl Source for ArrowSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.advance().map_err(|error| {
            self.rest = None;
            self.batches = Box::new(std::iter::empty());
            match &self.file {
                Some(file) => error.file(file),
                None => error,
            }
        })
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

fn read_file<R>(mut input: R, options: &SourceOptions) -> Result<(SchemaRef, Batches)>
where
    R: Read + Seek + Send + 'static,
{
    let footer = check_file(&mut input)?;
    let footer = root_as_footer(&footer).map_err(damaged)?;
    let fields = footer.schema().ok_or_else(|| damaged("it has no schema"))?;
    if !fields.endianness().equals_to_target_endianness() {
        return Err(Error::unsupported("Arrow IPC in another order of bytes")
            .hint("rewrite the file on a machine of this one's kind"));
    }
    let whole = Arc::new(fb_to_schema(fields));
    let positions = options.project(&whole)?;
    let schema = Arc::new(whole.project(&positions)?);
    let mut decoder = FileDecoder::new(whole, UNCHECKED).with_projection(positions);
    let mut reader = BlockReader::new(input);
    for block in footer.dictionaries().into_iter().flatten() {
        let bytes = reader.read(block)?;
        decoder.read_dictionary(block, &bytes)?;
    }
    let blocks = footer.recordBatches().into_iter().flatten().copied();
    let blocks = blocks.collect::<Vec<_>>().into_iter();
    let batches = blocks.filter_map(move |block| {
        let read = reader.read(&block);
        let batch = read.and_then(|bytes| decoder.read_record_batch(&block, &bytes));
        batch.transpose()
    });
    Ok((schema, Box::new(batches)))
}

/// The version under which the decoder takes messages of any version: files of version 4 come with
/// footers of version 5, as Arrow C++ writes them.
const UNCHECKED: MetadataVersion = MetadataVersion::V1;

/// Blocks whose memory is kept to be used again.
const USED_MAX: usize = 4;

/// Reads blocks into the memory of earlier ones of which nobody holds rows any more: new memory is
/// zeroed by the system first, which takes longer than reading.
struct BlockReader<R> {
    input: R,
    /// The blocks that were read last.
    used: VecDeque<Buffer>,
}

impl<R: Read + Seek> BlockReader<R> {
    fn new(input: R) -> Self {
        BlockReader {
            input,
            used: VecDeque::with_capacity(USED_MAX),
        }
    }

    /// The bytes of a block that was found to lie in the file.
    fn read(&mut self, block: &Block) -> std::result::Result<Buffer, ArrowError> {
        let length = u64::from(block.metaDataLength().unsigned_abs());
        let length = length + block.bodyLength().unsigned_abs();
        let mut bytes = self.memory();
        bytes.reserve_exact(usize::try_from(length).unwrap_or(0));
        let start = SeekFrom::Start(block.offset().unsigned_abs());
        self.input.seek(start)?;
        self.input.by_ref().take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(ArrowError::IpcError("the file was cut short".to_owned()));
        }
        let bytes = Buffer::from_vec(bytes);
        self.used.push_back(bytes.clone());
        Ok(bytes)
    }

    /// Memory without bytes: that of a block that nobody holds, if there is one.
    fn memory(&mut self) -> Vec<u8> {
        for _ in 0..self.used.len() {
            let oldest = self.used.pop_front().map(Buffer::into_vec);
            match oldest {
                Some(Ok(mut bytes)) => {
                    bytes.clear();
                    return bytes;
                }
                Some(Err(held)) => self.used.push_back(held),
                None => break,
            }
        }
        if self.used.len() >= USED_MAX {
            self.used.pop_front();
        }
        Vec::new()
    }
}

fn read_stream<R>(mut input: R, options: &SourceOptions) -> Result<(SchemaRef, Batches)>
where
    R: Read + Seek + Send + 'static,
{
    check_stream(&mut input)?;
    input.seek(SeekFrom::Start(0))?;
    let whole = StreamReader::try_new(&mut input, None)?.schema();
    let positions = options.project(&whole)?;
    input.seek(SeekFrom::Start(0))?;
    let schema = Arc::new(whole.project(&positions)?);
    let reader = StreamReader::try_new(input, Some(positions))?;
    Ok((schema, Box::new(reader)))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, DictionaryArray, Int64Array, types::Int32Type};
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions};

    use super::*;

    fn file(version: MetadataVersion, batches: &[RecordBatch]) -> Vec<u8> {
        let options = IpcWriteOptions::try_new(64, false, version).unwrap();
        let mut bytes = Vec::new();
        let schema = batches[0].schema();
        let mut writer = FileWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        batches
            .iter()
            .for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        drop(writer);
        bytes
    }

    #[test]
    fn memory_of_blocks_that_nobody_holds_is_used_again() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let bytes = file(MetadataVersion::V5, &vec![rows; 40]);
        let footer = check_file(&mut Cursor::new(&bytes)).unwrap();
        let footer = root_as_footer(&footer).unwrap();
        let blocks: Vec<Block> = footer.recordBatches().unwrap().iter().copied().collect();
        let mut reader = BlockReader::new(Cursor::new(bytes));
        let places = |reader: &mut BlockReader<_>, held: usize| {
            let (mut now, mut places) = (VecDeque::new(), std::collections::HashSet::new());
            for block in &blocks {
                now.push_back(reader.read(block).unwrap());
                places.extend(now.back().map(Buffer::as_ptr));
                now.drain(..now.len().saturating_sub(held));
            }
            places.len()
        };
        assert_eq!(places(&mut reader, 0), 1);
        assert!(places(&mut reader, 3) <= USED_MAX);
        assert_eq!(
            places(&mut reader, blocks.len()),
            blocks.len(),
            "none is overwritten"
        );
        assert!(reader.used.len() <= USED_MAX);
    }

    #[test]
    fn messages_of_version_4_are_read_under_a_footer_of_version_5() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..100).map(Some)));
        let words = (0..100).map(|row| ["a", "b", "c"][row % 3]);
        let words: ArrayRef = Arc::new(words.collect::<DictionaryArray<Int32Type>>());
        let rows = RecordBatch::try_from_iter([("n", numbers), ("w", words)]).unwrap();
        let parts = [rows.slice(0, 64), rows.slice(64, 36)];
        let (old, new) = (
            file(MetadataVersion::V4, &parts),
            file(MetadataVersion::V5, &parts),
        );
        assert_eq!(old.len(), new.len());
        let footer = |bytes: &[u8]| {
            let tail = bytes.len() - 10;
            let length = i32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap());
            tail - length as usize
        };
        let mixed = [&old[..footer(&old)], &new[footer(&new)..]].concat();
        for bytes in [old, new, mixed] {
            for columns in [None, Some(vec!["w".to_owned()])] {
                let options = SourceOptions {
                    columns: columns.clone(),
                    ..Default::default()
                };
                let mut source = ArrowSource::from_bytes(bytes.clone().into(), &options).unwrap();
                let wanted = match columns {
                    None => rows.clone(),
                    Some(_) => rows.project(&[1]).unwrap(),
                };
                assert_eq!(source.next().unwrap(), Some(wanted.slice(0, 64)));
                assert_eq!(source.next().unwrap(), Some(wanted.slice(64, 36)));
                assert_eq!(source.next().unwrap(), None);
            }
        }
    }

    #[test]
    fn columns_of_one_name_are_refused_where_they_are_wanted() {
        let numbers = |first: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![first])) };
        let columns = [("a", numbers(1)), ("b", numbers(2)), ("a", numbers(3))];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let bytes = file(MetadataVersion::V5, &[rows]);
        let open = |columns: Option<&str>| {
            let options = SourceOptions {
                columns: columns.map(|name| vec![name.to_owned()]),
                ..SourceOptions::default()
            };
            ArrowSource::from_bytes(bytes.clone().into(), &options)
        };
        for columns in [None, Some("a")] {
            let error = open(columns).err().unwrap();
            assert_eq!(error.context().column.as_deref(), Some("a"), "{error}");
            assert!(error.hint_text().unwrap().contains("rename"));
        }
        let batch = open(Some("b")).unwrap().next().unwrap().unwrap();
        assert_eq!(batch.column(0), &numbers(2));
    }
}
