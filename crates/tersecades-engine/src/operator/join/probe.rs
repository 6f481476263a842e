//! Rows of the left stream of a join of equal keys on their way past the right one.
//!
//! ```text
//! left rows ──key──▶ first candidate ▶ next one ▶ …   pairs ──condition──▶ rows that come out
//! ```

use std::collections::VecDeque;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::SchemaRef;
use arrow_select::take::take as take_array;
use tersecades_columnar::error::{Error, Result};

use crate::operator::row::kept::NO_ROW;
use crate::operator::row::shape::{OUTPUT_ROWS, batch_of, read_batches, read_rows};
use crate::operator::row::shape::{write_batches, write_rows};
use crate::runtime::Interrupt;
use crate::runtime::state::{StateReader, StateWriter};

use super::built::{Built, END};
use super::kind::JoinKind;
use super::pair_condition::PairCondition;
use super::side::{JoinColumns, SideKeys};

/// Rows of the left stream.
pub(super) struct Probe {
    rows: RecordBatch,
    /// The first candidate of each row, once they are looked at.
    firsts: Option<Vec<u32>>,
    /// The row that is next to be looked at, and its next candidate once it has begun.
    row: usize,
    candidate: Option<u32>,
    /// Whether that row has had a pair already.
    paired: bool,
    /// What was made of rows before and has not come out.
    pub(super) made: VecDeque<RecordBatch>,
    /// Candidates that were looked at.
    pub(super) looked_at: usize,
    /// What went wrong behind what was made.
    pub(super) failed: Option<Error>,
}

impl Probe {
    /// Rows that have yet to go past the right stream.
    pub(super) fn new(rows: RecordBatch) -> Self {
        Probe {
            rows,
            firsts: None,
            row: 0,
            candidate: None,
            paired: false,
            made: VecDeque::new(),
            looked_at: 0,
            failed: None,
        }
    }

    /// Rows that have not gone past all of the right stream.
    pub(super) fn left(&self) -> usize {
        self.rows.num_rows() - self.row
    }

    /// Leaves of the rows that have not gone past `rows` ones; the others, if there are some.
    pub(super) fn split_off(&mut self, rows: usize) -> Option<Probe> {
        let end = self.row + rows.max(1);
        let others = self.rows.num_rows().checked_sub(end).filter(|it| *it > 0)?;
        let firsts = self.firsts.as_mut().map(|firsts| firsts.split_off(end));
        let behind = Probe {
            firsts,
            ..Probe::new(self.rows.slice(end, others))
        };
        self.rows = self.rows.slice(0, end);
        Some(behind)
    }

    /// Writes where it stands.
    ///
    /// # Errors
    /// What encoding says.
    pub(super) fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        write_rows(&self.rows.slice(self.row, self.left()), out)?;
        out.u64(self.candidate.map_or(u64::MAX, u64::from));
        out.bool(self.paired);
        write_batches(&self.made, out)
    }

    /// Reads what [`Probe::snapshot`] wrote: rows of the schema `left`, of which such of the schema
    /// `output` were made.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it, or name a candidate of more than `built` rows.
    pub(super) fn restore(
        from: &mut StateReader<'_>,
        (left, output): (&SchemaRef, &SchemaRef),
        built: usize,
    ) -> Result<Self> {
        let mut probe = Probe::new(read_rows(left, from)?);
        let candidate = from.u64()?;
        if candidate != u64::MAX {
            if candidate >= built as u64 {
                return Err(Error::corrupt("a snapshot names a row that it lacks"));
            }
            probe.candidate = Some(candidate as u32);
        }
        probe.paired = from.bool()?;
        probe.made = read_batches(output, from)?;
        Ok(probe)
    }
}

/// What rows of the left stream go past, and what comes out.
pub(super) struct Pairing {
    pub(super) built: Built,
    pub(super) keys: (SideKeys, SideKeys),
    pub(super) residual: Option<PairCondition>,
    pub(super) columns: JoinColumns,
    /// Positions of the left and of the right columns that come out.
    pub(super) shown: (Vec<usize>, Vec<usize>),
}

impl Pairing {
    /// Bytes of memory.
    pub(super) fn byte_size(&self) -> usize {
        let residual = self.residual.as_ref().map_or(0, PairCondition::byte_size);
        self.built.byte_size() + residual
    }

    /// Makes rows of those of the probe, until it has gone past all, has made `batches` of them or
    /// failed.
    pub(super) fn advance(&self, probe: &mut Probe, batches: usize, interrupt: &Interrupt) {
        while probe.failed.is_none() && probe.left() > 0 && probe.made.len() < batches {
            let stands = (probe.row, probe.candidate, probe.paired);
            // A condition that no pair passes gives nothing for long.
            let made = interrupt.check().and_then(|()| self.make_some(probe));
            match made {
                Ok(made) => probe.made.extend(made),
                Err(error) => {
                    (probe.row, probe.candidate, probe.paired) = stands;
                    probe.failed = Some(error);
                }
            }
        }
    }

