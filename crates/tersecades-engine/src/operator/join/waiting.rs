//! Left rows of a join by time that wait for their right rows: by time and number, with their keys.
//!
//! ```text
//! batches of rows ──sorted, each by itself──▶ runs, by their first rows
//!                                               └─▶ the run whose row is first, until another's is
//! ```
//! Rows come in any order within the lateness, mostly near where they belong: a batch sorted by
//! itself overlaps few others. The keys of a run lie one after the other; rows that share one share
//! its bytes.

use std::collections::{BTreeMap, VecDeque};

use tersecades_columnar::error::Result;

use super::side::Keyed;
use crate::runtime::state::{StateReader, StateWriter};

/// Runs with fewer rows take in others that are as small.
const SMALL_ROWS: usize = 256;

/// Where a row stands: its time, and its number among the rows of its input.
pub(crate) type Place = (i64, u64);

/// The key of rows that nothing equals.
const NO_KEY: u32 = u32::MAX;

/// A row of a run.
#[derive(Clone, Copy)]
struct Row {
    time: i64,
    /// Its number, from that of the run on.
    offset: u32,
    /// Number of its key among those of the run.
    key: u32,
}

impl Row {
    fn order(&self) -> (i64, u32) {
        (self.time, self.offset)
    }
}

/// Keys, one after the other.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// Adds `key`; its number.
    fn push(&mut self, key: &[u8]) -> u32 {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.ends.len() as u32 - 1
    }

    fn get(&self, number: u32) -> Option<&[u8]> {
        let end = *self.ends.get(number as usize)?;
        let before = (number as usize).checked_sub(1);
        let start = before.map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
}

/// Rows in order, and their keys.
#[derive(Default)]
struct Run {
    /// The number that offsets count from.
    first: u64,
    rows: VecDeque<Row>,
    keys: Keys,
}

impl Run {
    fn place(&self, row: &Row) -> Place {
        (row.time, self.first + u64::from(row.offset))
    }

    fn head(&self) -> Option<Place> {
        self.rows.front().map(|row| self.place(row))
    }

    fn is_small(&self) -> bool {
        self.rows.len() < SMALL_ROWS
    }

    /// Puts the rows in order.
    fn sort(&mut self) {
        let rows = self.rows.make_contiguous();
        if !rows.is_sorted_by_key(Row::order) {
            rows.sort_unstable_by_key(Row::order);
        }
    }

    /// Takes in the rows of `other`, where their numbers allow it; whether they do.
    fn append(&mut self, other: &Run) -> bool {
        let farthest = other.rows.iter().map(|row| row.offset).max().unwrap_or(0);
        let shift = other.first.checked_sub(self.first);
        let Some(shift) = shift.and_then(|shift| u32::try_from(shift).ok()) else {
            return false;
        };
        if shift.checked_add(farthest).is_none() {
            return false;
        }
        for row in &other.rows {
            let key = other.keys.get(row.key).map(|key| self.keys.push(key));
            self.rows.push_back(Row {
                offset: row.offset + shift,
                key: key.unwrap_or(NO_KEY),
                ..*row
            });
        }
        self.sort();
        true
    }

    fn byte_size(&self) -> usize {
        let keys = self.keys.bytes.capacity() + self.keys.ends.capacity() * size_of::<usize>();
        keys + self.rows.capacity() * size_of::<Row>()
    }
}

/// Rows that wait, with their keys.
#[derive(Default)]
pub(super) struct Waiting {
    /// The run whose row is first; empty where no row waits.
    front: Run,
    /// The others, by their first rows.
    others: BTreeMap<Place, Run>,
    /// The first row of the run that came last, if it is among the others.
    newest: Option<Place>,
}

