//! Parquet: zstd pages, dictionaries where they pay, statistics by the writer's defaults.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
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
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties))
            .map_err(|error| Error::unsupported(error.to_string()))?;
        Ok(ParquetSink {
            writer: Some(writer),
            schema: schema.clone(),
        })
    }
}

impl Sink for ParquetSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        check_schema(&self.schema, batch)?;
        self.writer
            .as_mut()
            .ok_or_else(finished)?
            .write(batch)
            .map_err(write_error)
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
