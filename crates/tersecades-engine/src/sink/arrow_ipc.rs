//! Arrow IPC files (Feather 2): text is plain, unless its dictionaries are known in advance.
//!
//! A file has one dictionary a column, which the format lets grow and few readers do, while each
//! batch brings its own:
//! ```text
//! batch 1: [a, b] keys 0 1 1   file: a b b
//! batch 2: [c, b] keys 1 0 0         b c c
//! ```
//! With [`SinkOptions::has_fixed_dictionaries`] columns of dictionaries leave as they are, with
//! those of the first batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use super::output::{Output, Target};
use super::{Sink, SinkKind, SinkOptions, check_schema, finished};
use crate::source::text_type;

/// The line of this format in [`super::SINKS`].
pub const KIND: SinkKind = SinkKind {
    name: "arrow",
    suffixes: &[".arrow", ".ipc", ".feather"],
    summary: "Arrow IPC file (Feather 2); text plain",
    create: |target, schema, options| Ok(Box::new(ArrowSink::create(target, schema, options)?)),
};

/// Most bytes of text, as it is written plain, in a batch of several rows.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Writes one Arrow IPC file.
pub struct ArrowSink {
    writer: Option<FileWriter<Output>>,
    schema: SchemaRef,
    written: SchemaRef,
}

impl ArrowSink {
    /// Starts a file for batches of `schema`.
    ///
    /// # Errors
    /// `Io` if the target cannot be created.
    pub fn create(target: Target, schema: &SchemaRef, options: &SinkOptions) -> Result<Self> {
        let field = |field: &Arc<Field>| written_field(field, options.has_fixed_dictionaries);
        let fields: Vec<Field> = schema.fields().iter().map(field).collect();
        let written = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let output = Output::create_seekable(target, KIND.name)?;
        Ok(ArrowSink {
            writer: Some(FileWriter::try_new(output, &written)?),
            schema: schema.clone(),
            written,
        })
    }

    /// Writes `rows`, in parts where their text is long.
    fn write_rows(&mut self, rows: &RecordBatch) -> Result<()> {
        let (count, half) = (rows.num_rows(), rows.num_rows() / 2);
        if half > 0 && self.text_bytes(rows) > TEXT_BYTES_MAX {
            self.write_rows(&rows.slice(0, half))?;
            return self.write_rows(&rows.slice(half, count - half));
        }
        let columns = rows.columns().iter().zip(self.written.fields());
        let columns = columns.map(|(column, field)| Ok(cast(column, field.data_type())?));
        let rows = RecordBatch::try_new_with_options(
            Arc::clone(&self.written),
            columns.collect::<Result<_>>()?,
            &RecordBatchOptions::new().with_row_count(Some(count)),
        )?;
        let writer = self.writer.as_mut().ok_or_else(finished)?;
        writer
            .write(&rows)
            .map_err(|error| Error::io(error.to_string()))
    }

    /// Bytes of the text of `rows` that stands in dictionaries and is written plain.
    fn text_bytes(&self, rows: &RecordBatch) -> usize {
        let columns = rows.columns().iter().zip(self.written.fields());
        let coded = columns.filter(|(column, field)| {
            *column.data_type() == text_type() && *field.data_type() == DataType::Utf8
        });
        let bytes = coded.map(|(column, _)| {
            let column = column.as_dictionary::<Int32Type>();
            let texts = column.values().as_string::<i32>();
            let keys = column.keys_iter().flatten();
            keys.map(|key| texts.value(key).len()).sum::<usize>()
        });
        bytes.sum()
    }
}

impl Sink for ArrowSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        check_schema(&self.schema, batch)?;
        self.write_rows(batch)
    }

    fn finish(&mut self) -> Result<()> {
        let writer = self.writer.take().ok_or_else(finished)?;
        writer
            .into_inner()
            .map_err(|error| Error::io(error.to_string()))?
            .commit()
    }
}

