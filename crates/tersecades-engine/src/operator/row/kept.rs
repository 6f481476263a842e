//! Rows that an operator keeps: encoded as they come, picked by number when an answer needs them.
//!
//! ```text
//! rows ──numbered──▶ segment ──its rows released──▶ gone with the last
//!                       └──most rows of all released──▶ those left, put together in full segments
//! ```
//! A row keeps its number wherever it lies, so that holders of numbers need not hear of it.

mod segment;

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::SchemaRef;
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::Selection;

use self::segment::{Numbers, Rows, Segment};
use super::shape::{OUTPUT_ROWS, concat, read_rows, weave, with_few_texts, write_rows};
use super::text_size::{TextSize, given_rows};
use crate::runtime::Interrupt;
use crate::runtime::state::{StateReader, StateWriter};

/// Fewer rows than this wait as they are for more, so that codecs see enough to choose by.
const ENCODED_ROWS_MIN: usize = 4_096;

/// Rows are put together where there are at least so many times the wanted ones, or texts are.
const SPARSE: usize = 4;

/// So many rows are released before others are put together.
const RELEASED_ROWS_MIN: usize = 2 * OUTPUT_ROWS;

/// Rows of a segment are ranked by address where at least one of so many is asked for.
const DENSE_PART: usize = 32;

/// The number of no row: its columns are null.
pub const NO_ROW: u64 = u64::MAX;

/// Rows that are asked for.
struct Asked {
    /// The part that each is in.
    of_rows: Vec<Option<u32>>,
    parts: Vec<Part>,
}

/// Rows of one segment, in the order in which they are asked for.
struct Part {
    segment: usize,
    rows: Vec<u32>,
}

/// Writes the distinct `rows` of a segment of `len` rows to `distinct`, in order; where each of
/// `rows` is among them.
///
/// # Cost
/// Linear where they come in order, or are many for the segment; sorts them else.
fn rank(rows: &[u32], len: usize, distinct: &mut Vec<u32>) -> Vec<u32> {
    if rows.is_sorted() {
        let mut within = Vec::with_capacity(rows.len());
        for row in rows {
            if distinct.last() != Some(row) {
                distinct.push(*row);
            }
            within.push(distinct.len() as u32 - 1);
        }
        return within;
    }
    if rows.len() >= len / DENSE_PART {
        let mut ranks = vec![u32::MAX; len];
        rows.iter().for_each(|row| ranks[*row as usize] = 0);
        for (row, rank) in ranks.iter_mut().enumerate() {
            if *rank == 0 {
                *rank = distinct.len() as u32;
                distinct.push(row as u32);
            }
        }
        return rows.iter().map(|row| ranks[*row as usize]).collect();
    }
    distinct.extend_from_slice(rows);
    distinct.sort_unstable();
    distinct.dedup();
    let place = |row: &u32| distinct.partition_point(|known| known < row) as u32;
    rows.iter().map(place).collect()
}

/// Rows of one schema, numbered in order of arrival from 0.
pub struct KeptRows {
    schema: SchemaRef,
    encoder: BatchEncoder,
    texts: Vec<TextSize>,
    segments: VecDeque<Segment>,
    next: u64,
    /// Rows released since others were put together.
    released: usize,
}

