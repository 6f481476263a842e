//! Lossy columns: results are within the bound that their metadata states, and say what else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampSecondArray,
};
use arrow_schema::{DataType, TimeUnit};
use tersecades_engine::aggregate::{call, call_with, count};
use tersecades_engine::error_bound::{ERROR_BOUND, LOSSY_COLUMNS, ROWS_DEPEND_ON};
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::runtime::Keep;
use tersecades_engine::sink::{SinkOptions, Target, find_kind};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;
use tersecades_testkit::random::Random;

const ROWS: i64 = 5_000;

fn readings(seed: u64) -> RecordBatch {
    let mut random = Random::new(seed);
    let times: ArrayRef = Arc::new(TimestampSecondArray::from_iter_values(0..ROWS));
    let mut level = 0.0;
    let load: ArrayRef = Arc::new(Float64Array::from_iter((0..ROWS).map(|_| {
        level += random.between(-1_000, 1_000) as f64 / 777.0;
        (!random.one_in(40)).then_some(level)
    })));
    let host: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..ROWS).map(|row| format!("h{}", row % 3)),
    ));
    RecordBatch::try_from_iter([("timestamp", times), ("load", load), ("host", host)]).unwrap()
}

fn stream(rows: &RecordBatch) -> Stream {
    Stream::from_batches(rows.schema(), vec![rows.clone()])
}

fn statistics(rows: Stream) -> Stream {
    rows.project([
        ("timestamp", col("timestamp")),
        ("host", col("host")),
        ("load", col("load")),
        ("scaled", col("load") * -3.0 + lit(1)),
    ])
    .window(tumble(Duration::from_secs(600)))
    .group_by(["host"])
    .aggregate([
        count().alias("n"),
        call("count", col("load")).alias("present"),
        call("mean", col("load")).alias("mean"),
        call("max", col("scaled")).alias("most"),
        call_with("quantile", col("load"), 0.9).alias("p90"),
        call("stddev", col("load")).alias("spread"),
        call("sum", col("load")).alias("total"),
        call("variance", col("load")).alias("variance"),
    ])
}

fn whole(stream: Stream) -> Vec<RecordBatch> {
    stream.run().unwrap().map(|batch| batch.unwrap()).collect()
}

fn metadata(batch: &RecordBatch, column: &str, key: &str) -> Option<String> {
    let schema = batch.schema();
    let field = schema.field_with_name(column).unwrap();
    field.metadata().get(key).cloned()
}

#[test]
fn results_are_within_the_bound_they_state() {
    for (seed, scheme, bound) in [
        (1, "zfp(0.25)", 0.25),
        (2, "zfp(0.001)", 0.001),
        (3, "fixed_point(0.5)", 0.25),
    ] {
        let rows = readings(seed);
        let exact = whole(statistics(stream(&rows)));
        let lossy = whole(statistics(stream(&rows).encoding("load", scheme)));
        assert_eq!(exact.len(), lossy.len());
        let mut changed = false;
        for (exact, lossy) in exact.iter().zip(&lossy) {
            for (index, field) in lossy.schema().fields().iter().enumerate() {
                let off = metadata(lossy, field.name(), ERROR_BOUND);
                let (a, b) = (exact.column(index), lossy.column(index));
                let Some(off) = off else {
                    assert_eq!(a, b, "{} depends on nothing lossy", field.name());
                    continue;
                };
                assert_eq!(
                    metadata(lossy, field.name(), LOSSY_COLUMNS).as_deref(),
                    Some("load")
                );
                let rows = lossy.column_by_name("n").unwrap();
                let rows = arrow_cast::cast(rows, &DataType::Float64).unwrap();
                let rows = rows.as_primitive::<Float64Type>();
                let sides = (
                    a.as_primitive::<Float64Type>(),
                    b.as_primitive::<Float64Type>(),
                );
                for row in 0..lossy.num_rows() {
                    let apart = (sides.0.value(row) - sides.1.value(row)).abs();
                    changed |= apart > 0.0;
                    let allowed = match off.strip_suffix(" per row") {
                        Some(each) => each.parse::<f64>().unwrap() * rows.value(row),
                        None => off.parse().unwrap_or(f64::INFINITY),
                    };
                    assert!(apart <= allowed * (1.0 + 1e-12), "{} {apart}", field.name());
                }
            }
            assert!(
                lossy.schema().metadata().is_empty(),
                "no row depends on a lossy column"
            );
        }
        assert!(changed, "{scheme} changes something");
        let stated = |column: &str| metadata(&lossy[0], column, ERROR_BOUND);
        assert_eq!(stated("mean"), Some(bound.to_string()));
        assert_eq!(stated("most"), Some((3.0 * bound).to_string()));
        assert_eq!(stated("p90"), Some(bound.to_string()));
        assert_eq!(stated("total"), Some(format!("{bound} per row")));
        assert_eq!(stated("variance"), Some("unknown".to_owned()));
        assert_eq!(
            (stated("n"), stated("present"), stated("host")),
            (None, None, None)
        );
    }
}

