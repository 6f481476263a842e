//! Columns of dictionary codes beside the Arrow reader, and damaged pages.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array, StringArray,
    TimestampMillisecondArray, UInt32Array, UInt64Array,
};
use arrow_cast::cast;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::types::logical_type;
use tersecades_testkit::random::Random;

use super::*;
use crate::source::passing::{Failing, Passing};

mod ahead;
mod left_out;

const ROWS: usize = 5_000;

fn options(batch_rows: usize) -> SourceOptions {
    SourceOptions {
        batch_rows,
        ..SourceOptions::default()
    }
}

/// Numbers below `distinct`, in runs of up to `run`, of which `nulls` percent are null.
fn numbers(random: &mut Random, distinct: usize, run: usize, nulls: usize) -> Vec<Option<u32>> {
    let mut numbers = Vec::new();
    while numbers.len() < ROWS {
        let number = (random.below(100) >= nulls).then(|| random.below(distinct) as u32);
        numbers.extend(std::iter::repeat_n(number, 1 + random.below(run)));
    }
    numbers.truncate(ROWS);
    numbers
}

/// A column of every type that is read from codes.
fn batch(random: &mut Random, distinct: usize, run: usize, nulls: usize) -> RecordBatch {
    fn every<T>(numbers: Vec<Option<u32>>, from: impl Fn(u32) -> T) -> Vec<Option<T>> {
        numbers
            .into_iter()
            .map(|number| number.map(&from))
            .collect()
    }
    let mut next = || numbers(random, distinct, run, nulls);
    let spread = |n: u32| i64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
    let columns: [(&str, ArrayRef); 9] = [
        (
            "i32",
            Arc::new(Int32Array::from(every(next(), |n| spread(n) as i32))),
        ),
        (
            "u32",
            Arc::new(UInt32Array::from(every(next(), |n| spread(n) as u32))),
        ),
        ("i64", Arc::new(Int64Array::from(every(next(), spread)))),
        (
            "u64",
            Arc::new(UInt64Array::from(every(next(), |n| spread(n) as u64))),
        ),
        (
            "date",
            Arc::new(Date32Array::from(every(next(), |n| n as i32))),
        ),
        (
            "time",
            Arc::new(TimestampMillisecondArray::from(every(next(), spread))),
        ),
        (
            "f32",
            Arc::new(Float32Array::from(every(next(), |n| n as f32 / 7.0))),
        ),
        (
            "f64",
            Arc::new(Float64Array::from(every(next(), |n| f64::from(n) / 7.0))),
        ),
        (
            "text",
            Arc::new(StringArray::from(every(next(), |n| format!("text {n}")))),
        ),
    ];
    let nullable = nulls > 0;
    let fields: Vec<(&str, ArrayRef, bool)> = columns
        .into_iter()
        .map(|(name, column)| (name, column, nullable))
        .collect();
    RecordBatch::try_from_iter_with_nullable(fields).unwrap()
}

fn write(batch: &RecordBatch, version: WriterVersion, page_rows: usize) -> Bytes {
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(Compression::SNAPPY)
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows.min(1_024))
        .set_max_row_group_row_count(Some(3_000))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap().into()
}

/// The rows as our reader gives them, and how many columns of the first group it decoded itself.
fn read(bytes: &Bytes, batch_rows: usize) -> Result<(Vec<RecordBatch>, usize)> {
    let mut source = ParquetSource::from_bytes(bytes.clone(), &options(batch_rows))?;
    let GroupRows::All(group) = source.input.open_group(&source.wanted, 0)? else {
        panic!("rows of a group are left out");
    };
    let coded = group.coded_columns();
    let mut batches = Vec::new();
    while let Some(batch) = source.next()? {
        batches.push(batch);
    }
    Ok((batches, coded))
}

