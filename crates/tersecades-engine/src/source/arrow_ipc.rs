//! Arrow IPC: the file format (Feather 2) and the stream format, told apart by their first bytes.
//!
//! Dictionaries stay dictionaries. Batches larger than `batch_rows` are handed out as slices that
//! share the buffers of the batch that was read; smaller ones are passed on as they are.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use tersecades_columnar::error::{Error, Result};

use super::guard::guard;
use super::ipc_bounds::{check_file, check_stream};
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
    check_file(&mut input)?;
    input.seek(SeekFrom::Start(0))?;
    let whole = FileReader::try_new(&mut input, None)?.schema();
    let positions = options.project(&whole)?;
    input.seek(SeekFrom::Start(0))?;
    let schema = Arc::new(whole.project(&positions)?);
    let reader = FileReader::try_new(input, Some(positions))?;
    Ok((schema, Box::new(reader)))
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
