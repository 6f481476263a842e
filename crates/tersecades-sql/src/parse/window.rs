//! Both spellings of windows become the functions of [`crate::function::window`].
//!
//! ```text
//! FROM HOP(TABLE t, DESCRIPTOR(ts), a, b) w
//!   ─▶ FROM (SELECT * FROM (SELECT *, hop_start(ts, a, b) AS window_start,
//!                                     hop_end(ts, a, b) AS window_end FROM t)
//!            WHERE in_window(window_start, window_end)) w
//! SELECT window_start, count(*) … GROUP BY hop(ts, a, b)
//!   ─▶ SELECT hop_start(ts, a, b) AS window_start, count(*) …
//!      GROUP BY hop_start(ts, a, b), hop_end(ts, a, b)
//! FROM IN_ORDER(TABLE t)
//!   ─▶ FROM "in_order()".t AS t
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    GroupByExpr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, Spanned,
    TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs, VisitMut, VisitorMut,
};
use datafusion_sql::sqlparser::dialect::GenericDialect;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use tersecades_columnar::error::{Error, Result};

use crate::catalog::IN_ORDER;
use crate::function::series::series_named;
use crate::function::window::{Edge, IN_WINDOW, Kind, edge_name};

/// The tokens without the `TABLE` of `HOP(TABLE t, …)`, which the grammar of queries lacks.
pub(super) fn without_table_keyword(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let is_table = matches!(&token.token, Token::Word(word) if word.keyword == Keyword::TABLE);
        if !(is_table && opens_window(&kept)) {
            kept.push(token.clone());
        }
    }
    kept
}

fn opens_window(before: &[TokenWithSpan]) -> bool {
    let words = before.iter().map(|token| &token.token);
    let mut words = words
        .rev()
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    words.next() == Some(&Token::LParen)
        && matches!(words.next(), Some(Token::Word(word))
            if word.keyword == Keyword::NoKeyword || Kind::of_table(&word.value).is_some())
}

/// Rewrites every window of `query`.
///
/// # Errors
/// `InvalidArgument` for windows that are written wrongly.
pub(crate) fn rewrite(query: &mut Query) -> Result<()> {
    match query.visit(&mut Windows) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Windows;

impl VisitorMut for Windows {
    type Break = Error;

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if let Err(error) = rewrite_in_order(factor) {
            return ControlFlow::Break(error);
        }
        name_series(factor);
        let rewritten = match factor {
            TableFactor::Table {
                name,
                args: Some(arguments),
                alias,
                ..
            } => own_name(name)
                .and_then(Kind::of_table)
                .map(|kind| window_table(kind, name, arguments, alias.take())),
            _ => None,
        };
        match rewritten {
            Some(Ok(table)) => *factor = table,
            Some(Err(error)) => return ControlFlow::Break(error),
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<Error> {
        super::join::claim_inequality(value);
        super::spelling::respell(value);
        super::interval::respell(value);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        super::spelling::fetch_as_limit(query);
        if let SetExpr::Select(select) = query.body.as_mut() {
            let Some(mut edges) = rewrite_group_by(select)? else {
                return ControlFlow::Continue(());
            };
            edges.shown = shown_edges(&select.projection);
            return query.order_by.visit(&mut edges);
        }
        rewrite_branches(&mut query.body)
    }
}

fn own_name(name: &ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(&name.value),
        _ => None,
    }
}

fn place(of: &impl Spanned) -> String {
    let start = of.span().start;
    format!("line {}, column {}", start.line, start.column)
}

/// Names the rows of a series, and their column, as its function where the query does not.
fn name_series(factor: &mut TableFactor) {
    if let TableFactor::Table {
        name,
        args: Some(_),
        alias,
        ..
    } = factor
        && let Some(known) = own_name(name).and_then(series_named)
    {
        let alias = alias.get_or_insert_with(|| named(Ident::new(known)));
        if alias.columns.is_empty() {
            let name = alias.name.clone();
            alias.columns.push(TableAliasColumnDef {
                name,
                data_type: None,
            });
        }
    }
}

/// `IN_ORDER(TABLE t)` as the table `t` of the schema that stands for its rows by event time.
fn rewrite_in_order(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table {
        name, args, alias, ..
    } = factor
    else {
        return Ok(());
    };
    let is_ours = own_name(name).is_some_and(|name| name.eq_ignore_ascii_case("in_order"));
    let Some(arguments) = args.as_ref().filter(|_| is_ours) else {
        return Ok(());
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(table)))] =
        arguments.args.as_slice()
    else {
        let message = format!("IN_ORDER takes the name of a table at {}", place(name));
        return Err(Error::invalid(message)
            .hint("write IN_ORDER(TABLE t), for a query after CREATE STREAM t AS SELECT ..."));
    };
    alias.get_or_insert_with(|| named(table.clone()));
    *name = ObjectName::from(vec![Ident::with_quote('"', IN_ORDER), table.clone()]);
    *args = None;
    Ok(())
}

