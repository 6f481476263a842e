//! CSV: a header, `\n` line ends, quotes only where they are needed, nulls as empty fields.
//!
//! Times are ISO 8601 (UTC with a `Z` if the column has a zone), floats the shortest text that
//! reads back the same. Texts that mean null where they are read, the empty one among them, stand
//! in quotes, as a field in quotes is text. A null that is a whole row is `NULL`, since a blank
//! line is no row.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};

use crate::source::csv::NULL_STRINGS_DEFAULT;

use super::output::{Output, Target};
use super::{
    Sink, SinkKind, SinkOptions, Texts, check_schema, display_columns, finished, formatters,
};

/// The line of this format in [`super::SINKS`].
pub const KIND: SinkKind = SinkKind {
    name: "csv",
    suffixes: &[".csv", ".csv.gz", ".csv.zst"],
    summary: "comma-separated text, plain, gzip or zstd, with a header; nulls are empty",
    create: |target, schema, options| Ok(Box::new(CsvSink::create(target, schema, options)?)),
};

/// Writes CSV.
pub struct CsvSink {
    output: Option<Output>,
    schema: SchemaRef,
    delimiter: char,
    threads: usize,
    texts: Texts,
}

impl CsvSink {
    /// Starts with the header of `schema`.
    ///
    /// # Errors
    /// `Io` if the target cannot be written.
    pub fn create(target: Target, schema: &SchemaRef, options: &SinkOptions) -> Result<Self> {
        let delimiter = char::from(options.csv_delimiter);
        if !delimiter.is_ascii() || matches!(delimiter, '"' | '\n' | '\r') {
            return Err(
                Error::invalid(format!("{delimiter:?} cannot separate CSV fields"))
                    .hint("use one of , ; | or a tab"),
            );
        }
        let mut output = Output::create(target)?;
        let mut line = String::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if index > 0 {
                line.push(delimiter);
            }
            push_field(&mut line, field.name(), delimiter, true);
        }
        line.push('\n');
        output.write_all(line.as_bytes())?;
        Ok(CsvSink {
            output: Some(output),
            schema: schema.clone(),
            delimiter,
            threads: options.threads,
            texts: Texts::default(),
        })
    }
}

impl Sink for CsvSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        check_schema(&self.schema, batch)?;
        let output = self.output.as_mut().ok_or_else(finished)?;
        let columns = display_columns(batch)?;
        let delimiter = self.delimiter;
        let lines =
            |rows: Range<usize>, text: &mut String| push_lines(text, &columns, rows, delimiter);
        for text in self.texts.of(batch.num_rows(), self.threads, lines)? {
            output.write_all(text.as_bytes())?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let output = self.output.as_mut().ok_or_else(finished)?;
        Ok(output.flush()?)
    }

    fn finish(&mut self) -> Result<()> {
        self.output.take().ok_or_else(finished)?.commit()
    }
}

/// Appends the lines of `rows` of `columns`.
fn push_lines(
    text: &mut String,
    columns: &[ArrayRef],
    rows: Range<usize>,
    delimiter: char,
) -> Result<()> {
    let formatters = formatters(columns, "")?;
    let nulls = columns.iter().map(|column| column.logical_nulls());
    let nulls: Vec<_> = nulls.collect();
    let null = if columns.len() == 1 { "NULL" } else { "" };
    let mut field = String::new();
    for row in rows {
        let cells = columns.iter().zip(&formatters).zip(&nulls);
        for (index, ((column, formatter), nulls)) in cells.enumerate() {
            if index > 0 {
                text.push(delimiter);
            }
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                text.push_str(null);
                continue;
            }
            field.clear();
            write!(field, "{}", formatter.value(row)).map_err(|_| unprintable(row))?;
            // `NaN` is a value among floats.
            let may_mean_null = !column.data_type().is_floating();
            push_field(text, &field, delimiter, may_mean_null);
        }
        text.push('\n');
    }
    Ok(())
}

fn unprintable(row: usize) -> Error {
    Error::unsupported(format!(
        "a value of batch row {row} cannot be shown as text"
    ))
    .hint("a date or time may be outside the years that can be written")
}

/// Appends `field`, quoted if it would be misread otherwise.
fn push_field(line: &mut String, field: &str, delimiter: char, may_mean_null: bool) {
    let special = |c: char| c == delimiter || matches!(c, '"' | '\n' | '\r');
    let blank = |c: char| matches!(c, ' ' | '\t');
    let is_plain = !field.contains(special) && !field.starts_with(blank) && !field.ends_with(blank);
    if is_plain && !(may_mean_null && NULL_STRINGS_DEFAULT.contains(&field)) {
        line.push_str(field);
        return;
    }
    line.push('"');
    line.push_str(&field.replace('"', "\"\""));
    line.push('"');
}
