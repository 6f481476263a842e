//! A query as written: event time, then steps in order.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::TimeUnit;

use crate::expression::Expression;
use crate::window::Window;

/// Where a row's event time comes from, and how far out of order rows may be.
#[derive(Debug, Clone, PartialEq)]
pub struct EventTime {
    /// Column or expression.
    pub expression: Expression,
    /// Unit of integer times; timestamps carry their own.
    pub unit: TimeUnit,
    /// How far behind the newest row a row may be and still count.
    ///
    /// The watermark is the largest event time seen before a row, less this.
    pub lateness: Duration,
}

/// A table to look rows up in; its key is unique.
#[derive(Debug, Clone)]
pub struct LookupTable {
    /// Name for plans.
    pub name: String,
    /// The rows.
    pub rows: RecordBatch,
}

/// One aggregate of a window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AggregateCall {
    /// Name in [`crate::aggregate::AGGREGATES`].
    pub function: String,
    /// What it aggregates; `None` for `count` of rows.
    pub argument: Option<Expression>,
    /// What orders the rows, for `arg_min` and `arg_max`.
    pub by: Option<Expression>,
    /// A number the function takes, such as the fraction of a quantile.
    pub parameter: Option<f64>,
    /// Name of the result column.
    pub output: String,
}

/// One step of a query.
#[derive(Debug, Clone)]
pub enum Step {
    /// Keeps rows where the expression is true.
    Filter(Expression),
    /// Replaces the columns by these, named.
    Project(Vec<(String, Expression)>),
    /// Adds columns of the table row whose key equals the stream's; rows without one are dropped.
    LookupJoin {
        /// The table.
        table: Arc<LookupTable>,
        /// Column of the stream.
        stream_key: String,
        /// Column of the table.
        table_key: String,
        /// Columns of the table to add, and the names they get.
        columns: Vec<(String, String)>,
    },
    /// Groups by window and keys; columns become `window_start`, `window_end`, keys, aggregates.
    ///
    /// A window over a window takes `window_start` as its event time.
    Aggregate {
        /// The windows.
        window: Window,
        /// Columns to group by.
        keys: Vec<String>,
        /// What to compute for each group.
        aggregates: Vec<AggregateCall>,
    },
}

/// A whole query over one stream.
#[derive(Debug, Clone)]
pub struct Query {
    /// Event time of the stream.
    pub event_time: EventTime,
    /// Steps in order; the last is what comes out.
    pub steps: Vec<Step>,
}