/// The table function as a subquery that adds `window_start` and `window_end`.
fn window_table(
    kind: Kind,
    name: &ObjectName,
    arguments: &TableFunctionArgs,
    alias: Option<TableAlias>,
) -> Result<TableFactor> {
    let wrong = |what: &str| {
        Error::invalid(format!("{what} at {}", place(name))).hint(format!("write {}", kind.usage()))
    };
    let mut values = Vec::new();
    for argument in &arguments.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => values.push(value.clone()),
            _ => return Err(wrong("windows take their arguments by position")),
        }
    }
    let (least, most) = kind.parameters();
    if values.len() < least + 2 || values.len() > most + 2 {
        return Err(wrong(&format!("{name} has {} arguments", values.len())));
    }
    let parameters = values.split_off(2);
    let mut values = values.into_iter();
    let (Some(table), Some(Expr::Function(descriptor))) = (values.next(), values.next()) else {
        return Err(wrong("a window needs a table and a DESCRIPTOR"));
    };
    let time = match (
        &descriptor.args,
        descriptor.name.to_string().to_lowercase().as_str(),
    ) {
        (FunctionArguments::List(FunctionArgumentList { args, .. }), "descriptor") => {
            match args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(time))] => time.clone(),
                _ => return Err(wrong("DESCRIPTOR takes one column")),
            }
        }
        _ => {
            return Err(wrong(
                "the second argument of a window is DESCRIPTOR(column)",
            ));
        }
    };
    let (source, own_name) = match table {
        Expr::Identifier(name) => (format!("{name}"), Some(name)),
        Expr::CompoundIdentifier(parts) => {
            let last = parts.last().cloned();
            (ObjectName::from(parts).to_string(), last)
        }
        Expr::Value(value) => (value.to_string(), None),
        Expr::Subquery(query) => (format!("({query})"), None),
        _ => return Err(wrong("the first argument of a window is a table")),
    };
    let mut subquery = template(&source, kind, &wrong)?;
    fill(&mut subquery, kind, &time, &parameters);
    let alias = alias.or_else(|| own_name.map(named));
    Ok(TableFactor::Derived {
        lateral: false,
        subquery,
        alias,
        sample: None,
    })
}

pub(super) fn named(name: Ident) -> TableAlias {
    TableAlias {
        explicit: true,
        name,
        columns: Vec::new(),
        at: None,
    }
}

fn template(source: &str, kind: Kind, wrong: &impl Fn(&str) -> Error) -> Result<Box<Query>> {
    let (start, end) = (edge_name(kind, Edge::Start), edge_name(kind, Edge::End));
    let columns =
        format!("SELECT *, {start}() AS window_start, {end}() AS window_end FROM {source}");
    let text = format!("SELECT * FROM ({columns}) WHERE {IN_WINDOW}(window_start, window_end)");
    let dialect = GenericDialect {};
    let parsed = Parser::new(&dialect)
        .try_with_sql(&text)
        .and_then(|mut parser| parser.parse_query());
    parsed.map_err(|_| wrong("the first argument of a window is a table"))
}

