//! Sets of groups within sets, and keys in parentheses.
//!
//! ```text
//! GROUPING SETS (ROLLUP (a, b), c) ─▶ GROUPING SETS ((a, b), (a), (), (c))
//! CUBE ((a, b), c)                 ─▶ GROUPING SETS ((a, b, c), (c), (a, b), ())
//! GROUP BY (a, b), ()              ─▶ GROUP BY a, b
//! GROUP BY ()                      ─▶ GROUP BY GROUPING SETS (())
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Query, Select,
    VisitMut, VisitorMut,
};
use tersecades_columnar::error::{Error, Result};

use super::window::call_of;

/// Most keys of a `CUBE`, which has a set for each choice of them.
const CUBE_KEYS_MAX: usize = 12;

/// Writes out the sets by which `query` and its subqueries group.
///
/// # Errors
/// `LimitExceeded` for a `CUBE` of too many keys.
pub(crate) fn expand(query: &mut Query) -> Result<()> {
    match query.visit(&mut Sets) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Sets;

impl VisitorMut for Sets {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let GroupByExpr::Expressions(keys, _) = &mut select.group_by else {
            return ControlFlow::Continue(());
        };
        match written_out(std::mem::take(keys)) {
            Ok(written) => {
                *keys = written;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn written_out(keys: Vec<Expr>) -> Result<Vec<Expr>> {
    let is_grouped = !keys.is_empty();
    let mut written = Vec::with_capacity(keys.len());
    for key in keys {
        match key {
            Expr::GroupingSets(sets) => {
                let sets: Result<Vec<_>> = sets.into_iter().map(sets_of).collect();
                written.push(Expr::GroupingSets(sets?.concat()));
            }
            Expr::Rollup(keys) => written.push(Expr::GroupingSets(rollup(&flat_all(keys)))),
            Expr::Cube(keys) => written.push(Expr::GroupingSets(cube(&flat_all(keys))?)),
            key => written.extend(flat(key)),
        }
    }
    if is_grouped && written.is_empty() {
        written.push(Expr::GroupingSets(vec![Vec::new()]));
    }
    Ok(written)
}

/// The sets that a set stands for.
fn sets_of(set: Vec<Expr>) -> Result<Vec<Vec<Expr>>> {
    if let [Expr::Function(function)] = set.as_slice()
        && let Some(keys) = keys_of(function)
    {
        match function.name.to_string().to_lowercase().as_str() {
            "rollup" => return Ok(rollup(&keys)),
            "cube" => return cube(&keys),
            _ => {}
        }
    }
    Ok(flat_all(vec![set]))
}

/// The arguments of a function, where it has nothing else.
fn keys_of(function: &Function) -> Option<Vec<Vec<Expr>>> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let value = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    let keys: Vec<Expr> = list.args.iter().map(value).collect::<Option<_>>()?;
    let plain = Function {
        name: function.name.clone(),
        ..call_of("", keys.clone())
    };
    (*function == plain).then(|| keys.into_iter().map(flat).collect())
}

fn flat_all(keys: Vec<Vec<Expr>>) -> Vec<Vec<Expr>> {
    let flat_one = |key: Vec<Expr>| key.into_iter().flat_map(flat).collect();
    keys.into_iter().map(flat_one).collect()
}

/// The values of a key in parentheses.
fn flat(key: Expr) -> Vec<Expr> {
    match key {
        Expr::Tuple(keys) => keys.into_iter().flat_map(flat).collect(),
        key => vec![key],
    }
}

fn rollup(keys: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    let counts = (0..=keys.len()).rev();
    counts.map(|count| keys[..count].concat()).collect()
}

fn cube(keys: &[Vec<Expr>]) -> Result<Vec<Vec<Expr>>> {
    if keys.len() > CUBE_KEYS_MAX {
        let message = format!("CUBE of {} keys, the most are {CUBE_KEYS_MAX}", keys.len());
        return Err(
            Error::limit(message).hint("name the sets that matter: GROUPING SETS ((a), (b))")
        );
    }
    let chosen = |bits: usize| {
        let keys = keys.iter().enumerate();
        let kept = keys.filter(move |(at, _)| (bits >> at) & 1 == 1);
        kept.flat_map(|(_, key)| key.clone()).collect()
    };
    Ok((0..1usize << keys.len()).rev().map(chosen).collect())
}
