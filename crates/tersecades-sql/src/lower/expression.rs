//! Expressions: the engine's own where it has the operation, else a call of DataFusion's.
//!
//! ```text
//! comparison, AND OR NOT, IS NULL, IN, arithmetic, casts ─▶ Expression: may run encoded
//! everything else, with all that is inside of it ─────────▶ Expression::Call, of DataFusion's
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column as PlanColumn, DFSchema, ScalarValue};
use datafusion_expr::expr::{BinaryExpr, InList};
use datafusion_expr::{Expr, ExprSchemable, Operator};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Physical, Value, logical_type};
use tersecades_engine::expression::{Arithmetic, Expression, lit};

use super::literal::{comparable, typed};
use super::rows::{Column, type_of, value_of};
use crate::error::of_datafusion;
use crate::function::arithmetic::CheckedArithmetic;
use crate::function::cast::{CAST_TO, is_asked_for};
use crate::function::compare::comparison_of;
use crate::function::real::Real;
use crate::function::time_cast::TimeAs;
use crate::function::window::WindowEdge;
use crate::scalar::PlannedFunction;

/// What expressions of one plan node are lowered against.
pub(crate) struct Lowerer<'a> {
    /// Fields of the node's input.
    pub(crate) schema: &'a DFSchema,
    /// What computes them.
    pub(crate) columns: &'a [Column],
    /// Columns of the stream, over which they are computed.
    pub(crate) stream: SchemaRef,
}

