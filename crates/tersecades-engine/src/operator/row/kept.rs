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

use super::shape::{concat, weave};
use crate::runtime::state::{StateReader, StateWriter};

/// Fewer rows than this wait as they are for more, so that codecs see enough to choose by.
const ENCODED_ROWS_MIN: usize = 4_096;

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

/// Rows of one schema, numbered in order of arrival from 0.
pub struct KeptRows {
    schema: SchemaRef,
    encoder: BatchEncoder,
    segments: VecDeque<Segment>,
    next: u64,
    work: Work,
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
            segments: VecDeque::new(),
            next: 0,
            work: Work::default(),
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
        let batch = self.encoder.encode_new(&concat(&batches)?)?;
        self.segments.push_back(Segment {
            first,
            len: total,
            wanted,
            rows: Some(Rows::Encoded(batch)),
        });
        Ok(())
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
        let encoded = self.segments.iter().rev().find_map(|s| match &s.rows {
            Some(Rows::Encoded(batch)) => Some(batch),
            _ => None,
        });
        let dictionaries = encoded.into_iter().flat_map(Batch::columns);
        let dictionaries = dictionaries.filter_map(|column| column.dictionary());
        sizes.sum::<usize>() + dictionaries.map(|d| d.byte_size()).sum::<usize>()
    }

    /// The columns of the rows with these numbers, in that order; nulls for [`NO_ROW`].
    ///
    /// # Errors
    /// `Internal` for rows that were released; what decoding says.
    ///
    /// # Cost
    /// Decodes each asked row once.
    pub fn pick(&mut self, rows: &[u64]) -> Result<Vec<ArrayRef>> {
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            places.push(match *row {
                NO_ROW => None,
                row => Some(self.place(row)?),
            });
        }
        let mut asked: Vec<(usize, u32)> = places.iter().flatten().copied().collect();
        asked.sort_unstable();
        asked.dedup();
        let mut pieces: Vec<RecordBatch> = Vec::new();
        let mut from = vec![None; rows.len()];
        let mut starts = Vec::new();
        for part in asked.chunk_by(|a, b| a.0 == b.0) {
            starts.push((part[0].0, pieces.len()));
            pieces.push(self.piece(part)?);
        }
        for (place, from) in places.iter().zip(&mut from) {
            let Some((segment, row)) = *place else {
                continue;
            };
            let piece = starts.partition_point(|(at, _)| *at < segment);
            let plain = matches!(self.segments[segment].rows, Some(Rows::Plain(_)));
            let position = match plain {
                true => row as usize,
                false => {
                    let first = asked.partition_point(|(at, _)| *at < segment);
                    asked.partition_point(|place| *place < (segment, row)) - first
                }
            };
            *from = Some((piece, position));
        }
        (0..self.schema.fields().len())
            .map(|index| {
                let columns = pieces.iter().map(|piece| Arc::clone(piece.column(index)));
                let mut columns: Vec<ArrayRef> = columns.collect();
                if columns.is_empty() {
                    columns.push(new_null_array(self.schema.field(index).data_type(), 0));
                }
                weave(columns, &from)
            })
            .collect()
    }

    /// Segment and position of a row.
    fn place(&self, row: u64) -> Result<(usize, u32)> {
        let at = self
            .segments
            .partition_point(|segment| segment.first <= row);
        let found = at.checked_sub(1).and_then(|at| {
            let segment = self.segments.get(at)?;
            let position = row - segment.first;
            (segment.rows.is_some() && position < segment.len as u64)
                .then_some((at, position as u32))
        });
        found.ok_or_else(|| Error::internal("a row was asked for after its release"))
    }

    /// The rows of one segment: those asked for when it is encoded, all of them when not.
    fn piece(&mut self, asked: &[(usize, u32)]) -> Result<RecordBatch> {
        let segment = &self.segments[asked[0].0];
        match &segment.rows {
            Some(Rows::Plain(batch)) => Ok(batch.clone()),
            Some(Rows::Encoded(batch)) => {
                let mut wanted = Selection::default();
                let list = wanted.set_rows(segment.len);
                list.extend(asked.iter().map(|(_, row)| *row));
                wanted.settle();
                batch.to_arrow(&wanted, &mut self.work)
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
                    batch.to_arrow(&Selection::all(segment.len), &mut self.work)?
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
                _ => Some(Rows::Encoded(self.encoder.encode_new(&rows)?)),
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
