//! Generated streams, row by row of each kind: what a demo or a test waits for at most.

use std::hint::black_box;

use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_engine::source::generator::{GENERATORS, GeneratorKind, SEED_DEFAULT};

use crate::Options;
use crate::measure::interleave;
use crate::report::{Bar, Report};

/// Prints how fast every kind of stream is made, on one thread, with its default parameters.
///
/// # Errors
/// What a generator says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(1 << 23) as u64;
    for kind in GENERATORS {
        let mut failed = Ok(());
        let mut run = || {
            if let Err(error) = generate(kind, rows) {
                failed = Err(error);
            }
        };
        let [timing] = interleave(options.repetitions, [&mut run]);
        failed?;
        let rate = timing.rate(rows as f64) / 1e6;
        match kind.name {
            "pingmesh" => report.judge(kind.name, rate, "M rows/s", Bar::AtLeast(5.0)),
            _ => report.add(kind.name, rate, "M rows/s"),
        }
    }
    Ok(())
}

fn generate(kind: &GeneratorKind, rows: u64) -> Result<()> {
    let mut stream = kind.start(rows, SEED_DEFAULT, &[])?;
    while let Some(batch) = stream.next_batch(BATCH_ROWS)? {
        black_box(batch);
    }
    Ok(())
}
