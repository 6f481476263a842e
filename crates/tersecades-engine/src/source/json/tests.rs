//! JSON from bytes to batches: types, nesting, policies, framing, packed files, hostile bytes.

use std::io::{Cursor, Read, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use proptest::prelude::*;
use tersecades_columnar::error::{Error, ErrorKind, Result};

use super::JsonSource;
use crate::source::{CsvOptions, OnError, Source, SourceOptions, open, text_type};

fn lines(text: &str, options: &SourceOptions) -> Result<JsonSource> {
    JsonSource::from_lines(Cursor::new(text.to_owned().into_bytes()), options)
}

fn read_all(source: &mut dyn Source) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    while let Some(batch) = source.next()? {
        batches.push(batch);
    }
    assert!(source.next()?.is_none(), "the end stays the end");
    Ok(batches)
}

fn read(text: &str) -> RecordBatch {
    let mut source = lines(text, &SourceOptions::default()).unwrap();
    let mut batches = read_all(&mut source).unwrap();
    assert_eq!(batches.len(), 1);
    batches.remove(0)
}

fn read_error(text: &str, options: &SourceOptions) -> Error {
    match lines(text, options) {
        Ok(mut source) => read_all(&mut source).unwrap_err(),
        Err(error) => error,
    }
}

fn names(batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    schema
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let plain = arrow_cast::cast(batch.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
    plain
        .as_string::<i32>()
        .iter()
        .map(|text| text.map(String::from))
        .collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

#[test]
fn types_are_inferred_and_absent_keys_are_null() {
    let batch = read(
        "{\"n\":1,\"x\":1.5,\"ok\":true,\"at\":\"2024-05-01T10:00:00Z\",\"zip\":\"0123\"}\n\
         {\"n\":-2,\"x\":3,\"ok\":null,\"zip\":\"9\",\"late\":7}\n",
    );
    assert_eq!(names(&batch), ["n", "x", "ok", "at", "zip", "late"]);
    let types: Vec<DataType> = batch
        .schema()
        .fields()
        .iter()
        .map(|field| field.data_type().clone())
        .collect();
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let expected = [
        DataType::Int64,
        DataType::Float64,
        DataType::Boolean,
        utc,
        text_type(),
        DataType::Int64,
    ];
    assert_eq!(types, expected);
    assert_eq!(
        batch.column(0).as_primitive::<Int64Type>().values()[..],
        [1, -2]
    );
    assert_eq!(
        batch.column(1).as_primitive::<Float64Type>().values()[..],
        [1.5, 3.0]
    );
    assert!(batch.column(2).is_null(1) && batch.column(3).is_null(1) && batch.column(5).is_null(0));
    let at = batch
        .column(3)
        .as_primitive::<TimestampMicrosecondType>()
        .value(0);
    assert_eq!(at, 1_714_557_600_000_000);
    assert_eq!(texts(&batch, "zip"), some(&["0123", "9"]));
}

#[test]
fn objects_are_flattened_and_arrays_kept_as_text() {
    let batch = read(
        "{\"a\":{\"b\":1,\"c\":{\"d\":\"x\"}},\"list\":[1, {\"y\":2}]}\n\
         {\"a\":null,\"list\":[]}\n\
         {\"a\":{\"b\":3},\"list\":null}\n",
    );
    assert_eq!(names(&batch), ["a.b", "a.c.d", "list"]);
    let b: Vec<_> = batch.column(0).as_primitive::<Int64Type>().iter().collect();
    assert_eq!(b, [Some(1), None, Some(3)]);
    let expected = [
        Some("[1, {\"y\":2}]".to_owned()),
        Some("[]".to_owned()),
        None,
    ];
    assert_eq!(texts(&batch, "list"), expected);
}

#[test]
fn a_key_with_objects_and_other_values_is_one_text_column() {
    let batch = read("{\"a\":{\"b\":1}}\n{\"a\":5}\n{\"a\":\"x\"}\n{\"a\":{\"z\":[2]}}\n");
    assert_eq!(names(&batch), ["a"]);
    assert_eq!(
        texts(&batch, "a"),
        some(&["{\"b\":1}", "5", "x", "{\"z\":[2]}"])
    );
    let mixed = read("{\"a\":1}\n{\"a\":\"one\"}\n{\"a\":true}\n");
    assert_eq!(texts(&mixed, "a"), some(&["1", "one", "true"]));
}

#[test]
fn an_empty_object_says_no_more_of_its_key_than_null_does() {
    let rows = "{\"o\":{},\"p\":{\"q\":{}}}\n{\"o\":null,\"p\":null}\n{\"p\":{}}\n";
    let batch = read(rows);
    assert_eq!(names(&batch), ["o", "p.q"]);
    for column in ["o", "p.q"] {
        let expected = [Some("{}".to_owned()), None, None];
        assert_eq!(texts(&batch, column), expected, "{column}");
    }
    let rows = "{\"o\":{}}\n{\"o\":{\"x\":\"u\"}}\n{\"o\":null}\n";
    let batch = read(rows);
    assert_eq!(names(&batch), ["o.x"]);
    assert_eq!(texts(&batch, "o.x"), [None, Some("u".to_owned()), None]);
    let csv = CsvOptions {
        infer_rows: 1,
        ..CsvOptions::default()
    };
    let options = SourceOptions {
        csv,
        ..SourceOptions::default()
    };
    let batches = read_all(&mut lines(rows, &options).unwrap()).unwrap();
    let expected = [Some("{}"), Some("{\"x\":\"u\"}"), None];
    assert_eq!(
        texts(&batches[0], "o"),
        expected.map(|it| it.map(String::from))
    );
}

#[test]
fn a_byte_order_mark_may_come_byte_by_byte() {
    /// Gives one byte at a time.
    struct Slow(Cursor<Vec<u8>>);
    impl Read for Slow {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let most = out.len().min(1);
            self.0.read(&mut out[..most])
        }
    }
    let slow = |bytes: &[u8]| {
        let options = SourceOptions::default();
        JsonSource::from_lines(Slow(Cursor::new(bytes.to_vec())), &options)
    };
    let mut source = slow(b"\xef\xbb\xbf{\"a\":1}\r\n{\"a\":2}").unwrap();
    assert_eq!(read_all(&mut source).unwrap()[0].num_rows(), 2);
    let error = slow(b"{\0\"\0a\0\"\0:\0").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn keys_of_many_dots_and_many_keys_take_no_memory_without_bounds() {
    let key = ".".repeat(200_000);
    let batch = read(&format!("{{\"a\":{{}},\"{key}\":1}}\n{{\"a\":2}}\n"));
    assert_eq!(names(&batch), ["a", &key]);
    let keys = (0..70_000).map(|n| format!("\"k{n}\":1"));
    let text = format!("{{{}}}\n", keys.collect::<Vec<_>>().join(","));
    let error = read_error(&text, &SourceOptions::default());
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}

#[test]
fn given_types_win_and_may_name_keys_that_come_later() {
    let types = [
        ("n", DataType::Int16),
        ("later", DataType::Float64),
        ("raw", DataType::Utf8),
    ];
    let types = types
        .map(|(name, data_type)| (name.to_owned(), data_type))
        .to_vec();
    let csv = CsvOptions {
        types,
        infer_rows: 1,
        ..CsvOptions::default()
    };
    let options = SourceOptions {
        csv,
        ..SourceOptions::default()
    };
    let text = "{\"n\":\"12\",\"raw\":{\"k\":1}}\n{\"n\":-3,\"later\":0.5}\n";
    let batches = read_all(&mut lines(text, &options).unwrap()).unwrap();
    assert_eq!(names(&batches[0]), ["n", "raw", "later"]);
    assert_eq!(batches[0].column(0).data_type(), &DataType::Int16);
    assert_eq!(
        texts(&batches[0], "raw"),
        [Some("{\"k\":1}".to_owned()), None]
    );
    let mut dotted = options.clone();
    dotted.csv.types = vec![
        ("a".to_owned(), DataType::Utf8),
        ("a.b".to_owned(), DataType::Int64),
    ];
    let text = "{\"a\":\"x\",\"a.b\":1}\n{\"a.b\":2,\"a\":{\"b\":3}}\n";
    let batches = read_all(&mut lines(text, &dotted).unwrap()).unwrap();
    assert_eq!(names(&batches[0]), ["a", "a.b"]);
    assert_eq!(texts(&batches[0], "a.b"), some(&["1", "2"]));
    let error = read_error("{\"n\":1.5}\n", &options);
    assert_eq!(error.context().column.as_deref(), Some("n"));
    assert!(error.message().contains("`1.5` is a float"), "{error}");
}

#[test]
fn unknown_and_repeated_keys_make_a_row_bad() {
    let csv = CsvOptions {
        infer_rows: 2,
        ..CsvOptions::default()
    };
    let options = SourceOptions {
        csv,
        ..SourceOptions::default()
    };
    let error = read_error("{\"a\":1}\n\n{\"a\":2}\n{\"a\":3,\"b\":4}\n", &options);
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert_eq!(error.context().row, Some(4));
    assert!(error.message().contains("`b`"), "{error}");
    assert!(error.hint_text().unwrap().contains("inference"));
    let error = read_error("{\"a\":1,\"a\":2}\n", &options);
    assert!(error.message().contains("twice"), "{error}");
}

#[test]
fn bad_rows_follow_the_policy_with_their_lines() {
    let text = "{\"a\":1}\nnonsense\n{\"a\":\"x\"}\n[1]\n{\"a\":2}\n{\"a\":3";
    let csv = CsvOptions {
        types: vec![("a".to_owned(), DataType::Int64)],
        ..CsvOptions::default()
    };
    for on_error in [OnError::Skip, OnError::DeadLetter] {
        let csv = csv.clone();
        let options = SourceOptions {
            csv,
            on_error,
            ..SourceOptions::default()
        };
        let mut source = lines(text, &options).unwrap();
        let batches = read_all(&mut source).unwrap();
        assert_eq!(
            batches[0].column(0).as_primitive::<Int64Type>().values()[..],
            [1, 2]
        );
        let rejected = source.rejected();
        assert_eq!(rejected.count_rows, 4);
        let kept: Vec<(u64, &str)> = rejected
            .kept
            .iter()
            .map(|row| (row.line, std::str::from_utf8(&row.original).unwrap()))
            .collect();
        let expected = [
            (2, "nonsense"),
            (3, "{\"a\":\"x\"}"),
            (4, "[1]"),
            (6, "{\"a\":3"),
        ];
        assert_eq!(kept, expected);
        assert_eq!(rejected.kept[1].column.as_deref(), Some("a"));
    }
    let fail = SourceOptions {
        csv,
        ..SourceOptions::default()
    };
    assert_eq!(read_error(text, &fail).context().row, Some(2));
}

#[test]
fn arrays_and_packed_files_are_read_and_cut_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<String> = (0..3_000)
        .map(|n| format!("{{\"n\":{n},\"w\":\"x{}\"}}", n % 97))
        .collect();
    let array = format!("[{}]\n", rows.join(",\n"));
    let gzip = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let files = [
        ("a.jsonl", rows.join("\n").into_bytes()),
        ("a.ndjson.gz", gzip(&rows.join("\n"))),
        (
            "a.jsonl.zst",
            zstd::encode_all(rows.join("\n").as_bytes(), 1).unwrap(),
        ),
        ("a.json", array.clone().into_bytes()),
        ("a.json.gz", gzip(&array)),
    ];
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        let options = SourceOptions {
            batch_rows: 1_000,
            ..SourceOptions::default()
        };
        let batches = read_all(&mut *open(&path, &options).unwrap()).unwrap();
        assert_eq!(batches.len(), 3, "{name}");
        let numbers = batches
            .iter()
            .flat_map(|it| it.column(0).as_primitive::<Int64Type>().values());
        assert!(numbers.copied().eq(0..3_000), "{name}");
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let outcome = open(&path, &options).and_then(|mut source| read_all(&mut *source));
        let error = outcome.unwrap_err();
        assert_eq!(
            error.context().file,
            Some(path.display().to_string()),
            "{name}"
        );
    }
}

