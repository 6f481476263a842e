//! The state of a running query as bytes, and back.

use tersecades_columnar::error::{Error, Result};

use super::Running;
use crate::runtime::state::{StateReader, StateWriter};

impl Running {
    /// All state of all operators, to be given to [`Running::restore`] of a fresh run of the same
    /// query whose source goes on where this one stands. Results must have been taken.
    ///
    /// # Errors
    /// `InvalidArgument` when results are waiting, `Unsupported` when the source holds state of its
    /// own; what the workers say.
    pub fn snapshot(&mut self) -> Result<Vec<u8>> {
        self.ingest.check_resumable()?;
        self.flush()?;
        if !self.ready.is_empty() {
            return Err(Error::invalid("results are waiting").hint("take them before a snapshot"));
        }
        let mut out = StateWriter::default();
        let newest = self.watermark.newest();
        out.u64(u64::from(newest.is_some()));
        out.i64(newest.unwrap_or(0));
        out.u64(self.metrics.untimed_rows);
        out.u64(self.rows_before);
        if let Some(aggregate) = &self.stage.aggregate {
            aggregate.snapshot(&mut out);
        }
        for part in &mut self.tails {
            part.snapshot(&mut out)?;
        }
        Ok(out.seal())
    }

    /// Takes over the state of another run, before the first batch.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are damaged or belong to another query.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        if self.metrics.batches > 0 {
            return Err(Error::invalid(
                "a snapshot is restored before the first batch",
            ));
        }
        let mut from = StateReader::open(snapshot)?;
        let known = from.u64()? != 0;
        let newest = from.i64()?;
        self.watermark.resume(known.then_some(newest));
        self.metrics.untimed_rows = from.u64()?;
        self.rows_before = from.u64()?;
        if let Some(aggregate) = &mut self.stage.aggregate {
            aggregate.restore(&mut from)?;
        }
        self.tails
            .iter_mut()
            .try_for_each(|tail| tail.restore(&mut from))
    }
}
