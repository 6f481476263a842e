//! Bytes that a stream takes when it is kept.

use tersecades_columnar::error::Result;

use crate::runtime::{ColumnMetrics, Keep};
use crate::stream::Stream;

/// Bytes of the columns of a stream.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    /// Rows.
    pub rows: u64,
    /// Bytes and codec of each column.
    pub columns: Vec<ColumnMetrics>,
}

impl Sizes {
    /// Arrow bytes for each encoded byte of the columns that `counts`; 1 where there are none.
    pub fn ratio(&self, counts: impl Fn(&str) -> bool) -> f64 {
        let counted = self.columns.iter().filter(|column| counts(&column.name));
        let (raw, encoded) = counted.fold((0, 0), |(raw, encoded), column| {
            (raw + column.raw_bytes, encoded + column.encoded_bytes)
        });
        match encoded {
            0 => 1.0,
            encoded => raw as f64 / encoded as f64,
        }
    }
}

/// Encodes all of `stream`, which has no steps, as it says, and keeps nothing.
///
/// # Errors
/// What reading and encoding say.
pub fn sizes(stream: Stream) -> Result<Sizes> {
    let mut run = stream.keep(Keep::Bytes(0)).run()?;
    while run.step()? {
        while run.take_result().is_some() {}
    }
    let metrics = run.metrics();
    Ok(Sizes {
        rows: metrics.rows,
        columns: metrics.columns,
    })
}
