//! Rows that come behind the first ones of an order so far are left out of Parquet files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Date64Array, Decimal128Array, Float32Array,
    Float64Array, Int8Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt64Array,
};
use arrow_cast::display::array_value_to_string;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tersecades_engine::expression::{col, lit};
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::runtime::Running;
use tersecades_engine::source::SourceOptions;
use tersecades_engine::source::location::open_table;
use tersecades_engine::stream::Stream;
use tersecades_testkit::random::Random;

const ROWS: usize = 12_000;
const GROUP_ROWS: usize = 400;

const NAMES: [&str; 10] = [
    "large", "small", "unsigned", "float", "single", "text", "code", "day", "date", "wide",
];

/// Columns in no order, with nulls, of the types that sorts go by.
fn rows(random: &mut Random) -> RecordBatch {
    fn some<T>(random: &mut Random, value: impl Fn(&mut Random) -> T) -> Vec<Option<T>> {
        let nulls = *random.pick(&[7, 400, 1_000_000]);
        let one = |_| (!random.one_in(nulls)).then(|| value(random));
        (0..ROWS).map(one).collect()
    }
    let float = |random: &mut Random| match random.below(40) {
        0 => *random.pick(&[f64::NAN, -f64::NAN, f64::INFINITY, -0.0, 0.0]),
        _ => random.between(-500, 500) as f64 / 8.0,
    };
    let large = some(random, |random| random.bits() as i64);
    let small = some(random, |random| random.between(-20, 20) as i8);
    let unsigned = some(random, |random| random.bits());
    let double = some(random, float);
    let single = some(random, |random| float(random) as f32);
    let text = some(random, |random| format!("text {}", random.bits()));
    let code = some(random, |random| format!("code {}", random.below(30)));
    let day = some(random, |random| random.between(-900, 900) as i32);
    let date = some(random, |random| random.between(-900, 900) * 86_400_000);
    let wide = some(random, |random| {
        i128::from(random.bits()) << random.below(60)
    });
    let times = (0..ROWS).map(|row| Some(row as i64 * 1_000 + random.below(5_000) as i64));
    let times: TimestampMicrosecondArray = times.collect();
    let flags = (0..ROWS).map(|_| Some(random.one_in(3)));
    let flags: BooleanArray = flags.collect();
    let numbers = Int64Array::from_iter_values(0..ROWS as i64);
    let columns: [(&str, ArrayRef); 13] = [
        ("large", Arc::new(Int64Array::from(large))),
        ("small", Arc::new(Int8Array::from(small))),
        ("unsigned", Arc::new(UInt64Array::from(unsigned))),
        ("float", Arc::new(Float64Array::from(double))),
        ("single", Arc::new(Float32Array::from(single))),
        ("text", Arc::new(StringArray::from(text))),
        ("code", Arc::new(StringArray::from(code))),
        ("day", Arc::new(Date32Array::from(day))),
        ("date", Arc::new(Date64Array::from(date))),
        ("wide", Arc::new(Decimal128Array::from(wide))),
        ("time", Arc::new(times)),
        ("flag", Arc::new(flags)),
        ("number", Arc::new(numbers)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

fn written(folder: &Path, batch: &RecordBatch) -> Stream {
    let path = folder.join("rows.parquet");
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        // A date in milliseconds is written as one in days.
        .set_coerce_types(true)
        .set_dictionary_page_size_limit(4_096);
    let file = std::fs::File::create(&path).unwrap();
    let mut file = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    file.write(batch).unwrap();
    file.close().unwrap();
    Stream::from_shared(open_table(&path, &SourceOptions::default()).unwrap())
}

/// Rows that come out.
fn rest(run: &mut Running) -> Vec<String> {
    let mut shown = Vec::new();
    for batch in run.by_ref() {
        let batch = batch.unwrap();
        let value = |column: &ArrayRef, row| match column.is_null(row) {
            true => "null".to_owned(),
            false => array_value_to_string(column, row).unwrap(),
        };
        let row = |row| {
            let values = batch.columns().iter().map(|column| value(column, row));
            values.collect::<Vec<_>>().join("|")
        };
        shown.extend((0..batch.num_rows()).map(row));
    }
    shown
}

/// Rows that come out, and how many were read.
fn answer(stream: Stream) -> (Vec<String>, u64) {
    let mut run = stream.run().unwrap();
    let shown = rest(&mut run);
    let metrics = run.metrics();
    assert_eq!(metrics.rows, ROWS as u64);
    (shown, metrics.rows - metrics.left_out_rows)
}

#[test]
fn the_first_rows_are_those_of_all_rows() {
    let mut few = 0;
    for seed in 0..4 {
        let random = &mut Random::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let batch = rows(random);
        let file = written(folder.path(), &batch);
        for name in NAMES.into_iter().chain(["time", "flag"]) {
            for turn in 0..6 {
                let order = SortOrder {
                    descending: random.one_in(2),
                    nulls_first: random.one_in(2),
                };
                let count = *random.pick(&[1, 10, 300]);
                let filtered = random.one_in(3);
                let alone = random.one_in(3);
                let first = |stream: Stream| {
                    let stream = match filtered {
                        true => stream.filter(col("small").gt(lit(0))),
                        false => stream,
                    };
                    let by = [(col(name), order), (col("number"), SortOrder::DESCENDING)];
                    let by = by.into_iter().take(if alone { 1 } else { 2 });
                    stream.top_k(count, by)
                };
                let whole = Stream::from_batches(batch.schema(), vec![batch.clone()]);
                let (wanted, _) = answer(first(whole));
                let threads = 1 + turn % 3;
                let (found, read) = answer(first(file.clone().threads(threads)));
                let what = format!("{seed}: {count} by {name} {order:?}, {threads} threads");
                assert!(found == wanted, "{what}");
                few += usize::from(read < ROWS as u64 / 2);
            }
        }
    }
    assert!(few > 40, "rows were left out {few} times");
}

#[test]
fn what_is_in_order_the_other_way_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let batch = rows(&mut Random::new(9));
    let file = written(folder.path(), &batch);
    let first = |order| file.clone().top_k(5, [(col("number"), order)]);
    let (_, read) = answer(first(SortOrder::ASCENDING));
    assert!(read <= 2 * GROUP_ROWS as u64, "{read} rows read");
    // Each group by itself says which of its rows may be wanted, the first one as well.
    let by = || [(col("float"), SortOrder::DESCENDING)];
    let (_, read) = answer(file.clone().top_k(5, by()));
    assert!(read < GROUP_ROWS as u64, "{read} rows read");
    let filtered = file.clone().filter(col("number").gt(lit(-1)));
    let (_, read) = answer(filtered.top_k(5, by()));
    assert!(read >= GROUP_ROWS as u64, "a filter may leave others");
    let computed = file
        .clone()
        .top_k(5, [(col("small") + 1, SortOrder::ASCENDING)]);
    let (_, read) = answer(computed);
    assert_eq!(read, ROWS as u64, "what computes may fail by any row");
}

#[test]
fn runs_that_are_resumed_give_the_same_rows() {
    let random = &mut Random::new(11);
    let folder = tempfile::tempdir().unwrap();
    let batch = rows(random);
    let file = written(folder.path(), &batch);
    for name in ["large", "float", "text", "time"] {
        let by = [
            (col(name), SortOrder::DESCENDING),
            (col("number"), SortOrder::ASCENDING),
        ];
        let query = file.clone().top_k(20, by);
        let (wanted, _) = answer(query.clone());
        for steps in [1, 2, 5] {
            let mut run = query.clone().run().unwrap();
            for _ in 0..steps {
                run.step().unwrap();
            }
            let snapshot = run.snapshot().unwrap();
            let read = run.rows_read();
            let mut next = query.clone().run().unwrap();
            next.resume(&snapshot).unwrap();
            assert!(
                rest(&mut next) == wanted,
                "{name} after {steps} steps, {read:?} rows"
            );
        }
    }
}
