//! Kept rows put in order: partition by partition, and by the order in each.
//!
//! ```text
//! rows ──number of the partition──▶ counted ▶ positions of each partition, ascending
//!   └───one number or key a row──▶ each partition sorted that is not in order as it came
//! ```

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_row::Rows;
use tersecades_columnar::error::Result;

use super::frame::Partition;
use crate::operator::row::group::GroupKeys;
use crate::operator::row::keys::SortOrder;
use crate::operator::row::order::Order;
use crate::operator::row::paged::Paged;
use crate::operator::row::threads_for;
use crate::operator::row::word::OrderWords;
use crate::operator::sort::SortKeys;
use crate::runtime::Interrupt;
use crate::runtime::on_thread::together;

/// What tells where kept rows stand.
pub(super) struct Arranged {
    groups: GroupKeys,
    /// The partition of each row, in order of first occurrence.
    group_of: Paged<u32>,
    by: SortKeys,
    order: RowOrder,
    words: OrderWords,
    /// Words of the rows at hand.
    fresh: Vec<u128>,
}

/// Positions of rows, partition by partition, and the partitions that have not been sorted.
pub(super) struct Spread {
    positions: Vec<u32>,
    partitions: std::vec::IntoIter<Range<usize>>,
}

/// Neighbouring partitions of a [`Spread`] that have not been sorted.
pub(super) struct Portion<'s> {
    positions: &'s mut [u32],
    /// Where each partition ends in them.
    ends: Vec<usize>,
}

impl Spread {
    /// The next partitions, in at most so many portions: each has as many of them as it takes for
    /// `rows` rows, or all that are left. They are taken to be sorted.
    pub(super) fn next_portions(&mut self, portions: usize, rows: usize) -> Vec<Portion<'_>> {
        let first = self.partitions.as_slice().first();
        let mut start = first.map_or(0, |range| range.start);
        let mut rest = self.positions.get_mut(start..).unwrap_or_default();
        let mut next = Vec::new();
        while next.len() < portions && !self.partitions.as_slice().is_empty() {
            let mut ends = Vec::new();
            let mut len = 0;
            for range in self.partitions.by_ref() {
                len = range.end - start;
                ends.push(len);
                if len >= rows {
                    break;
                }
            }
            let (positions, others) = rest.split_at_mut(len);
            next.push(Portion { positions, ends });
            (start, rest) = (start + len, others);
        }
        next
    }

    /// Whether all have been sorted.
    pub(super) fn is_empty(&self) -> bool {
        self.partitions.as_slice().is_empty()
    }

    /// Bytes of memory held.
    pub(super) fn byte_size(&self) -> usize {
        self.positions.capacity() * size_of::<u32>()
            + self.partitions.len() * size_of::<Range<usize>>()
    }
}

/// The place of each row in the order.
enum RowOrder {
    /// All rows are equal in it.
    None,
    /// Numbers that say it all.
    Words(Paged<u128>),
    /// Keys.
    Keys(Rows),
}

impl Arranged {
    /// No rows; `orders` are those of the expressions of `by`.
    pub(super) fn new(
        groups: GroupKeys,
        by: SortKeys,
        orders: impl Iterator<Item = SortOrder>,
    ) -> Self {
        let words = OrderWords::new(by.types().cloned().zip(orders));
        let mut arranged = Arranged {
            groups,
            group_of: Paged::default(),
            order: RowOrder::None,
            by,
            words,
            fresh: Vec::new(),
        };
        arranged.clear();
        arranged
    }

    /// Takes in the rows behind those before; `beside` is done as well, all of it at once where so
    /// many threads may.
    ///
    /// # Errors
    /// What evaluating and `beside` say; `LimitExceeded` above 2^32 partitions.
    pub(super) fn push(
        &mut self,
        rows: &RecordBatch,
        threads: usize,
        beside: impl FnOnce() -> Result<()> + Send,
    ) -> Result<()> {
        let (groups, group_of) = (&mut self.groups, &mut self.group_of);
        let number = || -> Result<()> {
            group_of.extend_from_slice(&groups.ids(rows)?);
            Ok(())
        };
        let (order, by) = (&mut self.order, &mut self.by);
        let (made, fresh) = (&self.words, &mut self.fresh);
        let place = || -> Result<()> {
            match order {
                RowOrder::None => {}
                RowOrder::Words(words) => {
                    made.of(&by.columns(rows)?, rows.num_rows(), fresh)?;
                    words.extend_from_slice(fresh);
                }
                RowOrder::Keys(keys) => by.append(rows, keys)?,
            }
            Ok(())
        };
        let threads = threads_for(rows.num_rows(), threads);
        together(
            threads,
            [Box::new(place), Box::new(number), Box::new(beside)],
        )
    }

