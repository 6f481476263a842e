//! Partitions of a source, and which of them hold the watermark back.

use std::time::Duration;

use tersecades_columnar::error::{Error, Result};

use crate::runtime::state::{StateReader, StateWriter};
use crate::source::PartitionState;

/// How far one partition has come.
#[derive(Debug, Clone, Copy, Default)]
struct Partition {
    newest: Option<i64>,
    /// Since when it has been asked in vain.
    waiting_since: Option<Duration>,
    idle: bool,
    ended: bool,
}

impl Partition {
    fn holds(&self) -> bool {
        !self.idle && !self.ended
    }
}

/// How far all partitions of a source have come.
#[derive(Debug, Clone)]
pub struct Partitions {
    partitions: Vec<Partition>,
}

impl Partitions {
    /// `count` partitions that have sent nothing.
    pub fn new(count: usize) -> Self {
        Partitions {
            partitions: vec![Partition::default(); count.max(1)],
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.partitions.len()
    }

    /// The newest time of one.
    pub fn newest(&self, index: usize) -> Option<i64> {
        self.partitions[index].newest
    }

    /// Sets the newest time of one.
    pub fn set_newest(&mut self, index: usize, newest: Option<i64>) {
        self.partitions[index].newest = newest;
    }

    /// The newest time of all.
    pub fn newest_of_all(&self) -> Option<i64> {
        let newest = self.partitions.iter().map(|partition| partition.newest);
        newest.max().flatten()
    }

    /// Up to which newest time the others let the partition at `index` move the watermark.
    pub fn ceiling(&self, index: usize) -> i64 {
        let others = self.partitions.iter().enumerate();
        let holding = others.filter(|(other, partition)| *other != index && partition.holds());
        holding
            .map(|(_, partition)| partition.newest.unwrap_or(i64::MIN))
            .min()
            .unwrap_or(i64::MAX)
    }

    /// The newest time that the partitions agree on; that of all where none holds it back.
    pub fn least(&self) -> Option<i64> {
        match self.holder() {
            Some(index) => self.partitions[index].newest,
            None => self.newest_of_all(),
        }
    }

    /// The partition that is furthest behind of those that hold the watermark back.
    pub fn holder(&self) -> Option<usize> {
        let holding = self.partitions.iter().enumerate();
        let holding = holding.filter(|(_, partition)| partition.holds());
        holding
            .min_by_key(|(_, partition)| partition.newest)
            .map(|(index, _)| index)
    }

    /// Whether each of them holds the watermark back.
    pub fn holding(&self) -> impl Iterator<Item = bool> + Clone {
        self.partitions.iter().map(Partition::holds)
    }

    /// Takes in what the source says of a partition; one that waits as long as `timeout` is idle.
    pub fn observe(
        &mut self,
        index: usize,
        state: PartitionState,
        (now, timeout): (Duration, Duration),
    ) {
        let partition = &mut self.partitions[index];
        partition.ended = state == PartitionState::Ended;
        match state {
            PartitionState::Waiting => {
                let since = *partition.waiting_since.get_or_insert(now);
                partition.idle = now.saturating_sub(since) >= timeout;
            }
            _ => {
                partition.waiting_since = None;
                partition.idle = false;
            }
        }
    }

    /// Writes how far they have come.
    pub fn snapshot(&self, out: &mut StateWriter) {
        out.u64(self.partitions.len() as u64);
        for partition in &self.partitions {
            out.u64(u64::from(partition.newest.is_some()));
            out.i64(partition.newest.unwrap_or(0));
            out.u64(u64::from(partition.ended));
        }
    }

    /// Reads what [`Partitions::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the source has another number of partitions.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let count = from.count()?;
        if count != self.partitions.len() {
            let message = format!(
                "the snapshot is of {count} partitions, the source has {}",
                self.partitions.len()
            );
            return Err(Error::corrupt(message).hint("restore with the source it was taken with"));
        }
        for partition in &mut self.partitions {
            let known = from.u64()? != 0;
            let newest = from.i64()?;
            *partition = Partition {
                newest: known.then_some(newest),
                ended: from.u64()? != 0,
                ..Partition::default()
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn seconds(seconds: u64) -> (Duration, Duration) {
        (Duration::from_secs(seconds), TIMEOUT)
    }

    #[test]
    fn a_partition_holds_back_until_it_speaks_or_ends_or_has_been_silent_long() {
        let mut all = Partitions::new(3);
        all.set_newest(0, Some(50));
        all.set_newest(1, Some(20));
        assert_eq!((all.holder(), all.least()), (Some(2), None));
        assert_eq!((all.ceiling(0), all.ceiling(2)), (i64::MIN, 20));
        all.observe(2, PartitionState::Waiting, seconds(100));
        all.observe(2, PartitionState::Waiting, seconds(129));
        assert_eq!(all.holder(), Some(2));
        all.observe(2, PartitionState::Waiting, seconds(130));
        assert_eq!((all.holder(), all.least()), (Some(1), Some(20)));
        all.observe(1, PartitionState::Ended, seconds(130));
        assert_eq!((all.holder(), all.least()), (Some(0), Some(50)));
        all.observe(2, PartitionState::Flowing, seconds(131));
        assert_eq!((all.holder(), all.least()), (Some(2), None));
    }

    #[test]
    fn when_nobody_holds_back_the_newest_of_all_counts() {
        let mut all = Partitions::new(2);
        all.set_newest(0, Some(5));
        all.set_newest(1, Some(9));
        all.observe(0, PartitionState::Ended, seconds(0));
        all.observe(1, PartitionState::Ended, seconds(0));
        assert_eq!((all.holder(), all.least()), (None, Some(9)));
    }
}