/// Gives the two functions of the template their arguments.
fn fill(query: &mut Query, kind: Kind, time: &Expr, parameters: &[Expr]) {
    let SetExpr::Select(outer) = query.body.as_mut() else {
        return;
    };
    let inner = outer.from.first_mut().map(|from| &mut from.relation);
    let Some(TableFactor::Derived { subquery, .. }) = inner else {
        return;
    };
    let SetExpr::Select(select) = subquery.body.as_mut() else {
        return;
    };
    for item in &mut select.projection {
        if let SelectItem::ExprWithAlias {
            expr: Expr::Function(function),
            ..
        } = item
        {
            let edge = match function.name.to_string().ends_with("_start") {
                true => Edge::Start,
                false => Edge::End,
            };
            let arguments = std::iter::once(time).chain(parameters).cloned();
            *function = call(kind, edge, arguments.collect());
        }
    }
}

fn call(kind: Kind, edge: Edge, arguments: Vec<Expr>) -> Function {
    call_of(&edge_name(kind, edge), arguments)
}

/// The call of the function `name`.
pub(super) fn call_of(name: &str, arguments: impl IntoIterator<Item = Expr>) -> Function {
    let arguments = arguments.into_iter();
    let arguments = arguments.map(|value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value)));
    Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

/// [`rewrite_group_by`] of the branches of `UNION` and its like; queries among them are done.
fn rewrite_branches(body: &mut SetExpr) -> ControlFlow<Error> {
    match body {
        SetExpr::Select(select) => rewrite_group_by(select).map_continue(|_| ()),
        SetExpr::SetOperation { left, right, .. } => {
            rewrite_branches(left)?;
            rewrite_branches(right)
        }
        _ => ControlFlow::Continue(()),
    }
}

/// `GROUP BY hop(…)` as its two edges, which `window_start` and `window_end` then mean; these.
///
/// # Errors
/// `Unsupported` for several windows, `InvalidArgument` where another one is selected.
fn rewrite_group_by(select: &mut Select) -> ControlFlow<Error, Option<EdgeNames>> {
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else {
        return ControlFlow::Continue(None);
    };
    for key in keys.iter_mut() {
        if let Some(window) = window_named(key, &select.projection) {
            *key = window;
        }
    }
    let mut calls = keys.iter().filter_map(window_call);
    let Some((kind, arguments)) = calls.next() else {
        return ControlFlow::Continue(None);
    };
    if calls.any(|other| other != (kind, arguments.clone())) {
        return ControlFlow::Break(two_windows());
    }
    let edges = Edge::BOTH.map(|edge| Expr::Function(call(kind, edge, arguments.clone())));
    let is_edge = |key: &Expr| matches!(key, Expr::Identifier(name) if edge_named(name).is_some());
    let before = keys.iter().take_while(|key| window_call(key).is_none());
    let position = before.filter(|key| !is_edge(key)).count();
    keys.retain(|key| window_call(key).is_none() && !is_edge(key));
    keys.splice(position..position, edges.clone());

    let mut edges = EdgeNames {
        edges,
        window: (kind, arguments),
        shown: [false; 2],
    };
    for item in &mut select.projection {
        let known = match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.clone()),
            SelectItem::UnnamedExpr(value) if window_call(value).is_some() => {
                Some(Ident::new("window_start"))
            }
            _ => None,
        };
        item.visit(&mut edges)?;
        if let (SelectItem::UnnamedExpr(value @ Expr::Function(_)), Some(alias)) = (&*item, known) {
            *item = SelectItem::ExprWithAlias {
                expr: value.clone(),
                alias,
            };
        }
    }
    select.having.visit(&mut edges)?;
    select.qualify.visit(&mut edges)?;
    ControlFlow::Continue(Some(edges))
}

