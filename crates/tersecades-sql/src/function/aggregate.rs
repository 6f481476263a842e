//! The engine's aggregates as DataFusion's planner sees them: names, argument types, result types.
//!
//! Nothing here computes; the lowering turns each call into the engine's own.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion_common::{DataFusionError, Result, ScalarValue, not_impl_err, plan_err};
use datafusion_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility};
use tersecades_columnar::types::logical_type;
use tersecades_engine::aggregate::AGGREGATES;

/// What the arguments of an aggregate mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// One value.
    Value,
    /// A value, then a number that is the same for all rows.
    Parameter,
    /// A value, then what orders the rows.
    By,
    /// Two values of the same row.
    Pair,
}

/// An aggregate under one of its SQL names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SqlAggregate {
    /// The name in SQL.
    pub(crate) name: &'static str,
    /// The engine's name.
    pub(crate) function: &'static str,
    /// Its arguments.
    pub(crate) shape: Shape,
    /// Whether `WITHIN GROUP (ORDER BY x)` gives the value.
    pub(crate) within_group: bool,
    signature: Signature,
}

/// SQL name, engine name, arguments, whether it is written `WITHIN GROUP`.
const NAMES: &[(&str, &str, Shape, bool)] = &[
    ("count", "count", Shape::Value, false),
    ("count_if", "count_if", Shape::Value, false),
    ("countif", "count_if", Shape::Value, false),
    ("sum", "sum", Shape::Value, false),
    ("min", "min", Shape::Value, false),
    ("max", "max", Shape::Value, false),
    ("avg", "mean", Shape::Value, false),
    ("mean", "mean", Shape::Value, false),
    ("product", "product", Shape::Value, false),
    ("var", "variance", Shape::Value, false),
    ("variance", "variance", Shape::Value, false),
    ("var_samp", "variance", Shape::Value, false),
    ("var_sample", "variance", Shape::Value, false),
    ("var_pop", "variance_population", Shape::Value, false),
    (
        "variance_population",
        "variance_population",
        Shape::Value,
        false,
    ),
    ("stddev", "stddev", Shape::Value, false),
    ("stddev_samp", "stddev", Shape::Value, false),
    ("stddev_pop", "stddev_population", Shape::Value, false),
    (
        "stddev_population",
        "stddev_population",
        Shape::Value,
        false,
    ),
    ("count_distinct", "count_distinct", Shape::Value, false),
    ("arg_min", "arg_min", Shape::By, false),
    ("min_by", "arg_min", Shape::By, false),
    ("arg_max", "arg_max", Shape::By, false),
    ("max_by", "arg_max", Shape::By, false),
    ("arg_min_last", "arg_min_last", Shape::By, false),
    ("arg_max_last", "arg_max_last", Shape::By, false),
    ("quantile", "quantile", Shape::Parameter, false),
    ("quantile_cont", "quantile", Shape::Parameter, true),
    ("percentile_cont", "quantile", Shape::Parameter, true),
    ("quantile_disc", "quantile_disc", Shape::Parameter, true),
    ("percentile_disc", "quantile_disc", Shape::Parameter, true),
    ("median", "median", Shape::Value, false),
    ("first", "first", Shape::Value, false),
    ("first_value", "first", Shape::Value, false),
    ("last", "last", Shape::Value, false),
    ("last_value", "last", Shape::Value, false),
    ("any_value", "any_value", Shape::Value, false),
    ("mode", "mode", Shape::Value, false),
    ("bool_and", "bool_and", Shape::Value, false),
    ("every", "bool_and", Shape::Value, false),
    ("bool_or", "bool_or", Shape::Value, false),
    ("bit_and", "bit_and", Shape::Value, false),
    ("bit_or", "bit_or", Shape::Value, false),
    ("bit_xor", "bit_xor", Shape::Value, false),
    (
        "approx_count_distinct",
        "approx_count_distinct",
        Shape::Value,
        false,
    ),
    (
        "approx_distinct",
        "approx_count_distinct",
        Shape::Value,
        false,
    ),
    (
        "approx_quantile",
        "approx_quantile",
        Shape::Parameter,
        false,
    ),
    (
        "approx_percentile_cont",
        "approx_quantile",
        Shape::Parameter,
        true,
    ),
    ("approx_median", "approx_median", Shape::Value, false),
    ("histogram", "histogram", Shape::Parameter, false),
    ("top_k", "top_k", Shape::Parameter, false),
    ("sum_distinct", "sum_distinct", Shape::Value, false),
    ("mean_distinct", "mean_distinct", Shape::Value, false),
    ("covar_samp", "covariance", Shape::Pair, false),
    ("covar_pop", "covariance_population", Shape::Pair, false),
    ("corr", "correlation", Shape::Pair, false),
    ("covariance", "covariance", Shape::Pair, false),
    (
        "covariance_population",
        "covariance_population",
        Shape::Pair,
        false,
    ),
    ("correlation", "correlation", Shape::Pair, false),
    ("regr_slope", "regr_slope", Shape::Pair, false),
    ("regr_intercept", "regr_intercept", Shape::Pair, false),
    ("regr_r2", "regr_r2", Shape::Pair, false),
    ("regr_count", "regr_count", Shape::Pair, false),
    ("regr_avgx", "regr_avgx", Shape::Pair, false),
    ("regr_avgy", "regr_avgy", Shape::Pair, false),
    ("regr_sxx", "regr_sxx", Shape::Pair, false),
    ("regr_syy", "regr_syy", Shape::Pair, false),
    ("regr_sxy", "regr_sxy", Shape::Pair, false),
    ("skewness", "skewness", Shape::Value, false),
    ("kurtosis", "kurtosis", Shape::Value, false),
    ("kurtosis_pop", "kurtosis_population", Shape::Value, false),
];

