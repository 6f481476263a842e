//! Sinks from batch to bytes and, through the sources, back again.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use proptest::collection::vec;
use proptest::prelude::*;
use tersecades_columnar::error::ErrorKind;

use super::*;
use crate::source::csv::{CsvSource, NULL_STRINGS_DEFAULT};
use crate::source::{SOURCES, Source as _, SourceOptions, open};

/// A writer whose bytes can be looked at afterwards.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn words(words: &[Option<&str>]) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    words.iter().for_each(|word| builder.append_option(*word));
    Arc::new(builder.finish())
}

/// A column with `least`, a null and `most`.
fn ends<T: ArrowPrimitiveType>(least: T::Native, most: T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter([
        Some(least),
        None,
        Some(most),
    ]))
}

fn numbers() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("i8", ends::<Int8Type>(i8::MIN, i8::MAX)),
        ("i16", ends::<Int16Type>(i16::MIN, i16::MAX)),
        ("i32", ends::<Int32Type>(i32::MIN, i32::MAX)),
        ("i64", ends::<Int64Type>(i64::MIN, i64::MAX)),
        ("u8", ends::<UInt8Type>(0, u8::MAX)),
        ("u16", ends::<UInt16Type>(0, u16::MAX)),
        ("u32", ends::<UInt32Type>(0, u32::MAX)),
        ("u64", ends::<UInt64Type>(0, u64::MAX)),
        ("f32", ends::<Float32Type>(0.1, f32::MIN_POSITIVE)),
        ("f64", ends::<Float64Type>(0.1, -1.0e-300)),
        ("day", ends::<Date32Type>(-1, 20_000)),
        ("at", ends::<TimestampNanosecondType>(1, -1)),
        ("second", ends::<TimestampSecondType>(0, 1 << 32)),
    ]
}