impl Waiting {
    /// Adds the rows of a batch, of which `first` is the number of the first, with these times and
    /// positions in it; `keyed` has the keys of all of its rows.
    pub(super) fn add(
        &mut self,
        (first, batch_rows): (u64, usize),
        rows: Vec<(i64, u32)>,
        keyed: &Keyed,
    ) {
        let mut keys = Keys::default();
        let numbers = keyed.map(batch_rows, NO_KEY, |key| keys.push(key));
        let rows = rows.into_iter().map(|(time, offset)| Row {
            time,
            offset,
            key: numbers[offset as usize],
        });
        let rows: Vec<Row> = rows.collect();
        self.add_run(Run {
            first,
            rows: rows.into(),
            keys,
        });
    }

    fn add_run(&mut self, mut run: Run) {
        run.sort();
        if run.is_small()
            && let Some(newest) = self.newest
            && self.others.get(&newest).is_some_and(Run::is_small)
            && let Some(mut known) = self.others.remove(&newest)
        {
            if known.append(&run) {
                run = known;
            } else {
                self.others.insert(newest, known);
            }
        }
        let Some(head) = run.head() else {
            return;
        };
        self.newest = Some(head);
        self.others.insert(head, run);
        self.settle();
    }

    /// Puts the run in front whose row is first.
    fn settle(&mut self) {
        let Some((first, _)) = self.others.first_key_value() else {
            return;
        };
        let head = self.front.head();
        if head.is_some_and(|head| head < *first) {
            return;
        }
        if let Some((_, run)) = self.others.pop_first() {
            let before = std::mem::replace(&mut self.front, run);
            if let Some(head) = before.head() {
                self.others.insert(head, before);
            }
        }
    }

    /// The time and the key of the first row.
    pub(super) fn first(&self) -> Option<(i64, Option<&[u8]>)> {
        let row = self.front.rows.front()?;
        Some((row.time, self.front.keys.get(row.key)))
    }

    /// Takes the first row; its number.
    pub(super) fn pop(&mut self) -> Option<u64> {
        let row = self.front.rows.pop_front()?;
        let (_, number) = self.front.place(&row);
        self.settle();
        Some(number)
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        std::iter::once(&self.front).chain(self.others.values())
    }

    /// Bytes of memory.
    pub(super) fn byte_size(&self) -> usize {
        self.runs().map(Run::byte_size).sum()
    }

    /// Writes all rows.
    pub(super) fn snapshot(&self, out: &mut StateWriter) {
        let mut rows: Vec<(Place, Option<&[u8]>)> = Vec::new();
        for run in self.runs() {
            let row_of = |row: &Row| (run.place(row), run.keys.get(row.key));
            rows.extend(run.rows.iter().map(row_of));
        }
        rows.sort_unstable_by_key(|(place, _)| *place);
        out.list(rows.into_iter(), |out, (place, key)| {
            write_place(out, &place);
            out.key(key);
        });
    }

    /// Reads what [`Waiting::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it.
    pub(super) fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        // Rows whose numbers are alike but for their lower halves make a run.
        let mut runs: BTreeMap<u64, Run> = BTreeMap::new();
        let () = from.list(|from| {
            let (time, number) = read_place(from)?;
            let key = from.key()?;
            let offset = number as u32;
            let first = number - u64::from(offset);
            let run = runs.entry(first).or_default();
            run.first = first;
            let key = key.map_or(NO_KEY, |key| run.keys.push(&key));
            run.rows.push_back(Row { time, offset, key });
            Ok(())
        })?;
        runs.into_values().for_each(|run| self.add_run(run));
        Ok(())
    }
}

/// Writes the time and number of a row.
pub(crate) fn write_place(out: &mut StateWriter, (time, row): &Place) {
    out.i64(*time);
    out.u64(*row);
}

/// Reads what [`write_place`] wrote.
///
/// # Errors
/// `Corrupt` at the end of the bytes.
pub(crate) fn read_place(from: &mut StateReader<'_>) -> Result<Place> {
    Ok((from.i64()?, from.u64()?))
}

#[cfg(test)]
mod tests;
