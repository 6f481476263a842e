//! Positions of row keys in ascending order.
//!
//! ```text
//! keys ──bytes that differ, of the next 128──▶ first 12 and the position ──▶ one number, sorted
//!   ▲                                                                             │
//!   └────────────────── runs of equal bytes, where some bytes are left ───────────┘
//! ```
//! Keys are compared whole only in short runs.

use std::cmp::Ordering;
use std::ops::Range;

use arrow_row::Rows;
use tersecades_columnar::error::Result;

use crate::runtime::Interrupt;
use crate::runtime::on_thread::on_threads;

/// Leading bytes of a key that stand in a number before the position of its row.
const DIGITS: usize = 12;

/// Bits of the position.
const POSITION_BITS: u32 = u32::BITS;

/// Bytes that are looked at in one go for those that differ.
const WINDOW: usize = 128;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Runs that are no longer than this are sorted by comparing keys.
const SHORT_RUN: usize = 20;

/// Fewer keys than this are sorted by one thread.
const SHARED_MIN: usize = 1 << 16;

/// Shares of keys for each thread, so that none waits long for another.
const SHARES: usize = 2;

/// Keys for each share that say which share them out evenly.
const SAMPLED: usize = 64;

/// Keys of rows, made of those of one part after the other; all parts have as many rows.
///
/// No key of a part may be the start of a longer one of it, which holds for all keys of
/// [`super::keys::RowKeys`].
pub(crate) struct Order<'k> {
    parts: Vec<&'k Rows>,
    interrupt: Interrupt,
}

/// A place between bytes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    part: usize,
    byte: usize,
}

/// Up to eight neighbouring bytes of a key.
#[derive(Debug, Clone, Copy)]
struct Piece {
    place: Place,
    bytes: usize,
}

/// The first bytes in which some keys differ.
#[derive(Debug)]
struct Digits {
    pieces: Vec<Piece>,
    /// What is not looked at yet begins here; none where keys of equal digits are equal.
    rest: Option<Place>,
}

/// Eight bytes of `key` from `at` on as a number, zeros behind its end.
fn word(key: &[u8], at: usize) -> u64 {
    let Some(first) = key.len().checked_sub(WORD) else {
        let mut bytes = [0; WORD];
        bytes[..key.len()].copy_from_slice(key);
        return shifted(u64::from_be_bytes(bytes), at);
    };
    let first = first.min(at);
    let mut bytes = [0; WORD];
    bytes.copy_from_slice(&key[first..first + WORD]);
    shifted(u64::from_be_bytes(bytes), at - first)
}

/// `word` without its first `bytes`.
fn shifted(word: u64, bytes: usize) -> u64 {
    let bits = u32::try_from(bytes * 8).unwrap_or(u32::MAX);
    word.checked_shl(bits).unwrap_or(0)
}

impl<'k> Order<'k> {
    /// The order of keys of `parts`, the most significant first; parts of no columns are left out.
    pub(crate) fn new(parts: impl IntoIterator<Item = &'k Rows>) -> Self {
        let parts = parts.into_iter().filter(|part| part.num_rows() > 0);
        Order {
            parts: parts.collect(),
            interrupt: Interrupt::default(),
        }
    }

    /// The order, which asks `interrupt` in the midst of sorting whether to go on.
    pub(crate) fn unless(mut self, interrupt: &Interrupt) -> Self {
        self.interrupt = interrupt.clone();
        self
    }

    /// Positions of the first `rows` keys, sorted; equal ones as they came.
    ///
    /// # Errors
    /// What the interrupt says.
    pub(crate) fn sorted(&self, rows: usize) -> Result<Vec<u32>> {
        let mut positions: Vec<u32> = (0..rows as u32).collect();
        self.sort(&mut positions)?;
        Ok(positions)
    }

    /// As [`Order::sorted`], by so many threads where keys are many: each sorts those between two
    /// of them.
    ///
    /// # Errors
    /// As [`Order::sorted`].
    pub(crate) fn sorted_on(&self, threads: usize, rows: usize) -> Result<Vec<u32>> {
        if threads <= 1 || rows < SHARED_MIN {
            return self.sorted(rows);
        }
        let starts = self.starts(threads * SHARES, rows)?;
        let step = rows.div_ceil(threads);
        let parts = (0..threads).map(|part| part * step..rows.min((part + 1) * step));
        let parts = on_threads(threads, parts, |part| self.share_out(part, &starts))?;
        let shares = on_threads(threads, 0..starts.len() + 1, |share| {
            let of_share = parts.iter().map(|part| part[share].as_slice());
            let mut positions: Vec<u32> = of_share.collect::<Vec<_>>().concat();
            self.sort(&mut positions)?;
            Ok(positions)
        });
        Ok(shares?.concat())
    }