    /// Candidate pairs from where the probe stands: left row, right row.
    ///
    /// The last left row may have more of them.
    fn candidates(&self, probe: &mut Probe, firsts: &[u32]) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        // Without a condition the first candidate says that there is a pair.
        let one = self.residual.is_none() && self.columns.kind == JoinKind::LeftSemi;
        while probe.row < probe.rows.num_rows() {
            let first = firsts[probe.row];
            let mut candidate = probe.candidate.take().unwrap_or(first);
            while candidate != END {
                if pairs.len() >= OUTPUT_ROWS {
                    probe.candidate = Some(candidate);
                    return pairs;
                }
                pairs.push((probe.row as u32, candidate));
                candidate = if one {
                    END
                } else {
                    self.built.after(candidate)
                };
            }
            probe.row += 1;
        }
        pairs
    }

    /// The next rows from the probe; `None` when there are none among those looked at.
    fn make_some(&self, probe: &mut Probe) -> Result<Option<RecordBatch>> {
        let first = probe.row;
        let carried = probe.paired;
        let firsts = match probe.firsts.take() {
            Some(firsts) => firsts,
            None => self.built.firsts(&probe.rows, &self.keys.0)?,
        };
        let mut pairs = self.candidates(probe, &firsts);
        probe.firsts = Some(firsts);
        probe.looked_at += pairs.len();
        if let Some(residual) = &self.residual
            && !pairs.is_empty()
        {
            pairs = residual.passing(&probe.rows, &self.built.rows, pairs)?;
        }
        self.built.pair(&pairs);
        let kind = self.columns.kind;
        let mut output: Vec<(Option<u32>, u64)> = Vec::new();
        let mut rest = pairs.as_slice();
        for row in first..probe.row.max(first) {
            let own = rest.iter().take_while(|(left, _)| *left == row as u32);
            let own = own.count();
            let (own, following) = rest.split_at(own);
            rest = following;
            let before = row == first && carried;
            emit(kind, row as u32, (own, before, true), &mut output);
        }
        probe.paired = false;
        if probe.left() > 0 {
            let before = probe.row == first && carried;
            emit(kind, probe.row as u32, (rest, before, false), &mut output);
            probe.paired = before || !rest.is_empty();
        }
        match output.is_empty() {
            true => Ok(None),
            false => self.make(Some(&probe.rows), &output).map(Some),
        }
    }

    /// Rows of the right stream from `row` on that come out after the left one has ended, and the
    /// row behind those looked at.
    ///
    /// # Errors
    /// What decoding says.
    pub(super) fn sweep(&self, mut row: usize) -> Result<(Option<RecordBatch>, usize)> {
        let wanted = match self.columns.kind {
            JoinKind::RightSemi => true,
            kind if kind.keeps_right() => false,
            _ => return Ok((None, row)),
        };
        let mut output = Vec::new();
        while row < self.built.len() && output.len() < OUTPUT_ROWS {
            if self.built.is_paired(row) == wanted {
                output.push((None, row as u64));
            }
            row += 1;
        }
        match output.is_empty() {
            true => Ok((None, row)),
            false => Ok((Some(self.make(None, &output)?), row)),
        }
    }

    fn make(
        &self,
        left: Option<&RecordBatch>,
        output: &[(Option<u32>, u64)],
    ) -> Result<RecordBatch> {
        let rows = output.len();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.columns.output.fields().len());
        let positions: UInt32Array = match self.shown.0.is_empty() {
            true => UInt32Array::new_null(0),
            false => output.iter().map(|(left, _)| *left).collect(),
        };
        for index in &self.shown.0 {
            columns.push(match left {
                Some(rows) => take_array(rows.column(*index), &positions, None)?,
                None => new_null_array(self.columns.both.field(*index).data_type(), rows),
            });
        }
        if !self.shown.1.is_empty() {
            let rights: Vec<u64> = output.iter().map(|(_, right)| *right).collect();
            let kept = &self.built.rows;
            columns.extend(kept.pick_columns(&self.shown.1, &rights, &Interrupt::default())?);
        }
        batch_of(&self.columns.output, columns, rows)
    }
}

fn as_output(pairs: &[(u32, u32)]) -> impl Iterator<Item = (Option<u32>, u64)> {
    let pairs = pairs.iter();
    pairs.map(|(left, right)| (Some(*left), u64::from(*right)))
}

/// What comes out for one left row: its `pairs` of this part, whether it had some before, and
/// whether it has all of them now.
fn emit(
    kind: JoinKind,
    row: u32,
    (pairs, before, complete): (&[(u32, u32)], bool, bool),
    output: &mut Vec<(Option<u32>, u64)>,
) {
    let paired = before || !pairs.is_empty();
    match kind {
        JoinKind::LeftSemi if !before && !pairs.is_empty() => output.push((Some(row), NO_ROW)),
        _ if kind.shows_pairs() => output.extend(as_output(pairs)),
        _ => {}
    }
    if complete && !paired && kind.keeps_left() {
        output.push((Some(row), NO_ROW));
    }
}
