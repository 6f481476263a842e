//! Where a source stands, in snapshots, and what is passed over behind them.

use tersecades_columnar::error::{Error, Result};

use super::{Ingest, Origin};
use crate::operator::row::shape::logical_schema;
use crate::runtime::state::{StateReader, StateWriter};

impl Ingest {
    /// Rows of the source that were read since its first, those of an earlier run included; `None`
    /// where there are several sources, or rows that lie encoded.
    pub fn rows_read(&self) -> Option<u64> {
        match &self.origin {
            Origin::Source(source) if source.runs_queries() => source.rows_read(),
            Origin::Source(_) => Some(self.rows_read.iter().sum()),
            Origin::Encoded(..) => None,
        }
    }

    /// What arrives, and what is done with it before the query sees it.
    fn identity(&self) -> String {
        let mut text = match &self.origin {
            Origin::Source(source) => source.identity(),
            Origin::Encoded(..) => String::new(),
        };
        let schema = logical_schema(&self.schema);
        let columns = schema.fields().iter();
        let mut columns: Vec<String> = columns
            .map(|field| format!("\n{:?} {}", field.name(), field.data_type()))
            .collect();
        columns.sort();
        text.extend(columns);
        text
    }

    /// Whether rows of a source that goes on are still to be read that were there before.
    pub fn reads_history(&self) -> bool {
        matches!(&self.origin, Origin::Encoded(batches, _) if batches.reads_history())
    }

    /// Writes where the source stands. What runs queries writes their state, and what goes on where
    /// it does; of any other source that is an input of another query, which opens it anew, the
    /// rows read are counted.
    ///
    /// # Errors
    /// `Unsupported` for inputs that cannot be read again from their first row.
    pub fn snapshot(&mut self, is_input: bool, out: &mut StateWriter) -> Result<()> {
        out.sign(&self.identity());
        match &mut self.origin {
            Origin::Source(source) if source.runs_queries() => source.snapshot(out)?,
            Origin::Source(_) => {}
            Origin::Encoded(batches, _) if batches.goes_on() => batches.snapshot(out)?,
            Origin::Encoded(..) if !is_input => {}
            Origin::Encoded(..) => return Err(not_twice()),
        }
        out.list(self.rows_read.iter(), |out, rows| out.u64(*rows));
        Ok(())
    }

    /// Whether the source gives the rows again that were read before [`Ingest::restore`], so that
    /// they are passed over. A source that runs several queries reads them anew in any case.
    ///
    /// # Errors
    /// `Unsupported` for a source of encoded batches that ends.
    pub fn pass_over(&mut self, is_given_again: bool) -> Result<()> {
        match &mut self.origin {
            Origin::Source(source) if source.runs_queries() => source.pass_over(is_given_again)?,
            Origin::Source(_) if is_given_again => self.rows_to_pass.clone_from(&self.rows_read),
            Origin::Encoded(batches, _) if batches.goes_on() => {}
            Origin::Encoded(..) if is_given_again => {
                let error = Error::unsupported("rows that lie encoded are not passed over");
                return Err(error.hint("restore the run over the rows that were not read"));
            }
            _ => self.rows_to_pass.fill(0),
        }
        Ok(())
    }

    /// Reads what [`Ingest::snapshot`] wrote; rows of an input that were read are passed over where
    /// they come again, which those of a source that runs queries do not: it goes on.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit, what the source says.
    pub fn restore(&mut self, is_input: bool, from: &mut StateReader<'_>) -> Result<()> {
        from.check(&self.identity())?;
        match &mut self.origin {
            Origin::Source(source) if source.runs_queries() => source.restore(from)?,
            Origin::Encoded(batches, _) if batches.goes_on() => batches.restore(from)?,
            _ => {}
        }
        let rows_read: Vec<u64> = from.list(StateReader::u64)?;
        if rows_read.len() != self.rows_read.len() {
            return Err(other_partitions(rows_read.len(), self.rows_read.len()));
        }
        self.rows_read = rows_read;
        let goes_on = matches!(&self.origin, Origin::Source(source) if source.runs_queries());
        if is_input && !goes_on {
            self.rows_to_pass.clone_from(&self.rows_read);
        }
        Ok(())
    }
}

fn other_partitions(taken: usize, given: usize) -> Error {
    Error::corrupt(format!(
        "the snapshot is of a stream of {taken} partitions, this one has {given}"
    ))
    .hint("restore over the partitions that it was taken of")
}

fn not_twice() -> Error {
    Error::unsupported("no snapshots of queries over several streams of which one is retained")
        .hint("read that stream from files, memory or its source")
}
