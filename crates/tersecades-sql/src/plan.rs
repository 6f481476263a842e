//! DataFusion's half: names bound, types coerced, subqueries turned into joins.
//!
//! ```text
//! Query ──SqlToRel──▶ LogicalPlan ──coercion──▶ checked arithmetic ──rules──▶ LogicalPlan
//! ```
//! Only those rules run whose result the lowering needs: constants, joins from conditions and
//! subqueries, columns nobody reads. The engine orders filters and skips columns by itself.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DataFusionError, ExprSchema, JoinType, Result, SchemaError};
use datafusion_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion_expr::{Expr, Filter, Join, LogicalPlan};
use datafusion_optimizer::analyzer::{Analyzer, AnalyzerRule};
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

use crate::catalog::{Catalog, PlannedSource};
use crate::computed_key::ComputedKeys;
use crate::correlated;
use crate::drawn::{DrawnOnce, draws};
use crate::function::arithmetic::CheckArithmetic;
use crate::function::choice::{ExactChoices, ExactSets};
use crate::function::date_interval::{FinerTimes, NanosecondsOfLengths, TimesOfDates};
use crate::function::date_part::ComputeDateParts;
use crate::function::far::{FarConstants, KeptCasts};
use crate::function::float::ExactConstants;
use crate::function::float_time::FloatTimes;
use crate::function::join::AsOfMark;
use crate::function::list::{ExactLists, without_marks};
use crate::function::pattern::ExactPatterns;
use crate::function::real::CastReals;
use crate::function::set::NamedSets;
use crate::function::shift::CheckShifts;
use crate::function::signed::SignUnsigned;
use crate::function::time_cast::CastTimes;
use crate::function::time_text::TimeTexts;
use crate::function::window::Edge;
use crate::hidden_sort::without_hidden_sorts;
use crate::parse::cast::name_casts;
use crate::parse::digit::keep_digits;
use crate::parse::sign::mark_signs;
use crate::parse::values::keep_floats;

/// Plans `query`.
///
/// # Errors
/// Whatever DataFusion finds wrong with names and types.
pub(crate) fn plan(mut query: Box<Query>, catalog: &Catalog) -> Result<LogicalPlan> {
    keep_digits(&mut query);
    mark_signs(&mut query);
    match planned(query.clone(), catalog) {
        Err(error) if names_meet(&error) => {
            name_casts(&mut query);
            planned(query, catalog)
        }
        plan => plan,
    }
}

/// Whether two columns have one name.
fn names_meet(error: &DataFusionError) -> bool {
    use SchemaError::{DuplicateQualifiedField, DuplicateUnqualifiedField};
    matches!(error.find_root(), DataFusionError::SchemaError(error, _)
        if matches!(**error, DuplicateQualifiedField { .. } | DuplicateUnqualifiedField { .. }))
}

fn planned(mut query: Box<Query>, catalog: &Catalog) -> Result<LogicalPlan> {
    let options = ParserOptions::new()
        .with_collect_spans(true)
        .with_map_string_types_to_utf8view(false);
    let planner = SqlToRel::new_with_options(catalog, options);
    keep_floats(&mut query, &planner);
    let plan = planner.sql_statement_to_plan(Statement::Query(query))?;
    let plan = correlated::checked(without_hidden_sorts(plan)?)?;

    let sets = Analyzer::with_rules(vec![
        Arc::new(DrawnOnce),
        Arc::new(ComputedKeys),
        Arc::new(ExactSets),
    ]);
    let plan = sets.execute_and_check(plan, catalog.config(), |_, _| {})?;
    let mut dates = Analyzer::with_rules(Vec::new());
    dates.add_function_rewrite(Arc::new(SignUnsigned));
    dates.add_function_rewrite(Arc::new(TimesOfDates));
    dates.add_function_rewrite(Arc::new(FinerTimes));
    dates.add_function_rewrite(Arc::new(FarConstants));
    dates.add_function_rewrite(Arc::new(ExactChoices));
    let plan = dates.execute_and_check(plan, catalog.config(), |_, _| {})?;
    let coerced = Analyzer::new().execute_and_check(plan, catalog.config(), |_, _| {})?;
    let mut checks = Analyzer::with_rules(Vec::new());
    checks.add_function_rewrite(Arc::new(CheckArithmetic));
    checks.add_function_rewrite(Arc::new(CheckShifts));
    checks.add_function_rewrite(Arc::new(ComputeDateParts));
    checks.add_function_rewrite(Arc::new(NanosecondsOfLengths));
    checks.add_function_rewrite(Arc::new(TimeTexts));
    checks.add_function_rewrite(Arc::new(CastTimes));
    checks.add_function_rewrite(Arc::new(FloatTimes));
    checks.add_function_rewrite(Arc::new(CastReals));
    checks.add_function_rewrite(Arc::new(KeptCasts));
    checks.add_function_rewrite(Arc::new(ExactConstants));
    checks.add_function_rewrite(Arc::new(ExactLists));
    checks.add_function_rewrite(Arc::new(ExactPatterns));
    checks.add_function_rewrite(Arc::new(NamedSets));
    let checked = checks.execute_and_check(coerced, catalog.config(), |_, _| {})?;

    let config = OptimizerContext::new()
        .with_skip_failing_rules(false)
        .with_max_passes(3);
    let config = config.filter_null_keys(false);
    let plan = Optimizer::with_rules(rules())
        .optimize(checked, &config, |_, _| {})
        .map_err(without_context)?;
    DrawnOnce.analyze(without_marks(plan)?, catalog.config())
}

fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(RewriteSetComparison::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(JoinsOfConditions::default()),
        Arc::new(FiltersBelowJoins::default()),
        Arc::new(OptimizeProjections::new()),
    ]
}

/// DataFusion's own making of joins of conditions, in plans without as-of joins: it takes joins and
/// what stands behind them for one, where the nearest row is found before anything behind is asked.
#[derive(Debug, Default)]
struct JoinsOfConditions(EliminateCrossJoin);

impl OptimizerRule for JoinsOfConditions {
    fn name(&self) -> &str {
        "joins_of_conditions"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let is_as_of = |part: &LogicalPlan| Ok(part.expressions().iter().any(has_mark));
        match plan.exists(is_as_of)? {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}

/// Whether `expr` is the condition of an as-of join.
fn has_mark(expr: &Expr) -> bool {
    let is_mark = |part: &Expr| match part {
        Expr::ScalarFunction(call) => call.func.inner().as_ref().is::<AsOfMark>(),
        _ => false,
    };
    expr.exists(|part| Ok(is_mark(part))).unwrap_or(true)
}

/// DataFusion's own pushing of filters, at joins alone: the engine orders all others by itself, and
/// the windows of a group-by must stay above what they cut.
///
/// Rows of one side stay in joins by time of tables with a watermark: which rows are late must not
/// depend on what a condition behind the join lets through.
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
        let LogicalPlan::Filter(filter) = &plan else {
            return Ok(Transformed::no(plan));
        };
        let LogicalPlan::Join(join) = filter.input.as_ref() else {
            return Ok(Transformed::no(plan));
        };
        if join.filter.as_ref().is_some_and(has_mark) {
            return before_nearest(filter, join);
        }
        let terms = split_conjunction_owned(filter.predicate.clone());
        if !is_by_time(join, &terms) {
            return self.0.rewrite(plan, config);
        }
        let (pairs, rest): (Vec<Expr>, Vec<Expr>) =
            terms.into_iter().partition(|term| is_of_both(term, join));
        let (JoinType::Inner, Some(pairs)) = (join.join_type, conjunction(pairs)) else {
            return Ok(Transformed::no(plan));
        };
        let joined = LogicalPlan::Filter(Filter::try_new(pairs, Arc::clone(&filter.input))?);
        let joined = self.0.rewrite(joined, config)?;
        match conjunction(rest) {
            None => Ok(joined),
            Some(rest) => joined
                .map_data(|input| Ok(LogicalPlan::Filter(Filter::try_new(rest, input.into())?))),
        }
    }
}

/// The as-of join `join` of the rows that pass what `filter` asks of the left side alone; all else
/// is asked behind it.
fn before_nearest(filter: &Filter, join: &Join) -> Result<Transformed<LogicalPlan>> {
    let is_of_left = |term: &Expr| {
        let columns = term.column_refs();
        let mut columns = columns.iter();
        columns.all(|column| join.left.schema().has_column(column)) && !draws(term)
    };
    let terms = split_conjunction_owned(filter.predicate.clone());
    let (left, rest): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(is_of_left);
    let moves =
        matches!(join.join_type, JoinType::Inner | JoinType::Left) && !has_watermark(&join.left);
    let (true, Some(left)) = (moves, conjunction(left)) else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter.clone())));
    };
    let left = LogicalPlan::Filter(Filter::try_new(left, Arc::clone(&join.left))?);
    let joined = LogicalPlan::Join(Join {
        left: Arc::new(left),
        ..join.clone()
    });
    Ok(Transformed::yes(match conjunction(rest) {
        Some(rest) => LogicalPlan::Filter(Filter::try_new(rest, Arc::new(joined))?),
        None => joined,
    }))
}

/// Whether tables with a watermark may be joined by their times, where `behind` stands behind.
fn is_by_time(join: &Join, behind: &[Expr]) -> bool {
    let by_edges = join.on.iter().any(|(left, right)| {
        [left, right].iter().all(|side| {
            matches!(side, Expr::Column(column)
                if Edge::BOTH.map(Edge::column).contains(&column.name()))
        })
    });
    let condition = join.filter.iter().flat_map(split_conjunction);
    let mut terms = condition.chain(behind);
    let by_times = by_edges || terms.any(|term| is_of_both(term, join) && reads_times(term, join));
    by_times && has_watermark(&join.left) && has_watermark(&join.right)
}

fn is_of_both(term: &Expr, join: &Join) -> bool {
    let columns = term.column_refs();
    let reads = |side: &LogicalPlan| {
        let mut columns = columns.iter();
        columns.any(|column| side.schema().has_column(column))
    };
    reads(&join.left) && reads(&join.right)
}

fn reads_times(term: &Expr, join: &Join) -> bool {
    let is_time = |column: &Column| {
        let sides = [join.left.schema(), join.right.schema()];
        let mut fields = sides
            .iter()
            .filter_map(|side| side.field_from_column(column).ok());
        fields.any(|field| field.data_type().is_temporal())
    };
    term.column_refs().into_iter().any(is_time)
}

fn has_watermark(plan: &LogicalPlan) -> bool {
    let declared = plan.exists(|part| {
        Ok(match part {
            LogicalPlan::TableScan(scan) => {
                let source = scan.source.as_ref().downcast_ref::<PlannedSource>();
                source.is_some_and(|source| source.0.time.is_some())
            }
            _ => false,
        })
    });
    declared.unwrap_or(true)
}

/// The error without the name of the rule it came out of.
fn without_context(error: DataFusionError) -> DataFusionError {
    match error {
        DataFusionError::Context(_, inner) => without_context(*inner),
        other => other,
    }
}