/// Every aggregate that both SQL and the engine have.
pub(crate) static SQL_AGGREGATES: LazyLock<Vec<Arc<AggregateUDF>>> = LazyLock::new(|| {
    let known = |function: &str| AGGREGATES.iter().any(|known| known.name() == function);
    let named = NAMES.iter().filter(|(_, function, ..)| known(function));
    named
        .map(|&(name, function, shape, within_group)| {
            Arc::new(AggregateUDF::new_from_impl(SqlAggregate {
                name,
                function,
                shape,
                within_group,
                signature: Signature::variadic_any(Volatility::Immutable),
            }))
        })
        .collect()
});

impl SqlAggregate {
    /// The engine's name for a call, which may be of distinct values.
    ///
    /// # Errors
    /// `NotImplemented` for distinct values where the engine has no such aggregate.
    pub(crate) fn function_of(&self, distinct: bool) -> Result<&'static str> {
        match (distinct, self.function) {
            (false, function) => Ok(function),
            (true, "count") => Ok("count_distinct"),
            // Repeated values change none of these.
            (
                true,
                same @ ("min" | "max" | "bool_and" | "bool_or" | "bit_and" | "bit_or"
                | "count_distinct"),
            ) => Ok(same),
            (true, "sum") => Ok("sum_distinct"),
            (true, "mean") => Ok("mean_distinct"),
            (true, _) => not_impl_err!("{}(DISTINCT ...)", self.name),
        }
    }
}

impl AggregateUDFImpl for SqlAggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let wanted = match self.shape {
            Shape::Value => 1,
            Shape::Parameter | Shape::By | Shape::Pair => 2,
        };
        if arguments.len() != wanted {
            let plural = if wanted == 1 { "" } else { "s" };
            let given = arguments.len();
            return plan_err!("{} takes {wanted} argument{plural}, got {given}", self.name);
        }
        let Some(argument) = arguments.first() else {
            return plan_err!("{} needs an argument", self.name);
        };
        let argument = logical_type(argument);
        let known = AGGREGATES
            .iter()
            .find(|known| known.name() == self.function);
        let Some(aggregate) = known else {
            return plan_err!("unknown aggregate {}", self.name);
        };
        aggregate
            .result_type(&argument)
            .map_err(|error| DataFusionError::External(Box::new(error)))
    }

    fn is_nullable(&self) -> bool {
        !self.function.starts_with("count")
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        match self.function.contains("count") {
            true => Ok(ScalarValue::Int64(Some(0))),
            false => ScalarValue::try_from(data_type),
        }
    }

    fn supports_within_group_clause(&self) -> bool {
        self.within_group
    }

    fn supports_null_handling_clause(&self) -> bool {
        false
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        not_impl_err!("{} runs in the engine", self.name)
    }
}

/// `grouping(a)`: whether a set of `GROUPING SETS` leaves `a` out; the analyser replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Grouping {
    signature: Signature,
}

/// The one of it.
pub(crate) static GROUPING: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    Arc::new(AggregateUDF::new_from_impl(Grouping {
        signature: Signature::variadic_any(Volatility::Immutable),
    }))
});

impl AggregateUDFImpl for Grouping {
    fn name(&self) -> &str {
        "grouping"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        not_impl_err!("grouping outside of a GROUP BY")
    }
}

/// Makes `count(*)` a count of rows.
#[derive(Debug)]
pub(crate) struct CountOfRows;

impl ExprPlanner for CountOfRows {
    #[expect(
        deprecated,
        reason = "the planner still hands out the wildcard of count(*)"
    )]
    fn plan_aggregate(&self, raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        let of_rows = matches!(raw.args.as_slice(), [] | [Expr::Wildcard { .. }]);
        if raw.func.name() != "count" || !of_rows {
            return Ok(PlannerResult::Original(raw));
        }
        let params = AggregateFunctionParams {
            args: vec![Expr::Literal(ScalarValue::Int64(Some(1)), None)],
            distinct: raw.distinct,
            filter: raw.filter,
            order_by: raw.order_by,
            null_treatment: raw.null_treatment,
        };
        let count = Expr::AggregateFunction(AggregateFunction {
            func: raw.func,
            params,
        });
        Ok(PlannerResult::Planned(count.alias("count(*)")))
    }

    #[expect(
        deprecated,
        reason = "the planner still hands out the wildcard of count(*)"
    )]
    fn plan_window(&self, mut raw: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if matches!(raw.args.as_slice(), [] | [Expr::Wildcard { .. }])
            && raw.func_def.name() == "count"
        {
            raw.args = vec![Expr::Literal(ScalarValue::Int64(Some(1)), None)];
        }
        Ok(PlannerResult::Original(raw))
    }
}
