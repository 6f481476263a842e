//! Sorting, limits, distinct rows and unions.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion_expr::{
    Distinct, DistinctOn, FetchType, Limit, LogicalPlan, SkipType, Sort, SortExpr, Union,
};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::operator::over::{Frame, Over, OverCall, OverFunction};
use tersecades_engine::operator::row::Extent;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::global;

use super::Lowering;
use super::over::{Columns, order_of};
use super::rows::{Column, Reach, Rows, unique_names};
use crate::error::of_datafusion;

type Order = Vec<(Expression, SortOrder)>;

impl Lowering<'_> {
    /// Lowers `ORDER BY`.
    ///
    /// # Errors
    /// What lowering the expressions says.
    pub(super) fn sort(&self, sort: &Sort) -> Result<Rows> {
        let (rows, by, extent) = self.sorting(sort)?;
        let stream = match sort.fetch {
            Some(count) => rows.stream.top_k_in(extent, (count, 0), by),
            None => rows.stream.sort_in(extent, by),
        };
        Ok(Rows { stream, ..rows })
    }

    /// The input of a sort, its keys, and which rows it sorts together.
    fn sorting(&self, sort: &Sort) -> Result<(Rows, Order, Extent)> {
        let rows = self.plan(&sort.input)?.settled(sort.input.schema())?;
        let mut by: Order = Vec::with_capacity(sort.expr.len());
        let lowerer = rows.lowerer(sort.input.schema())?;
        for SortExpr {
            expr,
            asc,
            nulls_first,
        } in &sort.expr
        {
            let order = SortOrder {
                descending: !asc,
                nulls_first: *nulls_first,
            };
            by.push((lowerer.value(expr)?, order));
        }
        // Windows come out in the order of their starts: no need to keep more than one of them.
        let by_window = rows.reach == Reach::Windows { in_order: true }
            && by
                .first()
                .is_some_and(|(first, order)| *first == col("window_start") && !order.descending);
        let (extent, reach) = match by_window {
            true => (Extent::Natural, rows.reach),
            false => (Extent::Whole, Reach::Other),
        };
        Ok((
            Rows {
                reach,
                time: None,
                ..rows
            },
            by,
            extent,
        ))
    }

    /// Lowers `LIMIT` and `OFFSET`.
    ///
    /// # Errors
    /// `Unsupported` when they are no constants.
    pub(super) fn limit(&self, limit: &Limit) -> Result<Rows> {
        if let Some(plan) = within_columns(limit) {
            return self.plan(&plan);
        }
        let (count, skip) = counts(limit)?;
        if let (LogicalPlan::Sort(sort), Some(count)) = (limit.input.as_ref(), count) {
            return self.top_k(sort, count, skip);
        }
        self.limited.set(is_distinct(&limit.input));
        let rows = self.plan(&limit.input)?.settled(limit.input.schema())?;
        let count = count.map_or(u64::MAX, |count| count as u64);
        Ok(rows.with_stream(|stream| stream.limit(count, skip as u64)))
    }

    /// Lowers a sort of which `count` rows are wanted after `skip` of them.
    fn top_k(&self, sort: &Sort, count: usize, skip: usize) -> Result<Rows> {
        let (rows, by, extent) = self.sorting(sort)?;
        let stream = match extent {
            Extent::Whole => rows.stream.top_k_in(extent, (count, skip), by),
            // Rows that are sorted window by window come as they are ready, and end with the last.
            Extent::Natural => {
                let first = (count.saturating_add(skip), 0);
                let stream = rows.stream.top_k_in(extent, first, by);
                stream.limit(count as u64, skip as u64)
            }
        };
        Ok(Rows {
            stream,
            reach: Reach::Other,
            ..rows
        })
    }

    /// Lowers `DISTINCT`: as groups without aggregates, which all threads work on, where the rows
    /// end and are in no order.
    ///
    /// # Errors
    /// What lowering the input says.
    pub(super) fn distinct(&self, distinct: &Distinct) -> Result<Rows> {
        match distinct {
            Distinct::All(input) => {
                // A group is whole with the last row; what is distinct, with the first of its kind.
                let as_they_come = self.limited.take() || is_sorted(input);
                let rows = self.plan(input)?.settled(input.schema())?;
                let names = unique_names(input.schema());
                Ok(match rows.stream.ends() && !as_they_come {
                    true => rows.with_stream(|stream| {
                        let groups = stream.window(global()).group_by(names);
                        groups.aggregate([])
                    }),
                    false => rows.with_stream(Stream::distinct),
                })
            }
            Distinct::On(on) => self.distinct_on(on),
        }
    }

    /// Lowers `DISTINCT ON`: the first row of each key in the order of the query.
    fn distinct_on(&self, distinct: &DistinctOn) -> Result<Rows> {
        let rows = self.plan(&distinct.input)?.spread()?;
        let schema = distinct.input.schema();
        let names = unique_names(&distinct.schema);
        let lowerer = rows.lowerer(schema)?;
        let mut columns = Columns::default();
        for (name, value) in names.iter().zip(&distinct.select_expr) {
            columns.add(name, lowerer.typed_value(value)?);
        }
        let mut partition = Vec::new();
        for key in &distinct.on_expr {
            partition.push(columns.of(lowerer.typed_value(key)?));
        }
        let sorts = distinct.sort_expr.as_deref().unwrap_or_default();
        let order = order_of(sorts, &lowerer, |value| col(columns.of(value)))?;
        let number = columns.free("number");
        let first = Over {
            partition,
            order: order.clone(),
            calls: vec![OverCall {
                function: OverFunction::RowNumber,
                argument: None,
                default: None,
                frame: Frame::PARTITION,
                output: number.clone(),
            }],
        };
        let stream = rows.stream.project(columns.0).rows(first);
        let stream = stream
            .filter(col(number.as_str()).eq(1))
            .sort_in(Extent::Whole, order);
        let columns = names.into_iter().map(|name| Column::Value(col(name)));
        Ok(Rows {
            stream,
            columns: columns.collect(),
            time: None,
            reach: Reach::Other,
            pending: Vec::new(),
        })
    }

    /// Lowers `UNION ALL`.
    ///
    /// # Errors
    /// What lowering the inputs says.
    pub(super) fn union(&self, union: &Union) -> Result<Rows> {
        let names = unique_names(&union.schema);
        let mut streams = Vec::with_capacity(union.inputs.len());
        self.add_parts(union, &names, &mut streams)?;
        Ok(Rows {
            stream: Stream::union(streams)?,
            columns: names
                .into_iter()
                .map(|name| Column::Value(col(name)))
                .collect(),
            time: None,
            reach: Reach::Other,
            pending: Vec::new(),
        })
    }
}

