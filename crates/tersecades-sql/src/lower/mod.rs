//! From DataFusion's logical plan to a stream of the engine.

mod aggregate;
mod constant;
pub(crate) mod expression;
mod grouping;
mod join;
mod literal;
mod lookup;
mod order;
mod over;
pub(crate) mod rows;
pub(crate) mod window;

use std::cell::Cell;

use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{Expr, Filter, LogicalPlan, Projection, SubqueryAlias, TableScan};
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Interrupt;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::Updates;

use crate::catalog::PlannedSource;
use crate::drawn::draws;
use expression::Lowerer;
use rows::{Column, Reach, Rows};
use window::{EdgeColumn, is_window_mark, marked_window};

/// Lowers plans to streams that run with some options.
pub(crate) struct Lowering<'a> {
    /// Gives a stream the options of the session.
    pub(crate) with_options: &'a (dyn Fn(Stream) -> Stream + Sync),
    /// When the results of the outermost group-by come, until it takes it.
    pub(crate) updates: Cell<Option<Updates>>,
    /// Whether distinct rows are limited: those before the last that is wanted tell as they come.
    pub(crate) limited: Cell<bool>,
    /// What may stop what is run while a plan is lowered, as subqueries that are one value.
    pub(crate) interrupt: Interrupt,
    /// Whether the query runs once, and now, so that small files may be read while it is lowered.
    pub(crate) runs_once: bool,
}

/// The column that tells new results from those that replace earlier ones.
const CHANGE: &str = "change";

impl Lowering<'_> {
    /// The stream of a whole query, with a column for each column of its result.
    ///
    /// # Errors
    /// `Unsupported` for what the engine cannot do; what binding says.
    pub(crate) fn query(&self, plan: &LogicalPlan) -> Result<Stream> {
        let updates = self.updates.get();
        if updates.is_some() {
            check_updated(plan)?;
        }
        let rows = self.plan(plan)?;
        let (stream, _) = match updates {
            Some(_) => rows.with_change(plan.schema(), CHANGE)?,
            None => rows.materialise(plan.schema())?,
        };
        Ok((self.with_options)(stream))
    }

    fn plan(&self, plan: &LogicalPlan) -> Result<Rows> {
        if let Some(plan) = self.without_subqueries(plan)? {
            return self.node(&plan);
        }
        self.node(plan)
    }

    fn node(&self, plan: &LogicalPlan) -> Result<Rows> {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::SubqueryAlias(alias) => self.plan(&alias.input),
            LogicalPlan::Subquery(subquery) => self.plan(&subquery.subquery),
            LogicalPlan::Join(join) => self.join_or_lookup(join),
            LogicalPlan::Sort(sort) => self.sort(sort),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Distinct(distinct) => self.distinct(distinct),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::EmptyRelation(relation) => constant::empty(relation),
            LogicalPlan::Values(values) => constant::values(values),
            LogicalPlan::Window(window) => self.over(window),
            other => Err(unsupported(other)),
        }
    }

    fn scan(&self, scan: &TableScan) -> Result<Rows> {
        let source = scan.source.as_ref().downcast_ref::<PlannedSource>();
        let source = source.ok_or_else(|| Error::internal("a table of another session"))?;
        let fields = scan.projected_schema.fields().iter();
        let columns = fields.map(|field| Column::Value(col(field.name().as_str())));
        let mut stream = source.0.stream.clone().interrupt(self.interrupt.clone());
        if let Some(time) = &source.0.time {
            stream = stream.event_time(col(time.column.as_str()), time.lateness);
        }
        Ok(Rows {
            stream,
            columns: columns.collect(),
            time: source.0.time.clone(),
            reach: Reach::Table,
            pending: Vec::new(),
        })
    }

    fn projection(&self, projection: &Projection) -> Result<Rows> {
        let rows = self.plan(&projection.input)?;
        let mut columns = Vec::with_capacity(projection.expr.len());
        let lowerer = rows.lowerer(projection.input.schema())?;
        for expr in &projection.expr {
            columns.push(column(expr, &lowerer)?);
        }
        let drawn = projection.expr.iter().map(draws);
        let drawn = drawn.zip(&mut columns).filter(|(is_drawn, _)| *is_drawn);
        let rows = rows.drawn(drawn.map(|(_, column)| column))?;
        Ok(Rows { columns, ..rows })
    }

    fn filter(&self, filter: &Filter) -> Result<Rows> {
        let mut rows = self.plan(&filter.input)?;
        let mut terms = split_conjunction_owned(filter.predicate.clone());
        let lowerer = rows.lowerer(filter.input.schema())?;
        let mut pending = Vec::new();
        for mark in terms.extract_if(.., |term| is_window_mark(term)) {
            pending.push(marked_window(&mark, &lowerer)?);
        }
        let condition = conjunction(terms);
        let condition = condition.map(|condition| lowerer.value(&condition));
        if let Some(condition) = condition.transpose()? {
            rows.stream = rows.stream.filter_early(condition);
        }
        rows.pending.extend(pending);
        Ok(rows)
    }
}

const GROUPED: &str = "one GROUP BY, the last step: SELECT window_start, count(*) FROM t \
                       GROUP BY tumble(ts, INTERVAL '1 minute') EMIT UPDATE";

/// Refuses steps behind windows that come out more than once, which would count rows twice.
fn check_updated(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Aggregate(group) if matches!(group.group_expr[..], [Expr::GroupingSet(_)]) => {
            let message = "results of several group-bys in one cannot come more than once";
            Err(Error::unsupported(message).hint(GROUPED))
        }
        LogicalPlan::Aggregate(_) => Ok(()),
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::Filter(Filter { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => check_updated(input),
        _ => Err(Error::unsupported(
            "results that come more than once cannot be sorted, joined or grouped again",
        )
        .hint(GROUPED)),
    }
}

/// A column of a projection; edges of windows pass through it.
fn column(expr: &Expr, lowerer: &Lowerer<'_>) -> Result<Column> {
    if let Some(edge) = EdgeColumn::of(expr, lowerer)? {
        return Ok(Column::Edge(edge));
    }
    let bare = match expr {
        Expr::Alias(alias) => alias.expr.as_ref(),
        other => other,
    };
    if let Expr::Column(column) = bare
        && let Ok(index) = lowerer.schema.index_of_column(column)
        && let Some(Column::Edge(edge)) = lowerer.columns.get(index)
    {
        return Ok(Column::Edge(edge.clone()));
    }
    Ok(Column::Value(lowerer.typed_value(expr)?))
}

fn unsupported(plan: &LogicalPlan) -> Error {
    let (what, hint) = match plan {
        LogicalPlan::RecursiveQuery(_) => {
            ("WITH RECURSIVE is".to_owned(), "plain WITH is supported")
        }
        LogicalPlan::Unnest(_) => ("UNNEST is".to_owned(), "columns hold single values"),
        other => (
            format!("`{}` is", other.display()),
            "docs/sql.md lists what is",
        ),
    };
    Error::unsupported(format!("{what} not supported")).hint(hint)
}
