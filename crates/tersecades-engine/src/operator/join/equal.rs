//! `join`: the right stream is kept whole and indexed by key, the left one goes past it.
//!
//! ```text
//! left rows at hand   ▓▓▓▓ ▓▓▓▓ ▓▓▓▓ ░░░░░░░░░░   a piece for each thread; what lies behind waits
//!                       │    │    │
//!                       ▼    ▼    ▼               past the right stream, a few batches each
//! rows that come out  ████ ████ ████              in the order of the left rows
//! ```

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};

use crate::expression::Expression;
use crate::operator::row::shape::OUTPUT_ROWS;
use crate::runtime::Running;
use crate::runtime::on_thread::on_threads;
use crate::runtime::option::RunOptions;
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::{Rejected, Source, SourceState};

use super::built::Built;
use super::kind::{JoinKind, check_memory};
use super::pair_condition::PairCondition;
use super::probe::{Pairing, Probe};
use super::side::{JoinColumns, bind_keys};
use super::table::{JoinSpec, describe, state_of};

/// Batches that a thread makes of a piece before others get their turn.
const MADE_MAX: usize = 4;

/// Fewer left rows than this are not shared out: starting a thread takes about as long.
const PIECE_ROWS_MIN: usize = 4_096;

/// A join of equal keys.
pub struct EqualJoin {
    left: Running,
    right: Running,
    pairing: Pairing,
    spec: JoinSpec,
    is_built: bool,
    /// Left rows that have not gone past the right ones, or of which not all has come out.
    probes: VecDeque<Probe>,
    /// The event time of what comes out.
    time: Option<Expression>,
    /// The least event time of left rows that were taken last and those to come, where they come in
    /// no order of it.
    oldest: Option<i64>,
    /// How many threads look for pairs, the caller's among them.
    threads: usize,
    /// Left rows that went past the right ones, and candidates that they met.
    passed: (usize, usize),
    /// Right rows looked at, at the end.
    swept: usize,
    limit: Option<usize>,
    rejected: Rejected,
}

impl EqualJoin {
    /// Refuses what this join has no meaning for.
    ///
    /// # Errors
    /// What binding the residual condition says; `InvalidArgument` for a cross join with keys.
    pub fn check(spec: &JoinSpec, columns: &JoinColumns) -> Result<()> {
        if spec.kind == JoinKind::Cross && !spec.on.is_empty() {
            return Err(Error::invalid("a cross join has no keys").hint("use an inner join"));
        }
        let residual = spec.options.residual.as_ref();
        residual.map_or(Ok(()), |condition| {
            PairCondition::bind(condition, columns).map(|_| ())
        })
    }

    /// A join of running inputs, of which the `wanted` columns come out.
    ///
    /// # Errors
    /// What binding says.
    pub fn new(
        (left, right): (Running, Running),
        (mut columns, wanted): (JoinColumns, Option<&[String]>),
        spec: &JoinSpec,
        options: &RunOptions,
    ) -> Result<Self> {
        let schemas = (left.schema(), right.schema());
        let residual = spec.options.residual.as_ref();
        let bind = |condition| PairCondition::bind(condition, &columns);
        let residual = residual.map(bind).transpose()?;
        let shown = columns.show(wanted)?;
        let null_equals_null = spec.options.null_equals_null;
        let keys = bind_keys((&schemas.0, &schemas.1), &spec.on, null_equals_null)?;
        let kind = columns.kind;
        let asks_paired = kind == JoinKind::RightSemi || kind.keeps_right();
        let limit = options.memory_bytes_limit;
        Ok(EqualJoin {
            pairing: Pairing {
                built: Built::new(&schemas.1, &keys.1, asks_paired)?,
                keys,
                residual,
                columns,
                shown,
            },
            spec: spec.clone(),
            is_built: false,
            probes: VecDeque::new(),
            time: None,
            oldest: left.oldest_to_come(),
            // What threads make is held until it comes out.
            threads: limit.map_or(options.threads.max(1), |_| 1),
            passed: (0, 0),
            swept: 0,
            left,
            right,
            limit,
            rejected: Rejected::default(),
        })
    }

    /// The same join, whose rows have the event time `time`.
    pub fn timed_by(mut self, time: Expression) -> Self {
        self.time = Some(time);
        self
    }

    /// Reads the right stream to its end.
    fn build(&mut self) -> Result<()> {
        while let Some(rows) = self.right.next().transpose()? {
            let keys = &self.pairing.keys.1;
            self.pairing.built.add(rows, keys, self.threads)?;
            let bytes = self.pairing.byte_size() + self.right.state_bytes();
            check_memory(bytes, self.limit)?;
        }
        self.is_built = true;
        Ok(())
    }

