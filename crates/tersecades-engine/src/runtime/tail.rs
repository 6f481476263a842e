//! A later stage: takes the windows of the one before it as its rows.
//!
//! Their event time is where they start. The watermark is the least start that is still to come,
//! so no row of a later stage is late.
//!
//! Its kept input is encoded by the same chooser as any stream's. A stage that only names columns
//! anew hands them on as they are.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::codec::{Tally, Work};
use tersecades_columnar::error::Result;

use crate::event_time::{Arrival, time_range};
use crate::expression::Expression;
use crate::frame::{Frame, Scope};
use crate::plan::Step;
use crate::window::Windowing;

use super::bound_time::{BoundTime, bind_time};
use super::meter::Meter;
use super::stage::{Stage, StagePlan};
use super::state::{StateReader, StateWriter};

use opaque::Opaque;

mod opaque;

/// A stage on the results of another part.
pub struct Tail {
    /// What it runs.
    pub plan: StagePlan,
    /// Its operators.
    pub stage: Stage,
    encoder: BatchEncoder,
    /// The columns that come out, where all are columns of what goes in.
    renamed: Option<Vec<(String, usize)>>,
    /// Which of the columns before it the stage reads, if not all.
    read: Option<Vec<usize>>,
    /// Those among them that are handed on as they are.
    opaque: Opaque,
    time: Option<BoundTime>,
    rows_before: u64,
    untimed_rows: u64,
    work: Work,
}

/// The plan over the columns it reads alone, and where they are: others need not be encoded.
fn narrow(plan: StagePlan) -> Result<(StagePlan, Option<Vec<usize>>)> {
    let Some(names) = plan.columns_read() else {
        return Ok((plan, None));
    };
    let place = |name: &String| plan.input.index_of(name);
    let read = names
        .iter()
        .map(place)
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let input = Arc::new(plan.input.project(&read)?);
    Ok((plan.over(input, plan.timed)?, Some(read)))
}

/// What comes out of `plan`, as names and places of its input, where it is nothing but that.
fn renamed(plan: &StagePlan) -> Option<Vec<(String, usize)>> {
    let fields = plan.input.fields().iter().enumerate();
    let mut columns: Vec<_> = fields.map(|(at, it)| (it.name().clone(), at)).collect();
    for step in &plan.steps {
        let Step::Project(wanted) = step else {
            return None;
        };
        let place = |(name, from): &(String, Expression)| match from {
            Expression::Column(from) => {
                let (_, at) = columns.iter().find(|(known, _)| known == from)?;
                Some((name.clone(), *at))
            }
            _ => None,
        };
        columns = wanted.iter().map(place).collect::<Option<_>>()?;
    }
    (!plan.timed).then_some(columns)
}

/// The columns of `rows` at these places, under these names.
fn select(rows: &RecordBatch, columns: &[(String, usize)]) -> Result<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, at) in columns {
        fields.push(rows.schema_ref().field(*at).clone().with_name(name));
        arrays.push(Arc::clone(rows.column(*at)));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let schema = Arc::new(Schema::new(fields));
    Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
}

impl Tail {
    /// Binds a stage.
    ///
    /// # Errors
    /// What binding says.
    pub fn new(plan: StagePlan) -> Result<Self> {
        let renamed = renamed(&plan);
        let (plan, read) = narrow(plan)?;
        let mut scope = Scope::of_schema(&plan.input);
        let time = plan
            .timed
            .then(|| bind_time(&plan.event_time, &mut scope))
            .transpose()?;
        let stage = plan.instantiate(false)?;
        let opaque = Opaque::of(&plan, &stage);
        Ok(Tail {
            encoder: BatchEncoder::new(&opaque.encoded(&plan.input))?,
            stage,
            opaque,
            plan,
            renamed,
            read,
            time,
            rows_before: 0,
            untimed_rows: 0,
            work: Work::default(),
        })
    }

    /// How values were worked on.
    pub fn tally(&self) -> Tally {
        self.work.tally
    }

    /// Rows without event time.
    pub fn untimed_rows(&self) -> u64 {
        self.untimed_rows
    }

    /// Takes in one emitted window; rows come out of a stage without group-by.
    ///
    /// # Errors
    /// What the operators say.
    pub fn push(&mut self, rows: &RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        if let Some(columns) = &self.renamed {
            let count = rows.num_rows() as u64;
            let passed = Meter {
                rows_in: count,
                rows_out: count,
                ..Meter::default()
            };
            self.stage
                .absorb_meters(&vec![passed; self.plan.steps.len()]);
            self.rows_before += count;
            if rows.num_rows() > 0 {
                out.push(select(rows, columns)?);
            }
            return Ok(());
        }
        let rows = match &self.read {
            Some(read) => rows.project(read)?,
            None => rows.clone(),
        };
        let batch = self.encoder.encode_new(&self.opaque.hide(rows.clone())?)?;
        let mut frame = Frame::new(Arc::new(batch));
        let mut arrival = Arrival {
            time_slot: 0,
            watermark: i64::MIN,
            time_range: (0, 0),
            course: None,
            rows_before: self.rows_before,
        };
        self.rows_before += rows.num_rows() as u64;
        if let Some(time) = &mut self.time {
            time.evaluate(&mut frame, &mut self.work)?;
            let column = frame.column(time.slot);
            arrival.time_slot = time.slot;
            arrival.time_range = time_range(column)?.unwrap_or((0, 0));
            let windowing = self.plan.aggregate().map(|plan| &plan.window);
            if windowing.is_none_or(Windowing::needs_time) {
                self.untimed_rows += column.nulls() as u64;
            }
        }
        if let Some(result) = self.stage.push(&mut frame, &arrival, &mut self.work)? {
            out.push(self.opaque.show(result, &rows)?);
        }
        Ok(())
    }

    /// Emits what closes now that no row from before `watermark` will come.
    ///
    /// # Errors
    /// `LimitExceeded` when a result does not fit its type.
    pub fn advance(&mut self, watermark: i64, out: &mut Vec<RecordBatch>) -> Result<()> {
        match &mut self.stage.aggregate {
            Some(aggregate) if aggregate.closes(watermark) => {
                let before = out.len();
                aggregate.advance(watermark, out)?;
                let rows = out[before..].iter().map(RecordBatch::num_rows).sum();
                self.stage.count_results(rows);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Emits everything at the end of the stream.
    ///
    /// # Errors
    /// `LimitExceeded` when a result does not fit its type.
    pub fn finish(&mut self, out: &mut Vec<RecordBatch>) -> Result<()> {
        self.advance(i64::MAX, out)
    }

    /// Writes the state.
    ///
    /// # Errors
    /// What writing late rows says.
    pub fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        out.u64(self.rows_before);
        out.u64(self.untimed_rows);
        match &self.stage.aggregate {
            Some(aggregate) => aggregate.snapshot(out),
            None => Ok(()),
        }
    }

    /// Reads the state.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.rows_before = from.u64()?;
        self.untimed_rows = from.u64()?;
        match &mut self.stage.aggregate {
            Some(aggregate) => aggregate.restore(from),
            None => Ok(()),
        }
    }
}