#[test]
fn projection_skips_what_is_not_wanted() {
    let options = SourceOptions {
        columns: Some(vec!["c".to_owned(), "a.x".to_owned()]),
        ..SourceOptions::default()
    };
    let text = "{\"a\":{\"x\":1,\"y\":[{}]},\"b\":\"bad\",\"c\":true}\n";
    let batches = read_all(&mut lines(text, &options).unwrap()).unwrap();
    assert_eq!(names(&batches[0]), ["a.x", "c"]);
    let empty = read_error("\n\n", &SourceOptions::default());
    assert_eq!(empty.kind(), ErrorKind::SchemaMismatch);
}

#[test]
fn where_no_row_says_which_columns_there_are_the_first_says_why() {
    for (text, reason) in [
        ("\n[1]\nhello\n", "the row is not a JSON object"),
        ("\n{\"a\":}\n", "byte 5 is '}' where a value should be"),
    ] {
        let options = SourceOptions {
            on_error: OnError::Skip,
            ..SourceOptions::default()
        };
        let error = read_error(text, &options);
        let is_survey = error.message().contains("no first row");
        assert!(error.message().contains(reason), "{error}");
        assert_eq!(is_survey.then_some(2), error.context().row, "{error}");
    }
    let error = read_error("{\0\"\0a\0", &SourceOptions::default());
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

proptest! {
    #[test]
    fn hostile_text_never_panics(text in "[-+0-9a-z:.,\"\\\\u{}\\[\\]\t\r\n é]{0,300}") {
        read_hostile(text.as_bytes());
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_hostile(&bytes);
    }
}

fn read_hostile(bytes: &[u8]) {
    let csv = CsvOptions {
        infer_rows: 2,
        types: vec![("a".to_owned(), DataType::Int64)],
        ..CsvOptions::default()
    };
    let options = SourceOptions {
        csv,
        batch_rows: 3,
        on_error: OnError::DeadLetter,
        ..SourceOptions::default()
    };
    if let Ok(mut source) = JsonSource::from_lines(Cursor::new(bytes.to_vec()), &options)
        && !bytes.starts_with(&[0x1f, 0x8b])
        && !bytes.starts_with(&[0x28, 0xb5])
    {
        assert!(
            read_all(&mut source).is_ok(),
            "dead letters swallow every bad row"
        );
    }
    if let Ok(mut source) = JsonSource::from_array(Cursor::new(bytes.to_vec()), &options) {
        // Broken brackets are an error, whatever the policy.
        let _ = read_all(&mut source);
    }
}
