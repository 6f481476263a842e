//! A scripted life of a store: rows, flushes, merges, a column, closing and opening.

use std::path::Path;
use std::sync::Arc;

use arrow_array::Array as _;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use tersecades_store::fs::FileSystem;
use tersecades_store::{CodecPolicy, Durability, Layout, Scan, Store, StoreOptions, StoreSchema};

use crate::simulated::SimulatedFileSystem;

pub(crate) const ROOT: &str = "store";

pub(crate) fn root() -> &'static Path {
    Path::new(ROOT)
}

pub(crate) fn schema() -> StoreSchema {
    let fields = Schema::new(vec![
        Field::new("k", DataType::Utf8, false),
        Field::new("ts", DataType::Int64, false),
        Field::new("v", DataType::Float64, true),
    ]);
    StoreSchema::new(&fields)
        .unwrap()
        .key(&["k"])
        .unwrap()
        .time("ts")
        .unwrap()
}

pub(crate) fn options(layout: Layout, durability: Durability) -> StoreOptions {
    StoreOptions {
        durability,
        layout,
        buffer_rows: 40,
        level_ratio: 2,
        chunk_rows: 16,
        series_rows: 8,
        // What is chosen does not matter here, and choosing takes long.
        codecs: vec![CodecPolicy::None, CodecPolicy::VarintDelta],
        ..StoreOptions::default()
    }
}

/// Rows `first..first + count`: everything of a row follows from its number, which is its time.
pub(crate) fn rows(first: u64, count: u64) -> RecordBatch {
    let numbers = || first..first + count;
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values(numbers().map(key_of)));
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers().map(|n| n as i64)));
    let values: ArrayRef = Arc::new(Float64Array::from_iter(numbers().map(value_of)));
    RecordBatch::try_from_iter([("k", keys), ("ts", times), ("v", values)]).unwrap()
}

fn key_of(number: u64) -> String {
    format!("key {}", number % 3)
}

fn value_of(number: u64) -> Option<f64> {
    (!number.is_multiple_of(7)).then_some(number as f64 / 4.0)
}

/// Lives the life as far as it goes; how many rows were acknowledged and how many were sent.
pub(crate) fn live(
    files: &SimulatedFileSystem,
    layout: Layout,
    durability: Durability,
) -> (u64, u64) {
    let (mut acknowledged, mut sent) = (0, 0);
    // Errors end a life early; that is what is tested.
    let _ = live_until_error(
        files,
        options(layout, durability),
        &mut acknowledged,
        &mut sent,
    );
    (acknowledged, sent)
}

fn live_until_error(
    files: &SimulatedFileSystem,
    options: StoreOptions,
    acknowledged: &mut u64,
    sent: &mut u64,
) -> tersecades_columnar::Result<()> {
    let files: Arc<dyn FileSystem> = Arc::new(files.clone());
    let store = Store::create_in(Arc::clone(&files), root(), schema(), options)?;
    append(&store, &[7, 1, 30, 5, 50, 3, 20], acknowledged, sent)?;
    store.close()?;
    let store = Store::open_in(Arc::clone(&files), root())?;
    append(&store, &[25, 12], acknowledged, sent)?;
    store.add_column("w", &DataType::Int64)?;
    append(&store, &[10, 33], acknowledged, sent)?;
    store.flush()?;
    append(&store, &[4], acknowledged, sent)?;
    // Not closed: as if the process had been killed.
    drop(store);
    let store = Store::open_in(files, root())?;
    append(&store, &[2], acknowledged, sent)?;
    store.compact()?;
    append(&store, &[9], acknowledged, sent)?;
    store.close()
}

fn append(
    store: &Store,
    counts: &[u64],
    acknowledged: &mut u64,
    sent: &mut u64,
) -> tersecades_columnar::Result<()> {
    let mut writer = store.writer()?;
    for count in counts {
        let batch = rows(*sent, *count);
        *sent += count;
        let end = writer.append(&batch)?;
        assert_eq!(end, *sent, "an acknowledgement counts other rows");
        *acknowledged = end;
    }
    Ok(())
}

/// The numbers of the rows of a store, each of whose rows is as it was sent, sorted.
pub(crate) fn numbers(store: &Store) -> tersecades_columnar::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for found in store.snapshot().scan(&Scan::default())? {
        let batch = found?.to_arrow()?;
        let keys = arrow_cast::cast(&batch.column(0), &DataType::Utf8)?;
        let keys = keys.as_string::<i32>();
        let times = batch.column(1).as_primitive::<Int64Type>();
        let values = batch.column(2).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let number = times.value(row) as u64;
            assert_eq!(keys.value(row), key_of(number));
            let value = (!values.is_null(row)).then(|| values.value(row));
            assert_eq!(value, value_of(number));
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Opens what a crash left; the store holds exactly the first rows, all that were acknowledged.
pub(crate) fn check(files: &SimulatedFileSystem, rows: (u64, u64), what: &str) {
    let files: Arc<dyn FileSystem> = Arc::new(files.clone());
    check_opened(Store::open_in(files, root()), rows, what);
}

/// The same of a store that was opened, or not; how many rows it has.
pub(crate) fn check_opened(
    opened: tersecades_columnar::Result<Store>,
    (acknowledged, sent): (u64, u64),
    what: &str,
) -> u64 {
    let store = match opened {
        Ok(store) => store,
        Err(error) => {
            assert_eq!(acknowledged, 0, "{what}: {error}");
            return 0;
        }
    };
    let found = numbers(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
    let count = found.len() as u64;
    assert!(
        (acknowledged..=sent).contains(&count),
        "{what}: {count} rows, {acknowledged} acknowledged, {sent} sent"
    );
    assert!(found.into_iter().eq(0..count), "{what}: not the first rows");
    // It takes rows again.
    let end = store.writer().unwrap().append(&rows(count, 5)).expect(what);
    assert_eq!(end, count + 5, "{what}");
    assert_eq!(numbers(&store).unwrap().len() as u64, end, "{what}");
    count
}
