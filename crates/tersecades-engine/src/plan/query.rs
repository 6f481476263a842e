//! A query as written: event time, then steps in order.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Schema, TimeUnit};
use tersecades_columnar::error::Result;

use crate::aggregate::UserAggregate;
use crate::expression::{BoundExpression, Expression, col};
use crate::frame::Scope;
use crate::operator::lookup_join::{KeyedTable, PreparedTable};
use crate::operator::row::RowOperatorPlan;
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

impl EventTime {
    /// Whether nobody said what the event time is and `schema` lacks the column it is by default.
    pub fn is_absent(&self, schema: &Schema) -> bool {
        let default = ["timestamp", "window_start"]
            .into_iter()
            .find(|name| self.expression == col(*name));
        default.is_some_and(|name| schema.index_of(name).is_err())
    }

    /// This event time of rows in `scope`; a date is the timestamp of its first second.
    pub(crate) fn without_dates(mut self, scope: &Scope) -> Self {
        let is_date = BoundExpression::bind(&self.expression, scope)
            .is_ok_and(|bound| *bound.data_type() == DataType::Date32);
        if is_date {
            let seconds = DataType::Timestamp(TimeUnit::Second, None);
            self.expression = self.expression.cast(seconds);
        }
        self
    }
}

/// A table to look rows up in; its key is unique.
#[derive(Debug)]
pub struct LookupTable {
    /// Name for plans.
    pub name: String,
    /// The rows.
    pub rows: RecordBatch,
    /// Their indexes by key, for all queries that look rows up.
    keyed: Mutex<Vec<Arc<KeyedTable>>>,
    /// A checksum of the rows, which two tables of one name are told apart by.
    checksum: OnceLock<u32>,
}

impl LookupTable {
    /// A table of `rows`; `name` is for plans.
    pub fn new(name: impl Into<String>, rows: RecordBatch) -> Self {
        LookupTable {
            name: name.into(),
            rows,
            keyed: Mutex::default(),
            checksum: OnceLock::new(),
        }
    }

    /// A checksum of the rows; 0 where they have types without one.
    pub(crate) fn checksum(&self) -> u32 {
        *self
            .checksum
            .get_or_init(|| checksum_of(&self.rows).unwrap_or(0))
    }

    /// The rows, found by the column `key`; they are indexed once for each key.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns and keys that occur twice, `Unsupported` for types.
    pub fn keyed(&self, key: &str) -> Result<Arc<KeyedTable>> {
        let mut keyed = self.keyed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = keyed.iter().find(|known| known.key() == key) {
            return Ok(Arc::clone(known));
        }
        let table = Arc::new(KeyedTable::new(self, key)?);
        keyed.push(Arc::clone(&table));
        Ok(table)
    }
}

fn checksum_of(rows: &RecordBatch) -> Result<u32> {
    let types = rows.schema_ref().fields().iter();
    let types = types.map(|field| SortField::new(field.data_type().clone()));
    let rows = RowConverter::new(types.collect())?.convert_columns(rows.columns())?;
    Ok(rows
        .iter()
        .fold(0, |sum, row| crc32c::crc32c_append(sum, row.data())))
}

/// One aggregate of a window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AggregateCall {
    /// Name in [`crate::aggregate::AGGREGATES`].
    pub function: String,
    /// What it aggregates; `None` for `count` of rows.
    pub argument: Option<Expression>,
    /// The second argument: what orders the rows for `arg_min`, the other side of a covariance.
    pub by: Option<Expression>,
    /// A number the function takes, such as the fraction of a quantile.
    pub parameter: Option<f64>,
    /// Rows where it is not true do not count; `None` when all do.
    pub filter: Option<Expression>,
    /// An aggregate from outside, in place of `function`.
    pub user: Option<UserCall>,
    /// Name of the result column.
    pub output: String,
}

/// A call of an aggregate from outside.
#[derive(Debug, Clone)]
pub struct UserCall {
    /// The aggregate.
    pub aggregate: Arc<dyn UserAggregate>,
    /// What it aggregates, at least one.
    pub arguments: Vec<Expression>,
}

impl PartialEq for UserCall {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.aggregate, &other.aggregate) && self.arguments == other.arguments
    }
}

impl AggregateCall {
    /// Every expression that the call reads.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let user = self.user.iter().flat_map(|user| &user.arguments);
        let own = [&self.argument, &self.by, &self.filter];
        own.into_iter().flatten().chain(user)
    }
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
        /// The table once it is indexed, for all who plan or run the step.
        prepared: Arc<OnceLock<Arc<PreparedTable>>>,
    },
    /// Groups by window and keys; columns become `window_start`, `window_end` (neither for the
    /// global window), keys, aggregates.
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
    /// An operator on rows as they come out of the steps before it.
    Rows(Arc<dyn RowOperatorPlan>),
}

/// A whole query over one stream.
#[derive(Debug, Clone)]
pub struct Query {
    /// Event time of the stream.
    pub event_time: EventTime,
    /// Steps in order; the last is what comes out.
    pub steps: Vec<Step>,
}

impl Query {
    /// Appends a filter, and before an operator on rows at the end what leaves out rows for it.
    pub fn push_filter(&mut self, condition: Expression) {
        if let Some(Step::Rows(last)) = self.steps.last()
            && let Some(before) = last.before_filter(&condition)
        {
            self.steps.insert(self.steps.len() - 1, Step::Rows(before));
        }
        self.steps.push(Step::Filter(condition));
    }