fn assert_same(bytes: &Bytes, batch_rows: usize) -> usize {
    let (found, coded) = read(bytes, batch_rows).unwrap();
    let metadata = load_metadata(bytes).unwrap();
    let mut at = 0;
    for group in 0..metadata.metadata().num_row_groups() {
        let input = bytes.clone();
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata.clone());
        let reader = reader
            .with_row_groups(vec![group])
            .with_batch_size(batch_rows);
        for expected in reader.build().unwrap() {
            let expected = expected.unwrap();
            assert_eq!(found[at].num_rows(), expected.num_rows());
            for (name, (a, b)) in [
                "i32", "u32", "i64", "u64", "date", "time", "f32", "f64", "text",
            ]
            .iter()
            .zip(found[at].columns().iter().zip(expected.columns()))
            {
                assert_eq!(a, b, "column {name}, batch {at} of {batch_rows} rows");
            }
            at += 1;
        }
    }
    assert_eq!(at, found.len());
    coded
}

#[test]
fn codes_give_what_the_arrow_reader_gives() {
    let mut random = Random::new(7);
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for (distinct, run, nulls) in [
            (1, 1, 0),
            (2, 1, 30),
            (3, 40, 0),
            (200, 1, 5),
            (700, 3, 0),
            (2_000, 200, 50),
            (10, 1, 99),
            (5_000, 1, 0),
        ] {
            let batch = batch(&mut random, distinct, run, nulls);
            for page_rows in [100, 1_111, ROWS] {
                let bytes = write(&batch, version, page_rows);
                for batch_rows in [13, 1_000, 65_536] {
                    let coded = assert_same(&bytes, batch_rows);
                    assert_eq!(coded, 9, "{distinct} distinct values, {nulls} % nulls");
                }
            }
        }
    }
}

/// The rows of `bytes` for a query that tests `tests`, reads `time` of all rows and wants failing
/// ones for `failing`; and how many were left out.
fn read_passing(
    bytes: &Bytes,
    (tests, failing): (&[(&str, Arc<Predicate>)], &Failing),
    batch_rows: usize,
) -> Result<(Vec<RecordBatch>, u64)> {
    let whole = ParquetSource::from_bytes(bytes.clone(), &options(batch_rows))?;
    let tests = tests.iter().filter_map(|(name, test)| {
        let field = whole.wanted.schema.field_with_name(name).ok()?;
        let data_type = logical_type(field.data_type());
        Some((name.to_string(), data_type, Arc::clone(test)))
    });
    let passing = Passing {
        tests: tests.collect(),
        failing: failing.clone(),
        of_all: vec!["time".to_owned()],
        ..Passing::default()
    };
    let options = SourceOptions {
        passing,
        ..options(batch_rows)
    };
    let mut source = ParquetSource::from_bytes(bytes.clone(), &options)?;
    let found = std::iter::from_fn(|| source.next().transpose()).collect::<Result<_>>()?;
    Ok((found, source.left_out()))
}

/// The integer in a row of a column.
fn int(batch: &RecordBatch, name: &str, row: usize) -> Option<i64> {
    let column = cast(batch.column_by_name(name).unwrap(), &DataType::Int64).unwrap();
    let value = column.as_primitive::<Int64Type>().value(row);
    column.is_valid(row).then_some(value)
}

/// How many rows of `found` are not those of `whole`, after a check that none of them passes.
fn differing(found: &RecordBatch, whole: &RecordBatch, passes: impl Fn(usize) -> bool) -> usize {
    assert_eq!(found.column_by_name("time"), whole.column_by_name("time"));
    let same = |row: usize| found.slice(row, 1) == whole.slice(row, 1);
    let differing: Vec<usize> = (0..whole.num_rows()).filter(|row| !same(*row)).collect();
    assert!(!differing.iter().any(|row| passes(*row)), "{differing:?}");
    differing.len()
}

