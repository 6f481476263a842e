//! Values of several types of which one is chosen or found, in a type that holds them.
//!
//! ```text
//! CASE big WHEN 0.5 THEN a END ─▶ CASE WHEN big = 0.5 THEN a END
//! nullif(big, 0.5)             ─▶ CASE WHEN big = 0.5 THEN NULL ELSE big END
//! coalesce(price, x)           ─▶ coalesce(CAST(price AS DOUBLE), x)
//! price IN (SELECT x ...)      ─▶ CAST(price AS DOUBLE) IN (SELECT x ...)
//! big IN (SELECT x ...)        ─▶ big IN (SELECT whole_or_half(x) ...)
//! price UNION ALL x            ─▶ CAST(price AS DOUBLE) UNION ALL x
//! ```
//! DataFusion compares in one type for all, which rounds whole numbers beside floats, and of floats
//! beside decimals it makes decimals of 15 digits behind the point, which floats do not have.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{Case, ScalarFunction};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Subquery, Union, cast,
};
use datafusion_optimizer::analyzer::AnalyzerRule;
use datafusion_optimizer::analyzer::type_coercion::TypeCoercionRewriter;

use super::far::{equal, far_equal, is_short};
use super::key::{in_nanoseconds, in_scale};
use super::whole::key_beside;

/// Functions that give one of their arguments.
const CHOOSING: [&str; 5] = ["coalesce", "greatest", "least", "nvl", "nvl2"];

/// Chooses and finds such values in expressions.
#[derive(Debug)]
pub(crate) struct ExactChoices;

impl FunctionRewrite for ExactChoices {
    fn name(&self) -> &str {
        "exact_choices"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::Case(case) => {
                let searched = searched(case, schema)?;
                Transformed::yes(Expr::Case(with_doubles(searched, schema)))
            }
            Expr::ScalarFunction(mut call) if CHOOSING.contains(&call.func.name()) => {
                as_doubles(call.args.iter_mut(), schema);
                Transformed::yes(Expr::ScalarFunction(call))
            }
            Expr::ScalarFunction(call) if call.func.name() == "nullif" => null_if(call, schema)?,
            Expr::InSubquery(mut found) => {
                among(&mut found.expr, &mut found.subquery, schema)?;
                Transformed::yes(Expr::InSubquery(found))
            }
            Expr::SetComparison(mut found) => {
                among(&mut found.expr, &mut found.subquery, schema)?;
                Transformed::yes(Expr::SetComparison(found))
            }
            expr => Transformed::no(expr),
        })
    }
}

/// `CASE x WHEN a` as `CASE WHEN x = a`, where `x` and some `a` are of types whose common one may
/// round them or not hold them.
fn searched(mut case: Case, schema: &DFSchema) -> Result<Case> {
    let Some(operand) = case.expr.take() else {
        return Ok(case);
    };
    let found: Vec<&Expr> = case
        .when_then_expr
        .iter()
        .map(|(when, _)| &**when)
        .collect();
    // No type rounds short integers.
    let is_integer = |value: &Expr| value.get_type(schema).is_ok_and(|own| own.is_integer());
    let rounded = found.iter().copied();
    let rounded = rounded.filter(|when| !(is_short(when) && is_integer(when)));
    let mut exact = !round(std::iter::once(&*operand).chain(rounded), schema);
    for when in found {
        exact &= far_equal(&operand, when, schema)?.is_none();
    }
    if exact {
        case.expr = Some(operand);
        return Ok(case);
    }
    for (when, _) in &mut case.when_then_expr {
        **when = equal(&operand, when, schema)?;
    }
    Ok(case)
}

/// Whether a common type of `values` may round them or not hold them.
fn round<'e>(values: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> bool {
    let types: Vec<DataType> = values
        .filter_map(|value| value.get_type(schema).ok())
        .collect();
    let any = |is: fn(&DataType) -> bool| types.iter().any(is);
    let times = any(|time| matches!(time, DataType::Timestamp(..) | DataType::Date32));
    any(DataType::is_floating) && any(|other| other.is_integer() || other.is_decimal())
        || times && types.iter().any(|data_type| *data_type != types[0])
}

/// The choice with results in 64-bit floats, where some are floats and some decimals.
fn with_doubles(mut case: Case, schema: &DFSchema) -> Case {
    let results = case.when_then_expr.iter_mut().map(|(_, result)| result);
    let results = results
        .chain(&mut case.else_expr)
        .map(|result| &mut **result);
    as_doubles(results, schema);
    case
}

/// Makes floats of decimals where there are floats beside them.
fn as_doubles<'e>(values: impl Iterator<Item = &'e mut Expr>, schema: &DFSchema) {
    let values: Vec<&mut Expr> = values.collect();
    let types: Vec<Option<DataType>> = values
        .iter()
        .map(|value| value.get_type(schema).ok())
        .collect();
    if !types.iter().flatten().any(DataType::is_floating) {
        return;
    }
    for (value, data_type) in values.into_iter().zip(types) {
        if data_type.is_some_and(|data_type| data_type.is_decimal()) {
            *value = cast(value.clone(), DataType::Float64);
        }
    }
}