    /// Positions whose keys are the least of all shares but the first: about as many lie between
    /// any two, unless they are equal.
    fn starts(&self, shares: usize, rows: usize) -> Result<Vec<u32>> {
        let step = (rows / (shares * SAMPLED)).max(1);
        let mut sample: Vec<u32> = (0..rows as u32).step_by(step).collect();
        self.sort(&mut sample)?;
        let starts = (1..shares).map(|share| sample[share * sample.len() / shares]);
        let mut starts: Vec<u32> = starts.collect();
        let whole = Place { part: 0, byte: 0 };
        starts.dedup_by(|a, b| self.compare(*a, *b, whole).is_eq());
        Ok(starts)
    }

    /// The positions of `part` by share, ascending.
    fn share_out(&self, part: Range<usize>, starts: &[u32]) -> Result<Vec<Vec<u32>>> {
        let whole = Place { part: 0, byte: 0 };
        let room = part.len() / (starts.len() + 1) * 9 / 8;
        let shares = (0..=starts.len()).map(|_| Vec::with_capacity(room));
        let mut shares: Vec<Vec<u32>> = shares.collect();
        let mut pace = self.interrupt.pace();
        for position in part.start as u32..part.end as u32 {
            pace.add(1)?;
            let is_no_less = |start: &u32| self.compare(*start, position, whole).is_le();
            shares[starts.partition_point(is_no_less)].push(position);
        }
        Ok(shares)
    }

    /// The first `wanted` of [`Order::sorted`].
    ///
    /// # Errors
    /// What the interrupt says.
    ///
    /// # Cost
    /// Linear in `rows` where few are wanted of many.
    pub(crate) fn least(&self, rows: usize, wanted: usize) -> Result<Vec<u32>> {
        let mut positions: Vec<u32> = (0..rows as u32).collect();
        if wanted < rows / 2 {
            self.retain_least(&mut positions, wanted);
        }
        self.sort(&mut positions)?;
        positions.truncate(wanted);
        Ok(positions)
    }

    /// Leaves the `wanted` least of more ascending `positions`, and those that are no greater in
    /// the bytes that are looked at.
    fn retain_least(&self, positions: &mut Vec<u32>, wanted: usize) {
        let Some(last) = wanted.checked_sub(1) else {
            return positions.clear();
        };
        let digits = self.digits(positions, Place { part: 0, byte: 0 });
        let mut numbers = Vec::new();
        self.number(positions, &digits, &mut numbers);
        let (_, bound, _) = numbers.select_nth_unstable(last);
        let equal = match digits.rest {
            Some(_) => u128::from(u32::MAX),
            None => 0,
        };
        let bound = *bound | equal;
        numbers.retain(|number| *number <= bound);
        positions.clear();
        positions.extend(numbers.iter().map(|number| *number as u32));
        positions.sort_unstable();
    }

    /// Sorts ascending `positions` by their keys; equal ones stay as they are.
    ///
    /// # Errors
    /// What the interrupt says.
    pub(crate) fn sort(&self, positions: &mut [u32]) -> Result<()> {
        let mut numbers = Vec::new();
        let mut pace = self.interrupt.pace();
        let mut runs = vec![(0..positions.len(), Place { part: 0, byte: 0 })];
        while let Some((run, place)) = runs.pop() {
            let first = run.start;
            let positions = &mut positions[run];
            pace.add(positions.len())?;
            if positions.len() <= SHORT_RUN {
                self.sort_short(positions, place);
                continue;
            }
            let digits = self.digits(positions, place);
            if digits.pieces.is_empty() {
                continue;
            }
            pace.add(positions.len())?;
            self.number(positions, &digits, &mut numbers);
            self.interrupt.sort(&mut numbers, &u128::cmp)?;
            for (position, number) in positions.iter_mut().zip(&numbers) {
                *position = *number as u32;
            }
            let Some(rest) = digits.rest else {
                continue;
            };
            for run in equal_runs(&numbers) {
                pace.add(run.len())?;
                match run.len() <= SHORT_RUN {
                    true => self.sort_short(&mut positions[run], rest),
                    false => runs.push((first + run.start..first + run.end, rest)),
                }
            }
        }
        Ok(())
    }

    /// Sorts a few positions whose keys are equal up to `place`.
    fn sort_short(&self, positions: &mut [u32], place: Place) {
        positions.sort_by(|a, b| self.compare(*a, *b, place));
    }