    /// What was made of the first left rows that are at hand, or what went wrong with them.
    fn given(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(probe) = self.probes.front_mut() {
            if let Some(rows) = probe.made.pop_front() {
                return Ok(Some(rows));
            }
            if let Some(error) = probe.failed.take() {
                return Err(error);
            }
            if probe.left() > 0 {
                return Ok(None);
            }
            self.probes.pop_front();
        }
        Ok(None)
    }

    /// Takes left rows, the next ones and what is ready behind them; how many the next are, where
    /// they have not ended.
    fn pull(&mut self) -> Result<Option<usize>> {
        self.oldest = self.left.oldest_to_come();
        let Some(rows) = self.left.next_at_hand()? else {
            return Ok(None);
        };
        let count = rows.num_rows();
        self.probes.push_back(Probe::new(rows));
        while self.probes.len() < self.threads
            && let Some(rows) = self.left.take_result()
        {
            self.probes.push_back(Probe::new(rows));
        }
        Ok(Some(count))
    }

    /// Left rows that one thread is to take at once.
    fn piece_rows(&self) -> usize {
        let at_hand: usize = self.probes.iter().map(Probe::left).sum();
        let share = at_hand.div_ceil(self.threads).max(PIECE_ROWS_MIN);
        match self.passed {
            // Nothing says how many pairs there are.
            (0, _) => PIECE_ROWS_MIN,
            (rows, pairs) => {
                let most = (MADE_MAX - 1) * OUTPUT_ROWS;
                let most = (most as u64).saturating_mul(rows as u64) / (pairs as u64).max(1);
                share
                    .min(usize::try_from(most).unwrap_or(usize::MAX))
                    .max(1)
            }
        }
    }

    /// Sends left rows past the right ones, on several threads where there are many.
    fn advance(&mut self) {
        if self.threads == 1 {
            if let Some(probe) = self.probes.front_mut() {
                self.pairing.advance(probe, 1, self.left.interrupt());
            }
            return;
        }
        let waiting: usize = self.probes.iter().map(|probe| probe.made.len()).sum();
        let most = (self.threads * MADE_MAX).saturating_sub(waiting) / MADE_MAX;
        let (most, rows) = (most.max(1), self.piece_rows());
        let (mut at, mut taken) = (0, 0);
        while let Some(probe) = self.probes.get_mut(at) {
            at += 1;
            if probe.left() == 0 || probe.made.len() >= MADE_MAX {
                continue;
            }
            taken += 1;
            if let Some(behind) = probe.split_off(rows) {
                self.probes.insert(at, behind);
            }
            if taken == most {
                break;
            }
        }
        let is_due = |probe: &&mut Probe| probe.left() > 0 && probe.made.len() < MADE_MAX;
        let due: Vec<&mut Probe> = self.probes.iter_mut().take(at).filter(is_due).collect();
        let rows: usize = due.iter().map(|probe| probe.left()).sum();
        let work = rows.saturating_mul(1 + self.passed.1 / self.passed.0.max(1));
        let threads = self.threads.min(work.div_ceil(PIECE_ROWS_MIN));
        let (pairing, interrupt) = (&self.pairing, self.left.interrupt());
        let looked_at = on_threads(threads, due, |probe| {
            pairing.advance(probe, MADE_MAX, interrupt);
            Ok((probe.left(), std::mem::take(&mut probe.looked_at)))
        });
        self.passed.0 += rows;
        for (left, looked_at) in looked_at.into_iter().flatten() {
            self.passed.0 -= left;
            self.passed.1 += looked_at;
        }
    }
}

impl EqualJoin {
    /// The next rows, without counting those that the inputs left out.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        if !self.is_built {
            self.build()?;
        }
        let kind = self.pairing.columns.kind;
        if self.pairing.built.len() == 0 && !kind.keeps_left() {
            return Ok(None);
        }
        loop {
            if let Some(rows) = self.given()? {
                return Ok(Some(rows));
            }
            self.left.check_interrupt()?;
            if self.probes.is_empty() {
                match self.pull()? {
                    Some(0) => return Ok(Some(RecordBatch::new_empty(self.schema()))),
                    Some(_) => {}
                    None => {
                        let (rows, swept) = self.pairing.sweep(self.swept)?;
                        self.swept = swept;
                        return Ok(rows);
                    }
                }
            }
            self.advance();
        }
    }
}

