//! The state of a running query as bytes, and back.

use tersecades_columnar::error::{Error, Result};

use super::Running;
use crate::operator::window_aggregate::WindowAggregate;
use crate::plan::Step;
use crate::runtime::part::Part;
use crate::runtime::state::{StateReader, StateWriter, read_arrow, write_arrow};
use crate::window::Windowing;

impl Running {
    /// All state of all operators, to be given to [`Running::restore`] of a fresh run of the same
    /// query. Results that wait to be taken are part of it: the fresh run gives them too.
    ///
    /// The fresh run's source must go on where this one stands, behind [`Running::rows_read`] rows.
    /// The inputs of joins, unions and merges are opened anew by the run itself: from their first
    /// rows, of which those that were read are passed over. Columns, steps and tables that are
    /// looked up are compared; the rows of inputs and what functions of the user do cannot be.
    ///
    /// A run that follows a store finds its place itself. What was in the store when it began is
    /// read to its end first, and what comes out waits to be taken.
    ///
    /// # Errors
    /// `InvalidArgument` at the end of a stream whose totals were given; `Unsupported` for inputs
    /// that cannot be read again; what the workers say; the error of a run that has failed.
    pub fn snapshot(&mut self) -> Result<Vec<u8>> {
        self.read_history()?;
        self.settle()?;
        let is_whole =
            |aggregate: &WindowAggregate| matches!(aggregate.plan().window, Windowing::Global);
        if self.finished && self.aggregates().any(is_whole) {
            return Err(Error::invalid(
                "the totals of the whole stream have been given, and forgotten",
            )
            .hint("take a snapshot before the end of the stream"));
        }
        let mut out = StateWriter::default();
        self.write_state(false, &mut out)?;
        Ok(out.seal())
    }

    /// Takes over the state of another run, before the first batch.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are damaged or belong to another query.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        self.take_over(snapshot)?;
        self.ingest.pass_over(false)
    }

    /// As [`Running::restore`], of a run whose source gives its rows from the first one again:
    /// those that the other run has read are passed over, of each partition by itself. So do the
    /// inputs of joins, unions and merges either way.
    ///
    /// # Errors
    /// As [`Running::restore`]; `Unsupported` for a source of encoded batches. A source with fewer
    /// rows than were read is told at its end.
    pub fn resume(&mut self, snapshot: &[u8]) -> Result<()> {
        self.take_over(snapshot)?;
        self.ingest.pass_over(true)
    }

    /// Rows of the stream that were read so far, those of earlier runs included, so that a run
    /// that is restored goes on behind them. `None` where the query reads several streams, which it
    /// opens anew itself, or rows that lie encoded.
    pub fn rows_read(&self) -> Option<u64> {
        self.ingest.rows_read()
    }

    /// Whether a source gives again what was read before a restore.
    ///
    /// # Errors
    /// `Unsupported` for a source of encoded batches.
    pub(crate) fn pass_over(&mut self, is_given_again: bool) -> Result<()> {
        self.ingest.pass_over(is_given_again)
    }

    fn take_over(&mut self, snapshot: &[u8]) -> Result<()> {
        self.check_fresh()?;
        self.read_state(false, &mut StateReader::open(snapshot)?)
    }

    /// Writes the state of a run that is an input of another.
    ///
    /// # Errors
    /// As [`Running::snapshot`].
    pub(crate) fn snapshot_input(&mut self, out: &mut StateWriter) -> Result<()> {
        self.read_history()?;
        self.settle()?;
        out.bool(self.finished);
        self.write_state(true, out)
    }

    /// Reads what [`Running::snapshot_input`] wrote.
    ///
    /// # Errors
    /// As [`Running::restore`].
    pub(crate) fn restore_input(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.finished = from.bool()?;
        self.read_state(true, from)
    }

    /// Writes the state of one of several runs over one stream, without where that stands.
    ///
    /// # Errors
    /// As [`Running::snapshot`].
    pub(crate) fn snapshot_member(&mut self, out: &mut StateWriter) -> Result<()> {
        self.settle()?;
        out.bool(self.finished);
        out.sign(&self.identity());
        self.write_operators(out)
    }

    /// Reads what [`Running::snapshot_member`] wrote.
    ///
    /// # Errors
    /// As [`Running::restore`].
    pub(crate) fn restore_member(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.check_fresh()?;
        self.finished = from.bool()?;
        from.check(&self.identity())?;
        self.read_operators(from)
    }

    /// What is asked, and a checksum of each table that is looked up.
    fn identity(&self) -> String {
        let later = self.tails.iter().filter_map(|part| match part {
            Part::Stage(tail) => Some(&tail.plan),
            Part::Rows(..) => None,
        });
        let plans = std::iter::once(&self.plan).chain(later);
        let tables = plans
            .flat_map(|plan| &plan.steps)
            .filter_map(|step| match step {
                Step::LookupJoin { table, .. } => Some(format!("table {:08x}\n", table.checksum())),
                _ => None,
            });
        std::iter::once(self.query.clone()).chain(tables).collect()
    }

    /// Takes in the rows of which no later run knows which were read.
    fn read_history(&mut self) -> Result<()> {
        while self.ingest.reads_history() && self.take_step()? {}
        Ok(())
    }

    /// Takes over what workers hold, and what is left where the end of the stream was read.
    fn settle(&mut self) -> Result<()> {
        self.flush()?;
        while self.is_finishing() && self.take_step()? {}
        Ok(())
    }

    fn write_state(&mut self, is_input: bool, out: &mut StateWriter) -> Result<()> {
        out.sign(&self.identity());
        self.ingest.snapshot(is_input, out)?;
        self.write_operators(out)
    }

    fn write_operators(&mut self, out: &mut StateWriter) -> Result<()> {
        write_arrow(self.ready.iter(), out)?;
        self.watermark.snapshot(out);
        out.u64(self.metrics.untimed_rows);
        out.u64(self.rows_before);
        if let Some(aggregate) = &self.stage.aggregate {
            aggregate.snapshot(out)?;
        }
        self.tails
            .iter_mut()
            .try_for_each(|part| part.snapshot(out))
    }

    fn read_state(&mut self, is_input: bool, from: &mut StateReader<'_>) -> Result<()> {
        from.check(&self.identity())?;
        if let Some(reached) = &self.reached {
            // Rows that were read are counted from the first one, left out or not.
            reached.close();
        }
        self.ingest.restore(is_input, from)?;
        self.read_operators(from)
    }

    fn check_fresh(&self) -> Result<()> {
        match self.metrics.batches {
            0 => Ok(()),
            _ => Err(Error::invalid(
                "a snapshot is restored before the first batch",
            )),
        }
    }

    fn read_operators(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.end_by_pane()?;
        self.ready = read_arrow(from)?;
        self.watermark.restore(from)?;
        self.metrics.untimed_rows = from.u64()?;
        self.rows_before = from.u64()?;
        if let Some(aggregate) = &mut self.stage.aggregate {
            aggregate.restore(from)?;
        }
        self.tails
            .iter_mut()
            .try_for_each(|tail| tail.restore(from))
    }
}
