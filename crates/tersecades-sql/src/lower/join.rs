//! Joins of bounded streams.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::{Field, Schema};
use datafusion_common::{JoinType, NullEquality};
use datafusion_expr::{Expr, Join};
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::stream::Stream;

use super::Lowering;
use super::expression::Lowerer;
use super::rows::{Column, Reach, Rows, free_name};

/// One input of a join: its stream, the names of its columns, the names of its keys.
struct Side {
    stream: Stream,
    columns: Vec<String>,
    keys: Vec<String>,
}

impl Side {
    /// Settles `rows` under names that `taken` does not hold, with a column for each key.
    fn of<'k>(
        rows: Rows,
        schema: &datafusion_common::DFSchema,
        keys: impl Iterator<Item = &'k Expr>,
        taken: &mut Vec<String>,
    ) -> Result<Self> {
        let mut projected: Vec<(String, Expression)> = Vec::new();
        let mut name = |wanted: &str| {
            let name = free_name(wanted, |name| taken.iter().any(|known| known == name));
            taken.push(name.clone());
            name
        };
        for (index, field) in schema.fields().iter().enumerate() {
            projected.push((name(field.name()), rows.value(index)?.clone()));
        }
        let columns: Vec<String> = projected.iter().map(|(name, _)| name.clone()).collect();
        let lowerer = rows.lowerer(schema)?;
        let mut key_names = Vec::new();
        for key in keys {
            let value = lowerer.typed_value(key)?;
            let known = projected.iter().find(|(_, known)| *known == value);
            key_names.push(match known {
                Some((name, _)) => name.clone(),
                None => {
                    let name = name("key");
                    projected.push((name.clone(), value));
                    name
                }
            });
        }
        Ok(Side {
            stream: rows.stream.project(projected),
            columns,
            keys: key_names,
        })
    }
}

impl Lowering<'_> {
    /// Lowers a join.
    ///
    /// # Errors
    /// `Unsupported` for kinds that the engine does not have.
    pub(super) fn join(&self, join: &Join) -> Result<Rows> {
        let mut taken = Vec::new();
        let keys = join.on.iter().map(|(left, _)| left);
        let left = Side::of(self.plan(&join.left)?, join.left.schema(), keys, &mut taken)?;
        let keys = join.on.iter().map(|(_, right)| right);
        let right = Side::of(
            self.plan(&join.right)?,
            join.right.schema(),
            keys,
            &mut taken,
        )?;
        let left = match join.null_aware {
            true => outside_list(join, left, &right)?,
            false => left,
        };
        let residual = match &join.filter {
            Some(filter) => Some(residual(filter, join, &left, &right)?),
            None => None,
        };
        let shown: Vec<&String> = match join.join_type {
            JoinType::LeftSemi | JoinType::LeftAnti => left.columns.iter().collect(),
            JoinType::RightSemi | JoinType::RightAnti => right.columns.iter().collect(),
            _ => left.columns.iter().chain(&right.columns).collect(),
        };
        let columns = shown
            .into_iter()
            .map(|name| Column::Value(col(name.as_str())))
            .collect();
        let stream = joined(join, left, right, residual)?;
        Ok(Rows {
            stream,
            columns,
            time: None,
            reach: Reach::Other,
        })
    }
}

/// The left rows that `x NOT IN (SELECT y ...)` can be true for: none where some `y` is null, all
/// where there is no `y`, else those whose `x` is not null.
fn outside_list(join: &Join, left: Side, right: &Side) -> Result<Side> {
    let (None, [x], [y]) = (&join.filter, left.keys.as_slice(), right.keys.as_slice()) else {
        return Err(
            Error::unsupported("NOT IN with a subquery that reads the outer query")
                .hint("write NOT EXISTS"),
        );
    };
    let counts = [
        count().alias("rows"),
        call("count", col(y.as_str())).alias("filled"),
    ];
    let mut counted = [0, 0];
    for batch in right.stream.clone().aggregate(counts).run()? {
        let batch = batch?;
        for (number, column) in counted.iter_mut().zip(batch.columns()) {
            *number = column.as_primitive::<Int64Type>().value(0);
        }
    }
    let condition = match counted {
        [0, _] => return Ok(left),
        [rows, filled] if filled < rows => lit(0),
        _ => !col(x.as_str()).is_null(),
    };
    Ok(Side {
        stream: left.stream.filter(condition),
        ..left
    })
}

/// The condition besides equal keys, over the columns of both sides.
fn residual(filter: &Expr, join: &Join, left: &Side, right: &Side) -> Result<Expression> {
    let names = left.columns.iter().chain(&right.columns);
    let columns: Vec<Column> = names
        .map(|name| Column::Value(col(name.as_str())))
        .collect();
    let schema = join.left.schema().join(join.right.schema());
    let schema = schema.map_err(|error| crate::error::of_datafusion(&error))?;
    let mut fields: Vec<Arc<Field>> = Vec::new();
    for side in [left, right] {
        fields.extend(side.stream.schema()?.fields().iter().cloned());
    }
    let stream = Arc::new(Schema::new(fields));
    Lowerer {
        schema: &schema,
        columns: &columns,
        stream,
    }
    .value(filter)
}

/// The engine's join.
fn joined(join: &Join, left: Side, right: Side, residual: Option<Expression>) -> Result<Stream> {
    let on = left.keys.iter().zip(&right.keys);
    let on: Vec<(&str, &str)> = on
        .map(|(left, right)| (left.as_str(), right.as_str()))
        .collect();
    let kind = match join.join_type {
        JoinType::Inner if on.is_empty() => JoinKind::Cross,
        JoinType::Inner => JoinKind::Inner,
        JoinType::Left => JoinKind::Left,
        JoinType::Right => JoinKind::Right,
        JoinType::Full => JoinKind::Full,
        JoinType::LeftSemi => JoinKind::LeftSemi,
        JoinType::RightSemi => JoinKind::RightSemi,
        JoinType::LeftAnti => JoinKind::LeftAnti,
        JoinType::RightAnti => JoinKind::RightAnti,
        JoinType::LeftMark | JoinType::RightMark => {
            return Err(
                Error::unsupported("IN and EXISTS with a subquery beside OR or in SELECT")
                    .hint("write them as conditions of WHERE, joined by AND"),
            );
        }
    };
    let options = JoinOptions {
        residual,
        null_equals_null: join.null_equality == NullEquality::NullEqualsNull,
        ..JoinOptions::default()
    };
    left.stream.join(right.stream, kind, &on, options)
}