impl Source for EqualJoin {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.pairing.columns.output)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.next_rows();
        self.rejected.count_rows = self.left.rejected_rows() + self.right.rejected_rows();
        next
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        state_of(
            (self.left.state(), self.right.state()),
            self.pairing.byte_size(),
        )
    }

    fn describe(&self) -> Vec<String> {
        describe(self.spec.label(), (&self.left, &self.right))
    }

    fn runs_queries(&self) -> bool {
        true
    }

    fn oldest_to_come(&self, time: Option<&str>) -> Option<i64> {
        let own = self.time.as_ref().and_then(Expression::as_column);
        match self.pairing.columns.kind.goes_by_right() {
            _ if own.is_none() || own != time => None,
            // Right rows come by their pairs, or at the end.
            true => self.right.oldest_to_come().map(|_| i64::MIN),
            false => self.oldest,
        }
    }

    fn identity(&self) -> String {
        self.spec.identity()
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.left.snapshot_input(out)?;
        self.right.snapshot_input(out)?;
        self.pairing.built.snapshot(out)?;
        out.bool(self.is_built);
        out.u64(self.swept as u64);
        out.u64(self.probes.len() as u64);
        self.probes.iter().try_for_each(|probe| probe.snapshot(out))
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.left.restore_input(from)?;
        self.right.restore_input(from)?;
        self.pairing.built.restore(from, &self.pairing.keys.1)?;
        self.is_built = from.bool()?;
        self.swept = from.u64()? as usize;
        let schemas = (&self.left.schema(), &self.pairing.columns.output);
        let built = self.pairing.built.len();
        self.probes = from.list(|from| Probe::restore(from, schemas, built))?;
        self.oldest = self.left.oldest_to_come();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use tersecades_columnar::error::ErrorKind;

    use crate::expression::{col, lit};
    use crate::operator::join::JoinOptions;
    use crate::operator::join::table::JoinTime;
    use crate::stream::Stream;

    use super::*;

    const THREADS: usize = 3;

    fn rows(batches: usize, key: impl Fn(i64) -> i64) -> Running {
        let batch = |batch: i64| {
            let keys = (batch * 5_000..(batch + 1) * 5_000).map(&key);
            let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
            RecordBatch::try_from_iter([("k", keys)]).unwrap()
        };
        let batches: Vec<RecordBatch> = (0..batches as i64).map(batch).collect();
        let stream = Stream::from_batches(batches[0].schema(), batches);
        stream.threads(THREADS).run().unwrap()
    }

    fn joined((left, right): (Running, Running), pairs: JoinOptions, threads: usize) -> EqualJoin {
        let spec = JoinSpec {
            kind: JoinKind::Inner,
            on: vec![(String::from("k"), String::from("k"))],
            time: JoinTime::Any,
            options: pairs,
        };
        let schemas = (&*left.schema(), &*right.schema());
        let columns = JoinColumns::new(schemas, spec.kind, &spec.options).unwrap();
        let options = RunOptions {
            threads,
            ..RunOptions::default()
        };
        EqualJoin::new((left, right), (columns, None), &spec, &options).unwrap()
    }

    #[test]
    fn several_pieces_are_looked_at_at_once_and_few_batches_are_held() {
        // Every left row has a hundred pairs.
        let inputs = (rows(8, |row| row % 50), rows(1, |row| row % 50));
        let mut join = joined(inputs, JoinOptions::default(), THREADS);
        let (mut given, mut together, mut most) = (0, 0, 0);
        while let Some(rows) = join.next().unwrap() {
            given += rows.num_rows();
            let made = join.probes.iter().map(|probe| probe.made.len());
            together = together.max(made.clone().filter(|made| *made > 0).count());
            most = most.max(made.sum());
        }
        assert_eq!(given, 8 * 5_000 * 100);
        assert_eq!(together, THREADS);
        assert!(most < THREADS * MADE_MAX, "{most} batches");
    }

    #[test]
    fn what_comes_before_an_error_comes_out() {
        let sum = col("k") + lit(i64::MAX - 38_999);
        let counted = |threads| {
            let options = JoinOptions {
                residual: Some(sum.clone().gt(col("k_right"))),
                ..JoinOptions::default()
            };
            let (left, right) = (rows(8, |row| row), rows(8, |row| row));
            let mut join = joined((left, right), options, threads);
            let mut given = 0;
            loop {
                match join.next() {
                    Ok(rows) => given += rows.unwrap().num_rows(),
                    Err(error) => return (given, error.kind()),
                }
            }
        };
        // The last batch of the left rows has 5,000 of which 1,000 are too great.
        assert_eq!(counted(1), (35_000, ErrorKind::LimitExceeded));
        let (given, kind) = counted(THREADS);
        assert!((35_000..=39_000).contains(&given), "{given} rows");
        assert_eq!(kind, ErrorKind::LimitExceeded);
    }

    #[test]
    fn one_row_with_very_many_pairs_is_not_worked_off_at_once() {
        let inputs = (rows(1, |_| 7), rows(20, |_| 7));
        let mut join = joined(inputs, JoinOptions::default(), THREADS);
        let mut given = 0;
        while let Some(rows) = join.next().unwrap() {
            given += rows.num_rows();
            let made = join.probes.iter().map(|probe| probe.made.len());
            assert!(made.sum::<usize>() < THREADS * MADE_MAX);
            if given > 8_000_000 {
                return;
            }
        }
        panic!("pairs are missing");
    }
}
