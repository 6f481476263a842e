//! A steady stream allocates nothing: counted by the global allocator, batch by batch.
//!
//! Warm-up meets every group and every size of scratch memory: the counted batches repeat its rows
//! at later times. After it, only a step that hands out a window may allocate.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch};
use arrow_array::{StringArray, UInt32Array};
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::plan::LookupTable;
use tersecades_engine::runtime::{Keep, Running};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;
use tersecades_testkit::counting_allocator::{CountingAllocator, allocations};
use tersecades_testkit::random::Random;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Rows of a batch.
const ROWS: usize = 4_096;
/// Rows of a millisecond of event time, which divide a batch.
const ROWS_PER_MS: i64 = 8;
/// Batches before counting starts, and batches that are counted.
const WARM_UP: usize = 48;
const COUNTED: usize = 48;
/// Clusters, and servers in each.
const CLUSTERS: usize = 8;
const SERVERS: usize = 16;

/// A stream like Pingmesh: near-ordered times, text, addresses, rare errors.
fn batches() -> Vec<RecordBatch> {
    let names: Vec<String> = (0..CLUSTERS)
        .map(|k| format!("az-prod-cluster-{k:04}"))
        .collect();
    let names = Arc::new(StringArray::from(names));
    (0..WARM_UP + COUNTED)
        .map(|index| batch(index, &names))
        .collect()
}

fn batch(index: usize, names: &Arc<StringArray>) -> RecordBatch {
    let mut random = Random::new((index % WARM_UP) as u64);
    let mut column = |value: &mut dyn FnMut(usize, &mut Random) -> i64| {
        (0..ROWS)
            .map(|row| value(index * ROWS + row, &mut random))
            .collect::<Vec<i64>>()
    };
    let times =
        column(&mut |row, random| 1_000 + row as i64 / ROWS_PER_MS - random.below(10) as i64);
    let source = column(&mut |_, random| random.below(CLUSTERS) as i64);
    let target = column(&mut |_, random| random.below(CLUSTERS) as i64);
    let server = column(&mut |_, random| random.below(CLUSTERS * SERVERS) as i64);
    let rtt = column(&mut |_, random| match random.below(40) {
        0 => 3_000_000 + random.below(50_000) as i64,
        _ => 50 + random.below(1_000) as i64,
    });
    let error = column(&mut |_, random| i64::from(random.below(50) == 0) * 10_060);
    let clusters = |codes: &[i64]| -> ArrayRef {
        let codes = Int32Array::from_iter_values(codes.iter().map(|code| *code as i32));
        Arc::new(DictionaryArray::<Int32Type>::new(codes, names.clone()))
    };
    let unsigned = |values: &[i64]| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(
            values.iter().map(|value| *value as u32),
        ))
    };
    let errors = Int32Array::from_iter_values(error.iter().map(|code| *code as i32));
    RecordBatch::try_from_iter([
        ("timestamp", Arc::new(Int64Array::from(times)) as ArrayRef),
        ("src_ip", unsigned(&server)),
        ("src_cluster", clusters(&source)),
        ("dst_cluster", clusters(&target)),
        ("rtt_us", unsigned(&rtt)),
        ("error_code", Arc::new(errors)),
    ])
    .unwrap()
}

/// Servers to the switches above them; some are missing.
fn switches() -> Arc<LookupTable> {
    let known = (0..CLUSTERS * SERVERS).filter(|server| server % 11 != 0);
    let (servers, above): (Vec<u32>, Vec<u32>) = known
        .map(|server| (server as u32, server as u32 / 4))
        .unzip();
    let columns: [(&str, ArrayRef); 2] = [
        ("ip", Arc::new(UInt32Array::from(servers))),
        ("tor_id", Arc::new(UInt32Array::from(above))),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    Arc::new(LookupTable::new("tor", rows))
}

fn encoded(batches: &[RecordBatch]) -> (BatchEncoder, Vec<Arc<Batch>>) {
    let mut encoder = BatchEncoder::new(&batches[0].schema()).unwrap();
    let encoded = batches
        .iter()
        .map(|batch| Arc::new(encoder.encode_new(batch).unwrap()));
    let encoded = encoded.collect();
    (encoder, encoded)
}

fn failures(stream: Stream) -> Stream {
    stream
        .event_time(col("timestamp"), Duration::from_secs(3))
        .filter(col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100)))
}

