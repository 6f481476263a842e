//! Clauses that are parsed for other engines and that the planner passes over: refused by name, as
//! a query without them gives other rows.
//!
//! All fields are named, so that those of a later parser are looked at before they are taken.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{GroupByExpr, Query, Select, Spanned, TableFactor};
use tersecades_columnar::error::Error;

use super::check::refuse;

/// Refuses those of `query` itself.
pub(super) fn check_query(query: &Query) -> ControlFlow<Error> {
    let Query {
        with: _,
        body: _,
        order_by: _,
        limit_clause: _,
        fetch: _,
        locks: _,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    refuse_where(for_clause.is_some(), "FOR JSON or FOR XML", query, FORMATS)?;
    let pipes = !pipe_operators.is_empty();
    refuse_where(pipes, "|>", query, "SELECT ... FROM ... WHERE ... is")?;
    refuse_where(settings.is_some(), "SETTINGS", query, "SET threads = 2 is")?;
    refuse_where(format_clause.is_some(), "FORMAT", query, FORMATS)
}

const FORMATS: &str = "the suffix of the output says its format: -o rows.csv";

/// Refuses those of `select`.
pub(super) fn check_select(select: &Select) -> ControlFlow<Error> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: _,
        select_modifiers: _,
        top: _,
        top_before_distinct: _,
        projection: _,
        exclude,
        into: _,
        from: _,
        lateral_views: _,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by: _,
        distribute_by,
        sort_by: _,
        having: _,
        named_window: _,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor: _,
    } = select;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    if let Some(modifier) = modifiers.first() {
        return refuse(
            &format!("GROUP BY ... {modifier}"),
            select,
            "GROUP BY ROLLUP (a, b) is",
        );
    }
    refuse_where(
        exclude.is_some(),
        "EXCLUDE behind columns",
        select,
        "* EXCLUDE (a) is",
    )?;
    refuse_where(prewhere.is_some(), "PREWHERE", select, "WHERE is")?;
    refuse_where(!connect_by.is_empty(), "CONNECT BY", select, "joins are")?;
    refuse_where(
        !distribute_by.is_empty(),
        "DISTRIBUTE BY",
        select,
        "ORDER BY is",
    )?;
    refuse_where(
        value_table_mode.is_some(),
        "SELECT AS",
        select,
        "columns by name are",
    )
}

/// Refuses those of a table.
pub(super) fn check_table(factor: &TableFactor) -> ControlFlow<Error> {
    let TableFactor::Table {
        name: _,
        alias: _,
        args: _,
        with_hints,
        version,
        with_ordinality,
        partitions,
        json_path,
        sample: _,
        index_hints,
    } = factor
    else {
        return ControlFlow::Continue(());
    };
    let hinted = !(with_hints.is_empty() && index_hints.is_empty());
    refuse_where(
        !partitions.is_empty(),
        "PARTITION of a table",
        factor,
        "WHERE is",
    )?;
    refuse_where(
        *with_ordinality,
        "WITH ORDINALITY",
        factor,
        "row_number() OVER () is",
    )?;
    refuse_where(
        version.is_some(),
        "an earlier version of a table",
        factor,
        "WHERE is",
    )?;
    refuse_where(
        json_path.is_some(),
        "a path in a table",
        factor,
        "columns by name are",
    )?;
    refuse_where(hinted, "a hint of a table", factor, "leave it out")
}

fn refuse_where(is_there: bool, what: &str, of: &impl Spanned, hint: &str) -> ControlFlow<Error> {
    match is_there {
        true => refuse(what, of, hint),
        false => ControlFlow::Continue(()),
    }
}
