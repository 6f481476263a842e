//! JSON out: one object a line, or one array of objects.
//!
//! Numbers stand as they are, floats as the shortest text that reads back the same, times as
//! ISO 8601 texts (UTC with a `Z` if the column has a zone), lists as arrays, structs as objects,
//! null as `null`. JSON has no words for NaN and the infinities: they become `null`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use super::output::{Output, Target};
use super::{Sink, SinkKind, SinkOptions, Texts, check_schema, display_columns, finished};

/// The line of JSON lines in [`super::SINKS`].
pub const LINES_KIND: SinkKind = SinkKind {
    name: "jsonl",
    suffixes: &[
        ".jsonl",
        ".ndjson",
        ".jsonl.gz",
        ".ndjson.gz",
        ".jsonl.zst",
        ".ndjson.zst",
    ],
    summary: "JSON lines, plain, gzip or zstd: an object a row",
    create: |target, schema, options| {
        Ok(Box::new(JsonSink::create(
            target,
            schema,
            (Framing::Lines, options),
        )?))
    },
};

/// The line of JSON arrays in [`super::SINKS`].
pub const ARRAY_KIND: SinkKind = SinkKind {
    name: "json",
    suffixes: &[".json", ".json.gz", ".json.zst"],
    summary: "one JSON array with an object a row",
    create: |target, schema, options| {
        Ok(Box::new(JsonSink::create(
            target,
            schema,
            (Framing::Array, options),
        )?))
    },
};

/// How rows stand in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Lines,
    Array,
}

/// Writes JSON.
pub struct JsonSink {
    output: Option<Output>,
    schema: SchemaRef,
    framing: Framing,
    /// Names of the columns as JSON texts with a colon.
    keys: Vec<String>,
    has_rows: bool,
    threads: usize,
    texts: Texts,
}

impl JsonSink {
    fn create(
        target: Target,
        schema: &SchemaRef,
        (framing, options): (Framing, &SinkOptions),
    ) -> Result<Self> {
        let mut output = Output::create(target)?;
        if framing == Framing::Array {
            output.write_all(b"[")?;
        }
        Ok(JsonSink {
            output: Some(output),
            schema: schema.clone(),
            framing,
            keys: schema.fields().iter().map(|it| key(it.name())).collect(),
            has_rows: false,
            threads: options.threads,
            texts: Texts::default(),
        })
    }
}

impl Sink for JsonSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        check_schema(&self.schema, batch)?;
        let columns = display_columns(batch)?;
        let (keys, framing, has_rows) = (&self.keys, self.framing, self.has_rows);
        let objects = |rows: Range<usize>, text: &mut String| {
            let before = match framing {
                Framing::Array if rows.start == 0 && !has_rows => ["\n", ",\n"],
                Framing::Array => [",\n"; 2],
                Framing::Lines => ["", "\n"],
            };
            push_objects(text, (keys, &columns), rows, before)?;
            if framing == Framing::Lines {
                text.push('\n');
            }
            Ok(())
        };
        let texts = self.texts.of(batch.num_rows(), self.threads, objects)?;
        let output = self.output.as_mut().ok_or_else(finished)?;
        for text in texts {
            output.write_all(text.as_bytes())?;
        }
        self.has_rows |= batch.num_rows() > 0;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let output = self.output.as_mut().ok_or_else(finished)?;
        Ok(output.flush()?)
    }

    fn finish(&mut self) -> Result<()> {
        let mut output = self.output.take().ok_or_else(finished)?;
        if self.framing == Framing::Array {
            let close: &[u8] = if self.has_rows { b"\n]\n" } else { b"]\n" };
            output.write_all(close)?;
        }
        output.commit()
    }
}

/// Appends the objects of `rows` of `columns` with these keys, which are not none; the first
/// behind one of the texts `before`, others behind the other.
fn push_objects(
    text: &mut String,
    (keys, columns): (&[String], &[ArrayRef]),
    rows: Range<usize>,
    before: [&str; 2],
) -> Result<()> {
    let options = FormatOptions::new().with_display_error(false);
    let shapes = columns.iter().map(|column| Shape::new(column, &options));
    let shapes = shapes.collect::<Result<Vec<_>>>()?;
    let first = rows.start;
    for row in rows {
        text.push_str(before[usize::from(row > first)]);
        text.push('{');
        for (index, (key, shape)) in keys.iter().zip(&shapes).enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(key);
            shape.push(row, text)?;
        }
        text.push('}');
    }
    Ok(())
}