/// Counts and folds in windows whose first pane holds the whole stream.
fn grouped(stream: Stream, keys: &[&str]) -> Stream {
    stream
        .window(hop(Duration::from_secs(6_000), Duration::from_secs(1_000)))
        .group_by(keys.iter().copied())
        .aggregate([
            count(),
            call("count_if", col("rtt_us").gt_eq(1_000_000)),
            call("sum", col("rtt_us")),
            call("max", col("rtt_us")),
            call("mean", col("rtt_us")),
            call("variance", col("rtt_us")),
            call("stddev", col("rtt_us")),
        ])
}

/// Allocations of each step behind the warm-up that hands out no window.
fn counted(mut running: Running) -> Vec<u64> {
    let mut counts = Vec::with_capacity(COUNTED);
    for index in 0..WARM_UP + COUNTED {
        let before = allocations();
        assert!(running.step().unwrap());
        let count = allocations() - before;
        let windows = std::iter::from_fn(|| running.take_result()).count();
        if index >= WARM_UP && windows == 0 {
            counts.push(count);
        }
    }
    while running.step().unwrap() {}
    let rows: usize = running.map(|batch| batch.unwrap().num_rows()).sum();
    assert!(rows > 0, "the query answers");
    counts
}

fn assert_none(counts: &[u64], batches: usize) {
    assert_eq!(counts.len(), batches);
    assert!(
        counts.iter().all(|count| *count == 0),
        "allocations per batch: {counts:?}"
    );
}

#[test]
fn the_allocator_counts() {
    let before = allocations();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(allocations() - before, 1);
}

#[test]
fn filter_and_grouped_windows_allocate_nothing_per_encoded_batch() {
    let (encoder, batches) = encoded(&batches());
    let stream = failures(Stream::from_encoded(Arc::clone(encoder.schema()), batches));
    let query = grouped(stream, &["src_cluster", "dst_cluster"]);
    assert_none(&counted(query.run().unwrap()), COUNTED);
}

#[test]
fn a_lookup_join_allocates_nothing_per_encoded_batch() {
    let (encoder, batches) = encoded(&batches());
    let stream = failures(Stream::from_encoded(Arc::clone(encoder.schema()), batches));
    let stream = stream.lookup_join(&switches(), ("src_ip", "ip"), &[("tor_id", "src_tor")]);
    let query = grouped(stream, &["src_tor", "dst_cluster"]);
    assert_none(&counted(query.run().unwrap()), COUNTED);
}

#[test]
fn a_stream_that_is_read_once_allocates_nothing_per_batch() {
    let batches = batches();
    let stream = failures(Stream::from_batches(batches[0].schema(), batches));
    // It does not read every column.
    let query = grouped(stream, &["src_cluster", "dst_cluster"]);
    assert_none(&counted(query.run().unwrap()), COUNTED);
}

#[test]
fn encoding_into_a_full_retained_range_allocates_nothing_per_batch() {
    let batches = batches();
    let kept_bytes = 4 * encoded(&batches[..1]).1[0].byte_size();
    let stream = failures(Stream::from_batches(batches[0].schema(), batches));
    let query = grouped(
        stream.keep(Keep::Bytes(kept_bytes)),
        &["src_cluster", "dst_cluster"],
    );
    assert_none(&counted(query.run().unwrap()), COUNTED);
}

#[test]
fn panes_are_reused_when_windows_move_on() {
    let (encoder, batches) = encoded(&batches());
    let stream = failures(Stream::from_encoded(Arc::clone(encoder.schema()), batches));
    let batch_ms = ROWS as u64 / ROWS_PER_MS as u64;
    let [size, slide] = [8, 2].map(|batches| Duration::from_millis(batches * batch_ms));
    let query = stream
        .window(hop(size, slide))
        .group_by(["src_cluster", "dst_cluster"])
        .aggregate([count(), call("sum", col("rtt_us"))]);
    // Every other batch closes a window.
    assert_none(&counted(query.run().unwrap()), COUNTED / 2);
}
