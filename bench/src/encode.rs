//! Encoding 64-bit timestamps, against the bandwidth of reading memory.
//!
//! Two targets: one chunk that is reused, as on the way through a query, and chunks that stay, as
//! in a retained range, whose bytes go to memory. Bytes read plus bytes written count.

use std::hint::black_box;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::encoder::ColumnEncoder;

use crate::Options;
use crate::data::{codec, slices, timestamps};
use crate::limits::read;
use crate::measure::interleave;
use crate::report::{Bar, Done, Report};

/// Prints encoding from memory.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(1 << 27).next_multiple_of(BATCH_ROWS);
    let in_order = slices(timestamps(rows, 0, 11), BATCH_ROWS);
    measure(options, report, &in_order, "jitter")?;
    drop(in_order);
    let late = slices(timestamps(rows, 5, 11), BATCH_ROWS);
    measure(options, report, &late, "0.5 % late")
}

/// Reads the values that are to be encoded.
fn read_array(array: &ArrayRef) {
    read(
        array
            .as_primitive::<Int64Type>()
            .values()
            .inner()
            .typed_data(),
        1,
    );
}

fn measure(options: &Options, report: &mut Report, arrays: &[ArrayRef], label: &str) -> Result<()> {
    let rows: usize = arrays.iter().map(|array| array.len()).sum();
    let mut encoder = ColumnEncoder::new(&DataType::Int64)?;
    encoder.pin(codec("base_delta"));
    let mut chunk = Chunk::default();
    let mut kept: Vec<Chunk> = Vec::new();
    for array in arrays {
        kept.push(encoder.encode_new(array)?);
    }
    let written: usize = kept.iter().map(Chunk::byte_size).sum();
    let mut keeping = ColumnEncoder::new(&DataType::Int64)?;
    keeping.pin(codec("base_delta"));
    let mut failed = Ok(());
    let mut failed_too = Ok(());
    let [limit, reused, retained] = interleave(
        options.repetitions,
        [
            &mut || arrays.iter().for_each(read_array),
            &mut || {
                for array in arrays {
                    let encoded = encoder.encode(array, &mut chunk);
                    failed = std::mem::replace(&mut failed, Ok(())).and(encoded);
                    black_box(&chunk);
                }
            },
            &mut || {
                for (array, chunk) in arrays.iter().zip(&mut kept) {
                    let encoded = keeping.encode(array, chunk);
                    failed_too = std::mem::replace(&mut failed_too, Ok(())).and(encoded);
                }
            },
        ],
    );
    failed.and(failed_too)?;
    let bytes = (8 * rows + written) as f64;
    let bandwidth = limit.rate((8 * rows) as f64);
    let per_row = written as f64 / rows as f64;
    report.add(format!("{label}: encoded size"), per_row, "B/row");
    report.add("read bandwidth", bandwidth / 1e9, "GB/s");
    for (target, timing) in [("one chunk reused", reused), ("chunks kept", retained)] {
        let done = Done {
            amount: bytes / 1e9,
            unit: "GB/s",
            bytes,
            threads: 1,
        };
        report.timed("encode", (target, label.into()), &timing, done);
        let ns = timing.ns_each(rows as f64);
        report.add(format!("{label}, {target}: per row"), ns, "ns");
        let name = format!("{label}, {target}: share of read bandwidth");
        report.judge(name, timing.rate(bytes) / bandwidth, "x", Bar::AtLeast(0.7));
    }
    Ok(())
}
