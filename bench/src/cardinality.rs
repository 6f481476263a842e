//! Grouping by one column of ten to ten million different values, over a retained range.
//!
//! `--export FOLDER` writes the rows, which `rivals/cardinality.py` gives to other engines.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_columnar::Result;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::sink::{self, SinkOptions};
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
        if let Some(folder) = &options.export {
            export(&folder.join(format!("keys_{keys}.arrow")), &batch)?;
        }
        let kept = retained(Stream::from_batches(batch.schema(), vec![batch]))?;
        for (name, aggregates) in [
            ("count, sum", vec![count(), call("sum", col("w"))]),
            ("mean of floats", vec![call("mean", col("f"))]),
        ] {
            let query = || {
                let stream = Stream::from_retained(&kept).group_by(["k"]);
                answer(stream.aggregate(aggregates.clone()))
            };
            report.note(&totals(&query()?)?);
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

fn export(path: &Path, batch: &RecordBatch) -> Result<()> {
    let mut sink = sink::create(path, &batch.schema(), &SinkOptions::default())?;
    sink.write(batch)?;
    sink.finish()
}

/// Groups of an answer, and the totals of its aggregates.
fn totals(answer: &[RecordBatch]) -> Result<String> {
    let groups: usize = answer.iter().map(RecordBatch::num_rows).sum();
    let mut text = format!("answer: {groups}");
    for column in 1..answer.first().map_or(0, RecordBatch::num_columns) {
        let mut total = 0.0;
        for batch in answer {
            let values = cast(batch.column(column), &DataType::Float64)?;
            total += values
                .as_primitive::<Float64Type>()
                .values()
                .iter()
                .sum::<f64>();
        }
        text += &format!(" {total:.6e}");
    }
    Ok(text)
}
