//! DataFusion's half: names bound, types coerced, subqueries turned into joins.
//!
//! ```text
//! Query ──SqlToRel──▶ LogicalPlan ──coercion──▶ checked arithmetic ──rules──▶ LogicalPlan
//! ```
//! Only those rules run whose result the lowering needs: constants, joins from conditions and
//! subqueries, columns nobody reads. The engine orders filters and skips columns by itself.

use std::sync::Arc;

use datafusion_common::tree_node::Transformed;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::analyzer::Analyzer;
use datafusion_optimizer::decorrelate_lateral_join::DecorrelateLateralJoin;
use datafusion_optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion_optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion_optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion_optimizer::optimize_projections::OptimizeProjections;
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::push_down_filter::PushDownFilter;
use datafusion_optimizer::rewrite_set_comparison::RewriteSetComparison;
use datafusion_optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion_optimizer::simplify_expressions::SimplifyExpressions;
use datafusion_optimizer::{Optimizer, OptimizerConfig, OptimizerContext, OptimizerRule};
use datafusion_sql::planner::{ParserOptions, SqlToRel};
use datafusion_sql::sqlparser::ast::{Query, Statement};

use crate::catalog::Catalog;
use crate::function::arithmetic::CheckArithmetic;
use crate::function::date_interval::{NanosecondsOfLengths, TimesOfDates};
use crate::function::date_part::ComputeDateParts;
use crate::parse::group_by::distinct_keys;

/// Plans `query`.
///
/// # Errors
/// Whatever DataFusion finds wrong with names and types.
pub(crate) fn plan(mut query: Box<Query>, catalog: &Catalog) -> Result<LogicalPlan> {
    distinct_keys(&mut query);
    let options = ParserOptions::new()
        .with_collect_spans(true)
        .with_map_string_types_to_utf8view(false);
    let planner = SqlToRel::new_with_options(catalog, options);
    let plan = planner.sql_statement_to_plan(Statement::Query(query))?;

    let mut dates = Analyzer::with_rules(Vec::new());
    dates.add_function_rewrite(Arc::new(TimesOfDates));
    let plan = dates.execute_and_check(plan, catalog.config(), |_, _| {})?;
    let coerced = Analyzer::new().execute_and_check(plan, catalog.config(), |_, _| {})?;
    let mut checks = Analyzer::with_rules(Vec::new());
    checks.add_function_rewrite(Arc::new(CheckArithmetic));
    checks.add_function_rewrite(Arc::new(ComputeDateParts));
    checks.add_function_rewrite(Arc::new(NanosecondsOfLengths));
    let checked = checks.execute_and_check(coerced, catalog.config(), |_, _| {})?;

    let config = OptimizerContext::new()
        .with_skip_failing_rules(false)
        .with_max_passes(3);
    let config = config.filter_null_keys(false);
    Optimizer::with_rules(rules())
        .optimize(checked, &config, |_, _| {})
        .map_err(without_context)
}

fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(RewriteSetComparison::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(FiltersBelowJoins::default()),
        Arc::new(OptimizeProjections::new()),
    ]
}

/// DataFusion's own pushing of filters, at joins alone: the engine orders all others by itself, and
/// the windows of a group-by must stay above what they cut.
#[derive(Debug, Default)]
struct FiltersBelowJoins(PushDownFilter);

impl OptimizerRule for FiltersBelowJoins {
    fn name(&self) -> &str {
        "filters_below_joins"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Filter(filter) if matches!(*filter.input, LogicalPlan::Join(_)) => {
                self.0.rewrite(plan, config)
            }
            _ => Ok(Transformed::no(plan)),
        }
    }
}

/// The error without the name of the rule it came out of.
fn without_context(error: DataFusionError) -> DataFusionError {
    match error {
        DataFusionError::Context(_, inner) => without_context(*inner),
        other => other,
    }
}
