//! CSV from bytes to batches: types, dirt, policies, options, packed files, hostile bytes.

use std::io::{Cursor, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use proptest::prelude::*;
use tersecades_columnar::error::{Error, ErrorKind, Result};

use super::{CsvOptions, CsvSource};
use crate::source::{OnError, SourceOptions, open, text_type};

mod column;
mod packed;
mod taken;
mod zoned;

pub(super) fn source(text: &[u8], options: &SourceOptions) -> Result<CsvSource> {
    CsvSource::from_reader(Cursor::new(text.to_vec()), options)
}

pub(super) fn read_all(source: &mut dyn crate::source::Source) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    while let Some(batch) = source.next()? {
        batches.push(batch);
    }
    assert!(source.next()?.is_none(), "the end stays the end");
    Ok(batches)
}

/// The only batch of `text`.
pub(super) fn read(text: &str, csv: CsvOptions) -> RecordBatch {
    let options = SourceOptions {
        csv,
        ..Default::default()
    };
    let mut batches = read_all(&mut source(text.as_bytes(), &options).unwrap()).unwrap();
    assert_eq!(batches.len(), 1, "one batch");
    batches.remove(0)
}

pub(super) fn read_error(text: &str, csv: CsvOptions) -> Error {
    let options = SourceOptions {
        csv,
        ..Default::default()
    };
    match source(text.as_bytes(), &options) {
        Ok(mut source) => read_all(&mut source).unwrap_err(),
        Err(error) => error,
    }
}

pub(super) fn texts(batch: &RecordBatch, column: usize) -> Vec<Option<String>> {
    let plain = arrow_cast::cast(batch.column(column), &DataType::Utf8).unwrap();
    plain
        .as_string::<i32>()
        .iter()
        .map(|text| text.map(String::from))
        .collect()
}

fn names(batch: &RecordBatch) -> Vec<String> {
    batch
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect()
}

pub(super) fn csv(change: impl FnOnce(&mut CsvOptions)) -> CsvOptions {
    let mut options = CsvOptions::default();
    change(&mut options);
    options
}

#[test]
fn nan_is_null_outside_float_columns() {
    let batch = read("n,t\n1,a\nNaN,NaN\n", CsvOptions::default());
    assert_eq!(batch.column(0).data_type(), &DataType::Int64);
    assert!(batch.column(0).is_null(1) && batch.column(1).is_null(1));
}

#[test]
fn null_strings_can_be_chosen() {
    let options = csv(|csv| csv.null_strings = vec!["-999".into()]);
    let batch = read("a,b\n-999,-999\n1,NA\n", options);
    assert!(batch.column(0).is_null(0) && batch.column(1).is_null(0));
    assert_eq!(texts(&batch, 1), [None, Some("NA".into())]);
}

#[test]
fn mark_quotes_line_ends_and_blanks_are_understood() {
    let text = "\u{feff}id,note\r\n1,\"a, \"\"b\"\"\r\nc\"\r\n\r\n 2 ,  d\r\n3,\"\"";
    let batch = read(text, CsvOptions::default());
    assert_eq!(names(&batch), ["id", "note"]);
    assert_eq!(batch.column(0).data_type(), &DataType::Int64);
    let notes = ["a, \"b\"\r\nc", "  d", ""].map(|note| Some(note.to_string()));
    assert_eq!(texts(&batch, 1), notes);
}

#[test]
fn semicolon_and_tab_together_are_one_separator() {
    let batch = read(
        "at [ms];\thost;\tMHz\n1;\ta;\t2.5\n2;\tb;\t3.5\n",
        CsvOptions::default(),
    );
    assert_eq!(names(&batch), ["at [ms]", "host", "MHz"]);
    assert_eq!(texts(&batch, 1), [Some("a".into()), Some("b".into())]);
    assert_eq!(batch.column(2).data_type(), &DataType::Float64);
}