/// Every type of interest with nulls, extremes and characters that need care.
fn all_types() -> RecordBatch {
    let flags = BooleanArray::from(vec![Some(true), None, Some(false)]);
    let utc = TimestampMicrosecondArray::from(vec![Some(0), None, Some(-1)]);
    let small: DictionaryArray<UInt16Type> = [Some("x"), Some("y"), None].into_iter().collect();
    let plain = StringArray::from(vec![Some("x"), None, Some("tab\there")]);
    let mut columns = numbers();
    columns.extend([
        ("flag", Arc::new(flags) as ArrayRef),
        ("utc", Arc::new(utc.with_timezone("UTC"))),
        ("word", words(&[Some("a,\"b\"\r\n"), None, Some(" é ")])),
        ("plain", Arc::new(plain)),
        ("small", Arc::new(small)),
    ]);
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

pub(super) fn write_file(path: &Path, batches: &[RecordBatch]) {
    let mut sink = create(path, &batches[0].schema(), &SinkOptions::default()).unwrap();
    batches.iter().for_each(|batch| sink.write(batch).unwrap());
    assert!(!path.exists(), "nothing under the final name before finish");
    sink.finish().unwrap();
    assert_eq!(
        sink.finish().unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        sink.write(&batches[0]).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

pub(super) fn read_file(path: &Path, options: &SourceOptions) -> RecordBatch {
    let mut source = open(path, options).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = source.next().unwrap() {
        assert_eq!(batch.schema(), source.schema());
        batches.push(batch);
    }
    arrow_select::concat::concat_batches(&source.schema(), &batches).unwrap()
}

/// Compares values column by column, whatever keys a dictionary has.
pub(super) fn assert_same_values(left: &RecordBatch, right: &RecordBatch) {
    assert_eq!(left.num_rows(), right.num_rows());
    assert_eq!(left.num_columns(), right.num_columns());
    for (index, field) in left.schema().fields().iter().enumerate() {
        let plain = |batch: &RecordBatch| match field.data_type() {
            DataType::Dictionary(_, _) | DataType::Utf8 => {
                arrow_cast::cast(batch.column(index), &DataType::Utf8).unwrap()
            }
            DataType::Timestamp(TimeUnit::Second, zone) => {
                let millis = DataType::Timestamp(TimeUnit::Millisecond, zone.clone());
                arrow_cast::cast(batch.column(index), &millis).unwrap()
            }
            _ => batch.column(index).clone(),
        };
        assert_eq!(&plain(left), &plain(right), "column {}", field.name());
    }
}

#[test]
fn every_type_survives_every_file_format() {
    let folder = tempfile::tempdir().unwrap();
    let batch = all_types();
    for name in [
        "a.parquet",
        "a.pq",
        "a.arrow",
        "a.ipc",
        "a.feather",
        "a.csv",
    ] {
        let path = folder.path().join(name);
        write_file(
            &path,
            &[batch.clone(), batch.slice(1, 2), batch.slice(0, 0)],
        );
        let mut options = SourceOptions::default();
        let typed = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
        options.csv.types = batch.schema().fields().iter().map(typed).collect();
        let back = read_file(&path, &options);
        assert_same_values(&batch, &back.slice(0, 3));
        assert_same_values(&batch.slice(1, 2), &back.slice(3, 2));
        assert_eq!(back.num_rows(), 5, "{name}");
    }
}

#[test]
fn formats_that_are_read_by_place_are_not_packed_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let schema = all_types().schema();
    for (format, name) in [
        ("parquet", "a.parquet.gz"),
        ("parquet", "a.GZ"),
        ("arrow", "a.zst"),
    ] {
        let target = Target::File(folder.path().join(name));
        let made = (find_kind(format).unwrap().create)(target, &schema, &SinkOptions::default());
        let error = made.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.hint_text().unwrap().contains("leave out .gz"));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn abandoned_sinks_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let batch = all_types();
    for name in ["a.parquet", "a.arrow", "a.csv"] {
        let path = folder.path().join(name);
        let mut sink = create(&path, &batch.schema(), &SinkOptions::default()).unwrap();
        sink.write(&batch).unwrap();
        drop(sink);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn show(kind: &SinkKind, batches: &[RecordBatch], options: &SinkOptions) -> String {
    let shared = Shared::default();
    let target = Target::Writer(Box::new(shared.clone()));
    let mut sink = (kind.create)(target, &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| sink.write(batch).unwrap());
    sink.finish().unwrap();
    shared.text()
}

fn sample() -> RecordBatch {
    let at = TimestampMillisecondArray::from(vec![Some(0), Some(1_356_998_400_500), None]);
    RecordBatch::try_from_iter([
        ("host", words(&[Some("a"), None, Some("b\u{1b}[31m,")])),
        (
            "rtt_us",
            Arc::new(Float64Array::from(vec![Some(1.5), Some(12.0), None])) as ArrayRef,
        ),
        ("n", Arc::new(Int64Array::from(vec![1, 20, 300]))),
        ("at", Arc::new(at.with_timezone("Europe/Paris"))),
    ])
    .unwrap()
}

#[test]
fn csv_text_is_exact() {
    let text = show(&csv::KIND, &[sample()], &SinkOptions::default());
    assert_eq!(
        text,
        "host,rtt_us,n,at\n\
         a,1.5,1,1970-01-01T00:00:00Z\n\
         ,12.0,20,2013-01-01T00:00:00.500Z\n\
         \"b\u{1b}[31m,\",,300,\n"
    );
}

#[test]
fn a_lone_null_is_not_a_blank_line() {
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1)]));
    let batch = RecordBatch::try_from_iter([("n", nulls)]).unwrap();
    let text = show(&csv::KIND, &[batch], &SinkOptions::default());
    assert_eq!(text, "n\nNULL\n1\n");
}

#[test]
fn texts_that_mean_null_stand_in_quotes() {
    let nan: ArrayRef = Arc::new(Float64Array::from(vec![Some(f64::NAN), None, Some(0.5)]));
    let rows = [
        ("a", words(&[Some(""), None, Some("NA")])),
        ("NA", words(&[Some("-"), Some("nan"), Some("null ")])),
        ("c", nan),
    ];
    let batch = RecordBatch::try_from_iter(rows).unwrap();
    let text = show(&csv::KIND, &[batch], &SinkOptions::default());
    assert_eq!(
        text,
        "a,\"NA\",c\n\"\",\"-\",NaN\n,nan,\n\"NA\",\"null \",0.5\n"
    );
}

fn any_text() -> impl Strategy<Value = Option<String>> {
    let null_strings = prop::sample::select(NULL_STRINGS_DEFAULT.to_vec());
    prop::option::of(prop_oneof![
        null_strings.prop_map(String::from),
        "[NAa/\"\r\n\t ,;|é-]{0,6}",
        any::<String>(),
    ])
}

