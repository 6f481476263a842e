//! `interval_join`: rows with equal keys whose times differ by an amount within bounds.
//!
//! A left row is joined when no row that could be its pair, and no left row before it, can still
//! come; so pairs come out in order of time, and a row is kept no longer than its bounds ask for.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use crate::operator::row::kept::NO_ROW;
use crate::operator::row::shape::{OUTPUT_ROWS, batch_of};
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::{Rejected, Source, SourceState};

use super::bucket::{Buckets, Held};
use super::kind::{JoinKind, check_memory};
use super::residual::Residual;
use super::side::{JoinColumns, SideKeys, bind_keys};
use super::table::{JoinSpec, describe, state_of};
use super::timed::{TimedInput, TimedRows, in_ticks, is_right_next};
use super::waiting::{Waiting, read_place, write_place};

/// The least and the greatest `time of the right row - time of the left row`, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalSpec {
    /// The least, included.
    pub lower_ns: i64,
    /// The greatest, included.
    pub upper_ns: i64,
}

/// Refuses what no join by time does.
///
/// # Errors
/// `InvalidArgument` for cross joins, what binding the residual condition says.
pub(super) fn check_timed(spec: &JoinSpec, columns: &JoinColumns) -> Result<()> {
    if spec.kind == JoinKind::Cross {
        return Err(Error::invalid("a cross join has no times").hint("use an inner join"));
    }
    Residual::bind(spec.options.residual.as_ref(), columns).map(|_| ())
}

impl IntervalSpec {
    /// Refuses what this join has no meaning for.
    ///
    /// # Errors
    /// `InvalidArgument` for bounds in the wrong order or of no whole number of ticks.
    pub fn check(&self, spec: &JoinSpec, (columns, unit): (&JoinColumns, TimeUnit)) -> Result<()> {
        check_timed(spec, columns)?;
        if self.lower_ns > self.upper_ns {
            return Err(Error::invalid("the lower bound is above the upper one"));
        }
        self.in_ticks(unit).map(|_| ())
    }

    fn in_ticks(&self, unit: TimeUnit) -> Result<(i64, i64)> {
        let lower = in_ticks("lower bound", self.lower_ns.into(), unit)?;
        let upper = in_ticks("upper bound", self.upper_ns.into(), unit)?;
        Ok((lower, upper))
    }
}

/// A left row whose pairs are all there, and which rows of its key are near enough.
struct Complete {
    time: i64,
    row: u64,
    key: Option<Box<[u8]>>,
    near: Range<usize>,
}

/// A join by distance in time.
pub struct IntervalJoin {
    inputs: [TimedInput; 2],
    keys: [SideKeys; 2],
    left: Buckets,
    right: Buckets,
    /// Left rows whose pairs are not all there.
    waiting: Waiting,
    /// Right rows without a pair so far, where such rows come out.
    unpaired: BTreeSet<(i64, u64)>,
    /// What comes out, by its time, left and right row.
    output: BTreeSet<(i64, u64, u64)>,
    /// Rows to let go of when everything up to their time has come out.
    left_past: VecDeque<(i64, u64)>,
    right_past: BTreeSet<(i64, u64)>,
    columns: JoinColumns,
    residual: Residual,
    spec: JoinSpec,
    bounds: (i64, i64),
    late_rows: u64,
    limit: Option<usize>,
    rejected: Rejected,
}

impl IntervalJoin {
    /// A join of running inputs.
    ///
    /// # Errors
    /// What binding says.
    pub fn new(
        (left, right): (TimedInput, TimedInput),
        columns: JoinColumns,
        spec: &JoinSpec,
        (interval, unit, limit): (&IntervalSpec, TimeUnit, Option<usize>),
    ) -> Result<Self> {
        let schemas = (left.schema(), right.schema());
        let null_equals_null = spec.options.null_equals_null;
        let keys = bind_keys((&schemas.0, &schemas.1), &spec.on, null_equals_null)?;
        Ok(IntervalJoin {
            keys: [keys.0, keys.1],
            inputs: [left, right],
            left: Buckets::new(&schemas.0)?,
            right: Buckets::new(&schemas.1)?,
            waiting: Waiting::default(),
            unpaired: BTreeSet::new(),
            output: BTreeSet::new(),
            left_past: VecDeque::new(),
            right_past: BTreeSet::new(),
            spec: spec.clone(),
            bounds: interval.in_ticks(unit)?,
            residual: Residual::bind(spec.options.residual.as_ref(), &columns)?,
            columns,
            late_rows: 0,
            limit,
            rejected: Rejected::default(),
        })
    }

