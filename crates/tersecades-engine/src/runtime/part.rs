//! What follows the first stage of a query: further stages, and operators on rows.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::codec::Tally;
use tersecades_columnar::error::{Error, Result};

use crate::operator::row::bound::Reached;
use crate::operator::row::{RowOperator, RowOperatorPlan};
use crate::operator::window_aggregate::WindowAggregate;

use super::interrupt::Interrupt;
use super::meter::{self, Meter};
use super::stage::StagePlan;
use super::state::{StateReader, StateWriter};
use super::tail::Tail;

/// A part of a query that takes the results of the one before it.
pub enum Part {
    /// A stage.
    Stage(Box<Tail>),
    /// An operator on rows, and what it was asked to be.
    Rows(
        Arc<dyn RowOperatorPlan>,
        Box<dyn RowOperator>,
        Option<Meter>,
    ),
}

impl Part {
    /// A stage that runs `plan`.
    ///
    /// # Errors
    /// What binding says.
    pub fn stage(plan: StagePlan) -> Result<Self> {
        Ok(Part::Stage(Box::new(Tail::new(plan)?)))
    }

    /// An operator on rows.
    pub fn rows(plan: Arc<dyn RowOperatorPlan>, operator: Box<dyn RowOperator>) -> Self {
        Part::Rows(plan, operator, None)
    }

    /// Takes the figures of each operator from here on.
    pub fn measure(&mut self) {
        match self {
            Part::Stage(tail) => tail.stage.measure(),
            Part::Rows(.., meter) => *meter = Some(Meter::default()),
        }
    }

    /// Says what is to be asked in the midst of work that is long.
    pub fn interrupt_with(&mut self, interrupt: &Interrupt) {
        match self {
            Part::Stage(_) => {}
            Part::Rows(_, operator, _) => operator.interrupt_with(interrupt),
        }
    }

    /// Says how many threads may work on what takes long, the caller's among them.
    pub(super) fn work_on(&mut self, threads: usize) {
        if let Part::Rows(_, operator, _) = self {
            operator.work_on(threads);
        }
    }

    /// Says whom to tell how far the first rows of an order have come.
    pub(super) fn tell(&mut self, reached: &Reached) {
        if let Part::Rows(_, operator, _) = self {
            operator.tell(reached);
        }
    }

    /// Columns that come out.
    pub fn schema(&self) -> SchemaRef {
        match self {
            Part::Stage(tail) => Arc::clone(&tail.plan.output),
            Part::Rows(_, operator, _) => operator.schema(),
        }
    }

    /// One line for each operator.
    pub fn describe(&self) -> Vec<String> {
        match self {
            Part::Stage(tail) => tail.stage.describe(),
            Part::Rows(plan, _, meter) => vec![meter::line(plan.describe(), meter.as_ref())],
        }
    }

    /// The group-by, if the part is a stage with one.
    pub fn aggregate(&self) -> Option<&WindowAggregate> {
        match self {
            Part::Stage(tail) => tail.stage.aggregate.as_ref(),
            Part::Rows(..) => None,
        }
    }

    /// Bytes of the rows an operator holds.
    pub fn row_bytes(&self) -> usize {
        match self {
            Part::Stage(_) => 0,
            Part::Rows(_, operator, _) => operator.byte_size(),
        }
    }

    /// Whether further rows would change nothing.
    pub fn is_done(&self) -> bool {
        match self {
            Part::Stage(_) => false,
            Part::Rows(_, operator, _) => operator.is_done(),
        }
    }

    /// How values were worked on.
    pub fn tally(&self) -> Tally {
        match self {
            Part::Stage(tail) => tail.tally(),
            Part::Rows(..) => Tally::default(),
        }
    }

    /// Takes in rows; what is ready is appended to `out`.
    ///
    /// # Errors
    /// What the operators say.
    pub fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        match self {
            Part::Stage(tail) => tail.push(&rows, out),
            Part::Rows(_, operator, meter) => {
                let count = rows.num_rows();
                measured(meter, count, out, |out| operator.push(rows, out))
            }
        }
    }

    /// Rows without event time, where it is needed.
    pub fn untimed_rows(&self) -> u64 {
        match self {
            Part::Stage(tail) => tail.untimed_rows(),
            Part::Rows(..) => 0,
        }
    }

    /// Emits what closes now that no row will come whose window started before `start`.
    ///
    /// # Errors
    /// `LimitExceeded` when a result does not fit its type.
    pub fn advance(&mut self, start: i64, out: &mut Vec<RecordBatch>) -> Result<()> {
        match self {
            Part::Stage(tail) => tail.advance(start, out),
            Part::Rows(..) => Ok(()),
        }
    }

    /// The least start of a window that is still to come out, when `start` is that of what is still
    /// to come in.
    pub fn least_start(&self, start: i64) -> i64 {
        match self {
            Part::Stage(_) => self.aggregate().map_or(start, WindowAggregate::least_start),
            Part::Rows(plan, ..) if plan.reorders() => i64::MIN,
            Part::Rows(..) => start,
        }
    }

    /// Emits everything at the end of the stream, or the next part of it; whether there is more.
    ///
    /// # Errors
    /// What the operators say.
    pub fn finish(&mut self, out: &mut Vec<RecordBatch>) -> Result<bool> {
        match self {
            Part::Stage(tail) => tail.finish(out).map(|()| false),
            Part::Rows(_, operator, meter) => measured(meter, 0, out, |out| operator.finish(out)),
        }
    }

    /// Writes the state.
    ///
    /// # Errors
    /// What encoding says.
    pub fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        match self {
            Part::Stage(tail) => tail.snapshot(out),
            Part::Rows(plan, operator, _) => {
                out.blob(plan.describe().as_bytes());
                operator.snapshot(out)
            }
        }
    }

    /// Reads the state.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        match self {
            Part::Stage(tail) => tail.restore(from),
            Part::Rows(plan, operator, _) => {
                if from.blob()? != plan.describe().as_bytes() {
                    return Err(Error::corrupt("the snapshot belongs to another query")
                        .hint("restore with the steps it was taken with"));
                }
                operator.restore(from)
            }
        }
    }
}

/// Runs an operator on rows, and counts what it did.
fn measured<T>(
    meter: &mut Option<Meter>,
    rows: usize,
    out: &mut Vec<RecordBatch>,
    run: impl FnOnce(&mut Vec<RecordBatch>) -> Result<T>,
) -> Result<T> {
    let (start, before) = (Instant::now(), out.len());
    let done = run(out)?;
    if let Some(meter) = meter {
        let given = out[before..].iter().map(RecordBatch::num_rows).sum();
        meter.add(start, (rows, given), Tally::default());
    }
    Ok(done)
}