impl Lowering<'_> {
    /// Adds the inputs of a union to `streams`, and those of unions among them.
    fn add_parts(&self, union: &Union, names: &[String], streams: &mut Vec<Stream>) -> Result<()> {
        for input in &union.inputs {
            match input.as_ref() {
                LogicalPlan::Union(inner) => self.add_parts(inner, names, streams)?,
                input => streams.push(self.union_part(union, input, names)?),
            }
        }
        Ok(())
    }

    /// One input of a union: columns called `names` with the types of the union's.
    fn union_part(&self, union: &Union, input: &LogicalPlan, names: &[String]) -> Result<Stream> {
        let rows = self.plan(input)?.spread()?;
        if names.is_empty() {
            // Where only the number of rows is asked for, inputs still have to look alike.
            return Ok(rows.stream.project([("row", lit(true))]));
        }
        let stream = rows.named(input.schema(), names)?;
        let given = stream.schema()?;
        let wanted = union.schema.fields().iter();
        let wanted: Vec<DataType> = wanted
            .map(|field| logical_type(field.data_type()))
            .collect();
        let types = given.fields().iter().map(|field| field.data_type());
        if types.eq(&wanted) {
            return Ok(stream);
        }
        let fields = given.fields().iter().zip(wanted);
        Ok(stream.project(fields.map(|(field, wanted)| {
            let value = col(field.name().as_str());
            let same = *field.data_type() == wanted;
            (
                field.name().clone(),
                if same { value } else { value.cast(wanted) },
            )
        })))
    }
}

/// How many rows a limit lets through, where it says so, and how many it skips.
fn counts(limit: &Limit) -> Result<(Option<usize>, usize)> {
    let skip = limit.get_skip_type();
    let skip = match skip.map_err(|error| of_datafusion(&error))? {
        SkipType::Literal(skip) => skip,
        SkipType::UnsupportedExpr => return Err(no_constant("OFFSET")),
    };
    let fetch = limit.get_fetch_type();
    match fetch.map_err(|error| of_datafusion(&error))? {
        FetchType::Literal(count) => Ok((count, skip)),
        FetchType::UnsupportedExpr => Err(no_constant("LIMIT")),
    }
}

/// The columns of sorted rows above the limit in place of the limit above the columns: of the rows
/// that it stops nothing is then sorted or made.
fn within_columns(limit: &Limit) -> Option<LogicalPlan> {
    if !is_sorted(&limit.input) {
        return None;
    }
    let limited = |input: &Arc<LogicalPlan>| {
        Arc::new(LogicalPlan::Limit(Limit {
            input: Arc::clone(input),
            ..limit.clone()
        }))
    };
    match limit.input.as_ref() {
        LogicalPlan::Projection(columns) => {
            let mut columns = columns.clone();
            columns.input = limited(&columns.input);
            Some(LogicalPlan::Projection(columns))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let mut alias = alias.clone();
            alias.input = limited(&alias.input);
            Some(LogicalPlan::SubqueryAlias(alias))
        }
        _ => None,
    }
}

/// Whether the rows of `plan` are those of a sort, or some of them, with other columns at most.
fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Filter(filter) => is_sorted(&filter.input),
        LogicalPlan::Projection(columns) => is_sorted(&columns.input),
        LogicalPlan::SubqueryAlias(alias) => is_sorted(&alias.input),
        _ => false,
    }
}

/// Whether the rows of `plan` are distinct ones, or some of them, with other columns at most.
fn is_distinct(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Distinct(Distinct::All(_)) => true,
        LogicalPlan::Filter(filter) => is_distinct(&filter.input),
        LogicalPlan::Projection(columns) => is_distinct(&columns.input),
        LogicalPlan::SubqueryAlias(alias) => is_distinct(&alias.input),
        _ => false,
    }
}

fn no_constant(what: &str) -> Error {
    Error::unsupported(format!("{what} must be a number")).hint(format!("write {what} 10"))
}
