//! Grouping by one column of ten to ten million different values, over a retained range.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_columnar::Result;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Retained;
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
        let batch = [("k", column(keys)), ("w", column(200))];
        let batch = RecordBatch::try_from_iter(batch)?;
        let kept = retained(Stream::from_batches(batch.schema(), vec![batch]))?;
        let query = |kept: &Retained| {
            let stream = Stream::from_retained(kept).group_by(["k"]);
            stream.aggregate([count(), call("sum", col("w"))])
        };
        let groups: usize = answer(query(&kept))?
            .iter()
            .map(RecordBatch::num_rows)
            .sum();
        report.note(&format!("{groups} groups"));
        let [timing] = interleave(
            options.repetitions.min(5),
            [&mut || drop(answer(query(&kept)))],
        );
        let done = Done {
            amount: rows as f64 / 1e6,
            unit: "M rows/s",
            bytes: kept.byte_size() as f64,
            threads: 1,
        };
        report.timed("cardinality", ("count, sum", keys.into()), &timing, done);
    }
    Ok(())
}
