//! Encoding and decoding lossy columns, in bytes of plain values a second.
//!
//! `rivals/lossy.py` does the same with the reference library, on the same chunks.

use std::hint::black_box;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::values::Values;
use tersecades_engine::expression::col;

use crate::measure::interleave;
use crate::report::{Done, Report};

use super::kind::Kind;

/// Times every column of 64-bit floats without nulls that goes through `zfp`.
pub(super) fn run(kind: &Kind, repetitions: usize, report: &mut Report) -> Result<()> {
    let columns = kind.schemes.iter().map(|(name, _)| (name, col(name)));
    let running = kind.stream.clone().project(columns).run()?;
    let batches = running.collect::<Result<Vec<RecordBatch>>>()?;
    let Some(first) = batches.first() else {
        return Ok(());
    };
    let rows = concat_batches(&first.schema(), &batches)?;
    for (column, (name, scheme)) in rows.columns().iter().zip(&kind.schemes) {
        let is_zfp = scheme.starts_with("zfp");
        if is_zfp && *column.data_type() == DataType::Float64 && column.null_count() == 0 {
            let place = format!("{} {name}, {scheme}", kind.name);
            measure(column, scheme, &place, repetitions, report)?;
        }
    }
    Ok(())
}

fn measure(
    column: &ArrayRef,
    scheme: &str,
    place: &str,
    repetitions: usize,
    report: &mut Report,
) -> Result<()> {
    let starts = (0..column.len()).step_by(BATCH_ROWS);
    let parts: Vec<ArrayRef> = starts
        .map(|start| column.slice(start, BATCH_ROWS.min(column.len() - start)))
        .collect();
    let mut encoder = ColumnEncoder::new(column.data_type())?;
    encoder.require(scheme.parse::<Scheme>()?)?;
    let mut chunks: Vec<Chunk> = Vec::new();
    for part in &parts {
        chunks.push(encoder.encode_new(part)?);
    }
    let (mut reused, mut failed) = (Chunk::default(), Ok(()));
    let (mut values, mut work) = (Values::default(), Work::default());
    let [encode, decode] = interleave(
        repetitions,
        [
            &mut || {
                for part in &parts {
                    let encoded = encoder.encode(part, &mut reused);
                    failed = std::mem::replace(&mut failed, Ok(())).and(encoded);
                }
            },
            &mut || {
                for chunk in &chunks {
                    chunk.gather(&Selection::all(chunk.rows()), &mut values, &mut work);
                    black_box(&values);
                }
            },
        ],
    );
    failed?;
    for (series, timing) in [("encode", &encode), ("decode", &decode)] {
        let done = Done {
            amount: 8.0 * column.len() as f64 / 1e6,
            unit: "MB/s",
            bytes: 0.0,
            threads: 1,
        };
        report.timed("zfp_speed", (series, place.into()), timing, done);
    }
    Ok(())
}