    fn byte_size(&self) -> usize {
        let rows = self.left.byte_size() + self.right.byte_size();
        let kept = rows + self.waiting.byte_size();
        let nodes = self.output.len() + self.unpaired.len();
        kept + (nodes + self.left_past.len() + self.right_past.len()) * 48
    }

    fn take_left(&mut self, batch: TimedRows) -> Result<()> {
        let keyed = self.keys[0].of(&batch.rows)?;
        let first = self.left.keep(batch.rows)?;
        let rows = batch.times.len();
        let mut waiting = Vec::with_capacity(rows);
        for (index, (time, watermark)) in batch.times.iter().zip(&batch.watermarks).enumerate() {
            let row = first + index as u64;
            if time < watermark {
                self.late_rows += 1;
                self.left.release(row);
                continue;
            }
            waiting.push((*time, index as u32));
        }
        self.waiting.add((first, rows), waiting, &keyed);
        Ok(())
    }

    fn take_right(&mut self, batch: TimedRows) -> Result<()> {
        let keyed = self.keys[1].of(&batch.rows)?;
        let first = self.right.keep(batch.rows)?;
        for (index, (time, watermark)) in batch.times.iter().zip(&batch.watermarks).enumerate() {
            let row = first + index as u64;
            if time < watermark {
                self.late_rows += 1;
                self.right.release(row);
                continue;
            }
            let key = keyed.key(index);
            if let Some(key) = key {
                self.right.insert(key, *time, row);
            }
            if self.columns.kind.keeps_right() {
                self.unpaired.insert((*time, row));
            } else if key.is_none() {
                self.right.release(row);
            }
        }
        Ok(())
    }

    /// Left rows before this time have all their pairs.
    fn frontier(&self) -> i64 {
        let [left, right] = &self.inputs;
        let right = match right.watermark() {
            i64::MAX => i64::MAX,
            watermark => watermark.saturating_sub(self.bounds.1),
        };
        left.watermark().min(right)
    }

    /// Joins the left rows whose pairs are all there.
    fn join(&mut self, frontier: i64) -> Result<()> {
        let done = |time: i64| time < frontier || frontier == i64::MAX;
        let (mut complete, mut pairs) = (Vec::new(), Vec::new());
        let mut pace = self.inputs[0].running().interrupt().pace();
        while let Some((time, key)) = self.waiting.first().filter(|(time, _)| done(*time)) {
            pace.add(1)?;
            let key: Option<Box<[u8]>> = key.map(Into::into);
            let Some(row) = self.waiting.pop() else {
                break;
            };
            self.left_past.push_back((time, row));
            let candidates = key.as_deref().map_or(&mut [][..], |key| self.right.of(key));
            let from = time.saturating_add(self.bounds.0);
            let to = time.saturating_add(self.bounds.1);
            let first = candidates.partition_point(|held| held.time < from);
            let count = candidates[first..].partition_point(|held| held.time <= to);
            let near = first..first + count;
            if self.residual.is_some() {
                pairs.extend(candidates[near.clone()].iter().map(|held| (row, held.row)));
            }
            complete.push(Complete {
                time,
                row,
                key,
                near,
            });
        }
        let (left, right) = (&mut self.left, &mut self.right);
        let passing = self.residual.passing(&pairs, |pairs| {
            picked(JoinKind::Inner, pairs, (&mut *left, &mut *right))
        })?;
        let mut passing = passing.map(Vec::into_iter);
        for row in complete {
            self.inputs[0].running().check_interrupt()?;
            self.pair(row, || {
                let next = passing.as_mut().map(Iterator::next);
                next.is_none_or(|passes| passes == Some(true))
            });
        }
        Ok(())
    }

    /// Hands on a left row with those of its candidates that pass.
    fn pair(&mut self, left: Complete, mut passes: impl FnMut() -> bool) {
        let Complete { time, row, .. } = left;
        let kind = self.columns.kind;
        let key = left.key.as_deref();
        let candidates = key.map_or(&mut [][..], |key| self.right.of(key));
        let mut paired = false;
        for held in &mut candidates[left.near] {
            if !passes() {
                continue;
            }
            if !std::mem::replace(&mut held.paired, true) {
                self.unpaired.remove(&(held.time, held.row));
                if kind == JoinKind::RightSemi {
                    self.output.insert((held.time, NO_ROW, held.row));
                }
            }
            if kind.shows_pairs() {
                let at = if kind == JoinKind::Right {
                    held.time
                } else {
                    time
                };
                self.output.insert((at, row, held.row));
            }
            paired = true;
        }
        let shown = match paired {
            true => kind == JoinKind::LeftSemi,
            false => kind.keeps_left(),
        };
        if shown {
            self.output.insert((time, row, NO_ROW));
        }
    }