/// Which edges are columns of the result by their own names.
fn shown_edges(items: &[SelectItem]) -> [bool; 2] {
    Edge::BOTH.map(|edge| {
        items.iter().any(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => edge_named(alias) == Some(edge),
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => edge_named(name) == Some(edge),
            _ => false,
        })
    })
}

/// The error of a group-by with several windows.
pub(crate) fn two_windows() -> Error {
    Error::unsupported("a GROUP BY with two windows is not supported")
        .hint("group by one window, and its result by the other")
}

/// The edge whose column has the name.
fn edge_named(name: &Ident) -> Option<Edge> {
    let mut edges = Edge::BOTH.into_iter();
    edges.find(|edge| name.value.eq_ignore_ascii_case(edge.column()))
}

/// The window that `key` names as a column of the result: by its alias or its number.
fn window_named(key: &Expr, items: &[SelectItem]) -> Option<Expr> {
    let value = match key {
        Expr::Identifier(name) => items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if same_name(alias, name) => Some(expr),
            _ => None,
        }),
        Expr::Value(number) => {
            let number: usize = number.to_string().parse().ok()?;
            match items.get(number.checked_sub(1)?)? {
                SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) => {
                    Some(expr)
                }
                _ => None,
            }
        }
        _ => None,
    };
    value.filter(|value| window_call(value).is_some()).cloned()
}

fn same_name(one: &Ident, other: &Ident) -> bool {
    match (one.quote_style, other.quote_style) {
        (None, None) => one.value.eq_ignore_ascii_case(&other.value),
        _ => one.value == other.value,
    }
}

fn window_call(key: &Expr) -> Option<(Kind, Vec<Expr>)> {
    let Expr::Function(function) = key else {
        return None;
    };
    let kind = own_name(&function.name).and_then(Kind::of_key)?;
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let values = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    });
    Some((kind, values.collect::<Option<Vec<_>>>()?))
}

/// Whether two calls are of one window: letters of either case, the time with its table or without.
fn same_window(one: &(Kind, Vec<Expr>), other: &(Kind, Vec<Expr>)) -> bool {
    let last = |value: &Expr| match value {
        Expr::CompoundIdentifier(parts) => parts.last().map(|name| Expr::Identifier(name.clone())),
        _ => None,
    };
    let same = |(a, b): (&Expr, &Expr)| {
        let is_text = |a: &Expr, b: &Expr| a.to_string().eq_ignore_ascii_case(&b.to_string());
        let is_bare = |value: &Expr| matches!(value, Expr::Identifier(_));
        is_text(a, b)
            || is_bare(a) && last(b).is_some_and(|b| is_text(a, &b))
            || is_bare(b) && last(a).is_some_and(|a| is_text(&a, b))
    };
    one.0 == other.0 && one.1.len() == other.1.len() && one.1.iter().zip(&other.1).all(same)
}

/// Replaces `window_start`, `window_end` and the window itself by the functions of the edges.
struct EdgeNames {
    edges: [Expr; 2],
    /// The window that rows are grouped by.
    window: (Kind, Vec<Expr>),
    /// Edges whose names mean columns of the result.
    shown: [bool; 2],
}

impl VisitorMut for EdgeNames {
    type Break = Error;

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<Error> {
        let [start, end] = &self.edges;
        let named = match value {
            Expr::Identifier(name) => edge_named(name),
            _ => None,
        };
        match named {
            Some(Edge::Start) if !self.shown[0] => *value = start.clone(),
            Some(Edge::End) if !self.shown[1] => *value = end.clone(),
            _ => {}
        }
        if let Some(call) = window_call(value) {
            if !same_window(&call, &self.window) {
                let message = format!(
                    "`{value}` at {} is not the window of GROUP BY",
                    place(value)
                );
                let hint = "write window_start or window_end";
                return ControlFlow::Break(Error::invalid(message).hint(hint));
            }
            *value = start.clone();
        }
        ControlFlow::Continue(())
    }
}
