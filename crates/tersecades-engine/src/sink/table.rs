//! A table for the eye: aligned columns, numbers to the right, the first rows and a count.
//!
//! ```text
//! host   rtt_us
//! -----  ------
//! a         1.5
//! NULL     12.0
//! … 8 more rows
//! ```
//! Control characters are shown escaped, so data cannot steer the terminal.

use std::io::Write as _;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use tersecades_columnar::error::Result;

use crate::error_bound::bound_lines;

use super::output::{Output, Target};
use super::{Sink, SinkKind, SinkOptions, check_schema, display_columns, finished, formatters};

/// The line of this format in [`super::SINKS`].
pub const KIND: SinkKind = SinkKind {
    name: "table",
    suffixes: &[],
    summary: "aligned table of the first rows, for the terminal",
    create: |target, schema, options| Ok(Box::new(TableSink::create(target, schema, options)?)),
};

/// Characters that a cell shows before it is cut with `…`.
const CELL_CHARS_LIMIT: usize = 80;

/// Shows the first rows as a table.
pub struct TableSink {
    output: Option<Output>,
    schema: SchemaRef,
    rows_limit: usize,
    rows: Vec<Vec<String>>,
    more_rows: u64,
}

impl TableSink {
    /// A table with the columns of `schema`; it is written as a whole by `finish`.
    ///
    /// # Errors
    /// `Io` if the target cannot be created.
    pub fn create(target: Target, schema: &SchemaRef, options: &SinkOptions) -> Result<Self> {
        Ok(TableSink {
            output: Some(Output::create(target)?),
            schema: schema.clone(),
            rows_limit: options.table_rows,
            rows: Vec::new(),
            more_rows: 0,
        })
    }

    fn render(&self) -> String {
        let names = self
            .schema
            .fields()
            .iter()
            .map(|field| show(field.name()))
            .collect();
        let mut widths: Vec<usize> = vec![0; self.schema.fields().len()];
        let names: Vec<String> = names;
        for row in std::iter::once(&names).chain(&self.rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let rule = widths.iter().map(|&width| "-".repeat(width)).collect();
        let mut text = String::new();
        for row in [&names, &rule].into_iter().chain(&self.rows) {
            self.push_row(&mut text, row, &widths);
        }
        match self.more_rows {
            0 => {}
            1 => text.push_str("… 1 more row\n"),
            more => text.push_str(&format!("… {more} more rows\n")),
        }
        for line in bound_lines(&self.schema) {
            text.push_str(&show(&line));
            text.push('\n');
        }
        text
    }

    fn push_row(&self, text: &mut String, row: &[String], widths: &[usize]) {
        let start = text.len();
        for ((cell, &width), field) in row.iter().zip(widths).zip(self.schema.fields()) {
            if text.len() > start {
                text.push_str("  ");
            }
            match is_number(field.data_type()) {
                true => text.push_str(&format!("{cell:>width$}")),
                false => text.push_str(&format!("{cell:<width$}")),
            }
        }
        text.truncate(text.trim_end_matches(' ').len().max(start));
        text.push('\n');
    }
}

impl Sink for TableSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        check_schema(&self.schema, batch)?;
        if self.output.is_none() {
            return Err(finished());
        }
        let shown = batch.num_rows().min(self.rows_limit - self.rows.len());
        self.more_rows += (batch.num_rows() - shown) as u64;
        let columns = display_columns(&batch.slice(0, shown))?;
        let formatters = formatters(&columns, "NULL")?;
        for row in 0..shown {
            let cell = |formatter: &arrow_cast::display::ArrayFormatter<'_>| {
                Ok(show(&formatter.value(row).try_to_string()?))
            };
            self.rows
                .push(formatters.iter().map(cell).collect::<Result<_>>()?);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let mut output = self.output.take().ok_or_else(finished)?;
        output.write_all(self.render().as_bytes())?;
        output.commit()
    }
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => value.is_numeric(),
        other => other.is_numeric(),
    }
}

/// `text` on one line, without control characters, cut to a length that fits a terminal.
fn show(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == CELL_CHARS_LIMIT {
            shown.push('…');
            break;
        }
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}
