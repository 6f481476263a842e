//! Grouping by one column of ten to ten million different values, over a retained range.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use tersecades_columnar::Result;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::stream::Stream;

use crate::Options;
use crate::data::Random;
use crate::measure::interleave;
use crate::range::{answer, retained};
use crate::report::{Done, Report};

const ROWS: usize = 10_000_000;
const KEYS: [u64; 7] = [10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Prints the figure.
///
/// # Errors
/// What the engine says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(ROWS);
    for keys in KEYS {
        let mut random = Random::new(keys);
        let mut column = |bound: u64| -> ArrayRef {
            let values = (0..rows).map(|_| random.below(bound) as i64);
            Arc::new(Int64Array::from_iter_values(values))
        };
        let floats = (0..rows).map(|row| (row % 1_000_003) as f64 / 7.0);
        let floats: ArrayRef = Arc::new(Float64Array::from_iter_values(floats));
        let batch = [("k", column(keys)), ("w", column(200)), ("f", floats)];
        let batch = RecordBatch::try_from_iter(batch)?;
        let kept = retained(Stream::from_batches(batch.schema(), vec![batch]))?;
        for (name, aggregates) in [
            ("count, sum", vec![count(), call("sum", col("w"))]),
            ("mean of floats", vec![call("mean", col("f"))]),
        ] {
            let query = || {
                let stream = Stream::from_retained(&kept).group_by(["k"]);
                answer(stream.aggregate(aggregates.clone()))
            };
            let groups: usize = query()?.iter().map(RecordBatch::num_rows).sum();
            report.note(&format!("{groups} groups"));
            let repetitions = options.repetitions.min(5);
            let [timing] = interleave(repetitions, [&mut || drop(query())]);
            let done = Done {
                amount: rows as f64 / 1e6,
                unit: "M rows/s",
                bytes: kept.byte_size() as f64,
                threads: 1,
            };
            report.timed("cardinality", (name, keys.into()), &timing, done);
        }
    }
    Ok(())
}
