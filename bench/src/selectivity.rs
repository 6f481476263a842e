//! Filter and sum at selectivities from none to all, over a retained range.
//!
//! One column is compared, another is summed where the first passes; encoded by choice and plain.

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

const ROWS: usize = 1 << 24;
/// Values of the compared column are below this.
const VALUES: u64 = 1_000;
/// Shares of the rows that pass, in thousandths.
const PASSING: [i64; 10] = [0, 1, 10, 50, 100, 250, 500, 750, 900, 1_000];

/// Prints the figure.
///
/// # Errors
/// What the engine says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(ROWS);
    let mut random = Random::new(17);
    let mut column = |bound: u64| -> ArrayRef {
        let values = (0..rows).map(|_| random.below(bound) as i64);
        Arc::new(Int64Array::from_iter_values(values))
    };
    let batch = [("v", column(VALUES)), ("w", column(200))];
    let batch = RecordBatch::try_from_iter(batch)?;
    let stream = Stream::from_batches(batch.schema(), vec![batch]);
    let encoded = retained(stream.clone())?;
    let plain = retained(stream.encoding("v", "plain").encoding("w", "plain"))?;
    for passing in PASSING {
        let query = |kept: &Retained| {
            Stream::from_retained(kept)
                .filter(col("v").lt(passing))
                .aggregate([count(), call("sum", col("w"))])
        };
        assert_eq!(answer(query(&encoded))?, answer(query(&plain))?);
        let timings = interleave(
            options.repetitions,
            [&mut || drop(answer(query(&encoded))), &mut || {
                drop(answer(query(&plain)))
            }],
        );
        for ((series, kept), timing) in [("encoded", &encoded), ("plain", &plain)]
            .iter()
            .zip(timings)
        {
            let done = Done {
                amount: rows as f64 / 1e6,
                unit: "M rows/s",
                // Statistics know that nothing passes.
                bytes: if passing > 0 {
                    kept.byte_size() as f64
                } else {
                    0.0
                },
                threads: 1,
            };
            let share = passing as f64 / VALUES as f64;
            report.timed("selectivity", (series, share.into()), &timing, done);
        }
    }
    Ok(())
}
