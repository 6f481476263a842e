//! Summing encoded values, against summing plain 64-bit ones.

use std::hint::black_box;

use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::codec::Work;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::kernels::kernels;
use tersecades_columnar::selection::Selection;

use crate::Options;
use crate::chunk::encoded;
use crate::data::timestamps;
use crate::measure::interleave;
use crate::report::{Bar, Report};

fn sum_plain(values: &[u64]) {
    black_box((kernels().u64.sum_flat)(values));
}

/// Prints the sum from memory.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(1 << 30).next_multiple_of(BATCH_ROWS);
    let plain = vec![vec![3u64; BATCH_ROWS]; rows / BATCH_ROWS / 4];
    let plain_rows = (plain.len() * BATCH_ROWS) as f64;
    let chunks = encoded(timestamps(16 * BATCH_ROWS, 0, 3), rows)?;
    let late = encoded(timestamps(16 * BATCH_ROWS, 5, 3), rows)?;
    let asked = Asked {
        sum: true,
        ..Asked::default()
    };
    let direct = |chunks: &[tersecades_columnar::chunk::Chunk]| {
        let (mut total, mut work) = (Fold::default(), Work::default());
        for chunk in chunks {
            let all = Selection::all(chunk.rows());
            chunk.fold(asked, &all, &mut total, &mut work);
        }
        black_box(total);
    };
    let [wide, encoded, patched] = interleave(
        options.repetitions,
        [
            &mut || plain.iter().for_each(|batch| sum_plain(batch)),
            &mut || direct(&chunks),
            &mut || direct(&late),
        ],
    );
    let plain_rate = wide.rate(plain_rows) / 1e9;
    let direct_rate = encoded.rate(rows as f64) / 1e9;
    let late_rate = patched.rate(rows as f64) / 1e9;
    report.add("plain u64", plain_rate, "G rows/s");
    report.add("direct", direct_rate, "G rows/s");
    report.add("direct, 0.5 % late rows", late_rate, "G rows/s");
    let ratio = direct_rate / plain_rate;
    report.judge("direct / plain u64", ratio, "x", Bar::AtLeast(5.5));
    report.add(
        "direct with late rows / plain u64",
        late_rate / plain_rate,
        "x",
    );
    Ok(())
}
