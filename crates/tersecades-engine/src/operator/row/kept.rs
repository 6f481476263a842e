//! Rows that an operator keeps: encoded as they come, picked by number when an answer needs them.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::SchemaRef;
use tersecades_columnar::arrow::array_bytes;
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::Selection;

use super::shape::{concat, weave, with_few_texts};
use super::text_size::{TextSize, given_rows};
use crate::runtime::Interrupt;
use crate::runtime::state::{StateReader, StateWriter};

/// Fewer rows than this wait as they are for more, so that codecs see enough to choose by.
const ENCODED_ROWS_MIN: usize = 4_096;

/// Rows of a segment are ranked by address where at least one of so many is asked for.
const DENSE_PART: usize = 32;

/// The number of no row: its columns are null.
pub const NO_ROW: u64 = u64::MAX;

enum Rows {
    Encoded(Batch),
    Plain(RecordBatch),
}

struct Segment {
    first: u64,
    len: usize,
    /// Rows that may still be asked for.
    wanted: usize,
    rows: Option<Rows>,
}

impl Segment {
    fn holds(&self, row: u64) -> bool {
        let inside = self.first..self.first + self.len as u64;
        self.rows.is_some() && inside.contains(&row)
    }
}

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
        self.next += len as u64;
        self.segments.push_back(Segment {
            first,
            len,
            wanted: len,
            rows: Some(Rows::Plain(rows)),
        });
        let plain = |segment: &&Segment| matches!(segment.rows, Some(Rows::Plain(_)));
        let waiting = self.segments.iter().rev().take_while(plain);
        let (count, total) = waiting.fold((0, 0), |(count, rows), s| (count + 1, rows + s.len));
        if total >= ENCODED_ROWS_MIN {
            self.encode_last(count, total)?;
        }
        Ok(first)
    }

    /// Makes one encoded segment of the last `count`, which hold `total` rows.
    fn encode_last(&mut self, count: usize, total: usize) -> Result<()> {
        let at = self.segments.len() - count;
        let waiting: Vec<Segment> = self.segments.drain(at..).collect();
        let first = waiting.first().map_or(self.next, |segment| segment.first);
        let wanted = waiting.iter().map(|segment| segment.wanted).sum();
        let batches: Vec<RecordBatch> = waiting
            .into_iter()
            .filter_map(|segment| match segment.rows {
                Some(Rows::Plain(batch)) => Some(batch),
                _ => None,
            })
            .collect();
        let batch = self.encode(&concat(&batches)?)?;
        self.segments.push_back(Segment {
            first,
            len: total,
            wanted,
            rows: Some(Rows::Encoded(batch)),
        });
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

    /// Says that `row` will not be asked for again; memory goes when that holds for its neighbours.
    pub fn release(&mut self, row: u64) {
        let at = self
            .segments
            .partition_point(|segment| segment.first <= row);
        let Some(segment) = at.checked_sub(1).and_then(|at| self.segments.get_mut(at)) else {
            return;
        };
        segment.wanted = segment.wanted.saturating_sub(1);
        if segment.wanted == 0 {
            segment.rows = None;
        }
        while self
            .segments
            .front()
            .is_some_and(|segment| segment.rows.is_none())
        {
            self.segments.pop_front();
        }
    }

    /// Bytes of the rows, dictionaries included.
    pub fn byte_size(&self) -> usize {
        let sizes = self.segments.iter().map(|segment| match &segment.rows {
            Some(Rows::Encoded(batch)) => batch.byte_size(),
            Some(Rows::Plain(batch)) => batch.columns().iter().map(array_bytes_of).sum(),
            None => 0,
        });
        sizes.sum::<usize>() + self.dictionary_bytes()
    }

    /// Bytes of the dictionaries: a column has one at most, but not in chunks of one value, nor in
    /// those that came after it was given up.
    fn dictionary_bytes(&self) -> usize {
        let mut encoded = self.segments.iter().filter_map(|s| match &s.rows {
            Some(Rows::Encoded(batch)) => Some(batch.columns()),
            _ => None,
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
            if !near.is_some_and(|segment| segment.holds(*row)) {
                at = self.segment_of(*row)?;
            }
            let part = *part_of[at].get_or_insert_with(|| {
                asked.parts.push(Part {
                    segment: at,
                    rows: Vec::new(),
                });
                asked.parts.len() as u32 - 1
            });
            let position = row - self.segments[at].first;
            asked.parts[part as usize].rows.push(position as u32);
            asked.of_rows.push(Some(part));
        }
        Ok(asked)
    }

    /// The segment that holds a row.
    fn segment_of(&self, row: u64) -> Result<usize> {
        let at = self
            .segments
            .partition_point(|segment| segment.first <= row);
        let found = at.checked_sub(1);
        let found = found.filter(|at| self.segments[*at].holds(row));
        found.ok_or_else(|| Error::internal("a row was asked for after its release"))
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
            Some(Rows::Plain(batch)) => {
                let plain = columns
                    .iter()
                    .map(|column| Arc::clone(batch.column(*column)));
                Ok((plain.collect(), part.rows.clone()))
            }
            Some(Rows::Encoded(batch)) => {
                let mut wanted = Selection::default();
                let list = wanted.set_rows(segment.len);
                let within = rank(&part.rows, segment.len, list);
                wanted.settle();
                let decode = |column: &usize| batch.column(*column).to_arrow(&wanted, work);
                let decoded: Vec<ArrayRef> = columns.iter().map(decode).collect::<Result<_>>()?;
                Ok((decoded, within))
            }
            None => Err(Error::internal("a row was asked for after its release")),
        }
    }

    /// Writes all rows with their numbers, and which of them are wanted.
    ///
    /// # Errors
    /// What encoding says.
    pub fn snapshot_numbered(&mut self, out: &mut StateWriter) -> Result<()> {
        out.u64(self.next);
        out.u64(self.segments.len() as u64);
        for segment in &self.segments {
            out.u64(segment.first);
            out.u64(segment.len as u64);
            out.u64(segment.wanted as u64);
            let rows = match &segment.rows {
                Some(Rows::Plain(rows)) => rows.clone(),
                Some(Rows::Encoded(batch)) => {
                    batch.to_arrow(&Selection::all(segment.len), &mut Work::default())?
                }
                None => RecordBatch::new_empty(Arc::clone(&self.schema)),
            };
            super::shape::write_rows(&rows, out)?;
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
        for _ in 0..from.count()? {
            let (first, len) = (from.u64()?, from.u64()? as usize);
            let wanted = from.u64()? as usize;
            let rows = super::shape::read_rows(&self.schema, from)?;
            if wanted > 0 && rows.num_rows() != len {
                return Err(Error::corrupt("a snapshot lacks rows that are wanted"));
            }
            let rows = match wanted {
                0 => None,
                _ if len < ENCODED_ROWS_MIN => Some(Rows::Plain(rows)),
                _ => Some(Rows::Encoded(self.encode(&rows)?)),
            };
            self.segments.push_back(Segment {
                first,
                len,
                wanted,
                rows,
            });
        }
        Ok(())
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// What encoding says.
    pub fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        out.u64(self.segments.len() as u64);
        for index in 0..self.segments.len() {
            let (first, len) = (self.segments[index].first, self.segments[index].len);
            let rows: Vec<u64> = (first..first + len as u64).collect();
            let columns = self.pick(&rows)?;
            let batch = super::shape::batch_of(&self.schema, columns, len)?;
            super::shape::write_rows(&batch, out)?;
        }
        Ok(())
    }

    /// The record batches that [`KeptRows::snapshot`] wrote, to be pushed again.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold them.
    pub fn read(&self, from: &mut StateReader<'_>) -> Result<Vec<RecordBatch>> {
        let count = from.count()?;
        let batches = (0..count).map(|_| super::shape::read_rows(&self.schema, from));
        batches.collect()
    }
}

fn array_bytes_of(array: &ArrayRef) -> usize {
    array_bytes(array.as_ref())
}

#[cfg(test)]
mod tests {
    use arrow_array::{DictionaryArray, Int32Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn ranks_are_those_of_sorted_distinct_rows() {
        let mixed = |count: u32, len: u32| (0..count).map(|row| row * 7919 % len).collect();
        let cases: [(Vec<u32>, usize); 5] = [
            (Vec::new(), 10),
            (vec![0, 0, 3, 9], 10),
            (vec![9, 0, 9, 3], 10),
            (mixed(100, 65_000), 65_000),
            (mixed(60_000, 65_000), 65_000),
        ];
        for (rows, len) in cases {
            let mut distinct = Vec::new();
            let within = rank(&rows, len, &mut distinct);
            let wanted: std::collections::BTreeSet<u32> = rows.iter().copied().collect();
            assert!(distinct.iter().eq(wanted.iter()));
            let found: Vec<u32> = within.iter().map(|at| distinct[*at as usize]).collect();
            assert_eq!(found, rows);
        }
    }

    #[test]
    fn rows_that_wait_hold_no_texts_of_others() {
        let names = StringArray::from_iter_values((0..20_000).map(|row| format!("host-{row:020}")));
        let names: ArrayRef = Arc::new(names);
        let schema = Schema::new(vec![Field::new("host", DataType::Utf8, true)]);
        let mut rows = KeptRows::new(&Arc::new(schema)).unwrap();
        for row in 0..500 {
            let host = DictionaryArray::new(Int32Array::from(vec![row * 40]), Arc::clone(&names));
            let host: ArrayRef = Arc::new(host);
            rows.push(RecordBatch::try_from_iter([("host", host)]).unwrap())
                .unwrap();
        }
        assert!(rows.byte_size() < 100_000, "{} bytes", rows.byte_size());
        let picked = arrow_cast::cast(&rows.pick(&[499, 1]).unwrap()[0], &DataType::Utf8);
        let wanted = [19_960, 40].map(|row| format!("host-{row:020}"));
        assert_eq!(*picked.unwrap(), StringArray::from(wanted.to_vec()));
    }
}
