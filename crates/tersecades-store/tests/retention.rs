//! What a store lets go where it keeps so many bytes.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_store::{CodecPolicy, Layout, Scan, Store, StoreOptions, StoreSchema};

const KEPT: u64 = 200_000;
/// Rows of an append, of which a run is written.
const ROWS: i64 = 400;

/// Rows of ten series, in the order of their times.
fn rows(first: i64) -> RecordBatch {
    let column = |of: fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((first..first + ROWS).map(of)))
    };
    let columns = [
        ("k", column(|n| n % 10)),
        ("ts", column(|n| n)),
        ("v", column(|n| n.wrapping_mul(0x1e37_79b9_7f4a_7c15))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Bytes of runs, and how many there are.
fn size(store: &Store) -> (u64, usize) {
    let levels = store.snapshot().stats(false).unwrap().levels;
    let bytes = levels.iter().map(|level| level.bytes).sum();
    (bytes, levels.iter().map(|level| level.runs).sum())
}

fn times(store: &Store) -> Vec<i64> {
    let mut times = Vec::new();
    for found in store.snapshot().scan(&Scan::default()).unwrap() {
        let batch = found.unwrap().to_arrow().unwrap();
        times.extend_from_slice(batch.column(1).as_primitive::<Int64Type>().values());
    }
    times.sort_unstable();
    times
}

#[test]
fn a_small_share_of_the_bytes_goes_at_once_however_runs_merge() {
    for (layout, level_ratio) in [
        (Layout::Tiered, 3),
        (Layout::Tiered, 10),
        (Layout::Leveled, 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let schema = StoreSchema::new(&rows(0).schema()).unwrap();
        let schema = schema.key(&["k"]).unwrap().time("ts").unwrap();
        let options = StoreOptions {
            layout,
            level_ratio,
            keep_bytes: Some(KEPT),
            buffer_rows: ROWS as usize,
            buffer_bytes: 4_000,
            codecs: vec![CodecPolicy::None],
            ..StoreOptions::default()
        };
        let store = Store::create(folder.path(), schema, options).unwrap();
        let mut gone = 0;
        for append in 0..100 {
            let rows = rows(append * ROWS);
            store.writer().unwrap().append(&rows).unwrap();
            if append % 20 == 19 {
                store.compact().unwrap();
            }
            let (bytes, runs) = size(&store);
            let what = format!("{layout}, append {append}: {bytes} bytes, {runs} runs");
            assert!(bytes <= KEPT + KEPT / 8 && runs < 40, "{what}");
            if append % 5 > 0 {
                continue;
            }
            let times = times(&store);
            assert!(times.iter().copied().eq(times[0]..(append + 1) * ROWS));
            if times[0] > 0 {
                gone += 1;
                assert!(bytes > KEPT * 3 / 4, "{what}");
            }
        }
        assert!(gone > 3, "{layout}: {gone}");
    }
}
