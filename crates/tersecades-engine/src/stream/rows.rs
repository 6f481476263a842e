//! Operators on rows, as steps of a stream.

use std::sync::Arc;

use tersecades_columnar::error::Result;

use crate::expression::Expression;
use crate::operator::distinct::Distinct;
use crate::operator::limit::Limit;
use crate::operator::row::keys::SortOrder;
use crate::operator::row::{Extent, RowOperatorPlan};
use crate::operator::sort::Sort;
use crate::operator::top_k::TopK;
use crate::operator::union::UnionTable;
use crate::plan::Step;
use crate::source::query::QueryTable;

use super::Stream;

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

    /// The results of this stream as the rows of a new one, with the same event time.
    ///
    /// # Errors
    /// What binding says.
    pub fn as_source(self) -> Result<Stream> {
        let event_time = self.output_time();
        Ok(Stream::new(Arc::new(QueryTable::new(self)?), event_time))
    }

    /// Runs the part up to the last operator on rows before the first group-by as a stream of its
    /// own, so that a window after it has the watermark of the rows it sees.
    pub(super) fn nested(mut self) -> Result<Stream> {
        let steps = &self.query.steps;
        let group = steps
            .iter()
            .position(|step| matches!(step, Step::Aggregate { .. }));
        let Some(group) = group else {
            return Ok(self);
        };
        let on_rows = |step: &Step| matches!(step, Step::Rows(_));
        let Some(last) = steps[..group].iter().rposition(on_rows) else {
            return Ok(self);
        };
        let outer = self.query.steps.split_off(last + 1);
        let options = self.options.clone();
        self.options.keep = None;
        let mut stream = self.as_source()?;
        stream.options = options;
        stream.query.steps = outer;
        Ok(stream)
    }
}
