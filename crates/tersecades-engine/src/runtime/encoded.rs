//! Batches that are encoded before a run asks for them.

use std::sync::Arc;
use std::time::Duration;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};

use crate::source::PartitionState;

use super::state::{StateReader, StateWriter};

/// Batches that are encoded already, handed out one by one.
pub trait EncodedSource: Send {
    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// `Io` and `Corrupt` for what cannot be read.
    fn next_batch(&mut self) -> Result<Option<Arc<Batch>>>;

    /// How many rows there are in all, where that is known.
    fn rows_hint(&self) -> Option<u64>;

    /// The least event time of the last batch and those to come, where the source knows it and rows
    /// do not come in order; `time` is the column that the event time is, if it is one.
    fn oldest_to_come(&self, _time: Option<&str>) -> Option<i64> {
        None
    }

    /// The batches to come, where all are in memory already.
    fn at_hand(&self) -> Option<Vec<&Batch>> {
        None
    }

    /// Whether rows may come that are not there yet.
    fn goes_on(&self) -> bool {
        false
    }

    /// Whether rows are still to be read that were there when it was opened, in an order that a
    /// later run may not find again: a snapshot reads them first.
    fn reads_history(&self) -> bool {
        false
    }

    /// Writes where a source stands that goes on.
    ///
    /// # Errors
    /// `Unsupported` where it cannot be taken over; what writing says.
    fn snapshot(&mut self, _out: &mut StateWriter) -> Result<()> {
        Err(not_alone())
    }

    /// Goes on where [`EncodedSource::snapshot`] has stood, before the first batch.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit; as [`EncodedSource::snapshot`].
    fn restore(&mut self, _from: &mut StateReader<'_>) -> Result<()> {
        Err(not_alone())
    }

    /// How many partitions there are, each of which is in order by itself.
    fn partitions(&self) -> usize {
        1
    }

    /// The partition of the last batch, from 0.
    fn partition(&self) -> usize {
        0
    }

    /// How a partition stands since the last batch was asked for.
    fn partition_state(&self, _partition: usize) -> PartitionState {
        PartitionState::Flowing
    }

    /// What a partition is called.
    fn partition_name(&self, _partition: usize) -> String {
        "the stream".to_owned()
    }

    /// The time of the clock when the last batch came, where that was earlier than it is given.
    fn came_at(&self) -> Option<Duration> {
        None
    }
}

fn not_alone() -> Error {
    Error::unsupported("no snapshots of queries that share a stream with others")
        .hint("take one of all of them, or run the query by itself")
}

impl EncodedSource for std::vec::IntoIter<Arc<Batch>> {
    fn next_batch(&mut self) -> Result<Option<Arc<Batch>>> {
        Ok(self.next())
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(
            self.as_slice()
                .iter()
                .map(|batch| batch.rows() as u64)
                .sum(),
        )
    }

    fn at_hand(&self) -> Option<Vec<&Batch>> {
        Some(self.as_slice().iter().map(|batch| &**batch).collect())
    }
}
