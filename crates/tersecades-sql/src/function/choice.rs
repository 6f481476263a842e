//! Values of several types of which one is chosen or found, in a type that holds them.
//!
//! ```text
//! CASE big WHEN 0.5 THEN a END ─▶ CASE WHEN big = 0.5 THEN a END
//! nullif(big, 0.5)             ─▶ CASE WHEN big = 0.5 THEN NULL ELSE big END
//! coalesce(price, x)           ─▶ coalesce(CAST(price AS DOUBLE), x)
//! price IN (SELECT x ...)      ─▶ CAST(price AS DOUBLE) IN (SELECT x ...)
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

use super::far::{equal, far_equal};

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
                among_doubles(&mut found.expr, &mut found.subquery, schema)?;
                Transformed::yes(Expr::InSubquery(found))
            }
            Expr::SetComparison(mut found) => {
                among_doubles(&mut found.expr, &mut found.subquery, schema)?;
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
    let mut exact = !round(
        std::iter::once(&*operand).chain(found.iter().copied()),
        schema,
    );
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

/// Brings a value and the rows that it is compared with into 64-bit floats, where one is a float
/// and one a decimal.
fn among_doubles(value: &mut Expr, rows: &mut Subquery, schema: &DFSchema) -> Result<()> {
    let Ok(own) = value.get_type(schema) else {
        return Ok(());
    };
    let other = rows.subquery.schema().field(0).data_type();
    if own.is_decimal() && other.is_floating() {
        *value = cast(value.clone(), DataType::Float64);
    } else if own.is_floating() && other.is_decimal() {
        rows.subquery = Arc::new(columns_as_doubles(&rows.subquery, &[true])?);
    }
    Ok(())
}

/// The rows with some of their columns in 64-bit floats.
fn columns_as_doubles(rows: &LogicalPlan, chosen: &[bool]) -> Result<LogicalPlan> {
    let columns = rows.schema().columns().into_iter().zip(chosen);
    let columns = columns.map(|(column, is_chosen)| {
        let Column { relation, name, .. } = column.clone();
        match is_chosen {
            true => cast(Expr::Column(column), DataType::Float64).alias_qualified(relation, name),
            false => Expr::Column(column),
        }
    });
    LogicalPlanBuilder::from(rows.clone())
        .project(columns.collect::<Vec<_>>())?
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
        let fields = input.schema().fields().iter().zip(&floats);
        let chosen: Vec<bool> = fields
            .map(|(field, floats)| *floats && field.data_type().is_decimal())
            .collect();
        inputs.push(match chosen.contains(&true) {
            true => Arc::new(columns_as_doubles(input, &chosen)?),
            false => Arc::clone(input),
        });
    }
    Union::try_new_with_loose_types(inputs)
}

/// The join with keys in 64-bit floats, where one side has floats and the other decimals.
fn paired(mut join: Join) -> Result<Join> {
    for (left, right) in &mut join.on {
        let types = (
            left.get_type(join.left.schema())?,
            right.get_type(join.right.schema())?,
        );
        if types.0.is_decimal() && types.1.is_floating() {
            *left = cast(left.clone(), DataType::Float64);
        } else if types.0.is_floating() && types.1.is_decimal() {
            *right = cast(right.clone(), DataType::Float64);
        }
    }
    Ok(join)
}