    /// All rows, partition by partition.
    ///
    /// # Errors
    /// What the interrupt says.
    pub(super) fn spread(&self, interrupt: &Interrupt) -> Result<Spread> {
        let mut counts = vec![0; self.groups.len()];
        for group in self.group_of.iter() {
            counts[*group as usize] += 1;
        }
        let mut next = vec![0; counts.len()];
        let (mut ranges, mut first) = (Vec::with_capacity(counts.len()), 0);
        for group in self.groups.sorted(interrupt)? {
            let end = first + counts[group as usize];
            next[group as usize] = first;
            ranges.push(first..end);
            first = end;
        }
        let mut positions = vec![0; self.group_of.len()];
        let mut pace = interrupt.pace();
        for (row, group) in self.group_of.iter().enumerate() {
            pace.add(1)?;
            let at = &mut next[*group as usize];
            positions[*at] = row as u32;
            *at += 1;
        }
        Ok(Spread {
            positions,
            partitions: ranges.into_iter(),
        })
    }

    /// Positions of the rows of `portion` in order, those that are equal in all as they came; and
    /// its partitions, with the groups of peers in each.
    ///
    /// # Errors
    /// What the interrupt says.
    pub(super) fn sort(
        &self,
        portion: Portion<'_>,
        interrupt: &Interrupt,
    ) -> Result<(Vec<u64>, Vec<Partition>)> {
        let Portion { positions, ends } = portion;
        let mut partitions = Vec::with_capacity(ends.len());
        let (mut numbers, mut first) = (Vec::new(), 0);
        let mut pace = interrupt.pace();
        for end in ends {
            pace.add(end - first)?;
            let of_partition = &mut positions[first..end];
            self.order.sort(of_partition, &mut numbers, interrupt)?;
            let mut start = first;
            let peers = self.order.peers(of_partition).map(|count| {
                start += count;
                start - count..start
            });
            partitions.push(Partition {
                rows: first..end,
                peers: interrupt.collect(peers)?,
            });
            first = end;
        }
        let positions = positions.iter().map(|row| u64::from(*row));
        Ok((positions.collect(), partitions))
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.group_of = Paged::default();
        self.order = match self.words.is_whole() {
            _ if self.by.types().next().is_none() => RowOrder::None,
            true => RowOrder::Words(Paged::default()),
            false => RowOrder::Keys(self.by.empty()),
        };
    }

    /// Bytes of memory held.
    pub(super) fn byte_size(&self) -> usize {
        let order = match &self.order {
            RowOrder::None => 0,
            RowOrder::Words(words) => words.byte_size(),
            RowOrder::Keys(keys) => keys.size(),
        };
        self.groups.byte_size() + self.group_of.byte_size() + order
    }
}

impl RowOrder {
    /// Sorts ascending positions; equal ones stay as they are.
    ///
    /// # Errors
    /// What the interrupt says.
    fn sort(
        &self,
        positions: &mut [u32],
        numbers: &mut Vec<(u128, u32)>,
        interrupt: &Interrupt,
    ) -> Result<()> {
        match self {
            RowOrder::None => {}
            RowOrder::Words(words) => {
                if positions.is_sorted_by_key(|at| words[*at as usize]) {
                    return Ok(());
                }
                numbers.clear();
                numbers.extend(positions.iter().map(|at| (words[*at as usize], *at)));
                interrupt.sort(numbers, &Ord::cmp)?;
                for (at, (_, sorted)) in positions.iter_mut().zip(numbers) {
                    *at = *sorted;
                }
            }
            RowOrder::Keys(keys) => {
                let key = |at: &u32| keys.row(*at as usize);
                if !positions.is_sorted_by(|a, b| key(a) <= key(b)) {
                    Order::new([keys]).unless(interrupt).sort(positions)?;
                }
            }
        }
        Ok(())
    }

    /// How many rows each group of peers has.
    fn peers<'p>(&'p self, sorted: &'p [u32]) -> impl Iterator<Item = usize> + 'p {
        let equal = move |a: &u32, b: &u32| match self {
            RowOrder::None => true,
            RowOrder::Words(words) => words[*a as usize] == words[*b as usize],
            RowOrder::Keys(keys) => keys.row(*a as usize) == keys.row(*b as usize),
        };
        sorted.chunk_by(equal).map(<[u32]>::len)
    }
}
