//! `inspect`: what encoding makes of each column of a file.
//!
//! The file is encoded batch by batch and every batch is dropped, so memory holds one batch and
//! the dictionaries, whatever the size of the file.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tersecades::columnar::batch::{Batch, BatchEncoder};
use tersecades::engine::source;
use tersecades::prelude::SchemaRef;
use tersecades::{Error, Result};

use crate::argument;
use crate::encoding::{ColumnEncoding, Price};
use crate::figure::{self, grouped};
use crate::json::Object;
use crate::outcome::Outcome;
use crate::progress_bar::Progress;
use crate::reading::ReadingArguments;
use crate::table::Table;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned text
    #[default]
    Table,
    /// One JSON object
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Tier {
    /// As a stream is held in memory: cheap to encode and to scan
    #[default]
    Hot,
    /// As it would be stored for long
    Cold,
}

/// Show type, codec and bytes of each column of a file, and why the codec was chosen
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// The file, its format told by its suffix
    path: PathBuf,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Which encoding to show
    #[arg(long, value_enum, default_value_t)]
    tier: Tier,

    /// Only the first rows, as 5000, 20k or 20M
    #[arg(long, value_parser = argument::count)]
    rows: Option<u64>,

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
    if arguments.tier == Tier::Cold {
        let error = Error::unsupported("there is no cold tier yet");
        return Err(error.hint("leave out --tier, or use --tier hot").into());
    }
    let shown = arguments.path.display().to_string();
    let file = encode(arguments).map_err(|error| match error.context().file {
        Some(_) => error,
        None => error.file(&shown),
    })?;
    if file.rejected_rows > 0 {
        eprintln!(
            "warning: {} rows could not be read",
            grouped(file.rejected_rows)
        );
    }
    let text = match arguments.format {
        Format::Table => file.to_text(),
        Format::Json => file.to_json(&shown),
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn encode(arguments: &InspectArguments) -> Result<FileEncoding> {
    let mut source = source::open(&arguments.path, &arguments.reading.to_options())?;
    let mut encoder = BatchEncoder::new(&source.schema())?;
    let schema = SchemaRef::clone(encoder.schema());
    let mut batch = Batch::empty(SchemaRef::clone(&schema));
    let mut columns = Vec::new();
    columns.resize_with(schema.fields().len(), ColumnEncoding::default);
    let rows_limit = arguments.rows.unwrap_or(u64::MAX);
    let rows_hint = source.rows_hint().map(|rows| rows.min(rows_limit));
    let progress = Progress::start("encoding", rows_hint.or(arguments.rows));
    let mut rows = 0;
    while rows < rows_limit {
        let Some(arrived) = source.next()? else { break };
        let wanted = usize::try_from(rows_limit - rows).unwrap_or(usize::MAX);
        let arrived = arrived.slice(0, arrived.num_rows().min(wanted));
        encoder.encode(&arrived, &mut batch)?;
        for (column, chunk) in columns.iter_mut().zip(batch.columns()) {
            column.add(chunk);
        }
        rows += arrived.num_rows() as u64;
        progress.show(rows);
    }
    Ok(FileEncoding {
        schema,
        columns,
        rows,
        rejected_rows: source.rejected().count_rows,
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