#[test]
fn rows_that_pass_are_read_whole_where_others_may_say_anything() {
    let mut random = Random::new(10);
    let mut open_rows = 0;
    for (distinct, run, nulls) in [
        (40, 1, 0),
        (300, 30, 0),
        (60, 3, 20),
        (2_000, 1, 1),
        (9, 1, 0),
    ] {
        let batch = batch(&mut random, distinct, run, nulls);
        let some = |name: &str| {
            let mut values = (0..ROWS).filter_map(|row| int(&batch, name, row));
            values.next().unwrap()
        };
        let equal = Predicate::compare(&DataType::Int32, Comparison::Equal, &some("i32").into());
        let other = Predicate::compare(&DataType::Int64, Comparison::NotEqual, &some("i64").into());
        let tests = [
            ("i32", Arc::new(equal.unwrap())),
            ("i64", Arc::new(other.unwrap())),
        ];
        for page_rows in [100, 1_111] {
            let bytes = write(&batch, WriterVersion::PARQUET_1_0, page_rows);
            for batch_rows in [100, 900, 65_536] {
                let wanted = (&tests[..], &Failing::Time);
                let (found, left_out) = read_passing(&bytes, wanted, batch_rows).unwrap();
                assert_eq!(left_out, 0);
                let (whole, _) = read(&bytes, batch_rows).unwrap();
                assert_eq!(found.len(), whole.len());
                for (found, whole) in found.iter().zip(&whole) {
                    let passes = |row: usize| {
                        int(whole, "i32", row) == Some(some("i32"))
                            && int(whole, "i64", row).is_some_and(|value| value != some("i64"))
                    };
                    open_rows += differing(found, whole, passes);
                }
            }
        }
    }
    assert!(open_rows > 0, "some rows are not read");
}

#[test]
fn columns_without_any_value_and_of_mixed_pages_are_read() {
    let mut random = Random::new(8);
    let nulls = write(
        &batch(&mut random, 9, 1, 100),
        WriterVersion::PARQUET_1_0,
        500,
    );
    assert_same(&nulls, 300);
    let mixed = batch(&mut random, 4_000, 1, 10);
    let properties = WriterProperties::builder()
        .set_dictionary_page_size_limit(4_096)
        .set_data_page_row_count_limit(200)
        .set_write_batch_size(100)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), mixed.schema(), Some(properties)).unwrap();
    writer.write(&mixed).unwrap();
    let coded = assert_same(&writer.into_inner().unwrap().into(), 300);
    assert!(coded < 9, "dictionaries of 4 KiB overflow");
}

#[test]
fn damaged_pages_are_refused_or_read_without_panics() {
    for nulls in [0, 10] {
        let refused = refused_of_damaged(nulls);
        assert!(refused > 0, "some damage shows");
    }
}

/// How often a damaged file is refused, whose values are null in `nulls` of a hundred rows.
fn refused_of_damaged(nulls: usize) -> usize {
    let mut random = Random::new(9);
    let batch = batch(&mut random, 50, 4, nulls);
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    let pages = bytes.len() * 9 / 10;
    let mut values = (0..ROWS).filter_map(|row| int(&batch, "i32", row));
    let some = values.next().unwrap();
    let equal = Predicate::compare(&DataType::Int32, Comparison::Equal, &some.into());
    let text = Predicate::compare(&DataType::Utf8, Comparison::Equal, &"text 7".into());
    let tests = [
        ("i32", Arc::new(equal.unwrap())),
        ("text", Arc::new(text.unwrap())),
    ];
    let mut refused = 0;
    for _ in 0..2_000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + random.below(3) {
            let at = 4 + random.below(pages - 4);
            damaged[at] = random.bits() as u8;
        }
        let damaged = damaged.into();
        let mut found = vec![read(&damaged, 700).map(|(found, _)| (found, 0))];
        let newest = Failing::Newest("time".to_owned());
        for test in tests.chunks(1) {
            let passing = |failing| read_passing(&damaged, (test, failing), 700);
            found.extend([passing(&Failing::Time), passing(&newest)]);
        }
        for found in found {
            match found {
                Ok((found, left_out)) => assert_eq!(
                    found.iter().map(RecordBatch::num_rows).sum::<usize>() + left_out as usize,
                    ROWS,
                    "no row is lost in silence"
                ),
                Err(_) => refused += 1,
            }
        }
    }
    refused
}

