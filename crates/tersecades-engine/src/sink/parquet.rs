//! Parquet: zstd pages, dictionaries where they pay, statistics by the writer's defaults.
//!
//! Parquet has no times of seconds: they are written as milliseconds, as plain integers would be
//! no times to other readers.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use tersecades_columnar::error::{Error, Result};

use super::output::{Output, Target};
use super::{Sink, SinkKind, SinkOptions, check_schema, finished};

/// The line of this format in [`super::SINKS`].
pub const KIND: SinkKind = SinkKind {
    name: "parquet",
    suffixes: &[".parquet", ".pq"],
    summary: "Apache Parquet with zstd",
    create: |target, schema, options| Ok(Box::new(ParquetSink::create(target, schema, options)?)),
};

/// Writes one Parquet file.
pub struct ParquetSink {
    writer: Option<ArrowWriter<Output>>,
    schema: SchemaRef,
    written: SchemaRef,
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
        let output = Output::create(target)?;
        let fields = schema.fields().iter().map(|field| written(field));
        let written: SchemaRef = Arc::new(Schema::new_with_metadata(
            fields.collect::<Vec<_>>(),
            schema.metadata().clone(),
        ));
        let writer = ArrowWriter::try_new(output, Arc::clone(&written), Some(properties))
            .map_err(|error| Error::unsupported(error.to_string()))?;
        Ok(ParquetSink {
            writer: Some(writer),
            schema: schema.clone(),
            written,
        })
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
        let writer = self.writer.as_mut().ok_or_else(finished)?;
        let batch = as_written(batch, &self.written)?;
        writer.write(&batch).map_err(write_error)
    }

    fn finish(&mut self) -> Result<()> {
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
