//! `inspect`: what encoding makes of each column of a file.
//!
//! The file is encoded batch by batch and every batch is dropped, so memory holds one batch and
//! the dictionaries, whatever the size of the file.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tersecades::columnar::batch::{Batch, BatchEncoder};
use tersecades::columnar::goal::Uses;
use tersecades::prelude::SchemaRef;
use tersecades::{Error, Result};

use crate::argument;
use crate::console;
use crate::encoding::{ColumnEncoding, Price};
use crate::explain::FileExplanation;
use crate::figure::{self, grouped};
use crate::json::Object;
use crate::outcome::Outcome;
use crate::reading::{EncodingArguments, LimitedRows, ReadingArguments};
use crate::table::Table;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned text
    #[default]
    Table,
    /// One JSON object
    Json,
}

/// Show type, codec and bytes of each column of a file, and why the codec was chosen
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// The file, its format told by its suffix
    path: PathBuf,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Try every codec, and every pair of which the first composes, and show what the choice lost
    #[arg(long)]
    explain: bool,

    /// Only the first rows, as 5000, 20k or 20M
    #[arg(long, value_parser = argument::count)]
    rows: Option<u64>,

    #[command(flatten)]
    encoding: EncodingArguments,

    #[command(flatten)]
    reading: ReadingArguments,
}

/// The figures of a file.
struct FileEncoding {
    schema: SchemaRef,
    columns: Vec<ColumnEncoding>,
    rows: u64,
    rejected_rows: u64,
}

/// Prints how a file encodes.
pub(crate) fn run(arguments: &InspectArguments) -> Outcome {
    arguments.reading.finish(inspect(arguments))
}

fn inspect(arguments: &InspectArguments) -> Outcome {
    let shown = arguments.path.display().to_string();
    let of_file = |error: Error| match error.context().file {
        Some(_) => error,
        None => error.file(&shown),
    };
    let (rejected_rows, text) = match arguments.explain {
        true => {
            let explained = explain(arguments).map_err(of_file)?;
            let text = match arguments.format {
                Format::Table => explained.to_text(),
                Format::Json => explained.to_json(&shown),
            };
            (explained.rejected_rows, text)
        }
        false => {
            let file = encode(arguments).map_err(of_file)?;
            let text = match arguments.format {
                Format::Table => file.to_text(),
                Format::Json => file.to_json(&shown),
            };
            (file.rejected_rows, text)
        }
    };
    if rejected_rows > 0 {
        console::say(format_args!(
            "warning: {} rows could not be read",
            grouped(rejected_rows)
        ));
    }
    console::print(text)
}

fn explain(arguments: &InspectArguments) -> Result<FileExplanation> {
    let options = arguments.encoding.to_options()?;
    let rows = LimitedRows::open(&arguments.path, &arguments.reading, arguments.rows)?;
    FileExplanation::of(rows, &options)
}

fn encode(arguments: &InspectArguments) -> Result<FileEncoding> {
    let mut rows = LimitedRows::open(&arguments.path, &arguments.reading, arguments.rows)?;
    let mut encoder = BatchEncoder::new(&rows.schema())?;
    let options = arguments.encoding.to_options()?;
    options.apply(&mut encoder, &rows.schema(), |_| Uses::default())?;
    let schema = SchemaRef::clone(encoder.schema());
    let mut batch = Batch::empty(SchemaRef::clone(&schema));
    let mut columns = Vec::new();
    columns.resize_with(schema.fields().len(), ColumnEncoding::default);
    while let Some(arrived) = rows.next()? {
        encoder.encode(&arrived, &mut batch)?;
        for (column, chunk) in columns.iter_mut().zip(batch.columns()) {
            column.add(chunk);
        }
    }
    Ok(FileEncoding {
        schema,
        columns,
        rows: rows.count(),
        rejected_rows: rows.rejected(),
    })
}

impl FileEncoding {
    fn raw_bytes(&self) -> u64 {
        self.columns.iter().map(ColumnEncoding::raw_bytes).sum()
    }

    fn encoded_bytes(&self) -> u64 {
        self.columns.iter().map(ColumnEncoding::encoded_bytes).sum()
    }

    fn to_text(&self) -> String {
        let mut table = Table::new(&[
            "column",
            "type",
            ">nulls",
            "codec",
            ">raw B",
            ">encoded B",
            ">ratio",
            "why",
        ]);
        for (field, column) in self.schema.fields().iter().zip(&self.columns) {
            table.push([
                field.name().clone(),
                field.data_type().to_string(),
                grouped(column.nulls),
                column.codec_text(),
                format!("{:.2}", figure::ratio(column.raw_bytes(), self.rows)),
                format!("{:.2}", figure::ratio(column.encoded_bytes(), self.rows)),
                format!(
                    "{:.1}",
                    figure::ratio(column.raw_bytes(), column.encoded_bytes())
                ),
                column.why(),
            ]);
        }
        let (raw, encoded) = (self.raw_bytes(), self.encoded_bytes());
        format!(
            "{} rows; raw and encoded are bytes per value\n\n{}\n{} raw, {} encoded, ratio {:.1}\n",
            grouped(self.rows),
            table.to_text(""),
            figure::mebibytes(raw),
            figure::mebibytes(encoded),
            figure::ratio(raw, encoded),
        )
    }

    fn to_json(&self, path: &str) -> String {
        let fields = self.schema.fields().iter();
        let columns = fields.zip(&self.columns).map(|(field, column)| {
            column_object(field.name(), &field.data_type().to_string(), column)
        });
        let object = Object::default()
            .text("path", path)
            .whole("rows", self.rows)
            .whole("rejected_rows", self.rejected_rows)
            .whole("raw_bytes", self.raw_bytes())
            .whole("encoded_bytes", self.encoded_bytes())
            .list("columns", columns);
        format!("{}\n", object.finish())
    }
}

fn column_object(name: &str, data_type: &str, column: &ColumnEncoding) -> Object {
    let codecs = column.codecs();
    let most_used = codecs.first().map_or("none", |(codec, _)| codec);
    let codec =
        |(codec, rows): &(&str, u64)| Object::default().text("codec", codec).whole("rows", *rows);
    let price = |price: &Price| {
        Object::default()
            .text("codec", price.codec)
            .number("bytes_per_row", price.bytes_per_row())
            .number("scan_ns", price.scan_ns())
    };
    Object::default()
        .text("name", name)
        .text("type", data_type)
        .whole("rows", column.rows)
        .whole("nulls", column.nulls)
        .text("codec", most_used)
        .whole("raw_bytes", column.raw_bytes())
        .whole("encoded_bytes", column.encoded_bytes())
        .number(
            "bytes_per_value",
            figure::ratio(column.encoded_bytes(), column.rows),
        )
        .list("codecs", codecs.iter().map(codec))
        .list("candidates", column.prices().iter().map(price))
}
