//! Patterns of texts and of times that DataFusion takes for something else.
//!
//! `s ~ '.*'` is true of every text and null of none, where its optimiser makes it `s IS NOT NULL`.
//! `to_char(t, 'YYYY-MM')` has a pattern of PostgreSQL, which gives the pattern itself where
//! patterns are those of `strftime`.

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion_expr::expr::BinaryExpr;
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{Expr, Operator, lit, when};

/// Rewrites or refuses them.
#[derive(Debug)]
pub(crate) struct ExactPatterns;

impl FunctionRewrite for ExactPatterns {
    fn name(&self) -> &str {
        "exact_patterns"
    }

    fn rewrite(
        &self,
        expr: Expr,
        _schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if text(right) == Some(".*") => {
                let matches = match op {
                    Operator::RegexMatch | Operator::RegexIMatch => true,
                    Operator::RegexNotMatch | Operator::RegexNotIMatch => false,
                    _ => return Ok(Transformed::no(expr)),
                };
                let unknown = lit(ScalarValue::Boolean(None));
                let exact = when(left.as_ref().clone().is_null(), unknown).otherwise(lit(matches));
                exact.map(Transformed::yes)
            }
            Expr::ScalarFunction(call) if call.name() == "to_char" => match &call.args[..] {
                [_, pattern] if text(pattern).is_some_and(|it| !it.contains('%')) => plan_err!(
                    "the pattern of `to_char` has no part of a time: they are written as in \
                     strftime(t, '%Y-%m-%d %H:%M:%S')"
                ),
                _ => Ok(Transformed::no(expr)),
            },
            _ => Ok(Transformed::no(expr)),
        }
    }
}

fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}
