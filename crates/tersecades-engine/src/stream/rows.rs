//! Operators on rows, as steps of a stream.

use std::sync::Arc;

use tersecades_columnar::error::{Error, Result};

use crate::expression::{BoundExpression, Expression};
use crate::frame::Scope;
use crate::operator::change::Changes;
use crate::operator::distinct::Distinct;
use crate::operator::in_order::OrderedTable;
use crate::operator::lag::Lag;
use crate::operator::limit::Limit;
use crate::operator::merge::MergeTable;
use crate::operator::process::{ProcessTable, WindowFunction};
use crate::operator::reduce::{Reduce, Reducer};
use crate::operator::row::keys::SortOrder;
use crate::operator::row::{Extent, RowOperatorPlan};
use crate::operator::sort::Sort;
use crate::operator::top_k::TopK;
use crate::operator::union::UnionTable;
use crate::plan::Step;
use crate::runtime::option::{TimeKind, TimeOptions};
use crate::source::query::QueryTable;
use crate::window::Window;

use super::{Stream, window_time};

impl Stream {
    /// Appends an operator on rows.
    pub fn rows(self, operator: impl RowOperatorPlan + 'static) -> Self {
        self.step(Step::Rows(Arc::new(operator)))
    }

    /// Sorts the results of each window, after a windowed aggregate, or the whole input.
    ///
    /// Rows that are equal in every expression stay in the order they came in.
    pub fn sort(self, by: impl IntoIterator<Item = (Expression, SortOrder)>) -> Self {
        self.sort_in(Extent::Natural, by)
    }

    /// Sorts the rows of `extent`.
    pub fn sort_in(
        self,
        extent: Extent,
        by: impl IntoIterator<Item = (Expression, SortOrder)>,
    ) -> Self {
        let by = by.into_iter().collect();
        self.rows(Sort { by, extent })
    }

    /// The first `count` rows after `offset` of them; the source is not read further.
    pub fn limit(self, count: u64, offset: u64) -> Self {
        self.rows(Limit { count, offset })
    }

    /// The first `count` rows of each window, after a windowed aggregate, or of the whole input,
    /// in the order of a sort.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// use tersecades_engine::operator::row::keys::SortOrder;
    /// use tersecades_engine::{expression::col, stream::Stream};
    /// let rtt: ArrayRef = Arc::new(Int64Array::from(vec![10, 500, 30]));
    /// let rows = RecordBatch::try_from_iter([("rtt", rtt)]).unwrap();
    /// let mut slowest = Stream::from_batches(rows.schema(), vec![rows])
    ///     .top_k(2, [(col("rtt"), SortOrder::DESCENDING)])
    ///     .run().unwrap();
    /// let best = slowest.next().unwrap().unwrap();
    /// assert_eq!(best.column(0).as_ref(), &Int64Array::from(vec![500, 30]));
    /// ```
    pub fn top_k(
        self,
        count: usize,
        by: impl IntoIterator<Item = (Expression, SortOrder)>,
    ) -> Self {
        self.top_k_in(Extent::Natural, (count, 0), by)
    }

    /// `count` rows after `offset` of them, of those in `extent`, in the order of a sort.
    pub fn top_k_in(
        self,
        extent: Extent,
        (count, offset): (usize, usize),
        by: impl IntoIterator<Item = (Expression, SortOrder)>,
    ) -> Self {
        let by = by.into_iter().collect();
        self.rows(TopK {
            by,
            count,
            offset,
            extent,
        })
    }

    /// The first of rows that are equal in every column; null equals null.
    pub fn distinct(self) -> Self {
        self.rows(Distinct)
    }

    /// The rows of all `streams`, which have the same columns, one stream after the other.
    ///
    /// # Errors
    /// `SchemaMismatch` when their columns differ; what binding them says.
    pub fn union(streams: impl IntoIterator<Item = Stream>) -> Result<Stream> {
        Ok(Stream::from_table(UnionTable::new(streams)?))
    }

    /// The rows of all `streams`, which have the same columns and event time, interleaved so that
    /// each is as late as it was in its own stream.
    ///
    /// # Errors
    /// `SchemaMismatch` when their columns or event times differ; what binding them says.
    pub fn merge(streams: impl IntoIterator<Item = Stream>) -> Result<Stream> {
        let table = MergeTable::new(streams)?;
        let event_time = table.event_time();
        Ok(Stream::new(Arc::new(table), event_time))
    }

    /// The rows by event time, each held back until no earlier one can come; those that come when
    /// later ones are out are late, and counted.
    ///
    /// Behind it [`Stream::lag`], [`Stream::changes`] and whatever else goes by the order of rows
    /// go by event time.
    ///
    /// # Errors
    /// What binding says; for streams whose results lack their event time.
    pub fn in_order(self) -> Result<Stream> {
        let updates = self.updates;
        let table = OrderedTable::new(self)?;
        let event_time = table.event_time();
        let mut stream = Stream::new(Arc::new(table), event_time);
        stream.updates = updates;
        Ok(stream)
    }

