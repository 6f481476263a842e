//! Rows that fail and are left out, but for the newest where they move the watermark.

use std::time::Duration;

use crate::aggregate::{call, count};
use crate::expression::col;
use crate::stream::Stream;
use crate::window::{hop, tumble};

use super::*;

/// Tests that few rows of `batch` pass, and whether a row does.
fn tests_of(batch: &RecordBatch) -> [(&'static str, Arc<Predicate>); 2] {
    let some = |name: &str| {
        let mut values = (0..ROWS).filter_map(|row| int(batch, name, row));
        values.next().unwrap()
    };
    let equal = Predicate::compare(&DataType::Int32, Comparison::Equal, &some("i32").into());
    let other = Predicate::compare(&DataType::Int64, Comparison::NotEqual, &some("i64").into());
    [
        ("i32", Arc::new(equal.unwrap())),
        ("i64", Arc::new(other.unwrap())),
    ]
}

/// Rows of `batch` that pass `tests`, each with the newest time of the rows before it and its own
/// columns; and the newest time of all.
fn seen(
    batches: &[RecordBatch],
    tests: &[(&str, Arc<Predicate>)],
) -> (Vec<(Option<i64>, RecordBatch)>, Option<i64>) {
    let (mut newest, mut seen) = (None, Vec::new());
    for batch in batches {
        for row in 0..batch.num_rows() {
            let passes = |(name, test): &(&str, Arc<Predicate>)| {
                let data_type = batch.column_by_name(name).unwrap().data_type().clone();
                let physical = tersecades_columnar::types::Physical::of(&data_type).unwrap();
                let value = int(batch, name, row).map(i128::from);
                let key = value.and_then(|value| physical.key_of(value));
                let Predicate::Keys(ranges) = &**test else {
                    panic!("a test of keys");
                };
                let inside = |key: u64| ranges.iter().any(|it| it.low <= key && key <= it.high);
                key.is_some_and(inside)
            };
            if tests.iter().all(passes) {
                seen.push((newest, batch.slice(row, 1)));
            }
            newest = newest.max(int(batch, "time", row));
        }
    }
    (seen, newest)
}

#[test]
fn rows_that_pass_and_the_newest_before_them_are_given() {
    let mut random = Random::new(11);
    let (mut left_out_rows, mut cases) = (0, 0);
    for (distinct, run, nulls, plain_time) in [
        (40, 1, 0, false),
        (300, 30, 0, false),
        (60, 3, 20, false),
        (2_000, 1, 1, false),
        (900, 2, 0, true),
    ] {
        let batch = batch(&mut random, distinct, run, nulls);
        let tests = tests_of(&batch);
        let properties = WriterProperties::builder()
            .set_data_page_row_count_limit(700)
            .set_write_batch_size(100)
            .set_max_row_group_row_count(Some(3_000))
            .set_column_dictionary_enabled("time".into(), !plain_time)
            .build();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let bytes: Bytes = writer.into_inner().unwrap().into();
        for batch_rows in [64, 900, 65_536] {
            let (whole, _) = read(&bytes, batch_rows).unwrap();
            let expected = seen(&whole, &tests);
            for failing in [Failing::Newest("time".to_owned()), Failing::Nothing] {
                let (found, left_out) =
                    read_passing(&bytes, (&tests, &failing), batch_rows).unwrap();
                let rows: usize = found.iter().map(RecordBatch::num_rows).sum();
                assert_eq!(rows as u64 + left_out, ROWS as u64);
                let mut found = seen(&found, &tests);
                if failing == Failing::Nothing {
                    found.1 = expected.1;
                    let pairs = found.0.iter_mut().zip(&expected.0);
                    pairs.for_each(|(found, expected)| found.0 = expected.0);
                }
                assert!(
                    found == expected,
                    "{distinct} {nulls} {batch_rows} {failing:?}"
                );
                left_out_rows += left_out;
                cases += 1;
            }
        }
    }
    assert!(
        left_out_rows > cases * ROWS as u64 / 2,
        "most rows are left out"
    );
}

/// A file of disordered times, of which few rows have `failed`; so late that some rows are dropped.
fn disordered_file(folder: &Path, plain_time: bool) -> std::path::PathBuf {
    let mut random = Random::new(12);
    let rows = 0..60_000_i64;
    let late = |random: &mut Random| match random.below(50) {
        0 => random.below(9_000) as i64,
        _ => random.below(30) as i64,
    };
    let times = rows.clone().map(|n| n / 2 - late(&mut random));
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(times));
    let failed = rows.clone().map(|_| i32::from(random.below(20) == 0));
    let failed: ArrayRef = Arc::new(Int32Array::from_iter_values(failed));
    let hosts = rows.map(|_| format!("host {}", random.below(9)));
    let hosts: ArrayRef = Arc::new(StringArray::from_iter_values(hosts));
    let columns = [("time", times), ("failed", failed), ("host", hosts)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_column_dictionary_enabled("time".into(), !plain_time)
        .set_max_row_group_row_count(Some(25_000))
        .build();
    let path = folder.join(format!("disordered_{plain_time}.parquet"));
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn windows_and_late_rows_are_those_of_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let failed = || col("failed").not_eq(0);
    let host = || col("host").eq("host 3");
    let filters = [
        failed(),
        host(),
        failed().and(host()),
        failed().and(col("host").not_eq("host 3")),
    ];
    for plain_time in [false, true] {
        let path = disordered_file(folder.path(), plain_time);
        let windows = [
            tumble(Duration::from_secs(1)),
            hop(Duration::from_secs(3), Duration::from_secs(1)),
        ];
        let cases = windows
            .into_iter()
            .flat_map(|window| filters.iter().map(move |filter| (window, filter)));
        for (window, filter) in cases {
            let results = |future_limit: Option<Duration>| {
                let mut stream = Stream::open(&path, &SourceOptions::default())
                    .unwrap()
                    .event_time(col("time"), Duration::from_millis(20));
                if let Some(limit) = future_limit {
                    stream = stream.future_limit(limit);
                }
                let mut running = stream
                    .filter(filter.clone())
                    .window(window)
                    .group_by(["host"])
                    .aggregate([count(), call("max", col("time"))])
                    .run()
                    .unwrap();
                let results: Vec<RecordBatch> = (&mut running).map(Result::unwrap).collect();
                (results, running.metrics())
            };
            let (found, metrics) = results(None);
            // What is too far ahead of the clock does not move the watermark: no row is left out.
            let (expected, whole) = results(Some(Duration::from_secs(1 << 40)));
            assert_eq!(found, expected);
            assert_eq!(metrics.late_by_window, whole.late_by_window);
            assert_eq!((metrics.rows, whole.rows), (60_000, 60_000));
            assert_eq!(metrics.late_rows, whole.late_rows);
            assert!(metrics.late_rows > 0 || filter.to_string().contains("host"));
            assert!(metrics.left_out_rows > 40_000 && whole.left_out_rows == 0);
        }
    }
}

#[test]
fn queries_over_files_with_rows_left_out_go_on_behind_any_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = disordered_file(folder.path(), false);
    let start = |batch_rows: usize| {
        let failed = || {
            let stream = Stream::open(&path, &options(batch_rows)).unwrap();
            stream.filter(col("failed").not_eq(0))
        };
        Stream::union([failed(), failed()]).unwrap().run().unwrap()
    };
    let rows =
        |batches: &[RecordBatch]| -> usize { batches.iter().map(RecordBatch::num_rows).sum() };
    let whole: Vec<RecordBatch> = start(4_000).map(Result::unwrap).collect();
    let all = arrow_select::concat::concat_batches(&whole[0].schema(), &whole).unwrap();
    let mut refused = 0;
    for stop in [1, 5, 7, 12, 20] {
        let (mut run, mut found) = (start(4_000), Vec::new());
        for _ in 0..stop {
            run.step().unwrap();
            found.extend(std::iter::from_fn(|| run.take_result()));
        }
        let snapshot = run.snapshot().unwrap();
        assert!(rows(&found) < all.num_rows());
        let mut restored = start(4_000);
        restored.restore(&snapshot).unwrap();
        found.extend(restored.by_ref().map(Result::unwrap));
        let found = arrow_select::concat::concat_batches(&all.schema(), &found).unwrap();
        assert_eq!(found, all, "behind {stop} batches");
        // Where batches are others, which rows were given is known at the end of a row group only.
        let mut other = start(7_001);
        other.restore(&snapshot).unwrap();
        match other.find_map(Result::err) {
            Some(error) => {
                let kind = tersecades_columnar::error::ErrorKind::Corrupt;
                assert_eq!(error.kind(), kind, "{error}");
                refused += 1;
            }
            None => assert_eq!(stop, 7, "25,000 rows are a row group"),
        }
    }
    assert_eq!(refused, 4);
}
