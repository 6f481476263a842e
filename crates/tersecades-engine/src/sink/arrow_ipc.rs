//! Arrow IPC files (Feather 2): dictionary columns grow one dictionary for the whole file.
//!
//! The file format allows a dictionary to grow, not to change, while each batch brings its own:
//! ```text
//! batch 1: [a, b] keys 0 1 1   file: [a, b]     keys 0 1 1
//! batch 2: [c, b] keys 1 0 0   file: [a, b, c]  keys 1 2 2   (only `c` is added)
//! ```
//! Text dictionaries therefore leave as `Dictionary(Int32, Utf8)` with the keys rewritten;
//! top-level dictionaries of other types leave as their values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch};
use arrow_cast::cast;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use super::output::{Output, Target};
use super::{Sink, SinkKind, SinkOptions, check_schema, finished};
use crate::source::text_type;

/// The line of this format in [`super::SINKS`].
pub const KIND: SinkKind = SinkKind {
    name: "arrow",
    suffixes: &[".arrow", ".ipc", ".feather"],
    summary: "Arrow IPC file (Feather 2); one dictionary a column",
    create: |target, schema, options| Ok(Box::new(ArrowSink::create(target, schema, options)?)),
};

/// Writes one Arrow IPC file.
///
/// # Cost
/// Each text dictionary is kept in memory until the end, and copied whole by each batch that adds
/// to it; for columns whose values all differ, Parquet is the better format.
pub struct ArrowSink {
    writer: Option<FileWriter<Output>>,
    schema: SchemaRef,
    written: SchemaRef,
    dictionaries: Vec<Option<GrowingDictionary>>,
}

/// The strings of one column that the file holds so far.
#[derive(Default)]
struct GrowingDictionary {
    keys: HashMap<String, i32>,
    builder: StringBuilder,
    size_bytes: usize,
    values: Option<ArrayRef>,
}

impl ArrowSink {
    /// Starts a file for batches of `schema`.
    ///
    /// # Errors
    /// `Io` if the target cannot be created.
    pub fn create(target: Target, schema: &SchemaRef, _: &SinkOptions) -> Result<Self> {
        let fields: Vec<Field> = schema.fields().iter().map(|f| written_field(f)).collect();
        let written = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let grow =
            |field: &Arc<Field>| is_text_dictionary(field.data_type()).then(Default::default);
        let dictionaries = schema.fields().iter().map(grow).collect();
        let options =
            IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        let output = Output::create_seekable(target, KIND.name)?;
        let writer = FileWriter::try_new_with_options(output, &written, options)?;
        Ok(ArrowSink {
            writer: Some(writer),
            schema: schema.clone(),
            written,
            dictionaries,
        })
    }

    fn rewrite(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (index, column) in batch.columns().iter().enumerate() {
            let wanted = self.written.field(index).data_type();
            columns.push(match self.dictionaries.get_mut(index) {
                Some(Some(dictionary)) => dictionary.extend(&cast(column, &text_type())?)?,
                _ => cast(column, wanted)?,
            });
        }
        let sized = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(
            self.written.clone(),
            columns,
            &sized,
        )?)
    }
}

impl Sink for ArrowSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        check_schema(&self.schema, batch)?;
        if self.writer.is_none() {
            return Err(finished());
        }
        let batch = self.rewrite(batch)?;
        let writer = self.writer.as_mut().ok_or_else(finished)?;
        writer
            .write(&batch)
            .map_err(|error| Error::io(error.to_string()))
    }

    fn finish(&mut self) -> Result<()> {
        let writer = self.writer.take().ok_or_else(finished)?;
        writer
            .into_inner()
            .map_err(|error| Error::io(error.to_string()))?
            .commit()
    }
}

impl GrowingDictionary {
    /// The column `array` over the dictionary of the file, which takes up its new strings.
    fn extend(&mut self, array: &ArrayRef) -> Result<ArrayRef> {
        let array = array.as_dictionary::<Int32Type>();
        let strings = array.values().as_string::<i32>();
        // Of the strings of a batch those alone that rows have.
        let mut file_keys = vec![None; strings.len()];
        let mut keys = Int32Builder::with_capacity(array.len());
        for index in array.keys_iter() {
            let Some(index) = index.filter(|&index| strings.is_valid(index)) else {
                keys.append_null();
                continue;
            };
            let key = match file_keys[index] {
                Some(key) => key,
                None => *file_keys[index].insert(self.intern(strings.value(index))?),
            };
            keys.append_value(key);
        }
        let values = match &self.values {
            Some(values) if values.len() == self.keys.len() => values.clone(),
            _ => Arc::new(self.builder.finish_cloned()),
        };
        self.values = Some(values.clone());
        Ok(Arc::new(DictionaryArray::try_new(keys.finish(), values)?))
    }

    fn intern(&mut self, string: &str) -> Result<i32> {
        if let Some(&key) = self.keys.get(string) {
            return Ok(key);
        }
        let key = i32::try_from(self.keys.len());
        self.size_bytes += string.len();
        let Some(key) = key.ok().filter(|_| i32::try_from(self.size_bytes).is_ok()) else {
            return Err(
                Error::limit("the different strings of a column take over 2^31 bytes")
                    .hint("write Parquet, or cast the column to a plain string column"),
            );
        };
        self.keys.insert(string.to_string(), key);
        self.builder.append_value(string);
        Ok(key)
    }
}

fn is_text_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => {
            matches!(
                **value,
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            )
        }
        _ => false,
    }
}

fn written_field(field: &Field) -> Field {
    match field.data_type() {
        text if is_text_dictionary(text) => field.clone().with_data_type(text_type()),
        DataType::Dictionary(_, value) => field.clone().with_data_type(value.as_ref().clone()),
        _ => field.clone(),
    }
}