impl Lowerer<'_> {
    /// Lowers a value.
    ///
    /// # Errors
    /// `Unsupported` for what neither the engine nor DataFusion's scalar expressions can do.
    pub(crate) fn value(&self, expr: &Expr) -> Result<Expression> {
        match self.native(expr)? {
            Some(native) => Ok(native),
            None => self.call(expr),
        }
    }

    /// The value in the type the plan gives it.
    ///
    /// # Errors
    /// As [`Lowerer::value`].
    pub(crate) fn typed_value(&self, expr: &Expr) -> Result<Expression> {
        let value = self.value(expr)?;
        if matches!(value, Expression::Column(_)) {
            return Ok(value);
        }
        let wanted = logical_type(&self.type_of(expr)?);
        if matches!(wanted, DataType::Interval(_) | DataType::Duration(_)) {
            let what = match expr.clone().unalias() {
                Expr::Literal(..) => "an interval".to_owned(),
                _ => format!("`{}`", bare(expr)),
            };
            let message = format!("{what} is a length of time, which no column holds");
            let hint = "extract(epoch FROM a - b) gives its seconds";
            return Err(Error::unsupported(message).hint(hint));
        }
        match type_of(&value, &self.stream)? == wanted {
            true => Ok(value),
            false => Ok(value.cast(wanted)),
        }
    }

    fn type_of(&self, expr: &Expr) -> Result<DataType> {
        expr.get_type(self.schema)
            .map_err(|error| of_datafusion(&error))
    }

    /// The engine's own form of `expr`; `None` when it has none.
    fn native(&self, expr: &Expr) -> Result<Option<Expression>> {
        Ok(match unmarked(expr) {
            Expr::Alias(alias) => return self.native(&alias.expr),
            Expr::Column(column) => Some(self.column(column)?),
            Expr::Literal(value, _) => typed(value),
            Expr::Not(inner) => Some(!self.value(inner)?),
            Expr::IsNull(inner) => Some(self.value(inner)?.is_null()),
            Expr::IsNotNull(inner) => Some(!self.value(inner)?.is_null()),
            Expr::BinaryExpr(binary) => return self.binary(binary),
            Expr::Between(between) => {
                let inside = self
                    .compare(&between.expr, Operator::GtEq, &between.low)?
                    .zip(self.compare(&between.expr, Operator::LtEq, &between.high)?)
                    .map(|(low, high)| low.and(high));
                inside.map(|inside| if between.negated { !inside } else { inside })
            }
            Expr::InList(list) => return self.list(list),
            Expr::Cast(cast) => {
                let to = logical_type(cast.field.data_type());
                let from = logical_type(&self.type_of(&cast.expr)?);
                let known = Physical::of(&to).is_ok() && Physical::of(&from).is_ok();
                match known {
                    true => Some(self.value(&cast.expr)?.cast(to)),
                    false => None,
                }
            }
            Expr::ScalarFunction(call) => {
                let function = call.func.inner();
                if let Some(edge) = function.as_ref().downcast_ref::<WindowEdge>() {
                    return Err(super::window::outside(edge.kind));
                }
                if let (Some(cast), [time]) = (
                    function.as_ref().downcast_ref::<TimeAs>(),
                    call.args.as_slice(),
                ) {
                    return Ok(Some(self.value(time)?.cast(cast.to.clone())));
                }
                if let (Some(Real { tries: false, .. }), [float]) =
                    (function.as_ref().downcast_ref(), call.args.as_slice())
                {
                    return Ok(Some(self.value(float)?.cast(DataType::Float32)));
                }
                match (
                    function.as_ref().downcast_ref::<CheckedArithmetic>(),
                    call.args.as_slice(),
                ) {
                    (Some(arithmetic), [a, b]) => self.arithmetic(arithmetic.how, a, b, expr)?,
                    _ => None,
                }
            }
            _ => None,
        })
    }

    /// The column that the plan calls so.
    ///
    /// # Errors
    /// `Unsupported` for edges of windows.
    pub(crate) fn column(&self, column: &PlanColumn) -> Result<Expression> {
        let index = self
            .schema
            .index_of_column(column)
            .map_err(|error| of_datafusion(&error))?;
        value_of(self.columns, index).cloned()
    }

    fn arithmetic(
        &self,
        how: Arithmetic,
        a: &Expr,
        b: &Expr,
        whole: &Expr,
    ) -> Result<Option<Expression>> {
        let sides = Box::new(self.value(a)?);
        let native = Expression::Arithmetic(how, sides, Box::new(self.value(b)?));
        let wanted = logical_type(&self.type_of(whole)?);
        Ok(match type_of(&native, &self.stream) {
            Ok(found) if found == wanted => Some(native),
            // 64-bit results that the plan wants narrower are checked by the cast.
            Ok(found) if found.is_integer() && wanted.is_integer() => Some(native.cast(wanted)),
            _ => None,
        })
    }

    fn binary(&self, binary: &BinaryExpr) -> Result<Option<Expression>> {
        let BinaryExpr { left, op, right } = binary;
        Ok(match op {
            Operator::And => Some(self.value(left)?.and(self.value(right)?)),
            Operator::Or => Some(self.value(left)?.or(self.value(right)?)),
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq => self.compare(left, *op, right)?,
            Operator::IsDistinctFrom => self.same(left, right)?.map(|same| !same),
            Operator::IsNotDistinctFrom => self.same(left, right)?,
            _ => None,
        })
    }

    /// Whether both sides are equal or null; never unknown. `None` where a side holds a further
    /// such comparison: each is written twice.
    fn same(&self, left: &Expr, right: &Expr) -> Result<Option<Expression>> {
        if [left, right].into_iter().any(holds_distinct) {
            return Ok(None);
        }
        let Some(equal) = self.compare(left, Operator::Eq, right)? else {
            return Ok(None);
        };
        let null_of = |side: &Expr| -> Result<Option<Expression>> {
            Ok(match side {
                Expr::Literal(value, _) if !value.is_null() => None,
                _ => Some(self.value(self.unwidened(side)?)?.is_null()),
            })
        };
        Ok(Some(match (null_of(left)?, null_of(right)?) {
            (None, None) => equal,
            (Some(null), None) | (None, Some(null)) => equal.and(!null),
            (Some(a), Some(b)) => {
                let filled = equal.and(!a.clone()).and(!b.clone());
                filled.or(a.and(b))
            }
        }))
    }

    fn compare(&self, left: &Expr, op: Operator, right: &Expr) -> Result<Option<Expression>> {
        let Some(how) = comparison_of(op) else {
            return Ok(None);
        };
        let sides = own_sides(left, right, self.schema);
        let (left, right) = sides.map_err(|error| of_datafusion(&error))?;
        let (Some(a), Some(b)) = (self.side(left)?, self.side(right)?) else {
            return Ok(None);
        };
        let native = Expression::Compare(how, Box::new(a), Box::new(b));
        Ok(type_of(&native, &self.stream).is_ok().then_some(native))
    }

    /// A side of a comparison.
    fn side(&self, expr: &Expr) -> Result<Option<Expression>> {
        match expr {
            Expr::Literal(value, _) => Ok(comparable(value).map(lit)),
            other => self.value(other).map(Some),
        }
    }

    /// `expr` without a cast that changes nothing of what a comparison says: the engine compares
    /// numbers of any width, and times of any units.
    fn unwidened<'e>(&self, expr: &'e Expr) -> Result<&'e Expr> {
        without_widening(expr, self.schema).map_err(|error| of_datafusion(&error))
    }

    fn list(&self, list: &InList) -> Result<Option<Expression>> {
        let mut values = Vec::with_capacity(list.list.len());
        for item in &list.list {
            let Expr::Literal(value, _) = item else {
                return Ok(None);
            };
            match comparable(value) {
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        let needle = self.unwidened(&list.expr)?;
        let found = Expression::OneOf(Box::new(self.value(needle)?), values);
        if type_of(&found, &self.stream).is_err() {
            return Ok(None);
        }
        Ok(Some(if list.negated { !found } else { found }))
    }

    /// A call of DataFusion's physical expression on the columns it reads.
    fn call(&self, expr: &Expr) -> Result<Expression> {
        let mut read: Vec<usize> = Vec::new();
        let mut failed = None;
        let walked = expr.apply(|part| {
            if let Expr::Column(column) = part {
                match self.schema.index_of_column(column) {
                    Ok(index) if read.contains(&index) => {}
                    Ok(index) => read.push(index),
                    Err(error) => failed = Some(of_datafusion(&error)),
                }
            }
            if let Some(error) = refused(part) {
                failed = Some(error);
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.map_err(|error| of_datafusion(&error))?;
        if let Some(error) = failed {
            return Err(error);
        }
        let function = PlannedFunction::new(expr, self.schema, &read)?;
        if read.is_empty() && function.depends_on_arguments_alone() {
            let value = function.constant()?;
            if let Some(constant) = typed(&value) {
                return Ok(constant);
            }
        }
        let arguments: Result<Vec<Expression>> = read
            .iter()
            .map(|index| value_of(self.columns, *index).cloned())
            .collect();
        Ok(Expression::call(Arc::new(function), arguments?))
    }
}

/// `expr` without the mark around a cast.
pub(crate) fn unmarked(expr: &Expr) -> &Expr {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == CAST_TO => {
            call.args.first().unwrap_or(expr)
        }
        _ => expr,
    }
}

/// Whether `expr` holds `IS [NOT] DISTINCT FROM`.
fn holds_distinct(expr: &Expr) -> bool {
    let found = expr.exists(|part| {
        use Operator::{IsDistinctFrom, IsNotDistinctFrom};
        Ok(matches!(part, Expr::BinaryExpr(BinaryExpr { op, .. })
            if matches!(op, IsDistinctFrom | IsNotDistinctFrom)))
    });
    found.unwrap_or(true)
}

/// What has the name, where `expr` is a name for something.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr),
        other => other,
    }
}

/// Both sides of a comparison without casts that change nothing of what an exact one says.
///
/// # Errors
/// What finding types says.
pub(crate) fn own_sides<'e>(
    left: &'e Expr,
    right: &'e Expr,
    schema: &DFSchema,
) -> datafusion_common::Result<(&'e Expr, &'e Expr)> {
    Ok((
        without_widening(left, schema)?,
        without_widening(right, schema)?,
    ))
}

