//! `asof_join`: each left row with the right row of equal key that is nearest in time.
//!
//! A table of versions, each with the time it holds from, is looked up the same way: backward, in
//! a right stream that is read whole before the first left row is answered.

use std::collections::VecDeque;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use crate::operator::row::kept::NO_ROW;
use crate::operator::row::shape::{OUTPUT_ROWS, batch_of};
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::{Rejected, Source, SourceState};

use super::bucket::{Buckets, Held, early_rows};
use super::interval::{check_timed, picked};
use super::kind::{JoinKind, check_memory};
use super::side::{JoinColumns, SideKeys, bind_keys};
use super::table::{JoinSpec, describe, state_of};
use super::timed::{TimedInput, TimedRows, in_ticks, is_right_next};
use super::waiting::Waiting;

/// Where the row to join with lies in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// At the same time or before; of several at one time, the last to arrive.
    #[default]
    Backward,
    /// At the same time or after; of several at one time, the first to arrive.
    Forward,
    /// Before, not at the same time; of several at one time, the last to arrive.
    Before,
    /// After, not at the same time; of several at one time, the first to arrive.
    After,
    /// On either side, the nearer one; the earlier one when both are as near.
    Nearest,
}

/// What is joined with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AsOfSpec {
    /// Where the right row lies.
    pub direction: Direction,
    /// How far away it may be.
    pub tolerance: Option<Duration>,
}

impl AsOfSpec {
    /// Refuses what this join has no meaning for.
    ///
    /// # Errors
    /// `InvalidArgument` for kinds that keep right rows or a tolerance of no whole ticks,
    /// `Unsupported` for residual conditions.
    pub fn check(&self, spec: &JoinSpec, (columns, unit): (&JoinColumns, TimeUnit)) -> Result<()> {
        check_timed(spec, columns)?;
        if spec.options.residual.is_some() {
            let message = "a residual condition on an as-of join, which takes the nearest row";
            return Err(Error::unsupported(message)
                .hint("filter the right stream before, or what comes out of the join"));
        }
        match spec.kind {
            JoinKind::Inner | JoinKind::Left | JoinKind::LeftSemi | JoinKind::LeftAnti => {}
            other => {
                return Err(Error::invalid(format!("an as-of join cannot be {other:?}"))
                    .hint("inner, left, left semi and left anti go through the left rows"));
            }
        }
        self.tolerance(unit).map(|_| ())
    }

    /// The tolerance in ticks of `unit`; `None` where any distance will do.
    fn tolerance(&self, unit: TimeUnit) -> Result<Option<u64>> {
        let Some(tolerance) = self.tolerance else {
            return Ok(None);
        };
        let nanos = i128::try_from(tolerance.as_nanos());
        let nanos = nanos.map_err(|_| Error::invalid("the tolerance is too long"))?;
        let ticks = in_ticks("tolerance", nanos, unit)?;
        Ok(Some(ticks.unsigned_abs()))
    }
}

/// A join with the nearest row.
pub struct AsOf {
    inputs: [TimedInput; 2],
    keys: [SideKeys; 2],
    left: Buckets,
    right: Buckets,
    /// Left rows without an answer.
    waiting: Waiting,
    /// Pairs ready to come out, in order.
    output: VecDeque<(u64, u64)>,
    columns: JoinColumns,
    spec: JoinSpec,
    direction: Direction,
    /// Ticks; `None` where any distance will do.
    tolerance: Option<u64>,
    late_rows: u64,
    limit: Option<usize>,
    rejected: Rejected,
}

impl AsOf {
    /// A join of running inputs.
    ///
    /// # Errors
    /// What binding says.
    pub fn new(
        (left, right): (TimedInput, TimedInput),
        columns: JoinColumns,
        spec: &JoinSpec,
        (as_of, unit, limit): (&AsOfSpec, TimeUnit, Option<usize>),
    ) -> Result<Self> {
        let schemas = (left.schema(), right.schema());
        let null_equals_null = spec.options.null_equals_null;
        let keys = bind_keys((&schemas.0, &schemas.1), &spec.on, null_equals_null)?;
        Ok(AsOf {
            keys: [keys.0, keys.1],
            inputs: [left, right],
            left: Buckets::new(&schemas.0)?,
            right: Buckets::new(&schemas.1)?,
            waiting: Waiting::default(),
            output: VecDeque::new(),
            spec: spec.clone(),
            direction: as_of.direction,
            tolerance: as_of.tolerance(unit)?,
            columns,
            late_rows: 0,
            limit,
            rejected: Rejected::default(),
        })
    }

