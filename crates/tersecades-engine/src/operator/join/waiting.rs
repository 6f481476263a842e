//! Left rows of a join by time that wait for their right rows: by time and number, with their keys.
//!
//! Rows come nearly in order of time, so they queue; the few that come behind later ones stand in a
//! tree beside the queue, and whichever of both is first comes next. The keys of a batch of rows
//! lie one after the other in an arena.

use std::collections::{BTreeMap, VecDeque};

use tersecades_columnar::error::Result;

use super::interval::{read_place, write_place};
use crate::runtime::state::{StateReader, StateWriter};

/// Where a row stands: its time, and its number among the rows of its input.
type Place = (i64, u64);

/// The keys of the rows of a batch.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    /// Rows of the batch that wait.
    rows: usize,
}

/// Where the key of a row lies.
struct KeyAt {
    /// The number of its arena, which begins again behind the greatest.
    arena: u32,
    start: u32,
    /// Its bytes; [`NO_KEY`] where nothing equals it.
    len: u32,
}

/// The length of no key.
const NO_KEY: u32 = u32::MAX;

/// Rows that wait, with their keys.
#[derive(Default)]
pub(super) struct Waiting {
    queue: VecDeque<(Place, KeyAt)>,
    behind: BTreeMap<Place, KeyAt>,
    arenas: VecDeque<Arena>,
    /// The number of the first of `arenas`.
    first_arena: u32,
}

impl Waiting {
    /// Begins a batch, whose rows are [pushed](Waiting::push) next.
    pub(super) fn begin(&mut self) {
        match self.arenas.back_mut().filter(|last| last.rows == 0) {
            Some(last) => last.bytes.clear(),
            None => self.arenas.push_back(Arena::default()),
        }
    }

    /// Adds a row of the batch that was begun last.
    pub(super) fn push(&mut self, place: Place, key: Option<&[u8]>) {
        let bytes = key.unwrap_or_default();
        let room = |arena: &Arena| arena.bytes.len() + bytes.len() < NO_KEY as usize;
        if !self.arenas.back().is_some_and(room) {
            self.begin();
        }
        let number = self.first_arena.wrapping_add(self.arenas.len() as u32 - 1);
        let Some(arena) = self.arenas.back_mut() else {
            return;
        };
        let key = KeyAt {
            arena: number,
            start: arena.bytes.len() as u32,
            len: key.map_or(NO_KEY, |key| key.len() as u32),
        };
        arena.rows += 1;
        arena.bytes.extend_from_slice(bytes);
        match self.queue.back() {
            Some((last, _)) if *last > place => drop(self.behind.insert(place, key)),
            _ => self.queue.push_back((place, key)),
        }
    }

    /// Whether the first row stands in the tree.
    fn is_behind_first(&self) -> bool {
        match (self.behind.first_key_value(), self.queue.front()) {
            (Some((behind, _)), Some((queued, _))) => behind < queued,
            (behind, _) => behind.is_some(),
        }
    }

    /// Where the arena of a key stands among those here.
    fn arena_of(&self, key: &KeyAt) -> usize {
        key.arena.wrapping_sub(self.first_arena) as usize
    }

    fn key(&self, at: &KeyAt) -> Option<&[u8]> {
        let arena = self.arenas.get(self.arena_of(at))?;
        let key = arena.bytes.get(at.start as usize..)?;
        (at.len != NO_KEY).then(|| &key[..at.len as usize])
    }

    /// The time and the key of the first row.
    pub(super) fn first(&self) -> Option<(i64, Option<&[u8]>)> {
        let (place, key) = match self.is_behind_first() {
            true => self.behind.first_key_value()?,
            false => self.queue.front().map(|(place, key)| (place, key))?,
        };
        Some((place.0, self.key(key)))
    }

    /// Takes the first row; its number.
    pub(super) fn pop(&mut self) -> Option<u64> {
        let ((_, row), key) = match self.is_behind_first() {
            true => self.behind.pop_first()?,
            false => self.queue.pop_front()?,
        };
        let at = self.arena_of(&key);
        let arena = self.arenas.get_mut(at);
        arena.into_iter().for_each(|arena| arena.rows -= 1);
        while self.arenas.front().is_some_and(|arena| arena.rows == 0) {
            self.arenas.pop_front();
            self.first_arena = self.first_arena.wrapping_add(1);
        }
        Some(row)
    }

    /// Bytes of memory.
    pub(super) fn byte_size(&self) -> usize {
        let keys: usize = self.arenas.iter().map(|it| it.bytes.capacity()).sum();
        let rows = self.queue.capacity() + self.behind.len();
        keys + rows * size_of::<(Place, KeyAt)>()
    }

    /// Writes all rows.
    pub(super) fn snapshot(&self, out: &mut StateWriter) {
        let queued = self.queue.iter().map(|(place, key)| (place, key));
        let mut rows: Vec<(&Place, &KeyAt)> = queued.chain(&self.behind).collect();
        rows.sort_unstable_by_key(|(place, _)| **place);
        out.list(rows.into_iter(), |out, (place, key)| {
            write_place(out, place);
            out.key(self.key(key));
        });
    }

    /// Reads what [`Waiting::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it.
    pub(super) fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let rows: Vec<(Place, Option<Box<[u8]>>)> =
            from.list(|from| Ok((read_place(from)?, from.key()?)))?;
        if !rows.is_empty() {
            self.begin();
        }
        for (place, key) in rows {
            self.push(place, key.as_deref());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_by_time_and_number_with_their_keys() {
        let (mut waiting, mut model) = (Waiting::default(), BTreeMap::new());
        let (mut state, mut row) = (7u64, 0);
        let mut below = |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        };
        for batch in 0..400 {
            waiting.begin();
            for _ in 0..below(40) {
                let time = batch * 10 + below(30) as i64;
                let key = (below(9) > 0).then(|| format!("key {}", below(50)).into_bytes());
                waiting.push((time, row), key.as_deref());
                model.insert((time, row), key);
                row += 1;
            }
            if batch == 200 {
                let mut out = StateWriter::default();
                waiting.snapshot(&mut out);
                let bytes = out.seal();
                waiting = Waiting::default();
                waiting
                    .restore(&mut StateReader::open(&bytes).unwrap())
                    .unwrap();
            }
            for _ in 0..below(38) {
                let first = model.pop_first();
                let wanted = first
                    .as_ref()
                    .map(|((time, _), key)| (*time, key.as_deref()));
                assert_eq!(waiting.first(), wanted);
                assert_eq!(waiting.pop(), first.map(|((_, row), _)| row));
            }
        }
        while let Some(((time, row), key)) = model.pop_first() {
            assert_eq!(waiting.first(), Some((time, key.as_deref())));
            assert_eq!(waiting.pop(), Some(row));
        }
        assert_eq!(waiting.pop(), None);
        assert!(waiting.arenas.is_empty());
    }
}