    /// Drops right rows that no left row can be joined with any more; those without a pair, which
    /// may have to come out, at once.
    fn expire(&mut self, frontier: i64) {
        let ended = frontier == i64::MAX;
        // Left rows from the frontier on reach back to this time.
        let horizon = frontier.saturating_add(self.bounds.0);
        while let Some((time, row)) = self.unpaired.first().copied() {
            if !ended && time >= horizon {
                break;
            }
            self.unpaired.pop_first();
            self.output.insert((time, NO_ROW, row));
            self.right_past.insert((time, row));
        }
        if !ended && !self.right.wants_sweep() {
            return;
        }
        let old = |held: &Held| ended || held.time < horizon;
        let keeps_right = self.columns.kind.keeps_right();
        self.right.sweep(
            |rows| rows.partition_point(old),
            |held| {
                // Those that came out without a pair went by themselves.
                if held.paired || !keeps_right {
                    self.right_past.insert((held.time, held.row));
                }
            },
        );
    }

    /// The next rows of what can come out: nothing before them can come any more.
    fn emit(&mut self, frontier: i64) -> Result<Option<RecordBatch>> {
        let ended = frontier == i64::MAX;
        let bound = frontier.saturating_add(self.bounds.0.min(0));
        let mut pairs = Vec::new();
        while let Some((time, left, right)) = self.output.first().copied() {
            if (!ended && time >= bound) || pairs.len() >= OUTPUT_ROWS {
                break;
            }
            self.output.pop_first();
            pairs.push((left, right));
        }
        if pairs.is_empty() {
            self.release(bound, ended);
            return Ok(None);
        }
        let columns = picked(self.columns.kind, &pairs, (&mut self.left, &mut self.right))?;
        batch_of(&self.columns.output, columns, pairs.len()).map(Some)
    }

    /// Lets go of rows that everything made of them has come out of.
    fn release(&mut self, bound: i64, ended: bool) {
        // A pair may come out at the time of its left row, which is so much later.
        let reach = self.bounds.0.min(0);
        while let Some((time, row)) = self.left_past.front().copied() {
            if !ended && time.saturating_add(self.bounds.1.max(0)) >= bound {
                break;
            }
            self.left_past.pop_front();
            self.left.release(row);
        }
        while let Some((time, row)) = self.right_past.first().copied() {
            if !ended && time.saturating_sub(reach) >= bound {
                break;
            }
            self.right_past.pop_first();
            self.right.release(row);
        }
    }
}

/// The columns of `pairs` of rows.
///
/// # Errors
/// What decoding says.
pub(super) fn picked(
    kind: JoinKind,
    pairs: &[(u64, u64)],
    (left, right): (&mut Buckets, &mut Buckets),
) -> Result<Vec<ArrayRef>> {
    let mut columns = Vec::new();
    if kind.shows_left() {
        let rows: Vec<u64> = pairs.iter().map(|(left, _)| *left).collect();
        columns.extend(left.pick(&rows)?);
    }
    if kind.shows_right() {
        let rows: Vec<u64> = pairs.iter().map(|(_, right)| *right).collect();
        columns.extend(right.pick(&rows)?);
    }
    Ok(columns)
}

impl IntervalJoin {
    /// The next rows, without counting those that the inputs left out.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let frontier = self.frontier();
            if let Some(rows) = self.emit(frontier)? {
                return Ok(Some(rows));
            }
            let [left, right] = &self.inputs;
            if left.is_ended() && right.is_ended() {
                return Ok(None);
            }
            let side = usize::from(is_right_next(left, right));
            match (self.inputs[side].next_timed()?, side) {
                (Some(batch), 0) => self.take_left(batch)?,
                (Some(batch), _) => self.take_right(batch)?,
                (None, _) => {}
            }
            let frontier = self.frontier();
            self.join(frontier)?;
            self.expire(frontier);
            check_memory(self.byte_size(), self.limit)?;
            if self.inputs[side].is_waiting() {
                return Ok(Some(RecordBatch::new_empty(self.schema())));
            }
        }
    }
}

impl Source for IntervalJoin {
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
        out.list(self.unpaired.iter(), write_place);
        out.list(self.output.iter(), |out, (time, left, right)| {
            write_place(out, &(*time, *left));
            out.u64(*right);
        });
        out.list(self.left_past.iter(), write_place);
        out.list(self.right_past.iter(), write_place);
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
        self.unpaired = from.list(read_place)?;
        self.output = from.list(|from| {
            let (time, left) = read_place(from)?;
            Ok((time, left, from.u64()?))
        })?;
        self.left_past = from.list(read_place)?;
        self.right_past = from.list(read_place)?;
        self.late_rows = from.u64()?;
        Ok(())
    }
}