#[test]
fn columns_that_are_not_read_are_not_decoded() {
    let numbers = |factor: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(
            (0..5_000).map(|n| n * factor % 977),
        ))
    };
    let batch = RecordBatch::try_from_iter([("a", numbers(7)), ("b", numbers(11))]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let mut bytes = writer.into_inner().unwrap();
    let whole = ParquetSource::from_bytes(bytes.clone().into(), &SourceOptions::default());
    let metadata = whole.unwrap().wanted.metadata.metadata().clone();
    let (start, length) = metadata.row_group(0).column(1).byte_range();
    bytes[start as usize..(start + length) as usize].fill(0xff);
    let read = |columns: Option<Vec<String>>| {
        let options = SourceOptions {
            columns,
            ..SourceOptions::default()
        };
        ParquetSource::from_bytes(bytes.clone().into(), &options)?.next()
    };
    let found = read(Some(vec!["a".to_owned()])).unwrap().unwrap();
    let wanted = batch.column(0).as_primitive::<Int64Type>().values();
    assert_eq!(found.column(0).as_primitive::<Int64Type>().values(), wanted);
    assert!(read(None).is_err(), "the other column is broken");
}

/// Ten row groups of ascending numbers, some null, beside constants.
fn sorted_file(folder: &Path) -> std::path::PathBuf {
    let numbers = (0..10_000_i64).map(|n| (n % 97 != 0).then_some(n));
    let a: ArrayRef = Arc::new(Int64Array::from_iter(numbers));
    let b: ArrayRef = Arc::new(UInt32Array::from_iter_values(
        (0..10_000).map(|n| u32::MAX - n),
    ));
    let batch =
        RecordBatch::try_from_iter_with_nullable([("a", a, true), ("b", b, false)]).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1_000))
        .build();
    let path = folder.join("sorted.parquet");
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn groups_that_no_row_passes_in_are_left_out_where_time_does_not_matter() {
    use crate::aggregate::count;
    use crate::expression::{col, lit};
    use crate::stream::Stream;
    use crate::window::tumble;
    use std::time::Duration;

    let folder = tempfile::tempdir().unwrap();
    let path = sorted_file(folder.path());
    // Rows that are left out, and those of the answer.
    let run = |stream: Stream| {
        let mut running = stream.run().unwrap();
        let mut rows = 0;
        for batch in &mut running {
            rows += batch.unwrap().num_rows();
        }
        assert_eq!(running.metrics().rows, 10_000);
        (running.metrics().left_out_rows, rows)
    };
    let open = || Stream::open(&path, &SourceOptions::default()).unwrap();
    let middle = || col("a").gt_eq(lit(2_500)).and(col("a").lt(lit(4_000)));
    let passing = (2_500..4_000).filter(|n| n % 97 != 0).count();
    assert_eq!(run(open().filter(middle())), (8_000, passing));
    let high = col("b").gt(lit(i64::from(u32::MAX) - 1_000));
    assert_eq!(run(open().filter(high)), (9_000, 1_000));
    assert_eq!(run(open().filter(col("a").lt(lit(-1)))), (10_000, 0));
    let nulls = (0..10_000).filter(|n| n % 97 == 0).count();
    assert_eq!(run(open().filter(col("a").is_null())), (0, nulls));
    let windows = open()
        .event_time(col("b"), Duration::ZERO)
        .filter(middle())
        .window(tumble(Duration::from_secs(1)))
        .aggregate([count().alias("n")]);
    let (left_out, _) = run(windows);
    assert!(
        left_out < 8_000,
        "the newest of each group moves the watermark"
    );
}

#[test]
fn columns_under_a_compression_that_is_not_built_in_are_refused_by_name() {
    let batch = batch(&mut Random::new(5), 9, 3, 0);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let metadata = load_metadata(&Bytes::from(bytes)).unwrap();
    let group = metadata.metadata().row_group(0);
    let mut columns = group.columns().to_vec();
    let brotli = Compression::BROTLI(Default::default());
    columns[1] = columns[1]
        .clone()
        .into_builder()
        .set_compression(brotli)
        .build()
        .unwrap();
    let group = group
        .clone()
        .into_builder()
        .set_column_metadata(columns)
        .build()
        .unwrap();
    let metadata = metadata.metadata().as_ref().clone().into_builder();
    let metadata = metadata.set_row_groups(vec![group]).build();
    check_compression(&metadata, &[0, 2, 3]).unwrap();
    let error = check_compression(&metadata, &[0, 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("brotli"), "{error}");
    assert_eq!(
        error.context().column.as_deref(),
        Some(batch.schema().field(1).name().as_str())
    );
}
