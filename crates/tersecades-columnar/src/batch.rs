//! A batch: one chunk per column and the number of rows.

use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::chunk::{CHUNK_ROWS_MAX, Chunk};
use crate::codec::Work;
use crate::encoder::ColumnEncoder;
use crate::error::{Error, Result};
use crate::registry;
use crate::rows::RowPool;
use crate::scheme::Scheme;
use crate::selection::Selection;
use crate::types::logical_type;

/// Rows of a batch unless the user says otherwise: 64 blocks.
pub const BATCH_ROWS: usize = 65_536;

/// Bytes of one column of a batch, its dictionary not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnBytes {
    /// As Arrow lays the column out, text as codes.
    pub raw: u64,
    /// As encoded.
    pub encoded: u64,
}

impl ColumnBytes {
    fn of(chunk: &Chunk) -> Self {
        ColumnBytes {
            raw: chunk.raw_byte_size() as u64,
            encoded: chunk.byte_size() as u64,
        }
    }
}

/// Encoded columns of equal length.
#[derive(Debug, Clone)]
pub struct Batch {
    schema: SchemaRef,
    rows: usize,
    columns: Vec<Chunk>,
    /// Of each column, apart from them: whoever adds up what passes by reads no chunk for it.
    bytes: OnceLock<Vec<ColumnBytes>>,
}

impl Batch {
    /// A batch without rows, to be filled.
    pub fn empty(schema: SchemaRef) -> Self {
        let columns = schema.fields().iter().map(|_| Chunk::default()).collect();
        Batch {
            schema,
            rows: 0,
            columns,
            bytes: OnceLock::new(),
        }
    }

    /// A batch of columns that are already encoded.
    ///
    /// # Errors
    /// `SchemaMismatch` when lengths or types differ from the schema's.
    pub fn new(schema: SchemaRef, columns: Vec<Chunk>) -> Result<Self> {
        let rows = columns.first().map_or(0, Chunk::rows);
        if columns.len() != schema.fields().len() {
            return Err(Error::schema("a batch needs one column for each field"));
        }
        for (field, column) in schema.fields().iter().zip(&columns) {
            if column.rows() != rows || column.data_type() != field.data_type() {
                return Err(
                    Error::schema("a column differs from its field in type or length")
                        .column(field.name().as_str()),
                );
            }
        }
        Ok(Batch {
            schema,
            rows,
            columns,
            bytes: OnceLock::new(),
        })
    }

    /// Names and logical types.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns, in schema order.
    pub fn columns(&self) -> &[Chunk] {
        &self.columns
    }

    /// The column at `index`.
    pub fn column(&self, index: usize) -> &Chunk {
        &self.columns[index]
    }

    /// Encoded bytes of all columns, shared dictionaries not counted.
    pub fn byte_size(&self) -> usize {
        let bytes = self.column_bytes().iter();
        bytes.map(|column| column.encoded as usize).sum()
    }

    /// Bytes of each column.
    ///
    /// # Cost
    /// A walk over the sections of all chunks the first time, unless an encoder filled the batch.
    pub fn column_bytes(&self) -> &[ColumnBytes] {
        let count = || self.columns.iter().map(ColumnBytes::of).collect();
        self.bytes.get_or_init(count)
    }

    /// Counts the bytes of columns that were just filled, in the memory of the count before.
    fn count_bytes(&mut self) {
        let mut bytes = self.bytes.take().unwrap_or_default();
        bytes.clear();
        bytes.extend(self.columns.iter().map(ColumnBytes::of));
        self.bytes = OnceLock::from(bytes);
    }

    /// The selected rows as Arrow; text comes as dictionary arrays.
    ///
    /// # Errors
    /// `Corrupt` when text is not UTF-8.
    pub fn to_arrow(&self, within: &Selection, work: &mut Work) -> Result<RecordBatch> {
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (field, column) in self.schema.fields().iter().zip(&self.columns) {
            let array = column.to_arrow(within, work)?;
            let nullable = field.is_nullable();
            fields.push(Field::new(
                field.name(),
                array.data_type().clone(),
                nullable,
            ));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(within.count()));
        let schema = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// How the values of a batch lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Each column by itself, encoded.
    #[default]
    Column,
    /// Row after row, nothing encoded but text; for queries that touch whole rows.
    Row,
}

/// Encodes arriving record batches, column by column.
pub struct BatchEncoder {
    schema: SchemaRef,
    columns: Vec<ColumnEncoder>,
    layout: Layout,
    rows: RowPool,
}

impl BatchEncoder {
    /// An encoder for record batches of `schema`.
    ///
    /// # Errors
    /// `Unsupported`, naming the column, for types without a physical shape.
    pub fn new(schema: &Schema) -> Result<Self> {
        let mut fields = Vec::with_capacity(schema.fields().len());
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let encoder = ColumnEncoder::new(field.data_type());
            columns.push(encoder.map_err(|error| error.column(field.name().as_str()))?);
            let logical = logical_type(field.data_type());
            fields.push(Field::new(field.name(), logical, field.is_nullable()));
        }
        Ok(BatchEncoder {
            schema: Arc::new(Schema::new(fields)),
            columns,
            layout: Layout::default(),
            rows: RowPool::default(),
        })
    }