fn any_texts() -> impl Strategy<Value = Vec<Vec<Option<String>>>> {
    (1..4_usize, 1..20_usize).prop_flat_map(|(columns, rows)| vec(vec(any_text(), rows), columns))
}

proptest! {
    #[test]
    fn texts_and_nulls_come_back_from_csv(columns in any_texts(), is_coded: bool) {
        let column = |(index, texts): (usize, &Vec<Option<String>>)| {
            let array: ArrayRef = match is_coded {
                true => words(&texts.iter().map(Option::as_deref).collect::<Vec<_>>()),
                false => Arc::new(StringArray::from(texts.clone())),
            };
            (format!("t{index}"), array, true)
        };
        let columns = columns.iter().enumerate().map(column);
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let text = show(&csv::KIND, std::slice::from_ref(&batch), &SinkOptions::default());
        let typed = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
        let mut options = SourceOptions::default();
        options.csv.types = batch.schema().fields().iter().map(typed).collect();
        let mut source = CsvSource::from_reader(io::Cursor::new(text), &options).unwrap();
        assert_same_values(&batch, &source.next().unwrap().unwrap());
        prop_assert!(source.next().unwrap().is_none());
    }
}

#[test]
fn table_text_is_exact() {
    let options = SinkOptions {
        table_rows: 4,
        ..Default::default()
    };
    let text = show(&table::KIND, &[sample(), sample()], &options);
    let expected = [
        "host          rtt_us    n  at",
        "------------  ------  ---  ------------------------",
        "a                1.5    1  1970-01-01T00:00:00Z",
        "NULL            12.0   20  2013-01-01T00:00:00.500Z",
        "b\\u{1b}[31m,    NULL  300  NULL",
        "a                1.5    1  1970-01-01T00:00:00Z",
        "… 2 more rows",
        "",
    ];
    assert_eq!(text, expected.join("\n"));
    let one = SinkOptions {
        table_rows: 2,
        ..Default::default()
    };
    assert!(show(&table::KIND, &[sample()], &one).ends_with("… 1 more row\n"));
}

#[test]
fn long_cells_are_cut() {
    let batch = RecordBatch::try_from_iter([("w", words(&[Some(&"é".repeat(200))]))]).unwrap();
    let text = show(&table::KIND, &[batch], &SinkOptions::default());
    let last = text.lines().last().unwrap();
    assert!(last.chars().count() == 81 && last.ends_with('…'), "{last}");
}

#[test]
fn wrong_requests_are_named() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let options = SinkOptions::default();
    let error = create(Path::new("a.doc"), &schema, &options).err().unwrap();
    assert!(error.hint_text().unwrap().contains(".parquet"));
    assert!(find_kind("table").is_ok());
    let error = find_kind("yaml").err().unwrap();
    assert!(error.hint_text().unwrap().contains("arrow"));
    let error = create(Path::new("no/such/folder/a.csv"), &schema, &options)
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Io);
    for kind in SINKS {
        let target = Target::Writer(Box::new(io::sink()));
        let mut sink = (kind.create)(target, &schema, &options).unwrap();
        let error = sink.write(&sample()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{}", kind.name);
    }
    let target = || Target::Writer(Box::new(io::sink()));
    let quote = SinkOptions {
        csv_delimiter: b'"',
        ..Default::default()
    };
    assert!((csv::KIND.create)(target(), &schema, &quote).is_err());
    let level = SinkOptions {
        zstd_level: 99,
        ..Default::default()
    };
    assert!((parquet::KIND.create)(target(), &schema, &level).is_err());
}

#[test]
fn local_and_ancient_times_can_be_shown() {
    let at: ArrayRef = Arc::new(TimestampSecondArray::from(vec![-62_135_596_800, i64::MAX]));
    let batch = RecordBatch::try_from_iter([("at", at)]).unwrap();
    let first = show(&csv::KIND, &[batch.slice(0, 1)], &SinkOptions::default());
    assert_eq!(first, "at\n0001-01-01T00:00:00\n");
    let schema = batch.schema();
    assert_eq!(
        schema.field(0).data_type(),
        &DataType::Timestamp(TimeUnit::Second, None)
    );
    for kind in [csv::KIND, table::KIND] {
        let target = Target::Writer(Box::new(io::sink()));
        let mut sink = (kind.create)(target, &schema, &SinkOptions::default()).unwrap();
        assert!(sink.write(&batch).is_err(), "year 292 billion has no text");
    }
}

