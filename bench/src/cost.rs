//! What the shipped cost table says, measured: nanoseconds to compare one value, by codec.
//!
//! One chunk that stays in the second-level cache, of the kind of column the codec is chosen for.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray, UInt8Array};
use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::codec::Work;
use tersecades_columnar::cost_table::CostTable;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;

use crate::Options;
use crate::chunk::{dense_values, encode};
use crate::data::Random;
use crate::limits::read;
use crate::measure::interleave;
use crate::report::Report;

/// Prints the measured table beside the one that ships.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let words = vec![1u64; options.scaled(1 << 27)];
    let [memory] = interleave(options.repetitions, [&mut || read(&words, 1)]);
    let byte_ns = memory.ns_each((8 * words.len()) as f64);
    report.add("reading a byte", byte_ns, "ns");
    report.add("  shipped", CostTable::DEFAULT.byte_ns, "ns");
    let mut random = Random::new(5);
    let dense: ArrayRef = Arc::new(Int64Array::from(dense_values()[..BATCH_ROWS].to_vec()));
    let mut draw = |odds: u64| i32::from(random.below(odds) == 0);
    let errors = Int32Array::from_iter_values((0..BATCH_ROWS).map(|_| draw(100) * 10_060));
    let runs = Int64Array::from_iter_values((0..BATCH_ROWS as i64).map(|row| row / 32 % 7));
    let names = (0..BATCH_ROWS).map(|_| format!("cluster-{}", random.below(200)));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    // A byte a value, as base_delta reads here: wider lanes pay through their bytes.
    let bytes =
        UInt8Array::from_iter_values(dense_values().iter().take(BATCH_ROWS).map(|v| *v as u8));
    cost(report, "plain", &(Arc::new(bytes) as ArrayRef), 100.into())?;
    cost(
        report,
        "constant",
        &(Arc::new(errors) as ArrayRef),
        10_060.into(),
    )?;
    cost(report, "base_delta", &dense, 100.into())?;
    cost(
        report,
        "run_length",
        &(Arc::new(runs) as ArrayRef),
        3.into(),
    )?;
    cost(report, "dictionary", &text, "cluster-7".into())
}

fn cost(report: &mut Report, codec: &str, array: &ArrayRef, constant: Value) -> Result<()> {
    const PASSES: usize = 20;
    let chunk = encode(array, codec)?;
    let predicate = Predicate::compare(chunk.data_type(), Comparison::Equal, &constant)?;
    let all = Selection::all(chunk.rows());
    let (mut out, mut work) = (Selection::default(), Work::default());
    let [timing] = interleave(
        41,
        [&mut || {
            for _ in 0..PASSES {
                chunk.compare(&predicate, &all, &mut out, &mut work);
                black_box(&out);
            }
        }],
    );
    let ns = timing.ns_each((PASSES * chunk.rows()) as f64);
    report.add(
        format!("comparing a value, {}", chunk.codec_label()),
        ns,
        "ns",
    );
    let costs = CostTable::DEFAULT;
    let bytes = chunk.byte_size() as f64 / chunk.rows() as f64;
    let shipped = costs.scan_ns(chunk.codec().id(), bytes) - costs.byte_ns * bytes;
    report.add("  shipped", shipped, "ns");
    Ok(())
}
