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

/// Where the key of a row lies in the bytes of its run.
#[derive(Clone, Copy, PartialEq)]
struct KeyAt {
    start: usize,
    len: u32,
}

impl KeyAt {
    /// The key of rows that nothing equals.
    const NONE: KeyAt = KeyAt {
        start: 0,
        len: u32::MAX,
    };
}

/// Rows in order, and their keys.
#[derive(Default)]
struct Run {
    rows: VecDeque<(Place, KeyAt)>,
    keys: Vec<u8>,
}

impl Run {
    fn head(&self) -> Option<Place> {
        self.rows.front().map(|(place, _)| *place)
    }

    /// The key at `at`, whose bytes are put behind those of the others.
    fn keep(keys: &mut Vec<u8>, key: &[u8]) -> KeyAt {
        let start = keys.len();
        keys.extend_from_slice(key);
        let len = key.len() as u32;
        KeyAt { start, len }
    }

    fn key(&self, at: KeyAt) -> Option<&[u8]> {
        (at != KeyAt::NONE).then(|| &self.keys[at.start..][..at.len as usize])
    }

    /// Puts the rows in order.
    fn sort(&mut self) {
        let rows = self.rows.make_contiguous();
        if !rows.is_sorted_by_key(|(place, _)| *place) {
            rows.sort_unstable_by_key(|(place, _)| *place);
        }
    }

    /// Takes in the rows of `other`.
    fn append(&mut self, other: Run) {
        let before = self.keys.len();
        self.keys.extend_from_slice(&other.keys);
        let moved = other.rows.into_iter().map(|(place, mut at)| {
            if at != KeyAt::NONE {
                at.start += before;
            }
            (place, at)
        });
        self.rows.extend(moved);
        self.sort();
    }

    fn byte_size(&self) -> usize {
        self.keys.capacity() + self.rows.capacity() * size_of::<(Place, KeyAt)>()
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
    /// Adds rows, each with its position in a batch of which all keys and the length are given.
    pub(super) fn add(&mut self, rows: Vec<(Place, usize)>, (keyed, batch_rows): (&Keyed, usize)) {
        let mut keys = Vec::new();
        let at = keyed.map(batch_rows, KeyAt::NONE, |key| Run::keep(&mut keys, key));
        let rows = rows.into_iter().map(|(place, index)| (place, at[index]));
        self.add_run(Run {
            rows: rows.collect(),
            keys,
        });
    }

    fn add_run(&mut self, mut run: Run) {
        run.sort();
        let is_small = |run: &Run| run.rows.len() < SMALL_ROWS;
        if is_small(&run)
            && let Some(newest) = self.newest
            && self.others.get(&newest).is_some_and(is_small)
            && let Some(known) = self.others.remove(&newest)
        {
            let added = std::mem::replace(&mut run, known);
            run.append(added);
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
        let ((time, _), at) = self.front.rows.front()?;
        Some((*time, self.front.key(*at)))
    }

    /// Takes the first row; its number.
    pub(super) fn pop(&mut self) -> Option<u64> {
        let ((_, row), _) = self.front.rows.pop_front()?;
        self.settle();
        Some(row)
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
        let mut rows: Vec<(&Place, Option<&[u8]>)> = Vec::new();
        for run in self.runs() {
            rows.extend(run.rows.iter().map(|(place, at)| (place, run.key(*at))));
        }
        rows.sort_unstable_by_key(|(place, _)| **place);
        out.list(rows.into_iter(), |out, (place, key)| {
            write_place(out, place);
            out.key(key);
        });
    }

    /// Reads what [`Waiting::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it.
    pub(super) fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let mut keys = Vec::new();
        let rows = from.list(|from| {
            let place = read_place(from)?;
            let key = from.key()?;
            let at = key.map_or(KeyAt::NONE, |key| Run::keep(&mut keys, &key));
            Ok((place, at))
        })?;
        self.add_run(Run { rows, keys });
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
