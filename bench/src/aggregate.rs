//! Aggregates that look at every value, over retained encoded ranges: all rows, and by group.
//!
//! ```text
//! codec × aggregate → M rows/s of one group, and of 64
//! ```
//! Each codec has values that suit it; `k`, the key of the groups, is a small integer.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_columnar::Result;
use tersecades_engine::aggregate::{arg_min, call, quantile};
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::stream::Stream;

use crate::Options;
use crate::column::Kind;
use crate::data::Random;
use crate::measure::interleave;
use crate::range::{answer, retained};
use crate::report::Report;

const ROWS: usize = 1 << 22;
const GROUPS: u64 = 64;

const SCHEMES: &[(&str, Kind)] = &[
    ("plain", Kind::Small),
    ("constant", Kind::Odd),
    ("run_length", Kind::Runs),
    ("frame_of_reference", Kind::Small),
    ("base_delta", Kind::Small),
    ("base_delta", Kind::Times),
    ("bit_pack", Kind::Small),
    ("number_dictionary", Kind::Small),
    ("sequence", Kind::Steps),
    ("linear", Kind::Times),
    ("dictionary", Kind::Text),
];

/// Aggregates of the column `v`; `middle` is one of its values.
fn aggregates(kind: Kind, middle: Expression) -> Vec<(&'static str, AggregateCall)> {
    let mut calls = vec![
        ("count_distinct", call("count_distinct", col("v"))),
        ("mode", call("mode", col("v"))),
        ("count_if", call("count_if", col("v").lt(middle))),
    ];
    if kind != Kind::Text {
        calls.push(("sum", call("sum", col("v"))));
        calls.push(("max", call("max", col("v"))));
        calls.push(("arg_min", arg_min(col("w"), col("v"))));
        calls.push(("median", quantile(col("v"), 0.5)));
    }
    calls
}

/// Prints the table.
///
/// # Errors
/// What the engine says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(ROWS);
    report.head(&["codec", "kind", "aggregate", "M rows/s", "64 groups"]);
    for (scheme, kind) in SCHEMES {
        let (values, middle) = kind.column(rows);
        let mut random = Random::new(5);
        let mut integers = |bound: u64| -> ArrayRef {
            let values = (0..rows).map(|_| random.below(bound) as i64);
            Arc::new(Int64Array::from_iter_values(values))
        };
        let columns = [
            ("v", values),
            ("w", integers(1_000)),
            ("k", integers(GROUPS)),
        ];
        let batch = RecordBatch::try_from_iter(columns)?;
        let stream = Stream::from_batches(batch.schema(), vec![batch]).encoding("v", *scheme);
        let kept = retained(stream)?;
        for (name, aggregate) in aggregates(*kind, lit(middle)) {
            let query = |keys: &[&str]| {
                let stream = Stream::from_retained(&kept).group_by(keys.iter().copied());
                answer(stream.aggregate([aggregate.clone()]))
            };
            query(&[])?;
            let timings = interleave(
                options.repetitions.min(5),
                [&mut || drop(query(&[])), &mut || drop(query(&["k"]))],
            );
            let [one, many] = timings.map(|timing| timing.rate(rows as f64) / 1e6);
            let cells = [
                (*scheme).to_owned(),
                format!("{kind:?}").to_lowercase(),
                name.to_owned(),
                format!("{one:.0}"),
                format!("{many:.0}"),
            ];
            report.row(&cells, one, "M rows/s");
        }
    }
    Ok(())
}