/// A side of a comparison without such a cast; those of whole numbers to floats stay where a query
/// asks for them.
///
/// # Errors
/// What finding types says.
pub(super) fn without_widening<'e>(
    expr: &'e Expr,
    schema: &DFSchema,
) -> datafusion_common::Result<&'e Expr> {
    let bare = unmarked(expr);
    let Expr::Cast(cast) = bare else {
        return Ok(bare);
    };
    let (from, to) = (cast.expr.get_type(schema)?, cast.field.data_type());
    let asked = to.is_floating() && is_asked_for(expr);
    let widens = !asked && is_widening(&logical_type(&from), &logical_type(to));
    Ok(if widens { &cast.expr } else { bare })
}

/// Whether every value of `from` is the same value of `to`, as far as `to` holds and does not
/// round them.
pub(super) fn is_widening(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Decimal128, Float32, Float64, Timestamp};
    match (from, to) {
        (from, to) if from.is_integer() && to.is_integer() => true,
        (from, Float32 | Float64 | Decimal128(..)) if from.is_integer() => true,
        (Decimal128(_, from), Decimal128(_, to)) => from <= to,
        (Float32, Float64) | (Date32, Timestamp(_, None)) => true,
        (Timestamp(_, from), Timestamp(_, to)) => from == to,
        _ => false,
    }
}

/// Why an expression cannot be run, where its kind says so.
fn refused(expr: &Expr) -> Option<Error> {
    let what = match expr {
        Expr::WindowFunction(call) => {
            let text = format!("`{}(...) OVER` in this place", call.fun);
            return Some(
                Error::unsupported(format!("{text} is not supported"))
                    .hint("filter by it with QUALIFY, or compute it in a subquery"),
            );
        }
        Expr::Exists(_) => "EXISTS in this place",
        Expr::InSubquery(_) => "IN (SELECT ...) in this place",
        Expr::ScalarSubquery(_) => "a subquery in this place",
        Expr::SetComparison(_) => "ANY and ALL",
        Expr::GroupingSet(_) => "GROUPING SETS, ROLLUP and CUBE",
        Expr::Cast(cast) if matches!(cast.field.data_type(), DataType::Interval(_)) => {
            "a length of time beside an interval, but where they are compared,"
        }
        Expr::Placeholder(_) => "a placeholder without a value",
        Expr::Unnest(_) => "UNNEST",
        Expr::HigherOrderFunction(_) | Expr::Lambda(_) | Expr::LambdaVariable(_) => "lambdas",
        Expr::OuterReferenceColumn(..) => "a column of the outer query in this place",
        _ => return None,
    };
    Some(
        Error::unsupported(format!("{what} is not supported"))
            .hint("joins and subqueries in FROM are supported"),
    )
}

/// The number that `expr` is, for arguments that must be constant.
pub(crate) fn constant_number(expr: &Expr) -> Option<f64> {
    let value = match expr {
        Expr::Literal(value, _) => value,
        Expr::Alias(alias) => return constant_number(&alias.expr),
        _ => return None,
    };
    match value.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(number)) => number,
        _ => None,
    }
}

/// Whether `expr` is a constant that is not null.
pub(crate) fn is_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if comparable(value) != Some(Value::Null))
}