/// How the values of an array are written.
enum Shape<'a> {
    /// Numbers and truth values.
    Bare(ArrayFormatter<'a>, &'a dyn Array),
    /// Everything that is written as text.
    Text(ArrayFormatter<'a>, &'a dyn Array),
    /// Lists: the array, where each row starts and ends, and its values.
    List(&'a dyn Array, Vec<(usize, usize)>, Box<Shape<'a>>),
    /// Structs: the array, and its columns with their keys.
    Struct(&'a dyn Array, Vec<(String, Shape<'a>)>),
}

impl<'a> Shape<'a> {
    fn new(array: &'a ArrayRef, options: &FormatOptions<'a>) -> Result<Self> {
        let value_type = match array.data_type() {
            DataType::Dictionary(_, value) => value.as_ref(),
            other => other,
        };
        let formatter = || Ok::<_, Error>(ArrayFormatter::try_new(array.as_ref(), options)?);
        Ok(match value_type {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                // Offsets of an array are never negative.
                let ends = list.value_offsets().windows(2);
                let ends = ends.map(|pair| (pair[0] as usize, pair[1] as usize));
                let values = Shape::new(list.values(), options)?;
                Shape::List(array.as_ref(), ends.collect(), Box::new(values))
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let columns = columns
                    .map(|(field, column)| Ok((key(field.name()), Shape::new(column, options)?)));
                Shape::Struct(array.as_ref(), columns.collect::<Result<_>>()?)
            }
            number if number.is_numeric() || *number == DataType::Boolean => {
                Shape::Bare(formatter()?, array.as_ref())
            }
            _ => Shape::Text(formatter()?, array.as_ref()),
        })
    }

    fn push(&self, row: usize, line: &mut String) -> Result<()> {
        let (Shape::Bare(_, array)
        | Shape::Text(_, array)
        | Shape::List(array, ..)
        | Shape::Struct(array, _)) = self;
        if array.is_null(row) {
            line.push_str("null");
            return Ok(());
        }
        match self {
            Shape::Bare(formatter, array) => {
                let start = line.len();
                write!(line, "{}", formatter.value(row)).map_err(|_| unprintable(row))?;
                let is_word = line.get(start..).is_some_and(|text| {
                    text.trim_start_matches('-')
                        .starts_with(|c: char| c.is_ascii_alphabetic())
                });
                if is_word && *array.data_type() != DataType::Boolean {
                    line.truncate(start);
                    line.push_str("null");
                }
            }
            Shape::Text(formatter, _) => {
                let shown = formatter.value(row).try_to_string();
                push_text(line, &shown.map_err(|_| unprintable(row))?);
            }
            Shape::List(_, ends, values) => {
                let (start, end) = ends.get(row).copied().unwrap_or_default();
                line.push('[');
                for index in start..end {
                    if index > start {
                        line.push(',');
                    }
                    values.push(index, line)?;
                }
                line.push(']');
            }
            Shape::Struct(_, columns) => {
                line.push('{');
                for (index, (key, column)) in columns.iter().enumerate() {
                    if index > 0 {
                        line.push(',');
                    }
                    line.push_str(key);
                    column.push(row, line)?;
                }
                line.push('}');
            }
        }
        Ok(())
    }
}

fn key(name: &str) -> String {
    let mut key = String::new();
    push_text(&mut key, name);
    key.push(':');
    key
}

/// Appends `text` in quotes, with the escapes that JSON asks for.
fn push_text(line: &mut String, text: &str) {
    line.push('"');
    let mut rest = text;
    let is_special = |c: char| c == '"' || c == '\\' || c < ' ';
    while let Some(at) = rest.find(is_special) {
        let (plain, special) = rest.split_at(at);
        line.push_str(plain);
        let mut letters = special.chars();
        match letters.next().unwrap_or_default() {
            quoted @ ('"' | '\\') => line.extend(['\\', quoted]),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            control => {
                // Writing to a string cannot fail.
                let _ = write!(line, "\\u{:04x}", u32::from(control));
            }
        }
        rest = letters.as_str();
    }
    line.push_str(rest);
    line.push('"');
}

