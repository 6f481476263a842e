//! The first rows of an order are those of all rows, of whatever parts a source leaves out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, TimestampMillisecondArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tersecades_engine::expression::{col, lit};
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::source::SourceOptions;
use tersecades_engine::source::history::HistoryTable;
use tersecades_engine::source::location::open_table;
use tersecades_engine::stream::Stream;
use tersecades_store::{Store, StoreOptions, StoreSchema};
use tersecades_testkit::random::Random;

/// Rows whose times ascend about a line, so that parts of them overlap a little.
fn rows(random: &mut Random, count: usize, with_nulls: bool) -> RecordBatch {
    let times = (0..count).map(|row| (row * 10) as i64 + random.below(50) as i64);
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(
        times.collect::<Vec<_>>(),
    ));
    let fine = (0..count).map(|row| {
        let is_null = with_nulls && random.below(97) == 0;
        (!is_null).then_some((count - row) as i32 / 40)
    });
    let falling: ArrayRef = Arc::new(fine.collect::<Int32Array>());
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count as i64));
    let columns = [("ts", times), ("falling", falling), ("number", numbers)];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Rows that come out, and how many were read.
fn answer(stream: Stream) -> (Vec<String>, u64) {
    let mut run = stream.run().unwrap();
    let mut shown = Vec::new();
    for batch in run.by_ref() {
        let batch = batch.unwrap();
        shown.extend(
            (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1).columns())),
        );
    }
    let metrics = run.metrics();
    (shown, metrics.rows - metrics.left_out_rows)
}

/// The rows of `batch` in a file of small row groups, and in a store of small runs.
fn stored(folder: &std::path::Path, batch: &RecordBatch, kept_from: Option<i64>) -> [Stream; 2] {
    let path = folder.join("rows.parquet");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(500));
    let file = std::fs::File::create(&path).unwrap();
    let mut file = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    file.write(batch).unwrap();
    file.close().unwrap();
    let file = open_table(&path, &SourceOptions::default()).unwrap();
    let schema = StoreSchema::new(&batch.schema()).unwrap();
    let schema = schema.time("ts").unwrap();
    let mut options = StoreOptions {
        buffer_rows: 1_000,
        chunk_rows: 256,
        ..StoreOptions::default()
    };
    if let Some(from) = kept_from {
        options.set("keep_time", &from.to_string()).unwrap();
    }
    let store = Store::create(&folder.join("store"), schema, options).unwrap();
    let mut writer = store.writer().unwrap();
    for start in (0..batch.num_rows()).step_by(700) {
        let part = batch.slice(start, 700.min(batch.num_rows() - start));
        writer.append(&part).unwrap();
    }
    let history = HistoryTable::new(store.snapshot());
    [Stream::from_shared(file), Stream::from_table(history)]
}

#[test]
fn parts_that_cannot_hold_the_first_rows_are_left_out() {
    for seed in 0..6 {
        let random = &mut Random::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let batch = rows(random, 5_000, seed % 2 == 1);
        let sources = stored(folder.path(), &batch, None);
        for source in sources {
            for _ in 0..24 {
                let name = ["ts", "falling"][random.below(2)];
                let order = SortOrder {
                    descending: random.below(2) == 0,
                    nulls_first: random.below(2) == 0,
                };
                let count = [0, 1, 10, 499, 700, 6_000][random.below(6)];
                let offset = [0, 0, 3, 1_000][random.below(4)];
                let by = || [(col(name), order), (col("number"), SortOrder::ASCENDING)];
                let renamed = ["number", name].map(|it| (it.to_owned(), col(it)));
                let first = |stream: Stream| {
                    stream
                        .project(renamed.clone())
                        .top_k(count, by())
                        .limit(6_000, offset)
                };
                let whole = Stream::from_batches(batch.schema(), vec![batch.clone()]);
                let (wanted, _) = answer(first(whole));
                let (found, read) = answer(first(source.clone()));
                assert_eq!(
                    found, wanted,
                    "{seed}: {count} from {offset} by {name} {order:?}"
                );
                let has_nulls = name == "falling" && seed % 2 == 1;
                if count <= 10 && count > 0 && !has_nulls {
                    assert!(read < 3_000, "{read} rows read for {count} by {name}");
                }
            }
        }
    }
}

#[test]
fn rows_that_have_grown_old_are_not_among_the_first() {
    let random = &mut Random::new(7);
    let folder = tempfile::tempdir().unwrap();
    let batch = rows(random, 5_000, false);
    let [_, history] = stored(folder.path(), &batch, Some(12_345));
    let (all, _) = answer(history.clone());
    assert!(all.len() < 5_000, "some rows are gone");
    for name in ["ts", "falling"] {
        for descending in [true, false] {
            let order = SortOrder {
                descending,
                nulls_first: false,
            };
            let by = || [(col(name), order), (col("number"), SortOrder::ASCENDING)];
            let (sorted, _) = answer(history.clone().sort(by()));
            for count in [1, 10, 300, 4_000] {
                let (found, _) = answer(history.clone().top_k(count, by()));
                assert_eq!(
                    found,
                    sorted[..count.min(sorted.len())],
                    "{count} by {name}"
                );
            }
        }
    }
}

#[test]
fn an_order_that_computes_fails_by_any_row() {
    let folder = tempfile::tempdir().unwrap();
    let batch = rows(&mut Random::new(3), 5_000, false);
    let failing = || col("number") + lit(i64::MAX - 4_000);
    for source in stored(folder.path(), &batch, None) {
        let ascending = SortOrder::ASCENDING;
        let by = [(col("ts"), ascending), (failing(), ascending)];
        let mut run = source.clone().top_k(5, by).run().unwrap();
        assert!(run.any(|batch| batch.is_err()), "a later row overflows");
    }
}
