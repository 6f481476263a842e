//! Parquet: zstd pages, dictionaries where they pay, statistics by the writer's defaults.
//!
//! Parquet has no times of seconds: they are written as milliseconds, as plain integers would be
//! no times to other readers.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use tersecades_columnar::error::{Error, Result};

use super::output::{Output, Target};
use super::{Sink, SinkKind, SinkOptions, check_schema, finished};
use crate::runtime::on_thread::on_threads;

/// The line of this format in [`super::SINKS`].
pub const KIND: SinkKind = SinkKind {
    name: "parquet",
    suffixes: &[".parquet", ".pq"],
    summary: "Apache Parquet with zstd",
    create: |target, schema, options| Ok(Box::new(ParquetSink::create(target, schema, options)?)),
};

/// Rows of a row group, at most.
const GROUP_ROWS: usize = 1 << 20;

/// Batches of fewer rows are encoded by one thread.
const ROWS_MIN: usize = 4_096;

/// Writes one Parquet file; its columns are encoded by several threads.
pub struct ParquetSink {
    writer: Option<SerializedFileWriter<Output>>,
    groups: ArrowRowGroupWriterFactory,
    /// The columns of the row group at hand, and its rows.
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
    schema: SchemaRef,
    written: SchemaRef,
    threads: usize,
}

impl ParquetSink {
    /// Starts a file for batches of `schema`.
    ///
    /// # Errors
    /// `Io` if the target cannot be created, `Unsupported` for types Parquet lacks,
    /// `InvalidArgument` for a zstd level out of range.
    pub fn create(target: Target, schema: &SchemaRef, options: &SinkOptions) -> Result<Self> {
        let level = ZstdLevel::try_new(options.zstd_level).map_err(|_| {
            Error::invalid(format!("zstd level {} does not exist", options.zstd_level))
                .hint("give a level from 1 to 22")
        })?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .build();
        let output = Output::create_seekable(target, KIND.name)?;
        let fields = schema.fields().iter().map(|field| written(field));
        let written: SchemaRef = Arc::new(Schema::new_with_metadata(
            fields.collect::<Vec<_>>(),
            schema.metadata().clone(),
        ));
        let writer = ArrowWriter::try_new(output, Arc::clone(&written), Some(properties))
            .map_err(|error| Error::unsupported(error.to_string()))?;
        let (writer, groups) = writer.into_serialized_writer().map_err(write_error)?;
        Ok(ParquetSink {
            writer: Some(writer),
            groups,
            columns: Vec::new(),
            rows: 0,
            schema: schema.clone(),
            written,
            threads: options.threads,
        })
    }

    /// Adds rows to the row group at hand.
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let writer = self.writer.as_ref().ok_or_else(finished)?;
        if self.columns.is_empty() {
            let group = writer.flushed_row_groups().len();
            let columns = self.groups.create_column_writers(group);
            self.columns = columns.map_err(write_error)?;
        }
        let mut leaves = Vec::with_capacity(self.columns.len());
        for (field, column) in self.written.fields().iter().zip(batch.columns()) {
            leaves.extend(compute_leaves(field, column).map_err(write_error)?);
        }
        let threads = match batch.num_rows() {
            ..ROWS_MIN => 1,
            _ => self.threads,
        };
        let columns = self.columns.iter_mut().zip(leaves);
        on_threads(threads, columns, |(column, leaf)| {
            column.write(&leaf).map_err(write_error)
        })?;
        self.rows += batch.num_rows();
        Ok(())
    }

    /// Writes the row group at hand, if it has rows.
    fn end_group(&mut self) -> Result<()> {
        let columns = std::mem::take(&mut self.columns);
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let chunks = on_threads(self.threads, columns, |column| {
            column.close().map_err(write_error)
        })?;
        let writer = self.writer.as_mut().ok_or_else(finished)?;
        let mut group = writer.next_row_group().map_err(write_error)?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group).map_err(write_error)?;
        }
        group.close().map_err(write_error)?;
        Ok(())
    }
}

/// The column as Parquet has it.
fn written(field: &Field) -> Field {
    match field.data_type() {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            let millis = DataType::Timestamp(TimeUnit::Millisecond, zone.clone());
            field.clone().with_data_type(millis)
        }
        _ => field.clone(),
    }
}

/// The columns of `batch` as `written` has them.
fn as_written(batch: &RecordBatch, written: &SchemaRef) -> Result<RecordBatch> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let columns = batch.columns().iter().zip(written.fields());
    let columns = columns.map(
        |(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast_with_options(column, field.data_type(), &options).map_err(|_| {
                Error::limit("a time of seconds is beyond those of milliseconds")
                    .column(field.name().as_str())
                    .hint("write another format, or cast it to text")
            }),
        },
    );
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(written),
        columns,
        &rows,
    )?)
}

impl Sink for ParquetSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        check_schema(&self.schema, batch)?;
        if self.writer.is_none() {
            return Err(finished());
        }
        let batch = as_written(batch, &self.written)?;
        let mut first = 0;
        while first < batch.num_rows() {
            let rows = (GROUP_ROWS - self.rows).min(batch.num_rows() - first);
            self.add(&batch.slice(first, rows))?;
            first += rows;
            if self.rows == GROUP_ROWS {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if self.writer.is_some() {
            self.end_group()?;
        }
        let writer = self.writer.take().ok_or_else(finished)?;
        writer.into_inner().map_err(write_error)?.commit()
    }
}

fn write_error(error: ParquetError) -> Error {
    match error {
        ParquetError::NYI(what) => Error::unsupported(format!("Parquet feature: {what}")),
        other => Error::io(other.to_string()),
    }
}