/// Columns of as many rows as are asked for, with nulls and texts that need quotes.
fn many_rows(first: i64, rows: i64) -> RecordBatch {
    let numbers = (first..first + rows).map(|row| (row % 7 > 0).then_some(row * 31));
    let floats = (first..first + rows).map(|row| row as f64 / 8.0);
    let mut texts = StringDictionaryBuilder::<Int32Type>::new();
    for row in first..first + rows {
        texts.append_value(["plain", "a,b", "say \"so\"", ""][row as usize % 4]);
    }
    let columns: [(&str, ArrayRef); 3] = [
        ("number", Arc::new(Int64Array::from_iter(numbers))),
        ("float", Arc::new(Float64Array::from_iter_values(floats))),
        ("text", Arc::new(texts.finish())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

#[test]
fn every_source_reads_what_its_sink_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = Int64Array::from_iter((0..1_000).map(|row| (row % 7 > 0).then_some(row)));
    let text = |row: usize| [Some("plain"), Some("a,b"), None, Some("say \"so\"")][row % 4];
    let texts = words(&(0..1_000).map(text).collect::<Vec<_>>());
    let columns = [("number", Arc::new(numbers) as ArrayRef), ("text", texts)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for source in SOURCES {
        let is_written = |suffix: &&&str| SINKS.iter().any(|sink| sink.suffixes.contains(suffix));
        let mut written = 0;
        for suffix in source.suffixes.iter().filter(is_written) {
            let path = folder.path().join(format!("a{suffix}"));
            let mut sink = create(&path, &batch.schema(), &SinkOptions::default()).unwrap();
            sink.write(&batch).unwrap();
            sink.finish().unwrap();
            let mut read = (source.open)(&path, &SourceOptions::default()).unwrap();
            let found = read.next().unwrap().unwrap();
            for (column, data_type) in [(0, DataType::Int64), (1, DataType::Utf8)] {
                let [found, batch] = [&found, &batch]
                    .map(|batch| arrow_cast::cast(batch.column(column), &data_type).unwrap());
                assert_eq!(&*found, &*batch, "{suffix}");
            }
            written += 1;
        }
        assert!(written > 0, "{} has no sink", source.name);
    }
}

#[test]
fn what_is_written_does_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let mut batches = vec![many_rows(0, 0), many_rows(0, 3), many_rows(3, 20_000)];
    batches.push(many_rows(20_003, 4_096));
    // Behind them the first row group of Parquet ends within a batch.
    batches.extend((0..9).map(|at| many_rows(24_099 + at * 131_072, 131_072)));
    for name in [
        "a.csv",
        "a.jsonl",
        "a.json",
        "a.parquet",
        "a.arrow",
        "a.csv.zst",
    ] {
        let written = |threads| {
            let path = folder.path().join(name);
            let options = SinkOptions {
                threads,
                ..SinkOptions::default()
            };
            let mut sink = create(&path, &batches[0].schema(), &options).unwrap();
            batches.iter().for_each(|batch| sink.write(batch).unwrap());
            sink.finish().unwrap();
            std::fs::read(path).unwrap()
        };
        let one = written(1);
        for threads in [2, 5] {
            assert!(written(threads) == one, "{name} by {threads} threads");
        }
    }
    let path = folder.path().join("a.parquet");
    let mut read = open(&path, &SourceOptions::default()).unwrap();
    let (mut rows, mut sum) = (0, 0);
    while let Some(batch) = read.next().unwrap() {
        let numbers = arrow_cast::cast(batch.column(0), &DataType::Int64).unwrap();
        sum += numbers
            .as_primitive::<Int64Type>()
            .iter()
            .flatten()
            .sum::<i64>();
        rows += batch.num_rows() as i64;
    }
    assert_eq!(rows, 24_099 + 9 * 131_072);
    let wanted = (0..rows).filter(|row| row % 7 > 0).map(|row| row * 31);
    assert_eq!(sum, wanted.sum::<i64>());
}