#[test]
fn timestamp_formats_are_followed() {
    let options = csv(|csv| csv.timestamp_formats = vec![("at".into(), "%d/%m/%Y %H:%M".into())]);
    let batch = read("at;rtt\n14/10/2016 21:17;178.9\n;3\n", options.clone());
    let at = batch.column(0).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(at.value(0), 1_476_479_820_000_000);
    assert!(at.is_null(1));
    let error = read_error("at;rtt\n2016-10-14;1\n", options);
    assert!(error.message().contains("timestamp format"), "{error}");
    let named = csv(|csv| csv.timestamp_formats = vec![("at".into(), "%Y-%m-%d %Z".into())]);
    let batch = read("at\n2016-10-14 GMT\n", named.clone());
    let at = batch.column(0).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(at.value(0), 1_476_403_200_000_000);
    let error = read_error("at\n2016-10-14 CET\n", named);
    assert!(
        error.hint_text().unwrap().contains("%z reads offsets"),
        "{error}"
    );
    let wrong = csv(|csv| csv.timestamp_formats = vec![("at".into(), "%Q".into())]);
    assert_eq!(
        read_error("at\n1\n", wrong).kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn a_float_after_inference_is_explained() {
    let error = read_error("id,n\na,1\nb,2\nc,2.5\n", csv(|csv| csv.infer_rows = 2));
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert_eq!(error.context().row, Some(4));
    assert_eq!(error.context().column.as_deref(), Some("n"));
    assert!(
        error
            .message()
            .contains("`2.5` is a float in a column of whole numbers"),
        "{error}"
    );
    let hint = error.hint_text().unwrap();
    assert!(
        hint.contains("float64") && hint.contains("inference rows"),
        "{hint}"
    );
}

const RAGGED: &[u8] = b"a,b\n1,2\n3\n\"4\",\"x\ny\"\n5,6,7\n8,9\n10,\xff\n";

fn ragged_options(on_error: OnError) -> SourceOptions {
    let csv = csv(|csv| csv.types = ["a", "b"].map(|n| (n.into(), DataType::Int64)).to_vec());
    SourceOptions {
        on_error,
        csv,
        ..Default::default()
    }
}

#[test]
fn bad_rows_fail() {
    let mut source = source(RAGGED, &ragged_options(OnError::Fail)).unwrap();
    let error = read_all(&mut source).unwrap_err();
    assert_eq!(error.context().row, Some(3));
    assert!(error.message().contains("1 fields instead of 2"), "{error}");
    use crate::source::Source;
    assert!(source.next().unwrap().is_none(), "an error ends the source");
}

#[test]
fn bad_rows_are_skipped_or_kept() {
    for on_error in [OnError::Skip, OnError::DeadLetter] {
        use crate::source::Source;
        let mut source = source(RAGGED, &ragged_options(on_error)).unwrap();
        let batches = read_all(&mut source).unwrap();
        let rows: Vec<_> = batches[0]
            .column(0)
            .as_primitive::<Int64Type>()
            .iter()
            .collect();
        assert_eq!(rows, [Some(1), Some(8)]);
        let rejected = source.rejected();
        assert_eq!(rejected.count_rows, 4);
        let kept: Vec<_> = rejected
            .kept
            .iter()
            .map(|row| (row.line, row.original.as_slice()))
            .collect();
        let expected: [(u64, &[u8]); 4] = [
            (3, b"3"),
            (4, b"\"4\",\"x\ny\""),
            (6, b"5,6,7"),
            (8, b"10,\xff"),
        ];
        assert_eq!(kept, expected);
        assert_eq!(rejected.kept[1].column.as_deref(), Some("b"));
        assert!(rejected.kept[3].reason.contains("not UTF-8"));
    }
}

#[test]
fn batches_keep_order_and_size() {
    let mut text = String::from("n\n");
    (0..1000).for_each(|row| text.push_str(&format!("{row}\n")));
    let csv = csv(|csv| csv.infer_rows = 37);
    let options = SourceOptions {
        batch_rows: 64,
        csv,
        ..Default::default()
    };
    let batches = read_all(&mut source(text.as_bytes(), &options).unwrap()).unwrap();
    assert!(batches[..15].iter().all(|batch| batch.num_rows() == 64));
    let values = batches
        .iter()
        .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values());
    assert!(values.copied().eq(0..1000));
}

#[test]
fn projection_keeps_the_order_of_the_file() {
    let columns = Some(vec!["c".to_string(), "a".into()]);
    let options = SourceOptions {
        columns,
        ..Default::default()
    };
    let batches = read_all(&mut source(b"a,b,c\n1,bad,3\n", &options).unwrap()).unwrap();
    assert_eq!(names(&batches[0]), ["a", "c"]);
    let none = SourceOptions {
        columns: Some(vec![]),
        ..Default::default()
    };
    let batches = read_all(&mut source(b"a\n1\n2\n", &none).unwrap()).unwrap();
    assert_eq!((batches[0].num_columns(), batches[0].num_rows()), (0, 2));
}

#[test]
fn wrong_options_are_named() {
    let unknown = csv(|csv| csv.types = vec![("z".into(), DataType::Int64)]);
    assert_eq!(
        read_error("a\n1\n", unknown).context().column.as_deref(),
        Some("z")
    );
    let list = DataType::Float16;
    let binary = csv(|csv| csv.types = vec![("a".into(), list)]);
    assert_eq!(read_error("a\n1\n", binary).kind(), ErrorKind::Unsupported);
    let zone = DataType::Timestamp(TimeUnit::Second, Some("Europe/Berlim".into()));
    let zone = csv(|csv| csv.types = vec![("a".into(), zone)]);
    let error = read_error("a\n2024-01-01\n", zone);
    assert_eq!(error.context().column.as_deref(), Some("a"));
    assert_eq!(error.hint_text(), Some("did you mean `Europe/Berlin`?"));
    let quote = csv(|csv| csv.delimiter = Some(b'"'));
    assert_eq!(
        read_error("a\n1\n", quote).kind(),
        ErrorKind::InvalidArgument
    );
    let zero = SourceOptions {
        batch_rows: 0,
        ..Default::default()
    };
    assert_eq!(
        source(b"a\n1\n", &zero).err().unwrap().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        read_error("", CsvOptions::default()).kind(),
        ErrorKind::SchemaMismatch
    );
}

#[test]
fn blanks_in_quotes_stay_and_numbers_too_large_are_told() {
    let batch = read("\"x\",\" y\"\n1,\"v \"\n", csv(|_| {}));
    assert_eq!(names(&batch), ["x", " y"]);
    assert_eq!(texts(&batch, 1), [Some("v ".to_owned())]);
    let batch = read("\"x\",\" a \"\"b\"\"\"\n1,\" v\"\n", csv(|_| {}));
    assert_eq!(names(&batch), ["x", " a \"b\""]);
    assert_eq!(texts(&batch, 1), [Some(" v".to_owned())]);
    let batch = read("x, y\n1, v \n", csv(|_| {}));
    assert_eq!(names(&batch), ["x", "y"]);
    assert_eq!(texts(&batch, 1), [Some("v".to_owned())]);
    let float = csv(|csv| csv.types = vec![("a".into(), DataType::Float64)]);
    let error = read_error("a\n1.5\n1e400\n", float);
    assert!(error.message().contains("finite float64"), "{error}");
    let batch = read("a\n1.5\ninf\n-Infinity\n", csv(|_| {}));
    assert_eq!(batch.num_rows(), 3);
}

#[test]
fn a_given_delimiter_is_taken_as_it_is() {
    let batch = read(
        "\u{feff}a|b;c\n1|2;3\n",
        csv(|csv| csv.delimiter = Some(b';')),
    );
    assert_eq!(names(&batch), ["a|b", "c"]);
}

/// A pipe that hands out one row and then must not be asked again.
struct Live(Option<&'static [u8]>);

impl std::io::Read for Live {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rows = self.0.take().expect("read past the rows that are there");
        buffer[..rows.len()].copy_from_slice(rows);
        Ok(rows.len())
    }
}

#[test]
fn a_live_stream_is_not_waited_for() {
    use crate::source::Source;
    let types = vec![("a".into(), DataType::Int64), ("b".into(), DataType::Int64)];
    let csv = CsvOptions {
        types,
        delimiter: Some(b','),
        ..Default::default()
    };
    let options = SourceOptions {
        csv,
        batch_rows: 2,
        ..Default::default()
    };
    let mut source = CsvSource::from_reader(Live(Some(b"a,b\n1,2\n3,4\n")), &options).unwrap();
    assert_eq!(source.next().unwrap().unwrap().num_rows(), 2);
}

#[test]
fn utf16_is_refused_with_a_hint() {
    let given = csv(|csv| csv.delimiter = Some(b','));
    let given = SourceOptions {
        csv: given,
        ..SourceOptions::default()
    };
    for (bytes, order) in [
        (&b"\xff\xfea\0,\0b\0"[..], "UTF-16 "),
        (b"a\0,\0b\0\n\0", "UTF-16LE "),
        (b"\0a\0,\0b\0\n", "UTF-16BE "),
    ] {
        for options in [&SourceOptions::default(), &given] {
            let error = source(bytes, options).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let hint = error.hint_text().unwrap();
            assert!(hint.contains("iconv -f ") && hint.contains(order), "{hint}");
        }
    }
}

proptest! {
    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_hostile(&bytes);
    }

    #[test]
    fn hostile_text_never_panics(text in "[-+0-9a-zTZ:.,;\"\t\r\n é]{0,300}") {
        read_hostile(text.as_bytes());
    }
}

fn read_hostile(bytes: &[u8]) {
    for header in [true, false] {
        let csv = csv(|csv| {
            csv.header = header;
            csv.infer_rows = 2;
        });
        let on_error = OnError::DeadLetter;
        let options = SourceOptions {
            csv,
            on_error,
            batch_rows: 3,
            ..Default::default()
        };
        let Ok(mut source) = source(bytes, &options) else {
            continue;
        };
        let batches = read_all(&mut source);
        assert!(
            batches.is_ok(),
            "dead letters swallow every bad row: {batches:?}"
        );
    }
}

#[test]
fn text_of_more_columns_than_memory_is_for_is_read_by_those_that_are_wanted() {
    let text = format!(
        "{}\n{}\n",
        vec!["c"; 70_000].join(","),
        vec!["7"; 70_000].join(",")
    );
    let mut options = SourceOptions::default();
    let error = source(text.as_bytes(), &options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    assert!(error.hint_text().unwrap().contains("wanted"));
    options.columns = Some(vec!["c_70000".to_owned()]);
    let batches = read_all(&mut source(text.as_bytes(), &options).unwrap()).unwrap();
    let numbers = batches[0].column(0).as_primitive::<Int64Type>();
    assert_eq!(numbers.values()[..], [7]);
}
