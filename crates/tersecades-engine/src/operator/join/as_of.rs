//! `asof_join`: each left row with the right row of equal key that is nearest in time.
//!
//! A table of versions, each with the time it holds from, is looked up the same way: backward, in
//! a right stream that is read whole before the first left row is answered.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use crate::operator::row::kept::NO_ROW;
use crate::operator::row::shape::{OUTPUT_ROWS, batch_of};
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::{Rejected, Source, SourceState};

use super::bucket::{Buckets, Held};
use super::interval::{check_timed, picked, read_place, write_place};
use super::kind::{JoinKind, check_memory};
use super::side::{JoinColumns, SideKeys, bind_keys};
use super::table::{JoinSpec, describe, state_of};
use super::timed::{TimedInput, TimedRows, in_ticks, is_right_next};

/// Where the row to join with lies in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// At the same time or before; of several at one time, the last to arrive.
    #[default]
    Backward,
    /// At the same time or after; of several at one time, the first to arrive.
    Forward,
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

    fn tolerance(&self, unit: TimeUnit) -> Result<i64> {
        let Some(tolerance) = self.tolerance else {
            return Ok(i64::MAX);
        };
        let nanos = i128::try_from(tolerance.as_nanos());
        let nanos = nanos.map_err(|_| Error::invalid("the tolerance is too long"))?;
        in_ticks("tolerance", nanos, unit)
    }
}

/// A join with the nearest row.
pub struct AsOf {
    inputs: [TimedInput; 2],
    keys: [SideKeys; 2],
    left: Buckets,
    right: Buckets,
    /// Left rows by time and number, with their keys.
    waiting: BTreeMap<(i64, u64), Option<Box<[u8]>>>,
    /// Pairs ready to come out, in order.
    output: Vec<(u64, u64)>,
    columns: JoinColumns,
    spec: JoinSpec,
    direction: Direction,
    tolerance: i64,
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
            waiting: BTreeMap::new(),
            output: Vec::new(),
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
        let kept = self.left.byte_size() + self.right.byte_size();
        kept + self.waiting.len() * 64
    }

    fn take(&mut self, side: usize, batch: TimedRows) -> Result<()> {
        let keyed = self.keys[side].of(&batch.rows)?;
        let buckets = if side == 0 {
            &mut self.left
        } else {
            &mut self.right
        };
        let first = buckets.keep(batch.rows)?;
        for (index, (time, watermark)) in batch.times.iter().zip(&batch.watermarks).enumerate() {
            let row = first + index as u64;
            let key = keyed.key(index);
            if time < watermark {
                self.late_rows += 1;
                buckets.release(row);
            } else if side == 0 {
                self.waiting.insert((*time, row), key.map(Into::into));
            } else if let Some(key) = key {
                buckets.insert(key, *time, row);
            } else {
                buckets.release(row);
            }
        }
        Ok(())
    }

    /// Answers the left rows, in order, whose right row is certain.
    fn join(&mut self) {
        let [left, right] = &self.inputs;
        let (left_mark, right_mark) = (left.watermark(), right.watermark());
        while let Some(entry) = self.waiting.first_entry() {
            let time = entry.key().0;
            if left_mark != i64::MAX && time >= left_mark {
                break;
            }
            let candidates = match entry.get() {
                Some(key) => &*self.right.of(key),
                None => &[],
            };
            let found = nearest(candidates, time, self.direction, self.tolerance);
            if right_mark != i64::MAX {
                // From this time on a row that comes changes nothing.
                let ahead = match self.direction {
                    Direction::Backward => 0,
                    _ if entry.get().is_none() => 0,
                    _ => found.map_or(self.tolerance, |held| held.time.abs_diff(time) as i64),
                };
                let certain = time.checked_add(ahead).is_some_and(|t| t < right_mark);
                if !certain {
                    break;
                }
            }
            let ((_, row), _) = entry.remove_entry();
            let kind = self.columns.kind;
            match found {
                Some(held) if kind.shows_right() => self.output.push((row, held.row)),
                Some(_) if kind == JoinKind::LeftSemi => self.output.push((row, NO_ROW)),
                None if kind.keeps_left() => self.output.push((row, NO_ROW)),
                _ => self.left.release(row),
            }
        }
    }

    /// Drops right rows that no left row can be joined with any more.
    fn expire(&mut self) {
        if !self.right.wants_sweep() {
            return;
        }
        let first = self.waiting.first_key_value().map(|((time, _), _)| *time);
        let mark = self.inputs[0].watermark();
        let frontier = first.map_or(mark, |time| time.min(mark));
        let oldest = frontier.saturating_sub(self.tolerance);
        let backward = self.direction != Direction::Forward;
        let old = |rows: &[Held]| match backward {
            false => rows.partition_point(|held| held.time < frontier),
            true => {
                let newest = rows.partition_point(|held| held.time <= frontier);
                let expired = rows.partition_point(|held| held.time < oldest);
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

/// The row of `candidates` that is joined with a row at `time`.
fn nearest(candidates: &[Held], time: i64, direction: Direction, tolerance: i64) -> Option<Held> {
    let near = |held: &&Held| held.time.abs_diff(time) <= tolerance.unsigned_abs();
    let after = candidates.partition_point(|held| held.time <= time);
    let before = after.checked_sub(1).and_then(|at| candidates.get(at));
    let before = before.filter(near);
    let from = candidates.partition_point(|held| held.time < time);
    let next = candidates.get(from).filter(near);
    let found = match direction {
        Direction::Backward => before,
        Direction::Forward => next,
        Direction::Nearest => match (before, next) {
            (Some(a), Some(b)) if b.time.abs_diff(time) < a.time.abs_diff(time) => Some(b),
            (Some(a), _) => Some(a),
            (None, next) => next,
        },
    };
    found.copied()
}

impl Source for AsOf {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.columns.output)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(rows) = self.emit()? {
                return Ok(Some(rows));
            }
            self.expire();
            let [left, right] = &self.inputs;
            if left.is_ended() && right.is_ended() {
                let running = (left.running(), right.running());
                let rejected = running.0.rejected_rows() + running.1.rejected_rows();
                self.rejected.count_rows = rejected;
                return Ok(None);
            }
            let side = usize::from(is_right_next(left, right));
            if let Some(batch) = self.inputs[side].next_timed()? {
                self.take(side, batch)?;
            }
            self.join();
            check_memory(self.byte_size(), self.limit)?;
        }
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        let [left, right] = &self.inputs;
        let mut state = state_of((left.running(), right.running()), self.byte_size());
        state.late_rows += self.late_rows;
        state.untimed_rows += left.untimed_rows + right.untimed_rows;
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
        out.list(self.waiting.iter(), |out, (row, key)| {
            write_place(out, row);
            out.key(key.as_deref());
        });
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
        self.waiting = from.list(|from| Ok((read_place(from)?, from.key()?)))?;
        self.output = from.list(|from| Ok((from.u64()?, from.u64()?)))?;
        self.late_rows = from.u64()?;
        Ok(())
    }
}