/// The column as the file has it.
fn written_field(field: &Field, has_fixed_dictionaries: bool) -> Field {
    match field.data_type() {
        DataType::Dictionary(_, value) if !has_fixed_dictionaries => {
            field.clone().with_data_type(value.as_ref().clone())
        }
        _ => field.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use arrow_array::{ArrayRef, DictionaryArray, StringArray};
    use arrow_ipc::root_as_footer;

    use super::super::tests::{assert_same_values, read_file, words, write_file};
    use super::*;
    use crate::source::SourceOptions;
    use crate::source::generator::find_generator;

    /// How many dictionaries and batches the file has.
    fn blocks(path: &Path) -> (usize, usize) {
        let bytes = std::fs::read(path).unwrap();
        let tail = bytes.len() - 10;
        let length = i32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap());
        let footer = root_as_footer(&bytes[tail - length as usize..tail]).unwrap();
        let dictionaries = footer.dictionaries().map_or(0, |blocks| blocks.len());
        (dictionaries, footer.recordBatches().unwrap().len())
    }

    #[test]
    fn text_with_a_dictionary_for_each_batch_is_written_plain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        let batch = |column| RecordBatch::try_from_iter([("w", column)]).unwrap();
        let parts = [
            batch(words(&[Some("a"), Some("b"), None])),
            batch(words(&[Some("c"), Some("b"), Some("c")])),
            batch(words(&[Some("a"), Some("a"), Some("a")])),
        ];
        write_file(&path, &parts);
        assert_eq!(blocks(&path), (0, 3));
        let back = read_file(&path, &SourceOptions::default());
        assert_eq!(back.column(0).data_type(), &DataType::Utf8);
        for (index, part) in parts.iter().enumerate() {
            assert_same_values(part, &back.slice(index * 3, 3));
        }
    }

    #[test]
    fn files_hold_no_strings_that_no_row_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        let all = words(&[Some("secret"), Some("shown"), None, Some("secret")]);
        let rows = RecordBatch::try_from_iter([("w", all)])
            .unwrap()
            .slice(1, 2);
        write_file(&path, std::slice::from_ref(&rows));
        assert_same_values(&rows, &read_file(&path, &SourceOptions::default()));
        let bytes = std::fs::read(&path).unwrap();
        let holds = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
        assert!(holds(b"shown") && !holds(b"secret"));
    }

    #[test]
    fn dictionaries_that_are_those_of_all_batches_are_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        for generator in ["pingmesh", "counters", "weather", "nexmark", "yahoo"] {
            let mut stream = find_generator(generator)
                .unwrap()
                .start(3_000, 7, &[])
                .unwrap();
            let schema = stream.schema();
            let options = SinkOptions {
                has_fixed_dictionaries: true,
                ..SinkOptions::default()
            };
            let target = Target::File(path.clone());
            let mut sink = ArrowSink::create(target, &schema, &options).unwrap();
            let mut batches = Vec::new();
            while let Some(batch) = stream.next_batch(1_000).unwrap() {
                sink.write(&batch).unwrap();
                batches.push(batch);
            }
            sink.finish().unwrap();
            let is_coded = |field: &&Arc<Field>| *field.data_type() == text_type();
            let coded = schema.fields().iter().filter(is_coded).count();
            assert_eq!(blocks(&path), (coded, 3), "{generator}");
            let back = read_file(&path, &SourceOptions::default());
            assert_eq!(back.schema(), schema);
            for (index, batch) in batches.iter().enumerate() {
                assert_same_values(batch, &back.slice(index * 1_000, 1_000));
            }
        }
    }

    #[test]
    fn long_text_that_repeats_is_written_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        let texts = StringArray::from(vec!["x".repeat(TEXT_BYTES_MAX / 3 * 2), "y".to_owned()]);
        let keys = vec![Some(1), Some(0), None, Some(0)].into();
        let column: ArrayRef =
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(texts)).unwrap());
        let rows = RecordBatch::try_from_iter([("w", column)]).unwrap();
        write_file(&path, std::slice::from_ref(&rows));
        assert_eq!(blocks(&path), (0, 2));
        assert_same_values(&rows, &read_file(&path, &SourceOptions::default()));
    }
}
