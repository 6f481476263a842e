//! `merge`: the rows of several streams with the same columns, interleaved by event time.
//!
//! Every input keeps its order. The clock of a row is the largest event time of its input so far;
//! rows go in order of their clocks, then of their inputs. So a row is as late in the merged
//! stream as it was in its own, and neither batch size nor the input read first changes a thing.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use crate::error_bound::{carried, of_any};
use crate::expression::Expression;
use crate::plan::EventTime;
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;
use crate::runtime::stage::check_final;
use crate::runtime::state::{StateReader, StateWriter};
use crate::runtime::{Interrupt, Running};
use crate::source::query::narrowed;
use crate::source::table::Table;
use crate::source::{Rejected, Source, SourceState};
use crate::stream::Stream;

use super::OperatorKind;
use super::join::timed::{TimedInput, unit_of};
use super::row::shape::{OUTPUT_ROWS, batch_of, read_batches, weave, write_batches};
use super::union::check_same;

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "merge",
    summary: "the rows of several streams with the same columns, interleaved by event time",
};

/// Several streams by event time.
pub struct MergeTable {
    streams: Vec<Stream>,
    schema: SchemaRef,
    unit: TimeUnit,
    time: EventTime,
}

impl MergeTable {
    /// The rows of `streams`.
    ///
    /// # Errors
    /// `InvalidArgument` without streams, `SchemaMismatch` when columns or event times differ.
    pub fn new(streams: impl IntoIterator<Item = Stream>) -> Result<Self> {
        let streams: Vec<Stream> = streams.into_iter().collect();
        check_final(streams.iter().any(Stream::has_updates))?;
        let schemas: Vec<SchemaRef> = streams.iter().map(Stream::schema).collect::<Result<_>>()?;
        let (Some(first), Some((schema, others))) = (streams.first(), schemas.split_first()) else {
            return Err(Error::invalid("a merge of no streams"));
        };
        others
            .iter()
            .try_for_each(|other| check_same(schema, other))?;
        let schema = of_any(schema, others);
        let unit = unit_of(first)?;
        let mut time = first.output_time();
        for stream in &streams[1..] {
            let other = stream.output_time();
            if other.expression != time.expression {
                let (a, b) = (&time.expression, &other.expression);
                let message = format!("event time is `{a}` in one stream and `{b}` in another");
                return Err(Error::schema(message).hint("project both to one column"));
            }
            // Times of one type that are not in one unit are whole numbers.
            let own = unit_of(stream)?;
            if own != unit {
                let message = format!(
                    "event time `{}` is in {unit:?} in one stream and in {own:?} in another",
                    time.expression
                );
                return Err(Error::schema(message).hint("give both in one unit"));
            }
            time.lateness = time.lateness.max(other.lateness);
        }
        Ok(MergeTable {
            streams,
            schema,
            unit,
            time,
        })
    }

    /// Event time of the merged rows: as late as in the stream whose rows may be latest.
    pub fn event_time(&self) -> EventTime {
        self.time.clone()
    }
}

impl Table for MergeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn may_reject(&self) -> bool {
        self.streams.iter().any(Stream::may_reject)
    }

    fn begins_again(&self) -> bool {
        self.streams.iter().all(Stream::begins_again)
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_with(columns, &RunOptions::default())
    }

    fn open_with(&self, columns: Option<&[String]>, options: &RunOptions) -> Result<Origin> {
        let wanted = columns.map(|columns| {
            let mut wanted = columns.to_vec();
            let time = self.streams.first().map(Stream::time_columns);
            wanted.extend(time.into_iter().flatten());
            wanted
        });
        let mut lanes = Vec::new();
        for stream in &self.streams {
            let cut = narrowed(stream, &self.schema, wanted.as_deref());
            let running = cut.inherit(options).run()?;
            lanes.push(Lane {
                input: TimedInput::new(running, stream, self.unit)?,
                rows: None,
                clocks: Vec::new(),
                at: 0,
            });
        }
        let first = lanes.first();
        let first = first.map(|lane| carried(&lane.input.schema(), &self.schema));
        let mut source = MergeSource {
            schema: first.unwrap_or_else(|| Arc::clone(&self.schema)),
            time: self.time.expression.clone(),
            oldest: None,
            lanes,
            rejected: Rejected::default(),
        };
        source.oldest = source.oldest();
        Ok(Origin::Source(Box::new(source)))
    }
}

/// One input, and the batch of it that is being handed out.
struct Lane {
    input: TimedInput,
    rows: Option<RecordBatch>,
    clocks: Vec<i64>,
    at: usize,
}