    /// Appends a filter; before lookups at the end go terms that read nothing of them, since a row
    /// that is dropped need not be looked up.
    pub fn push_early_filter(&mut self, condition: Expression) {
        let Some(Step::LookupJoin { columns, .. }) = self.steps.last() else {
            return self.push_filter(condition);
        };
        let looked_up = |name: &&str| columns.iter().any(|(_, added)| added == name);
        let (late, early): (Vec<_>, Vec<_>) = condition
            .into_terms()
            .into_iter()
            .partition(|term| term.columns().iter().any(looked_up));
        if let Some(early) = early.into_iter().reduce(Expression::and) {
            let lookup = self.steps.pop();
            self.push_early_filter(early);
            self.steps.extend(lookup);
        }
        let late = late.into_iter().reduce(Expression::and);
        self.steps.extend(late.map(Step::Filter));
    }

    /// Leaves out what projections give that no later step reads; of the results, `wanted` columns
    /// are read, or all.
    pub fn leave_out_unread(&mut self, wanted: Option<&[String]>) {
        let mut read: Option<Vec<String>> = wanted.map(<[String]>::to_vec);
        for step in self.steps.iter_mut().rev() {
            let mut names = Vec::new();
            match step {
                Step::Filter(condition) => names.extend(condition.columns()),
                Step::LookupJoin { stream_key, .. } => names.push(stream_key.as_str()),
                Step::Rows(_) => read = None,
                Step::Project(columns) => {
                    if let Some(read) = &read {
                        let is_read = |name: &String| read.contains(name);
                        // Rows without columns have no number.
                        if columns.iter().any(|(name, _)| is_read(name)) {
                            columns.retain(|(name, _)| is_read(name));
                        }
                    }
                    read = Some(Vec::new());
                    let expressions = columns.iter().map(|(_, expression)| expression);
                    expressions.for_each(|expression| names.extend(expression.columns()));
                }
                Step::Aggregate {
                    keys, aggregates, ..
                } => {
                    read = Some(Vec::new());
                    names.extend(keys.iter().map(String::as_str));
                    let arguments = aggregates.iter().flat_map(AggregateCall::expressions);
                    arguments.for_each(|expression| names.extend(expression.columns()));
                }
            }
            let names = names.into_iter().map(str::to_owned);
            read.iter_mut().for_each(|read| read.extend(names.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::call;
    use crate::window::tumble;

    #[test]
    fn a_filter_goes_before_lookups_that_it_does_not_read() {
        let lookup = |output: &str| Step::LookupJoin {
            table: Arc::new(LookupTable::new(
                "table",
                RecordBatch::new_empty(Arc::new(Schema::empty())),
            )),
            stream_key: "key".to_owned(),
            table_key: "id".to_owned(),
            columns: vec![("value".to_owned(), output.to_owned())],
            prepared: Arc::default(),
        };
        let mut query = Query {
            event_time: EventTime {
                expression: col("time"),
                unit: TimeUnit::Millisecond,
                lateness: Duration::ZERO,
            },
            steps: vec![lookup("a"), lookup("b")],
        };
        let (first, second) = (col("a").gt(1), col("b").lt(col("a")));
        let condition = col("n").eq(3).and(first).and(second);
        query.push_early_filter(condition);
        let shown = query.steps.iter().map(|step| match step {
            Step::Filter(condition) => condition.to_string(),
            _ => "lookup".to_owned(),
        });
        let shown: Vec<String> = shown.collect();
        let expected = ["n = 3", "lookup", "a > 1", "lookup", "b < a"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_no_later_step_reads_is_left_out() {
        let keep = |names: &[&str]| {
            let columns = names.iter().map(|name| ((*name).to_owned(), col(*name)));
            Step::Project(columns.collect())
        };
        let mut query = Query {
            event_time: EventTime {
                expression: col("time"),
                unit: TimeUnit::Millisecond,
                lateness: Duration::ZERO,
            },
            steps: vec![
                keep(&["a", "b", "c", "d"]),
                Step::Filter(col("b").gt(0)),
                keep(&["a", "c"]),
            ],
        };
        let shown = |query: &Query| {
            let names = |step: &Step| match step {
                Step::Project(columns) => columns.iter().map(|(name, _)| name.as_str()).collect(),
                _ => String::from("-"),
            };
            query.steps.iter().map(names).collect::<Vec<String>>()
        };
        query.leave_out_unread(None);
        assert_eq!(shown(&query), ["abc", "-", "ac"]);
        query.leave_out_unread(Some(&["c".to_owned()]));
        assert_eq!(shown(&query), ["bc", "-", "c"]);
        // Rows without columns have no number.
        query.leave_out_unread(Some(&[]));
        assert_eq!(shown(&query), ["bc", "-", "c"]);
        query.steps.push(Step::Aggregate {
            window: tumble(Duration::from_secs(1)),
            keys: Vec::new(),
            aggregates: vec![call("sum", col("a"))],
        });
        query.leave_out_unread(None);
        assert_eq!(shown(&query), ["bc", "-", "c", "-"]);
    }
}