    fn key(&self, part: usize, position: u32) -> &'k [u8] {
        self.parts[part].row(position as usize).data()
    }

    /// Compares the keys of two positions from `place` on.
    fn compare(&self, a: u32, b: u32, place: Place) -> Ordering {
        let mut from = place.byte;
        for part in place.part..self.parts.len() {
            let (a, b) = (self.key(part, a), self.key(part, b));
            let rest = |key: &'k [u8]| key.get(from..).unwrap_or_default();
            match rest(a).cmp(rest(b)) {
                Ordering::Equal => from = 0,
                unequal => return unequal,
            }
        }
        Ordering::Equal
    }

    /// The first bytes from `place` on that differ in the keys of `positions`.
    fn digits(&self, positions: &[u32], place: Place) -> Digits {
        let mut digits = Digits {
            pieces: Vec::new(),
            rest: (place.part < self.parts.len()).then_some(place),
        };
        let mut left = DIGITS;
        while let Some(place) = digits.rest
            && left > 0
        {
            let longest = self.longest(positions, place.part);
            let end = longest.min(place.byte + WINDOW);
            let differing = self.differing(positions, place, end);
            let mut taken = end;
            for (offset, _) in differing
                .iter()
                .enumerate()
                .filter(|(_, differs)| **differs)
            {
                let byte = place.byte + offset;
                if left == 0 {
                    taken = byte;
                    break;
                }
                left -= 1;
                digits.add(Place { byte, ..place });
            }
            digits.rest = self.after(
                Place {
                    byte: taken,
                    ..place
                },
                longest,
            );
            if taken < longest && !digits.pieces.is_empty() {
                break;
            }
        }
        digits
    }

    /// `place`, or the start of the next part where this one ends at byte `longest`.
    fn after(&self, place: Place, longest: usize) -> Option<Place> {
        if place.byte < longest {
            return Some(place);
        }
        let part = place.part + 1;
        (part < self.parts.len()).then_some(Place { part, byte: 0 })
    }

    fn longest(&self, positions: &[u32], part: usize) -> usize {
        let lengths = positions
            .iter()
            .map(|at| self.parts[part].row_len(*at as usize));
        lengths.max().unwrap_or(0)
    }

    /// Which bytes from `place` to `end` are not the same in all keys.
    fn differing(&self, positions: &[u32], place: Place, end: usize) -> Vec<bool> {
        let starts: Vec<usize> = (place.byte..end).step_by(WORD).collect();
        let mut first = [0; WINDOW / WORD];
        let mut found = [0; WINDOW / WORD];
        if let Some(position) = positions.first() {
            let key = self.key(place.part, *position);
            (first.iter_mut().zip(&starts)).for_each(|(first, at)| *first = word(key, *at));
        }
        for position in positions {
            let key = self.key(place.part, *position);
            for ((found, first), at) in found.iter_mut().zip(&first).zip(&starts) {
                *found |= word(key, *at) ^ first;
            }
        }
        let bytes = found.iter().flat_map(|word| word.to_be_bytes());
        let bytes = bytes.take(end.saturating_sub(place.byte));
        bytes.map(|byte| byte != 0).collect()
    }

    /// For each position the digits of its key, and then the position.
    fn number(&self, positions: &[u32], digits: &Digits, numbers: &mut Vec<u128>) {
        numbers.clear();
        numbers.extend(positions.iter().map(|position| {
            let digits = digits.pieces.iter().fold(0, |digits: u128, piece| {
                let Piece { place, bytes } = piece;
                let word = word(self.key(place.part, *position), place.byte);
                digits << (bytes * 8) | u128::from(word >> ((WORD - bytes) * 8))
            });
            digits << POSITION_BITS | u128::from(*position)
        }));
    }
}

impl Digits {
    /// Takes in one more byte.
    fn add(&mut self, place: Place) {
        if let Some(piece) = self.pieces.last_mut()
            && piece.place.part == place.part
            && piece.place.byte + piece.bytes == place.byte
            && piece.bytes < WORD
        {
            piece.bytes += 1;
            return;
        }
        self.pieces.push(Piece { place, bytes: 1 });
    }
}

/// Runs of more than one of `numbers` with equal digits.
fn equal_runs(numbers: &[u128]) -> impl Iterator<Item = Range<usize>> {
    let equal = |a: &u128, b: &u128| a >> POSITION_BITS == b >> POSITION_BITS;
    let runs = numbers.chunk_by(equal).scan(0, |start, run| {
        let range = *start..*start + run.len();
        *start = range.end;
        Some(range)
    });
    runs.filter(|run| run.len() > 1)
}
