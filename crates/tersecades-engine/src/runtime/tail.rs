//! A later stage: takes the windows of the one before it as its rows.
//!
//! Its kept input is encoded by the same chooser as any stream's.

use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::codec::{Tally, Work};
use tersecades_columnar::error::Result;

use crate::event_time::{Arrival, Watermark};
use crate::frame::{Frame, Scope};

use super::stage::{BoundTime, Stage, StagePlan, bind_time};
use super::state::{StateReader, StateWriter};

/// A stage on the results of another part.
pub struct Tail {
    /// What it runs.
    pub plan: StagePlan,
    /// Its operators.
    pub stage: Stage,
    encoder: BatchEncoder,
    /// Which of the columns before it the stage reads, if not all.
    read: Option<Vec<usize>>,
    time: Option<BoundTime>,
    watermark: Watermark,
    rows_before: u64,
    work: Work,
}

/// The plan over the columns it reads alone, and where they are: others need not be encoded.
fn narrow(plan: StagePlan) -> Result<(StagePlan, Option<Vec<usize>>)> {
    // Rows without columns have no number in most formats.
    let names = plan.columns_read().filter(|names| !names.is_empty());
    let Some(names) = names else {
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

impl Tail {
    /// Binds a stage.
    ///
    /// # Errors
    /// What binding says.
    pub fn new(plan: StagePlan) -> Result<Self> {
        let (plan, read) = narrow(plan)?;
        let mut scope = Scope::of_schema(&plan.input);
        let time = plan
            .timed
            .then(|| bind_time(&plan.event_time, &mut scope))
            .transpose()?;
        Ok(Tail {
            stage: plan.instantiate(false)?,
            encoder: BatchEncoder::new(&plan.input)?,
            plan,
            read,
            time,
            watermark: Watermark::new(0),
            rows_before: 0,
            work: Work::default(),
        })
    }

    /// How values were worked on.
    pub fn tally(&self) -> Tally {
        self.work.tally
    }

    /// Takes in one emitted window.
    ///
    /// # Errors
    /// What the operators say.
    pub fn push(&mut self, rows: &RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        let batch = match &self.read {
            Some(read) => self.encoder.encode_new(&rows.project(read)?)?,
            None => self.encoder.encode_new(rows)?,
        };
        let batch = Arc::new(batch);
        let mut frame = Frame::new(batch);
        let mut arrival = Arrival {
            time_slot: 0,
            watermark: i64::MIN,
            time_range: (0, 0),
            rows_before: self.rows_before,
        };
        self.rows_before += rows.num_rows() as u64;
        if let Some(time) = &self.time {
            let column = frame.column(time.slot);
            let stats = column.stats();
            let value = |key| column.physical().value_of(key) as i64;
            arrival = Arrival {
                time_slot: time.slot,
                watermark: self.watermark.current(),
                time_range: (value(stats.min), value(stats.max)),
                ..arrival
            };
            // Windows arrive in order of start, so none is cut.
            let mut cuts = Vec::new();
            self.watermark.pass(column, None, &mut cuts, &mut self.work);
        }
        out.extend(self.stage.push(&mut frame, &arrival, &mut self.work)?);
        match &mut self.stage.aggregate {
            Some(aggregate) => aggregate.advance(self.watermark.current(), out),
            None => Ok(()),
        }
    }

    /// Emits everything at the end of the stream.
    ///
    /// # Errors
    /// `LimitExceeded` when a result does not fit its type.
    pub fn finish(&mut self, out: &mut Vec<RecordBatch>) -> Result<()> {
        match &mut self.stage.aggregate {
            Some(aggregate) => aggregate.advance(i64::MAX, out),
            None => Ok(()),
        }
    }

    /// Writes the state.
    pub fn snapshot(&self, out: &mut StateWriter) {
        let newest = self.watermark.newest();
        out.u64(u64::from(newest.is_some()));
        out.i64(newest.unwrap_or(0));
        out.u64(self.rows_before);
        if let Some(aggregate) = &self.stage.aggregate {
            aggregate.snapshot(out);
        }
    }

    /// Reads the state.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let known = from.u64()? != 0;
        let newest = from.i64()?;
        self.watermark.resume(known.then_some(newest));
        self.rows_before = from.u64()?;
        match &mut self.stage.aggregate {
            Some(aggregate) => aggregate.restore(from),
            None => Ok(()),
        }
    }
}
