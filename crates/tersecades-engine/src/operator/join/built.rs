//! The right stream of a join of equal keys, whole and by key.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};

use crate::operator::row::kept::KeptRows;
use crate::operator::row::key_number::KeyNumbers;
use crate::operator::row::paged::Paged;
use crate::operator::row::threads_for;
use crate::runtime::on_thread::together;
use crate::runtime::state::{StateReader, StateWriter};

use super::side::SideKeys;

/// The end of a chain of rows with one key.
pub(super) const END: u32 = u32::MAX;

/// Rows by key.
pub(super) struct Built {
    pub(super) rows: KeptRows,
    keys: KeyNumbers,
    /// First and last row of each key.
    ends: Paged<(u32, u32)>,
    /// The row of the same key after each row.
    next: Paged<u32>,
    /// Which rows have had a pair, where that is asked.
    paired: Option<Vec<AtomicBool>>,
}

impl Built {
    /// No rows of `schema` yet; whether it is to be asked which had a pair.
    ///
    /// # Errors
    /// `Unsupported` for keys without an order and rows that cannot be kept.
    pub(super) fn new(schema: &SchemaRef, keys: &SideKeys, asks_paired: bool) -> Result<Self> {
        Ok(Built {
            rows: KeptRows::new(schema)?,
            keys: keys.key_numbers()?,
            ends: Paged::default(),
            next: Paged::default(),
            paired: asks_paired.then(Vec::new),
        })
    }

    /// Adds rows of the right stream, on several threads where so many may.
    ///
    /// # Errors
    /// `LimitExceeded` for 2^32 rows; what casting and encoding say.
    pub(super) fn add(&mut self, rows: RecordBatch, keys: &SideKeys, threads: usize) -> Result<()> {
        let first = self.next.len();
        let len = first + rows.num_rows();
        if len > END as usize {
            return Err(Error::limit("the right side of a join has 2^32 rows"));
        }
        if let Some(paired) = &mut self.paired {
            paired.resize_with(len, AtomicBool::default);
        }
        let threads = threads_for(rows.num_rows(), threads);
        let kept = rows.clone();
        let keep = || self.rows.push(kept).map(|_| ());
        let (numbers, ends, next) = (&mut self.keys, &mut self.ends, &mut self.next);
        let link = || -> Result<()> {
            let of_rows = keys.numbers(&rows, |columns, rows| numbers.assign(columns, rows))?;
            ends.grow(numbers.len(), (END, END));
            next.grow(len, END);
            for (row, key) in (first as u32..).zip(of_rows) {
                let Some((first, last)) = ends.get_mut(key as usize) else {
                    continue;
                };
                match *last {
                    END => *first = row,
                    last => next[last as usize] = row,
                }
                *last = row;
            }
            Ok(())
        };
        together(threads, [Box::new(link), Box::new(keep)])
    }

    /// Rows.
    pub(super) fn len(&self) -> usize {
        self.next.len()
    }

    /// The first row with the key of each of `rows`, whose keys are `keys`, or [`END`].
    ///
    /// # Errors
    /// What casting says.
    pub(super) fn firsts(&self, rows: &RecordBatch, keys: &SideKeys) -> Result<Vec<u32>> {
        let find = |columns: &[ArrayRef], rows| self.keys.find(columns, rows);
        let mut firsts = keys.numbers(rows, find)?;
        let first = |key: u32| self.ends.get(key as usize).map_or(END, |(first, _)| *first);
        firsts.iter_mut().for_each(|key| *key = first(*key));
        Ok(firsts)
    }

    /// The next row with the key of `row`, or [`END`].
    #[inline]
    pub(super) fn after(&self, row: u32) -> u32 {
        self.next[row as usize]
    }

    /// Notes that the right rows of `pairs` have one.
    pub(super) fn pair(&self, pairs: &[(u32, u32)]) {
        if let Some(paired) = &self.paired {
            for (_, right) in pairs {
                paired[*right as usize].store(true, Ordering::Relaxed);
            }
        }
    }

    /// Whether `row` has had a pair; false where that is not asked.
    pub(super) fn is_paired(&self, row: usize) -> bool {
        let paired = self.paired.as_ref();
        paired.is_some_and(|paired| paired[row].load(Ordering::Relaxed))
    }

    /// Bytes of memory.
    pub(super) fn byte_size(&self) -> usize {
        let links = self.next.byte_size() + self.ends.byte_size();
        let paired = self.paired.as_ref().map_or(0, Vec::len);
        self.rows.byte_size() + self.keys.byte_size() + links + paired
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// What encoding says.
    pub(super) fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.rows.snapshot(out)?;
        let paired = self.paired.iter().flatten();
        let paired: Vec<bool> = paired.map(|it| it.load(Ordering::Relaxed)).collect();
        out.list(paired.into_iter(), StateWriter::bool);
        Ok(())
    }

    /// Reads what [`Built::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it.
    pub(super) fn restore(&mut self, from: &mut StateReader<'_>, keys: &SideKeys) -> Result<()> {
        for rows in self.rows.read(from)? {
            self.add(rows, keys, 1)?;
        }
        let known: Vec<bool> = from.list(StateReader::bool)?;
        let paired = self.paired.as_mut();
        match known.len() == paired.as_ref().map_or(0, |paired| paired.len()) {
            true => {
                let known = known.into_iter().map(AtomicBool::new);
                paired
                    .into_iter()
                    .flatten()
                    .zip(known)
                    .for_each(|(it, known)| *it = known);
                Ok(())
            }
            false => Err(Error::corrupt("a snapshot lacks rows of a join")),
        }
    }
}