fn unprintable(row: usize) -> Error {
    Error::unsupported(format!(
        "a value of batch row {row} cannot be shown as text"
    ))
    .hint("a date or time may be outside the years that can be written")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int64Type;
    use arrow_array::{
        BooleanArray, Float64Array, Int64Array, ListArray, StringArray, StructArray,
        TimestampMillisecondArray,
    };

    use super::*;
    use crate::sink::create;
    use crate::source::{SourceOptions, open};

    fn batch() -> RecordBatch {
        let list = vec![Some(vec![Some(1), None]), None, Some(vec![])];
        let inner: ArrayRef = Arc::new(StringArray::from(vec!["x", "y\u{1}", "z"]));
        let inner = StructArray::try_from(vec![("k", inner)]).unwrap();
        let times = TimestampMillisecondArray::from(vec![Some(0), None, Some(-1)]);
        let columns: [(&str, ArrayRef); 7] = [
            (
                "n",
                Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(7)])),
            ),
            (
                "f",
                Arc::new(Float64Array::from(vec![0.1, f64::NAN, f64::NEG_INFINITY])),
            ),
            (
                "b",
                Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
            ),
            ("at", Arc::new(times.with_timezone("UTC"))),
            (
                "te\"xt",
                Arc::new(StringArray::from(vec!["a\\\"b", "l1\nl2\té", ""])),
            ),
            (
                "list",
                Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(list)),
            ),
            ("struct", Arc::new(inner)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn written(name: &str, batches: &[RecordBatch]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut sink = create(&path, &batch().schema(), &SinkOptions::default()).unwrap();
        batches.iter().for_each(|batch| sink.write(batch).unwrap());
        sink.finish().unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn rows_are_objects_and_nothing_is_misread() {
        let rows = [
            "{\"n\":-9223372036854775808,\"f\":0.1,\"b\":true,\"at\":\"1970-01-01T00:00:00Z\",\
             \"te\\\"xt\":\"a\\\\\\\"b\",\"list\":[1,null],\"struct\":{\"k\":\"x\"}}",
            "{\"n\":null,\"f\":null,\"b\":false,\"at\":null,\
             \"te\\\"xt\":\"l1\\nl2\\té\",\"list\":null,\"struct\":{\"k\":\"y\\u0001\"}}",
            "{\"n\":7,\"f\":null,\"b\":null,\"at\":\"1969-12-31T23:59:59.999Z\",\
             \"te\\\"xt\":\"\",\"list\":[],\"struct\":{\"k\":\"z\"}}",
        ];
        assert_eq!(
            written("a.jsonl", &[batch()]),
            format!("{}\n", rows.join("\n"))
        );
        let parts = [batch().slice(0, 1), batch().slice(1, 2)];
        assert_eq!(
            written("a.json", &parts),
            format!("[\n{}\n]\n", rows.join(",\n"))
        );
        assert_eq!(written("a.json", &[]), "[]\n");
        assert_eq!(written("a.jsonl", &[]), "");
    }

    #[test]
    fn what_is_written_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let plain = batch().project(&[0, 2, 3, 4]).unwrap();
        for name in [
            "a.jsonl",
            "a.json",
            "a.ndjson.gz",
            "a.json.zst",
            "a.jsonl.zst",
        ] {
            let path = folder.path().join(name);
            let mut sink = create(&path, &plain.schema(), &SinkOptions::default()).unwrap();
            sink.write(&plain).unwrap();
            sink.write(&plain).unwrap();
            sink.finish().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let magic: &[u8] = match name.rsplit('.').next() {
                Some("gz") => &[0x1f, 0x8b],
                Some("zst") => &[0x28, 0xb5],
                _ => b"",
            };
            assert!(bytes.starts_with(magic), "{name}");
            let read = open(&path, &SourceOptions::default())
                .unwrap()
                .next()
                .unwrap()
                .unwrap();
            assert_eq!(read.num_rows(), 6, "{name}");
            for (column, wanted) in plain.columns().iter().enumerate() {
                let found = arrow_cast::cast(read.column(column), wanted.data_type()).unwrap();
                assert_eq!(&found.slice(0, 3), wanted, "{name}, column {column}");
            }
        }
    }
}