#[test]
fn bounds_are_in_schemas_explain_and_tables() {
    let rows = readings(4);
    let lossy = || stream(&rows).encoding("load", "zfp(0.01)");
    let high = lossy()
        .filter(col("load").gt(3.0))
        .aggregate([call("min", col("load")).alias("low")]);
    let schema = high.schema().unwrap();
    assert_eq!(
        schema.metadata().get(ROWS_DEPEND_ON).map(String::as_str),
        Some("load")
    );
    let lines = high.describe().unwrap().join("\n");
    assert!(
        lines.contains("bound low: within 0.01 of exact, by lossy load"),
        "{lines}"
    );
    assert!(
        lines.contains("bound rows: which there are depends on lossy load"),
        "{lines}"
    );
    assert_eq!(high.clone().run().unwrap().schema(), schema);
    let shared = Arc::new(std::sync::Mutex::new(Vec::new()));
    let target = Target::Writer(Box::new(Shared(Arc::clone(&shared))));
    let kind = find_kind("table").unwrap();
    let mut sink = (kind.create)(target, &schema, &SinkOptions::default()).unwrap();
    whole(high)
        .iter()
        .for_each(|batch| sink.write(batch).unwrap());
    sink.finish().unwrap();
    let printed = String::from_utf8(shared.lock().unwrap().clone()).unwrap();
    assert!(printed.ends_with("depends on lossy load\n"), "{printed}");
    let none = stream(&rows).aggregate([call("min", col("load"))]);
    assert!(!none.describe().unwrap().join("\n").contains("bound"));
}

#[test]
fn bounds_reach_through_retained_ranges_joins_and_streams_of_results() {
    let rows = readings(5);
    let mut run = stream(&rows)
        .encoding("load", "zfp(0.5)")
        .keep(Keep::Bytes(usize::MAX))
        .aggregate([count()])
        .run()
        .unwrap();
    while run.step().unwrap() {}
    let kept = Stream::from_retained(run.retained().unwrap());
    let by_host = kept
        .group_by(["host"])
        .aggregate([call("mean", col("load")).alias("mean")]);
    let doubled = by_host
        .as_source()
        .unwrap()
        .project([("host", col("host")), ("twice", col("mean") * 2)]);
    let other = stream(&rows)
        .group_by(["host"])
        .aggregate([count().alias("n")]);
    let on = [("host", "host")];
    let joined = doubled.join(other, JoinKind::Inner, &on, JoinOptions::default());
    let joined = joined.unwrap();
    let batches = whole(joined);
    assert_eq!(
        metadata(&batches[0], "twice", ERROR_BOUND),
        Some("1".to_owned())
    );
    assert_eq!(metadata(&batches[0], "n", ERROR_BOUND), None);
}

#[test]
fn a_column_kept_as_a_class_is_not_lossy_as_well() {
    let rows = stream(&readings(6)).encoding("load", "zfp(5)");
    let asked = rows
        .clone()
        .filter(col("load").gt(2.5))
        .aggregate([count()]);
    let exact = whole(
        stream(&readings(6))
            .filter(col("load").gt(2.5))
            .aggregate([count()]),
    );
    let kept = rows
        .keep_for(Keep::Bytes(usize::MAX), [("high", asked)])
        .unwrap();
    let mut run = kept.aggregate([count()]).run().unwrap();
    while run.step().unwrap() {}
    let answer = whole(run.retained().unwrap().query("high").unwrap());
    assert_eq!(answer, exact);
}