    fn byte_size(&self) -> usize {
        self.left.byte_size() + self.right.byte_size() + self.waiting.byte_size()
    }

    fn take(&mut self, side: usize, batch: TimedRows) -> Result<()> {
        let keyed = self.keys[side].of(&batch.rows)?;
        let buckets = if side == 0 {
            &mut self.left
        } else {
            &mut self.right
        };
        let first = buckets.keep(batch.rows)?;
        let rows = batch.times.len();
        let mut waiting = Vec::with_capacity(if side == 0 { rows } else { 0 });
        for (index, (time, watermark)) in batch.times.iter().zip(&batch.watermarks).enumerate() {
            let row = first + index as u64;
            if time < watermark {
                self.late_rows += 1;
                buckets.release(row);
            } else if side == 0 {
                waiting.push((*time, index as u32));
            } else if let Some(key) = keyed.key(index) {
                buckets.insert(key, *time, row);
            } else {
                buckets.release(row);
            }
        }
        if side == 0 {
            self.waiting.add((first, rows), waiting, &keyed);
        }
        Ok(())
    }

    /// Answers the left rows, in order, whose right row is certain, until there is enough to emit.
    ///
    /// # Errors
    /// What the interrupt says: rows without an answer are never enough.
    fn join(&mut self) -> Result<()> {
        let [left, right] = &self.inputs;
        let (left_mark, right_mark) = (left.watermark(), right.watermark());
        let mut pace = left.running().interrupt().pace();
        while self.output.len() < OUTPUT_ROWS
            && let Some((time, key)) = self.waiting.first()
        {
            pace.add(1)?;
            if left_mark != i64::MAX && time >= left_mark {
                break;
            }
            let distance = |held: &Held| held.time.abs_diff(time);
            let near = |held: &Held| self.tolerance.is_none_or(|most| distance(held) <= most);
            let found = key.and_then(|key| nearest(&mut self.right, key, time, self.direction));
            let found = found.filter(near);
            if right_mark != i64::MAX {
                // From this time on a row that comes changes nothing.
                let ahead = match (self.direction, found) {
                    (Direction::Backward | Direction::Before, _) => Some(0),
                    _ if key.is_none() => Some(0),
                    (_, Some(held)) => Some(distance(&held)),
                    (_, None) => self.tolerance,
                };
                let from = ahead.and_then(|ahead| time.checked_add_unsigned(ahead));
                if from.is_none_or(|from| from >= right_mark) {
                    break;
                }
            }
            let Some(row) = self.waiting.pop() else {
                break;
            };
            let kind = self.columns.kind;
            match found {
                Some(held) if kind.shows_right() => self.output.push_back((row, held.row)),
                Some(_) if kind == JoinKind::LeftSemi => self.output.push_back((row, NO_ROW)),
                None if kind.keeps_left() => self.output.push_back((row, NO_ROW)),
                _ => self.left.release(row),
            }
        }
        Ok(())
    }

    /// Drops right rows that no left row can be joined with any more.
    fn expire(&mut self) {
        if !self.right.wants_sweep() {
            return;
        }
        let first = self.waiting.first().map(|(time, _)| time);
        let mark = self.inputs[0].watermark();
        let frontier = first.map_or(mark, |time| time.min(mark));
        let tolerance = self.tolerance;
        let oldest = tolerance.map(|most| frontier.saturating_sub_unsigned(most));
        let direction = self.direction;
        let old = |rows: &[Held]| match direction {
            Direction::Forward | Direction::After => {
                rows.partition_point(|held| held.time < frontier)
            }
            _ => {
                let holds = |held: &Held| match direction {
                    Direction::Before => held.time < frontier,
                    _ => held.time <= frontier,
                };
                let newest = rows.partition_point(holds);
                let too_far = |held: &Held| oldest.is_some_and(|oldest| held.time < oldest);
                let expired = rows.partition_point(too_far);
                expired.max(newest.saturating_sub(1))
            }
        };
        let mut gone = Vec::new();
        self.right.sweep(old, |held| gone.push(held.row));
        gone.into_iter().for_each(|row| self.right.release(row));
    }