    /// Names and logical types of the encoded batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Lays batches out so; in rows, text is codes there.
    ///
    /// # Errors
    /// `InvalidArgument` for a column that cannot lie so.
    pub fn lay_out(&mut self, layout: Layout) -> Result<()> {
        self.layout = layout;
        if layout == Layout::Column {
            return Ok(());
        }
        let (codes, row) = (registry::text_codes(), registry::row_layout());
        self.columns
            .iter_mut()
            .try_for_each(|column| match column.dictionary() {
                Some(_) => column.require(Scheme::of_two(codes, row)),
                None => column.require(row),
            })
    }

    /// The encoder of each column.
    pub fn columns_mut(&mut self) -> &mut [ColumnEncoder] {
        &mut self.columns
    }

    /// Encodes `source` into a new batch.
    ///
    /// # Errors
    /// As [`BatchEncoder::encode`].
    pub fn encode_new(&mut self, source: &RecordBatch) -> Result<Batch> {
        let mut batch = Batch::empty(Arc::clone(&self.schema));
        self.encode(source, &mut batch)?;
        Ok(batch)
    }

    /// Encodes `source` into `out`, whose memory is reused.
    ///
    /// # Errors
    /// `SchemaMismatch` when columns differ, `LimitExceeded` above 16 Mi rows.
    pub fn encode(&mut self, source: &RecordBatch, out: &mut Batch) -> Result<()> {
        if source.num_columns() != self.columns.len() {
            return Err(Error::schema(
                "a record batch has other columns than the stream",
            ));
        }
        self.encode_arrays(source.columns().iter(), source.num_rows(), out)
    }

    /// Encodes the columns of `source` at `positions`, one for each column of the stream.
    ///
    /// # Errors
    /// As [`BatchEncoder::encode`].
    pub fn encode_projected(
        &mut self,
        source: &RecordBatch,
        positions: &[usize],
        out: &mut Batch,
    ) -> Result<()> {
        let columns = source.columns();
        let present = positions.iter().all(|position| *position < columns.len());
        if positions.len() != self.columns.len() || !present {
            return Err(Error::schema("a record batch lacks columns of the stream"));
        }
        let arrays = positions.iter().map(|position| &columns[*position]);
        self.encode_arrays(arrays, source.num_rows(), out)
    }

    fn encode_arrays<'a>(
        &mut self,
        mut arrays: impl Iterator<Item = &'a ArrayRef>,
        rows: usize,
        out: &mut Batch,
    ) -> Result<()> {
        self.encode_rows(rows, out, |_, encoder, chunk| match arrays.next() {
            Some(array) => encoder.encode(array, chunk),
            None => Err(Error::internal("there is an array for each column")),
        })
    }

    /// Encodes `rows` rows: `fill` is called with each column's index, encoder and chunk.
    ///
    /// # Errors
    /// What `fill` returns, with the column's name; `LimitExceeded` above 16 Mi rows.
    pub fn encode_rows(
        &mut self,
        rows: usize,
        out: &mut Batch,
        mut fill: impl FnMut(usize, &mut ColumnEncoder, &mut Chunk) -> Result<()>,
    ) -> Result<()> {
        if rows > CHUNK_ROWS_MAX {
            return Err(Error::limit("a batch holds at most 16 Mi rows").hint("slice it"));
        }
        out.rows = rows;
        for (index, (encoder, chunk)) in self.columns.iter_mut().zip(&mut out.columns).enumerate() {
            fill(index, encoder, chunk)
                .map_err(|error| error.column(self.schema.field(index).name().as_str()))?;
        }
        if self.layout == Layout::Row {
            self.rows.weave(&mut out.columns);
        }
        out.count_bytes();
        Ok(())
    }

    /// Encodes columns that do not come from Arrow: `fill` is called with each column's index,
    /// encoder and chunk.
    ///
    /// # Errors
    /// What `fill` returns; `SchemaMismatch` when it fills columns of different lengths.
    pub fn encode_with(
        &mut self,
        out: &mut Batch,
        mut fill: impl FnMut(usize, &mut ColumnEncoder, &mut Chunk) -> Result<()>,
    ) -> Result<()> {
        for (index, (encoder, chunk)) in self.columns.iter_mut().zip(&mut out.columns).enumerate() {
            fill(index, encoder, chunk)?;
        }
        out.rows = out.columns.first().map_or(0, Chunk::rows);
        out.count_bytes();
        match out.columns.iter().all(|column| column.rows() == out.rows) {
            true => Ok(()),
            false => Err(Error::schema("columns of one batch differ in length")),
        }
    }
}
