//! Sorting, limits, distinct rows and unions.

use datafusion_expr::{Distinct, FetchType, Limit, LogicalPlan, SkipType, Sort, SortExpr, Union};
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::operator::row::Extent;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::stream::Stream;

use super::Lowering;
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
        let by_window = rows.reach == Reach::Windows
            && by
                .first()
                .is_some_and(|(first, order)| *first == col("window_start") && !order.descending);
        let (extent, reach) = match by_window {
            true => (Extent::Natural, Reach::Windows),
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
        let skip = match limit
            .get_skip_type()
            .map_err(|error| of_datafusion(&error))?
        {
            SkipType::Literal(skip) => skip,
            SkipType::UnsupportedExpr => return Err(no_constant("OFFSET")),
        };
        let fetch = match limit
            .get_fetch_type()
            .map_err(|error| of_datafusion(&error))?
        {
            FetchType::Literal(fetch) => fetch,
            FetchType::UnsupportedExpr => return Err(no_constant("LIMIT")),
        };
        if let (LogicalPlan::Sort(sort), Some(count)) = (limit.input.as_ref(), fetch) {
            let (rows, by, _) = self.sorting(sort)?;
            let stream = rows.stream.top_k_in(Extent::Whole, (count, skip), by);
            return Ok(Rows {
                stream,
                reach: Reach::Other,
                ..rows
            });
        }
        let rows = self.plan(&limit.input)?.settled(limit.input.schema())?;
        let count = fetch.map_or(u64::MAX, |count| count as u64);
        let stream = rows.stream.limit(count, skip as u64);
        Ok(Rows {
            stream,
            time: None,
            reach: Reach::Other,
            ..rows
        })
    }

    /// Lowers `DISTINCT`.
    ///
    /// # Errors
    /// `Unsupported` for `DISTINCT ON`.
    pub(super) fn distinct(&self, distinct: &Distinct) -> Result<Rows> {
        match distinct {
            Distinct::All(input) => {
                let rows = self.plan(input)?.settled(input.schema())?;
                let stream = rows.stream.distinct();
                Ok(Rows {
                    stream,
                    time: None,
                    reach: Reach::Other,
                    ..rows
                })
            }
            Distinct::On(_) => Err(Error::unsupported("DISTINCT ON is not supported")
                .hint("group by those columns and take first(x) of the others")),
        }
    }

    /// Lowers `UNION ALL`.
    ///
    /// # Errors
    /// What lowering the inputs says.
    pub(super) fn union(&self, union: &Union) -> Result<Rows> {
        let names = unique_names(&union.schema);
        let mut streams = Vec::with_capacity(union.inputs.len());
        for input in &union.inputs {
            let rows = self.plan(input)?;
            streams.push(rows.named(input.schema(), &names)?);
        }
        Ok(Rows {
            stream: Stream::union(streams)?,
            columns: names
                .into_iter()
                .map(|name| Column::Value(col(name)))
                .collect(),
            time: None,
            reach: Reach::Other,
        })
    }
}

fn no_constant(what: &str) -> Error {
    Error::unsupported(format!("{what} must be a number")).hint(format!("write {what} 10"))
}