impl KeptRows {
    /// No rows of `schema` yet.
    ///
    /// # Errors
    /// `Unsupported` for types that cannot be encoded.
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        Ok(KeptRows {
            schema: Arc::clone(schema),
            encoder: BatchEncoder::new(schema)?,
            texts: vec![TextSize::default(); schema.fields().len()],
            segments: VecDeque::new(),
            next: 0,
            released: 0,
        })
    }

    /// The number that the next row gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Keeps `rows`; the first gets the number that is returned.
    ///
    /// # Errors
    /// What encoding says.
    pub fn push(&mut self, rows: RecordBatch) -> Result<u64> {
        let first = self.next;
        let len = rows.num_rows();
        if len == 0 {
            return Ok(first);
        }
        let rows = match len {
            ..ENCODED_ROWS_MIN => with_few_texts(rows)?,
            _ => rows,
        };
        if self.is_sparse() {
            self.repack()?;
        }
        self.next += len as u64;
        let mut numbers = Numbers::default();
        numbers.add(first, len);
        let segment = Segment::new(numbers, Rows::Plain(rows));
        self.segments.push_back(segment);
        let plain = |segment: &&Segment| matches!(segment.rows, Rows::Plain(_));
        let waiting = self.segments.iter().rev().take_while(plain);
        let (count, total) = waiting.fold((0, 0), |(count, rows), s| (count + 1, rows + s.len()));
        if total >= ENCODED_ROWS_MIN {
            let waiting = self.segments.split_off(self.segments.len() - count);
            self.push_encoded(waiting.into())?;
        }
        Ok(first)
    }

    /// Whether few rows are wanted of those that are held, or for the texts that are.
    fn is_sparse(&mut self) -> bool {
        if self.released < RELEASED_ROWS_MIN {
            return false;
        }
        let wanted: usize = self.segments.iter().map(Segment::wanted_count).sum();
        let held: usize = self.segments.iter().map(Segment::len).sum();
        let columns = self.encoder.columns_mut().iter();
        let texts = columns.filter_map(|column| Some(column.dictionary()?.len()));
        held.max(texts.max().unwrap_or(0)) >= SPARSE * wanted
    }

    /// Puts the wanted rows together, with no texts but theirs.
    ///
    /// # Cost
    /// That of the rows held, at most a few for each one that was released since the last time.
    fn repack(&mut self) -> Result<()> {
        self.released = 0;
        let columns = self.encoder.columns_mut().iter_mut();
        let coded = columns.filter(|column| column.dictionary().is_some());
        coded.for_each(ColumnEncoder::renew);
        let (mut part, mut rows) = (Vec::new(), 0);
        for segment in std::mem::take(&mut self.segments) {
            if rows + segment.wanted_count() > OUTPUT_ROWS {
                self.push_encoded(std::mem::take(&mut part))?;
                rows = 0;
            }
            rows += segment.wanted_count();
            part.push(segment);
        }
        self.push_encoded(part)
    }

    /// Makes one encoded segment of the wanted rows of `segments`.
    fn push_encoded(&mut self, segments: Vec<Segment>) -> Result<()> {
        if segments.is_empty() {
            return Ok(());
        }
        let (mut numbers, mut work) = (Numbers::default(), Work::default());
        let wanted = segments.iter().map(|segment| {
            segment.add_wanted(&mut numbers);
            segment.wanted_rows(&mut work)
        });
        let wanted: Vec<RecordBatch> = wanted.collect::<Result<_>>()?;
        let batch = self.encode(&concat(&wanted)?)?;
        let segment = Segment::new(numbers, Rows::Encoded(batch));
        self.segments.push_back(segment);
        Ok(())
    }

    fn encode(&mut self, rows: &RecordBatch) -> Result<Batch> {
        let batch = self.encoder.encode_new(rows)?;
        let columns = rows.columns().iter().zip(batch.columns());
        for (texts, (array, chunk)) in self.texts.iter_mut().zip(columns) {
            texts.add(array, chunk);
        }
        Ok(batch)
    }

    /// How many rows are to be picked at once where all are: fewer of long texts.
    pub fn given_rows(&self) -> usize {
        given_rows(&self.texts)
    }

    /// Says that `row` will not be asked for again; memory goes with enough of them.
    pub fn release(&mut self, row: u64) {
        let Some((at, position)) = self.place_of(row) else {
            return;
        };
        let segment = &mut self.segments[at];
        self.released += usize::from(segment.release(position));
        if segment.wanted_count() == 0 {
            self.segments.remove(at);
        }
    }

    /// Bytes of the rows, dictionaries included.
    pub fn byte_size(&self) -> usize {
        let segments = self.segments.iter().map(Segment::byte_size);
        segments.sum::<usize>() + self.dictionary_bytes()
    }

    /// Bytes of the dictionaries: a column has one at most, but not in chunks of one value, nor in
    /// those that came after it was given up.
    fn dictionary_bytes(&self) -> usize {
        let mut encoded = self.segments.iter().filter_map(|s| match &s.rows {
            Rows::Encoded(batch) => Some(batch.columns()),
            Rows::Plain(_) => None,
        });
        let Some(first) = encoded.next() else {
            return 0;
        };
        let last = encoded.next_back().unwrap_or(first);
        let dictionaries = first
            .iter()
            .zip(last)
            .filter_map(|(first, last)| last.dictionary().or(first.dictionary()));
        dictionaries.map(|texts| texts.byte_size()).sum()
    }

    /// The columns of the rows with these numbers, in that order; nulls for [`NO_ROW`].
    ///
    /// # Errors
    /// `Internal` for rows that were released; what decoding says.
    ///
    /// # Cost
    /// Decodes each asked row once.
    pub fn pick(&self, rows: &[u64]) -> Result<Vec<ArrayRef>> {
        self.pick_unless(rows, &Interrupt::default())
    }

    /// As [`KeptRows::pick`], of so many rows that `interrupt` is asked meanwhile.
    ///
    /// # Errors
    /// As [`KeptRows::pick`]; what the interrupt says.
    pub fn pick_unless(&self, rows: &[u64], interrupt: &Interrupt) -> Result<Vec<ArrayRef>> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        self.pick_columns(&all, rows, interrupt)
    }

    /// As [`KeptRows::pick_unless`], the `columns` at these positions alone.
    ///
    /// # Errors
    /// As [`KeptRows::pick_unless`].
    pub fn pick_columns(
        &self,
        columns: &[usize],
        rows: &[u64],
        interrupt: &Interrupt,
    ) -> Result<Vec<ArrayRef>> {
        let asked = self.asked(rows, interrupt)?;
        let mut pieces = Vec::with_capacity(asked.parts.len());
        let mut positions = Vec::with_capacity(asked.parts.len());
        let mut work = Work::default();
        let mut pace = interrupt.pace();
        for part in &asked.parts {
            pace.add(part.rows.len())?;
            let (piece, within) = self.piece(part, columns, &mut work)?;
            pieces.push(piece);
            positions.push(within.into_iter());
        }
        let from = asked.of_rows.iter().map(|part| {
            let part = part.as_ref().map(|part| *part as usize)?;
            positions[part].next().map(|row| (part, row as usize))
        });
        let from: Vec<Option<(usize, usize)>> = interrupt.collect(from)?;
        let woven = columns.iter().enumerate().map(|(place, column)| {
            pace.add(rows.len())?;
            let pieces = pieces.iter().map(|piece| Arc::clone(&piece[place]));
            let mut pieces: Vec<ArrayRef> = pieces.collect();
            if pieces.is_empty() {
                pieces.push(new_null_array(self.schema.field(*column).data_type(), 0));
            }
            weave(pieces, &from, interrupt)
        });
        woven.collect()
    }

    /// Where rows lie, segment by segment.
    fn asked(&self, rows: &[u64], interrupt: &Interrupt) -> Result<Asked> {
        let mut asked = Asked {
            of_rows: Vec::with_capacity(rows.len()),
            parts: Vec::new(),
        };
        let mut part_of = vec![None; self.segments.len()];
        // Neighbours are mostly asked for together.
        let mut at = 0;
        let mut pace = interrupt.pace();
        for row in rows {
            pace.add(1)?;
            if *row == NO_ROW {
                asked.of_rows.push(None);
                continue;
            }
            let near = self.segments.get(at);
            let position = match near.and_then(|segment| segment.position(*row)) {
                Some(position) => position,
                None => {
                    let place = self.place_of(*row).ok_or_else(released)?;
                    at = place.0;
                    place.1
                }
            };
            let part = *part_of[at].get_or_insert_with(|| {
                asked.parts.push(Part {
                    segment: at,
                    rows: Vec::new(),
                });
                asked.parts.len() as u32 - 1
            });
            asked.parts[part as usize].rows.push(position as u32);
            asked.of_rows.push(Some(part));
        }
        Ok(asked)
    }

    /// The segment that holds a row, and where it lies there.
    fn place_of(&self, row: u64) -> Option<(usize, usize)> {
        let behind = self.segments.partition_point(|s| s.first() <= row);
        let at = behind.checked_sub(1)?;
        Some((at, self.segments[at].position(row)?))
    }

    /// The `columns` of rows of one segment: of those asked for when it is encoded, of all of them
    /// when not; and where each asked row is among them.
    fn piece(
        &self,
        part: &Part,
        columns: &[usize],
        work: &mut Work,
    ) -> Result<(Vec<ArrayRef>, Vec<u32>)> {
        let segment = &self.segments[part.segment];
        match &segment.rows {
            Rows::Plain(batch) => {
                let plain = columns
                    .iter()
                    .map(|column| Arc::clone(batch.column(*column)));
                Ok((plain.collect(), part.rows.clone()))
            }
            Rows::Encoded(batch) => {
                let mut wanted = Selection::default();
                let list = wanted.set_rows(segment.len());
                let within = rank(&part.rows, segment.len(), list);
                wanted.settle();
                let decode = |column: &usize| batch.column(*column).to_arrow(&wanted, work);
                let decoded: Vec<ArrayRef> = columns.iter().map(decode).collect::<Result<_>>()?;
                Ok((decoded, within))
            }
        }
    }

    /// Writes the wanted rows with their numbers.
    ///
    /// # Errors
    /// What encoding says.
    pub fn snapshot_numbered(&mut self, out: &mut StateWriter) -> Result<()> {
        out.u64(self.next);
        out.u64(self.segments.len() as u64);
        let mut work = Work::default();
        for segment in &self.segments {
            let mut numbers = Numbers::default();
            segment.add_wanted(&mut numbers);
            out.list(numbers.runs(), |out, (number, positions)| {
                out.u64(number);
                out.u64(positions.len() as u64);
            });
            write_rows(&segment.wanted_rows(&mut work)?, out)?;
        }
        Ok(())
    }

    /// Reads what [`KeptRows::snapshot_numbered`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it.
    pub fn restore_numbered(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.next = from.u64()?;
        self.segments.clear();
        let mut end = 0;
        for _ in 0..from.count()? {
            let mut numbers = Numbers::default();
            for _ in 0..from.count()? {
                let (number, count) = (from.u64()?, from.u64()?);
                if number < end || count == 0 || count > self.next.saturating_sub(number) {
                    return Err(Error::corrupt("a snapshot holds rows out of their order"));
                }
                end = number + count;
                numbers.add(number, count as usize);
            }
            let rows = read_rows(&self.schema, from)?;
            if numbers.len() == 0 || numbers.len() != rows.num_rows() {
                return Err(Error::corrupt("a snapshot lacks rows that are wanted"));
            }
            let rows = match numbers.len() {
                ..ENCODED_ROWS_MIN => Rows::Plain(rows),
                _ => Rows::Encoded(self.encode(&rows)?),
            };
            self.segments.push_back(Segment::new(numbers, rows));
        }
        Ok(())
    }

    /// Writes all rows, of which none was released.
    ///
    /// # Errors
    /// What encoding says.
    pub fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        out.u64(self.segments.len() as u64);
        let mut work = Work::default();
        let mut segments = self.segments.iter();
        segments.try_for_each(|segment| write_rows(&segment.wanted_rows(&mut work)?, out))
    }

    /// The record batches that [`KeptRows::snapshot`] wrote, to be pushed again.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold them.
    pub fn read(&self, from: &mut StateReader<'_>) -> Result<Vec<RecordBatch>> {
        let count = from.count()?;
        let batches = (0..count).map(|_| read_rows(&self.schema, from));
        batches.collect()
    }
}

fn released() -> Error {
    Error::internal("a row was asked for after its release")
}

#[cfg(test)]
mod tests;