/// A writer that a test looks at afterwards.
struct Shared(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_only_seems_exact_is_said_to_be_unknown() {
    let rows = readings(6);
    let lossy = || stream(&rows).encoding("load", "zfp(0.5)");
    let stated = |stream: Stream, column: &str| {
        let schema = stream.schema().unwrap();
        let field = schema.field_with_name(column).unwrap();
        field.metadata().get(ERROR_BOUND).cloned()
    };
    let unknown = Some("unknown".to_owned());
    // Whether a quotient is null depends on where its divisor is zero.
    let quotient = || lossy().project([("inverse", lit(1) / col("load"))]);
    let counted = quotient().aggregate([call("count", col("inverse")).alias("n")]);
    assert_eq!(stated(counted, "n"), unknown);
    let is_null = quotient().project([("none", col("inverse").is_null())]);
    assert_eq!(stated(is_null, "none"), unknown);
    // What operators on rows add, and what is computed from it.
    let earlier = || lossy().lag("load", 1, ["host"], "earlier");
    assert_eq!(stated(earlier(), "earlier"), unknown);
    assert_eq!(stated(earlier(), "load"), Some("0.5".to_owned()));
    let step = earlier().project([("step", col("load") - col("earlier"))]);
    assert_eq!(stated(step, "step"), unknown);
    let most = earlier().aggregate([call("max", col("earlier")).alias("most")]);
    assert_eq!(stated(most, "most"), unknown);
    // Nothing of it where nothing is lossy.
    let exact = stream(&rows).lag("load", 1, ["host"], "earlier");
    assert_eq!(stated(exact, "earlier"), None);
}

/// The quotient of whole numbers drops its fraction, whichever of them is exact.
#[test]
fn quotients_of_sums_of_whole_numbers_are_within_their_bound() {
    let load: ArrayRef = Arc::new(Float64Array::from_iter(
        (0..400).map(|row| row as f64 / 10.0),
    ));
    let exact: ArrayRef = Arc::new(Int64Array::from_iter_values((0..400).map(|row| row % 4)));
    let rows = RecordBatch::try_from_iter([("load", load), ("n", exact)]).unwrap();
    let quotients = |rows: Stream| {
        let quotient = (col("load").cast(DataType::Int64) + col("n")) / 4;
        let batches = whole(rows.project([("quotient", quotient)]));
        let column = batches[0].column(0).as_primitive::<Int64Type>().clone();
        (column, metadata(&batches[0], "quotient", ERROR_BOUND))
    };
    let (exact, _) = quotients(stream(&rows));
    let (lossy, stated) = quotients(stream(&rows).encoding("load", "fixed_point(1)"));
    let stated: f64 = stated.unwrap().parse().unwrap();
    let pairs = exact.values().iter().zip(lossy.values());
    let apart = pairs.map(|(exact, lossy)| exact.abs_diff(*lossy)).max();
    assert_eq!((apart, stated), (Some(1), 1.375));
}

/// A time that is off puts rows into other windows, and others first.
#[test]
fn results_by_a_lossy_time_say_so() {
    let seconds = Float64Array::from_iter_values((0..ROWS).map(|row| row as f64 / 7.0));
    let values = Float64Array::from_iter_values((0..ROWS).map(|row| row as f64));
    let columns: [(&str, ArrayRef); 2] = [("t", Arc::new(seconds)), ("x", Arc::new(values))];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let windows = |stream: Stream| {
        stream
            .event_time(
                Expression::EpochTime(Box::new(col("t")), TimeUnit::Second),
                Duration::ZERO,
            )
            .window(tumble(Duration::from_secs(60)))
            .aggregate([count().alias("n"), call("first", col("x")).alias("first")])
    };
    let depends = |batch: &RecordBatch| batch.schema().metadata().get(ROWS_DEPEND_ON).cloned();
    let exact = whole(windows(stream(&rows)));
    assert_eq!(depends(&exact[0]), None);
    assert_eq!(metadata(&exact[0], "first", LOSSY_COLUMNS), None);
    let lossy = whole(windows(stream(&rows).encoding("t", "fixed_point(1)")));
    assert_eq!(depends(&lossy[0]).as_deref(), Some("t"));
    assert!(metadata(&lossy[0], "first", LOSSY_COLUMNS).is_some());
    assert_eq!(metadata(&lossy[0], "n", LOSSY_COLUMNS), None);
}