    /// Adds as `output` the value `column` had `rows` rows earlier among those with the same
    /// `keys`, in order of arrival; null where there are not so many.
    pub fn lag<K: Into<String>>(
        self,
        column: &str,
        rows: usize,
        keys: impl IntoIterator<Item = K>,
        output: &str,
    ) -> Self {
        self.rows(Lag {
            column: column.to_owned(),
            rows,
            keys: keys.into_iter().map(Into::into).collect(),
            output: output.to_owned(),
        })
    }

    /// Rows in which `columns` differ from the row with the same `keys` before, in order of
    /// arrival, with their earlier values (`previous_…`) and, on a stream with event time, for how
    /// many ticks of it they lasted (`lasted`).
    pub fn changes<C: Into<String>, K: Into<String>>(
        self,
        columns: impl IntoIterator<Item = C>,
        keys: impl IntoIterator<Item = K>,
    ) -> Self {
        self.rows(Changes {
            columns: columns.into_iter().map(Into::into).collect(),
            keys: keys.into_iter().map(Into::into).collect(),
        })
    }

    /// Folds the rows with the same `keys`, of each window after a windowed aggregate or of the
    /// whole input, with a function; results come sorted by key.
    pub fn reduce<K: Into<String>>(
        self,
        keys: impl IntoIterator<Item = K>,
        reducer: impl Reducer + 'static,
    ) -> Self {
        self.rows(Reduce {
            keys: keys.into_iter().map(Into::into).collect(),
            reducer: Arc::new(reducer),
            extent: Extent::Natural,
        })
    }

    /// Hands the rows of each window, when it closes, to a function; what it gives comes out after
    /// `window_start`, which is the event time, and `window_end`.
    ///
    /// # Errors
    /// What binding says; `Unsupported` for windows that differ between keys or may come out more
    /// than once.
    pub fn process(
        self,
        window: Window,
        function: impl WindowFunction + 'static,
    ) -> Result<Stream> {
        let window = self.put_on(window);
        let table = ProcessTable::new(self, window, Arc::new(function))?;
        Ok(Stream::new(Arc::new(table), window_time()))
    }

    /// The results of this stream as the rows of a new one, with the same event time.
    ///
    /// # Errors
    /// What binding says.
    pub fn as_source(self) -> Result<Stream> {
        let (event_time, updates) = (self.output_time(), self.updates);
        let time = TimeOptions {
            kind: self.output_kind(),
            ..self.options.time.clone()
        };
        let mut stream = Stream::new(Arc::new(QueryTable::new(self)?), event_time);
        stream.updates = updates;
        if time.kind != TimeKind::Event {
            stream.options.time = time;
        }
        Ok(stream)
    }

    /// What the time is of the rows that come out: that of their arrival where they come out as
    /// they arrive.
    fn output_kind(&self) -> TimeKind {
        let holds_back = |step: &Step| match step {
            Step::Aggregate { .. } => true,
            Step::Rows(operator) => operator.reorders(),
            _ => false,
        };
        let flows = !self.query.steps.iter().any(holds_back);
        match flows && self.options.time.kind.goes_by_clock() {
            true => TimeKind::Arrived,
            false => TimeKind::Event,
        }
    }

    /// Runs the part up to the last operator on rows before the first group-by as a stream of its
    /// own, so that a window after it has the watermark of the rows it sees.
    pub(super) fn nested(mut self) -> Result<Stream> {
        let steps = &self.query.steps;
        let group = steps
            .iter()
            .position(|step| matches!(step, Step::Aggregate { window, .. } if window.needs_time()));
        let Some(group) = group else {
            return Ok(self);
        };
        let on_rows = |step: &Step| matches!(step, Step::Rows(_));
        let Some(last) = steps[..group].iter().rposition(on_rows) else {
            return Ok(self);
        };
        if self.registered.is_some() {
            return Err(Error::unsupported(
                "a range kept for queries, of rows between an operator and a window",
            )
            .hint("keep the range in a stream of its own, without operators on rows"));
        }
        let outer = self.query.steps.split_off(last + 1);
        let mut stream = self.cut()?;
        stream.query.steps = outer;
        Ok(stream)
    }

    /// As [`Stream::as_source`], the new stream with the options of this one.
    fn cut(mut self) -> Result<Stream> {
        let mut options = self.options.clone();
        // Rows have their time from the inner stream.
        options.time.kind = self.output_kind();
        // The inner stream has encoded the columns.
        options.encoding.schemes.clear();
        self.options.keep = None;
        let mut stream = self.as_source()?;
        stream.options = options;
        Ok(stream)
    }

    /// The groups of this stream as the rows of a new one, where `time` is a time of theirs.
    ///
    /// What is wrong with this stream comes up when it runs.
    pub(super) fn grouped_by_time(self, time: &Expression) -> Stream {
        let is_grouped = self
            .query
            .steps
            .iter()
            .any(|step| matches!(step, Step::Aggregate { .. }));
        if !is_grouped || self.options.keep.is_some() || self.registered.is_some() {
            return self;
        }
        let groups = self.clone().cut().ok();
        let groups = groups.filter(|groups| {
            let scope = Scope::of_schema(&groups.table.schema());
            BoundExpression::bind(time, &scope).is_ok()
        });
        groups.unwrap_or(self)
    }
}
