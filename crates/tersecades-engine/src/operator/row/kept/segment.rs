//! Rows that lie together: their numbers, and which of them are wanted.

use std::ops::Range;

use arrow_array::RecordBatch;
use tersecades_columnar::arrow::array_bytes;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::bitmap::Bitmap;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::selection::Selection;

use crate::operator::row::shape::{take, with_few_texts};

pub(super) enum Rows {
    Encoded(Batch),
    Plain(RecordBatch),
}

/// Rows whose numbers are consecutive: the first one's, and where it lies.
#[derive(Clone, Copy)]
struct Run {
    number: u64,
    position: usize,
}

/// Ascending numbers of rows, by position.
#[derive(Default)]
pub(super) struct Numbers {
    first: u64,
    /// The runs behind that of the first.
    later: Vec<Run>,
    len: usize,
}

impl Numbers {
    /// Adds `count` numbers from `number` on, all of them above those there are.
    pub(super) fn add(&mut self, number: u64, count: usize) {
        let (first, positions) = self.run(self.later.len());
        if self.len == 0 {
            self.first = number;
        } else if number != first + positions.len() as u64 {
            let position = self.len;
            self.later.push(Run { number, position });
        }
        self.len += count;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The first number of a run, and the positions of its rows.
    fn run(&self, at: usize) -> (u64, Range<usize>) {
        let (number, start) = match at.checked_sub(1) {
            Some(at) => (self.later[at].number, self.later[at].position),
            None => (self.first, 0),
        };
        let end = self.later.get(at).map_or(self.len, |next| next.position);
        (number, start..end)
    }

    /// As [`Numbers::run`], of all of them.
    pub(super) fn runs(&self) -> impl ExactSizeIterator<Item = (u64, Range<usize>)> {
        (0..self.later.len() + 1).map(|at| self.run(at))
    }

    fn position(&self, number: u64) -> Option<usize> {
        let at = self.later.partition_point(|run| run.number <= number);
        let (first, positions) = self.run(at);
        let offset = usize::try_from(number.checked_sub(first)?).ok()?;
        (offset < positions.len()).then_some(positions.start + offset)
    }
}

/// Rows, at least one of which is wanted.
pub(super) struct Segment {
    pub(super) rows: Rows,
    numbers: Numbers,
    /// The rows that may still be asked for; without a bit while all may.
    wanted: Bitmap,
    wanted_count: usize,
}

impl Segment {
    /// `rows`, all wanted, with these numbers.
    pub(super) fn new(numbers: Numbers, rows: Rows) -> Self {
        Segment {
            wanted: Bitmap::default(),
            wanted_count: numbers.len(),
            numbers,
            rows,
        }
    }

    /// The number of the first row.
    pub(super) fn first(&self) -> u64 {
        self.numbers.first
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// How many rows are wanted.
    pub(super) fn wanted_count(&self) -> usize {
        self.wanted_count
    }

    /// Where a row lies, if it is here.
    pub(super) fn position(&self, number: u64) -> Option<usize> {
        self.numbers.position(number)
    }

    /// Says that the row at `position` is not wanted; whether it was.
    pub(super) fn release(&mut self, position: usize) -> bool {
        if self.wanted.is_empty() {
            self.wanted.fill(self.numbers.len(), true);
        }
        let is_wanted = self.wanted.get(position);
        self.wanted.set(position, false);
        self.wanted_count -= usize::from(is_wanted);
        is_wanted
    }

    /// Adds the numbers of the wanted rows.
    pub(super) fn add_wanted(&self, numbers: &mut Numbers) {
        for (number, positions) in self.numbers.runs() {
            if self.wanted.is_empty() {
                numbers.add(number, positions.len());
                continue;
            }
            for (number, position) in (number..).zip(positions) {
                if self.wanted.get(position) {
                    numbers.add(number, 1);
                }
            }
        }
    }

    /// The wanted rows; those of many others without the texts of these.
    ///
    /// # Errors
    /// What decoding says.
    pub(super) fn wanted_rows(&self, work: &mut Work) -> Result<RecordBatch> {
        let mut wanted = Selection::all(self.len());
        if !self.wanted.is_empty() {
            wanted.retain_words(self.wanted.words());
            wanted.settle();
        }
        match &self.rows {
            Rows::Encoded(batch) => with_few_texts(batch.to_arrow(&wanted, work)?),
            Rows::Plain(rows) if self.wanted.is_empty() => Ok(rows.clone()),
            Rows::Plain(rows) => {
                wanted.to_rows();
                with_few_texts(take(rows, wanted.list().to_vec())?)
            }
        }
    }

    /// Bytes of memory, shared dictionaries not counted.
    pub(super) fn byte_size(&self) -> usize {
        let rows = match &self.rows {
            Rows::Encoded(batch) => batch.byte_size(),
            Rows::Plain(batch) => {
                let columns = batch.columns().iter();
                columns.map(|column| array_bytes(column.as_ref())).sum()
            }
        };
        let numbers = self.numbers.later.capacity() * size_of::<Run>();
        rows + numbers + size_of_val(self.wanted.words())
    }
}