fn null_if(call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match call.args.as_slice() {
        [value, other]
            if round(call.args.iter(), schema) || far_equal(value, other, schema)?.is_some() =>
        {
            let null = Expr::Literal(ScalarValue::Null, None);
            let found = Box::new(equal(value, other, schema)?);
            let otherwise = Some(Box::new(value.clone()));
            let case = Case::new(None, vec![(found, Box::new(null))], otherwise);
            Transformed::yes(Expr::Case(case))
        }
        _ => Transformed::no(Expr::ScalarFunction(call)),
    })
}

/// Brings a value and the rows that it is compared with into one type, where the common one of
/// DataFusion does not hold both.
fn among(value: &mut Expr, rows: &mut Subquery, schema: &DFSchema) -> Result<()> {
    let Ok(own) = value.get_type(schema) else {
        return Ok(());
    };
    let other = rows.subquery.schema().field(0).data_type().clone();
    if let Some(key) = key_among(value, &own, &other) {
        *value = key;
    }
    let keyed = |column: &Expr| key_among(column, &other, &own);
    rows.subquery = Arc::new(columns_as(&rows.subquery, |_, column| keyed(column))?);
    Ok(())
}

/// The key of a value of this type among values of the `other`.
fn key_among(value: &Expr, own: &DataType, other: &DataType) -> Option<Expr> {
    use DataType::{Date32, Timestamp};
    match (own, other) {
        (Timestamp(unit, zone), Timestamp(finer, same)) if unit != finer && zone == same => {
            in_nanoseconds(value, own)
        }
        (Timestamp(_, None), Date32) | (Date32, Timestamp(_, None)) => in_nanoseconds(value, own),
        (own, other) if own.is_floating() == other.is_floating() => in_scale(value, own, other),
        _ => key_beside(value, own, other),
    }
}

/// The rows with those of their columns that `into` gives something for as that.
fn columns_as(
    rows: &LogicalPlan,
    into: impl Fn(usize, &Expr) -> Option<Expr>,
) -> Result<LogicalPlan> {
    let mut changed = false;
    let mut columns = Vec::new();
    for (index, column) in rows.schema().columns().into_iter().enumerate() {
        let Column { relation, name, .. } = column.clone();
        let own = Expr::Column(column);
        let other = into(index, &own);
        changed |= other.is_some();
        columns.push(other.map_or(own, |other| other.alias_qualified(relation, name)));
    }
    if !changed {
        return Ok(rows.clone());
    }
    LogicalPlanBuilder::from(rows.clone())
        .project(columns)?
        .build()
}

/// Brings rows of `UNION`, and keys of `INTERSECT`, `EXCEPT` and `USING`, into such types.
#[derive(Debug)]
pub(crate) struct ExactSets;

impl AnalyzerRule for ExactSets {
    fn name(&self) -> &str {
        "exact_sets"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let exact = plan.transform_up_with_subqueries(|plan| {
            let exact = match plan {
                LogicalPlan::Union(union) => TypeCoercionRewriter::coerce_union(united(union)?)?,
                LogicalPlan::Join(join) => LogicalPlan::Join(paired(join)?),
                plan => plan,
            };
            Ok(Transformed::yes(exact.recompute_schema()?))
        });
        Ok(exact?.data)
    }
}

/// The union with columns in 64-bit floats, where some input has floats and some decimals.
fn united(union: Union) -> Result<Union> {
    let types = |column: usize| {
        let inputs = union.inputs.iter();
        inputs.filter_map(move |input| Some(input.schema().fields().get(column)?.data_type()))
    };
    let columns = 0..union.schema.fields().len();
    let floats: Vec<bool> = columns
        .map(|column| types(column).any(DataType::is_floating))
        .collect();
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in &union.inputs {
        let as_double = |column: usize, own: &Expr| {
            let is_decimal = input.schema().field(column).data_type().is_decimal();
            let floats = is_decimal && floats.get(column) == Some(&true);
            floats.then(|| cast(own.clone(), DataType::Float64))
        };
        inputs.push(Arc::new(columns_as(input, as_double)?));
    }
    Union::try_new_with_loose_types(inputs)
}

/// The join with keys of one type, where one side has floats and the other does not.
fn paired(mut join: Join) -> Result<Join> {
    for (left, right) in &mut join.on {
        let types = (
            left.get_type(join.left.schema())?,
            right.get_type(join.right.schema())?,
        );
        if let Some(key) = key_beside(left, &types.0, &types.1) {
            *left = key;
        }
        if let Some(key) = key_beside(right, &types.1, &types.0) {
            *right = key;
        }
    }
    Ok(join)
}