    fn emit(&mut self) -> Result<Option<RecordBatch>> {
        if self.output.is_empty() {
            return Ok(None);
        }
        let count = self.output.len().min(OUTPUT_ROWS);
        let pairs: Vec<(u64, u64)> = self.output.drain(..count).collect();
        let columns = picked(self.columns.kind, &pairs, (&mut self.left, &mut self.right))?;
        pairs.iter().for_each(|(left, _)| self.left.release(*left));
        batch_of(&self.columns.output, columns, count).map(Some)
    }
}

/// The row of `key` that is joined with a row at `time`.
fn nearest(right: &mut Buckets, key: &[u8], time: i64, direction: Direction) -> Option<Held> {
    match direction {
        Direction::Backward => right
            .parted(key, |held| held.time <= time)
            .0
            .last()
            .copied(),
        Direction::Before => right.parted(key, |held| held.time < time).0.last().copied(),
        Direction::Forward => right
            .parted(key, |held| held.time < time)
            .1
            .first()
            .copied(),
        Direction::After => right
            .parted(key, |held| held.time <= time)
            .1
            .first()
            .copied(),
        Direction::Nearest => {
            let (before, rest) = right.parted(key, |held| held.time < time);
            let same = early_rows(rest, 0, |held| held.time <= time);
            let found = match (rest[..same].last(), before.last(), rest.first()) {
                (None, Some(a), Some(b)) if b.time.abs_diff(time) < a.time.abs_diff(time) => b,
                (Some(a), ..) | (None, Some(a), _) | (None, None, Some(a)) => a,
                (None, None, None) => return None,
            };
            Some(*found)
        }
    }
}

impl AsOf {
    /// The next rows, without counting those that the inputs left out.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.join()?;
            if let Some(rows) = self.emit()? {
                return Ok(Some(rows));
            }
            self.expire();
            let [left, right] = &self.inputs;
            if left.is_ended() && right.is_ended() {
                return Ok(None);
            }
            let side = usize::from(is_right_next(left, right));
            if let Some(batch) = self.inputs[side].next_timed()? {
                self.take(side, batch)?;
            }
            check_memory(self.byte_size(), self.limit)?;
            if self.inputs[side].is_waiting() {
                return Ok(Some(RecordBatch::new_empty(self.schema())));
            }
        }
    }
}

impl Source for AsOf {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.columns.output)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.next_rows();
        let [left, right] = &self.inputs;
        let (left, right) = (left.running(), right.running());
        self.rejected.count_rows = left.rejected_rows() + right.rejected_rows();
        next
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        let [left, right] = &self.inputs;
        let mut state = state_of((left.state(), right.state()), self.byte_size());
        state.late_rows += self.late_rows;
        state
    }

    fn describe(&self) -> Vec<String> {
        let [left, right] = &self.inputs;
        describe(self.spec.label(), (left.running(), right.running()))
    }

    fn runs_queries(&self) -> bool {
        true
    }

    fn identity(&self) -> String {
        self.spec.identity()
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.inputs
            .iter_mut()
            .try_for_each(|input| input.snapshot(out))?;
        self.left.snapshot(out)?;
        self.right.snapshot(out)?;
        self.waiting.snapshot(out);
        out.list(self.output.iter(), |out, (left, right)| {
            out.u64(*left);
            out.u64(*right);
        });
        out.u64(self.late_rows);
        Ok(())
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.inputs
            .iter_mut()
            .try_for_each(|input| input.restore(from))?;
        self.left.restore(from)?;
        self.right.restore(from)?;
        self.waiting.restore(from)?;
        self.output = from.list(|from| Ok((from.u64()?, from.u64()?)))?;
        self.late_rows = from.u64()?;
        Ok(())
    }
}