impl Lane {
    /// Reads until a row waits, or the input has nothing to go on with or ends.
    fn fill(&mut self) -> Result<()> {
        while self.clock().is_none() && !self.input.is_ended() {
            let next = self.input.next_clocked()?;
            (self.rows, self.clocks) = next.map_or((None, Vec::new()), |(r, c)| (Some(r), c));
            self.at = 0;
            if self.input.is_waiting() {
                break;
            }
        }
        Ok(())
    }

    /// Whether rows of it that come next may go before those of others.
    fn is_awaited(&self) -> bool {
        self.clock().is_none() && !self.input.is_ended()
    }

    fn clock(&self) -> Option<i64> {
        self.clocks.get(self.at).copied()
    }
}

struct MergeSource {
    schema: SchemaRef,
    time: Expression,
    /// The least event time of the last batch and those to come, where an input has no order.
    oldest: Option<i64>,
    lanes: Vec<Lane>,
    rejected: Rejected,
}

impl MergeSource {
    /// The next rows in order: lane and position, until a lane has no row left.
    fn order(&mut self) -> Vec<Option<(usize, usize)>> {
        let mut order = Vec::new();
        while order.len() < OUTPUT_ROWS {
            let clocks = self.lanes.iter().enumerate();
            let clocks = clocks.filter_map(|(index, lane)| Some((lane.clock()?, index)));
            let Some((_, index)) = clocks.min() else {
                break;
            };
            let lane = &mut self.lanes[index];
            order.push(Some((index, lane.at)));
            lane.at += 1;
            // What its next row's clock is decides which lane goes on.
            if lane.is_awaited() {
                break;
            }
        }
        order
    }
}

impl MergeSource {
    /// The least event time of rows that wait and those to come, where an input has no order.
    fn oldest(&self) -> Option<i64> {
        let is_open = |lane: &&Lane| lane.clock().is_some() || lane.is_awaited();
        let open = self.lanes.iter().filter(is_open);
        open.filter_map(|lane| lane.input.held_at()).min()
    }

    /// The next rows, without counting those that the inputs left out.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        for lane in &mut self.lanes {
            lane.fill()?;
        }
        self.oldest = self.oldest();
        if self.lanes.iter().any(Lane::is_awaited) {
            return Ok(Some(RecordBatch::new_empty(self.schema())));
        }
        let order = self.order();
        if order.is_empty() {
            return Ok(None);
        }
        let columns = (0..self.schema.fields().len()).map(|index| {
            let pieces = self.lanes.iter().map(|lane| match &lane.rows {
                Some(rows) => Arc::clone(rows.column(index)),
                None => arrow_array::new_empty_array(self.schema.field(index).data_type()),
            });
            weave(pieces.collect(), &order, &Interrupt::default())
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        batch_of(&self.schema, columns, order.len()).map(Some)
    }
}

impl Source for MergeSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.next_rows();
        let running = self.lanes.iter().map(|lane| lane.input.running());
        self.rejected.count_rows = running.map(Running::rejected_rows).sum();
        next
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        let mut sum = SourceState::default();
        for lane in &self.lanes {
            sum += lane.input.state();
        }
        sum
    }

    fn describe(&self) -> Vec<String> {
        let inside = self
            .lanes
            .iter()
            .flat_map(|lane| lane.input.running().describe());
        std::iter::once("merge of".to_owned())
            .chain(inside.map(|line| format!("  {line}")))
            .collect()
    }

    fn runs_queries(&self) -> bool {
        true
    }

    fn oldest_to_come(&self, time: Option<&str>) -> Option<i64> {
        let is_own = time.is_some() && time == self.time.as_column();
        self.oldest.filter(|_| is_own)
    }

    fn identity(&self) -> String {
        format!("merge of {}", self.lanes.len())
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        for lane in &mut self.lanes {
            lane.input.snapshot(out)?;
            let (at, count) = (lane.at, lane.clocks.len());
            let rest = lane.rows.as_ref().map(|rows| rows.slice(at, count - at));
            write_batches(&rest.into_iter().collect(), out)?;
            out.list(lane.clocks[at..].iter(), |out, clock| out.i64(*clock));
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        for lane in &mut self.lanes {
            lane.input.restore(from)?;
            lane.rows = read_batches(&lane.input.schema(), from)?.pop_front();
            lane.clocks = from.list(StateReader::i64)?;
            lane.at = 0;
            let rows = lane.rows.as_ref().map_or(0, RecordBatch::num_rows);
            if rows != lane.clocks.len() {
                return Err(Error::corrupt("rows of a merge lack their clocks"));
            }
        }
        self.oldest = self.oldest();
        Ok(())
    }
}
