//! What is refused before planning, by name, with its place and the nearest thing that is known.

use std::ops::ControlFlow;

use arrow_array::timezone::Tz;
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArguments, Ident, JoinConstraint, JoinOperator,
    ObjectName, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Spanned,
    TableFactor, TableWithJoins, UnaryOperator, Visit, Visitor,
};
use datafusion_sql::sqlparser::tokenizer::Location;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;

use super::similar::text_of;
use super::with::check_drawn;
use super::{call, dropped, place, row_in, single};
use crate::function::FUNCTIONS;
use crate::function::cast::CAST_TO;
use crate::function::join::AS_OF;
use crate::function::series::series_named;
use crate::function::signed::SIGNED;
use crate::function::window::Kind;

/// Refuses functions that nobody knows and constructs that are not supported.
///
/// # Errors
/// `InvalidArgument` for unknown functions, `Unsupported` for the rest; both with the place.
pub(crate) fn check(query: &Query) -> Result<()> {
    match query.visit(&mut Checks) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Checks;

pub(super) fn refuse(what: &str, of: &impl Spanned, hint: &str) -> ControlFlow<Error> {
    let message = format!("{what} is not supported{}", placed(of));
    ControlFlow::Break(Error::unsupported(message).hint(hint))
}

/// ` at line 1, column 8`; nothing where the parser keeps no place.
pub(super) fn placed(of: &impl Spanned) -> String {
    match of.span().start {
        Location { line: 0, .. } => String::new(),
        start => place(start),
    }
}

const SUBQUERIES: &str = "joins and subqueries in FROM are supported";
const FLAT: &str = "columns hold single values: numbers, text, times, true and false";

/// Functions that give lists or take them.
const LIST_FUNCTIONS: [&str; 12] = [
    "array_agg",
    "array_length",
    "list",
    "list_value",
    "range",
    "generate_series",
    "regexp_extract_all",
    "regexp_split_to_array",
    "string_split",
    "string_to_array",
    "str_split",
    "unnest",
];
const LISTS: &str =
    "there are no lists; split_part(s, ',', 1) and regexp_extract(s, 'a(b)', 1) give single parts";

impl Visitor for Checks {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        if let Some(with) = query.with.as_ref().filter(|with| with.recursive) {
            return refuse("WITH RECURSIVE", with, "plain WITH is supported");
        }
        if !query.locks.is_empty() {
            return refuse("FOR UPDATE", query, "leave it out: tables are only read");
        }
        if let Some(fetch) = &query.fetch {
            let form = match (fetch.percent, fetch.with_ties) {
                (true, _) => "FETCH ... PERCENT",
                (_, true) => "FETCH ... WITH TIES",
                _ => "FETCH beside LIMIT",
            };
            return refuse(form, query, "LIMIT 10 and FETCH FIRST 10 ROWS ONLY are");
        }
        dropped::check_query(query)?;
        check_drawn(query)?;
        row_in::refuse_within(&query.order_by)?;
        check_body(&query.body)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        dropped::check_table(factor)?;
        match factor {
            TableFactor::UNNEST { .. } => refuse("UNNEST", factor, FLAT),
            TableFactor::Unpivot { .. } => refuse(
                "UNPIVOT",
                factor,
                "write SELECT 'a' AS k, a AS x FROM t UNION ALL ...",
            ),
            TableFactor::MatchRecognize { .. } => refuse(
                "MATCH_RECOGNIZE",
                factor,
                "lag(x) OVER (PARTITION BY k ORDER BY ts) is",
            ),
            TableFactor::Table {
                sample: Some(_), ..
            } => refuse("TABLESAMPLE", factor, "LIMIT is supported"),
            TableFactor::Table {
                name,
                args: Some(_),
                ..
            } if single(name)
                .and_then(|name| series_named(&name.value))
                .is_none() =>
            {
                self.unknown_table_function(name)
            }
            TableFactor::TableFunction { .. }
            | TableFactor::Function { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::OpenJsonTable { .. }
            | TableFactor::XmlTable { .. } => refuse(
                "this table function",
                factor,
                "name a file: FROM 'probes.parquet'",
            ),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        match expr {
            Expr::Function(function) => self.check_function(function),
            Expr::Subquery(query) if has_no_column(&query.body) => refuse(
                "a value of no column",
                expr,
                "select one: (SELECT max(x) FROM t)",
            ),
            Expr::AtTimeZone { time_zone, .. } => check_zone(time_zone),
            Expr::Array(_) => refuse("ARRAY", expr, FLAT),
            Expr::Struct { .. } | Expr::Dictionary(_) => refuse("STRUCT", expr, FLAT),
            Expr::Map(_) => refuse("MAP", expr, FLAT),
            Expr::Lambda(_) => refuse("a lambda", expr, FLAT),
            Expr::Collate { .. } => refuse("COLLATE", expr, "text compares by its bytes"),
            Expr::MatchAgainst { .. } => refuse("MATCH AGAINST", expr, "LIKE and ~ are"),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Checks {
    fn check_function(&self, function: &Function) -> ControlFlow<Error> {
        call::check_clauses(function)?;
        let name = function.name.to_string();
        if name == AS_OF && is_empty(&function.args) {
            let message = format!(
                "ASOF JOIN needs one inequality of times{}",
                placed(function)
            );
            let error = Error::invalid(message).hint("write ON a.k = b.k AND a.ts >= b.ts");
            return ControlFlow::Break(error);
        }
        let is_mark = |name: &str| [CAST_TO, SIGNED].contains(&name);
        if FUNCTIONS.contains(&name) && !is_mark(&name.to_lowercase()) {
            return ControlFlow::Continue(());
        }
        if let Some(kind) = Kind::of_key(&name) {
            let hint = format!("group by it, or write {}", kind.usage());
            return refuse("a window outside of GROUP BY", function, &hint);
        }
        if LIST_FUNCTIONS.contains(&name.to_lowercase().as_str()) {
            return refuse(&format!("`{name}`"), function, LISTS);
        }
        let known: Vec<&str> = FUNCTIONS.names().collect();
        ControlFlow::Break(unknown("function", &function.name, &known))
    }

    fn unknown_table_function(&self, name: &ObjectName) -> ControlFlow<Error> {
        let mut known = Kind::ALL.map(Kind::name).to_vec();
        known.extend(["in_order", "generate_series", "range"]);
        ControlFlow::Break(unknown("table function", name, &known))
    }
}

/// Refuses the name of no time zone, which the planner only passes on.
fn check_zone(zone: &Expr) -> ControlFlow<Error> {
    let name = match zone {
        Expr::Value(value) => text_of(&value.value),
        _ => None,
    };
    match name.filter(|name| name.parse::<Tz>().is_err()) {
        None => ControlFlow::Continue(()),
        Some(name) => {
            let message = format!("unknown time zone `{name}`{}", placed(zone));
            let error = Error::invalid(message);
            ControlFlow::Break(error.hint("write UTC, Europe/Berlin or +02:00"))
        }
    }
}

/// Whether a subquery selects nothing.
fn has_no_column(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.projection.is_empty(),
        SetExpr::Query(query) => has_no_column(&query.body),
        SetExpr::SetOperation { left, .. } => has_no_column(left),
        _ => false,
    }
}

fn is_empty(arguments: &FunctionArguments) -> bool {
    matches!(arguments, FunctionArguments::List(list) if list.args.is_empty())
}

fn unknown(what: &str, name: &ObjectName, known: &[&str]) -> Error {
    let error = Error::invalid(format!("unknown {what} `{name}`{}", placed(name)));
    match nearest(&name.to_string().to_lowercase(), known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None if what == "table function" => {
            error.hint(format!("the table functions are: {}", known.join(", ")))
        }
        None => {
            error.hint("`tersecades lists aggregates` and docs/sql.md name those that there are")
        }
    }
}

fn check_body(body: &SetExpr) -> ControlFlow<Error> {
    match body {
        SetExpr::Select(select) => check_select(select),
        SetExpr::SetOperation {
            op: op @ (SetOperator::Except | SetOperator::Intersect | SetOperator::Minus),
            set_quantifier: SetQuantifier::All | SetQuantifier::AllByName,
            ..
        } => refuse(
            &format!("{op} ALL"),
            body,
            "EXCEPT and INTERSECT are, which give equal rows once",
        ),
        SetExpr::SetOperation { left, right, .. } => {
            check_body(left)?;
            check_body(right)
        }
        _ => ControlFlow::Continue(()),
    }
}

fn check_select(select: &Select) -> ControlFlow<Error> {
    dropped::check_select(select)?;
    row_in::refuse_within(&select.from)?;
    row_in::refuse_within(&select.group_by)?;
    row_in::refuse_within(&select.distinct)?;
    row_in::refuse_within(&select.qualify)?;
    if let Some(view) = select.lateral_views.first() {
        return refuse("LATERAL VIEW", &view.lateral_view, FLAT);
    }
    for item in &select.projection {
        refuse_lists(item)?;
        item.visit(&mut Outermost::new(refuse_quantified))?;
    }
    let conditions = [&select.selection, &select.having, &select.qualify];
    for condition in conditions.into_iter().flatten() {
        check_condition(condition)?;
    }
    let is_all = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    let shows_all = select.projection.iter().any(is_all);
    let mut tables = select.from.iter();
    tables.try_for_each(|tables| check_joins(tables, shows_all))
}

/// Refuses joins that are none, or of which it is not known which tables have the columns; where
/// the query shows all columns, that of both sides is the one of the left side or of the right.
fn check_joins(tables: &TableWithJoins, shows_all: bool) -> ControlFlow<Error> {
    use JoinOperator::{
        Anti, CrossApply, FullOuter, Inner, Join, Left, LeftAnti, LeftOuter, LeftSemi, OuterApply,
        Right, RightAnti, RightOuter, RightSemi, Semi,
    };
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => check_joins(table_with_joins, shows_all),
        _ => ControlFlow::Continue(()),
    };
    nested(&tables.relation)?;
    for join in &tables.joins {
        nested(&join.relation)?;
        match &join.join_operator {
            CrossApply | OuterApply => return refuse("APPLY", &join.relation, SUBQUERIES),
            Join(JoinConstraint::None) | Inner(JoinConstraint::None) => {
                let message = format!("JOIN without ON{}", placed(&join.relation));
                let hint = "write JOIN b ON a.k = b.k, or CROSS JOIN for all pairs";
                return ControlFlow::Break(Error::invalid(message).hint(hint));
            }
            Semi(by) | LeftSemi(by) | RightSemi(by) | Anti(by) | LeftAnti(by) | RightAnti(by)
                if matches!(by, JoinConstraint::Using(_)) =>
            {
                let hint = "write a LEFT SEMI JOIN b ON a.k = b.k";
                return refuse("USING of a semi or anti join", &join.relation, hint);
            }
            Left(by) | LeftOuter(by) if is_by_name(by) && shows_all => {
                return refuse_using(&join.relation);
            }
            Right(by) | RightOuter(by) | FullOuter(by) if is_by_name(by) => {
                return refuse_using(&join.relation);
            }
            _ => {}
        }
    }
    ControlFlow::Continue(())
}

fn is_by_name(constraint: &JoinConstraint) -> bool {
    matches!(
        constraint,
        JoinConstraint::Using(_) | JoinConstraint::Natural
    )
}

fn refuse_using(table: &TableFactor) -> ControlFlow<Error> {
    let hint = "write ON a.k = b.k, and coalesce(a.k, b.k) for the key of both";
    refuse("USING of an outer join in this place", table, hint)
}

/// Lists of a subquery stand for true, false or neither; they may be terms of `AND` in either
/// form, and of `OR` where neither counts as false.
fn check_condition(condition: &Expr) -> ControlFlow<Error> {
    match condition {
        Expr::Nested(inner) => check_condition(inner),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            check_condition(left)?;
            check_condition(right)
        }
        Expr::InSubquery { .. } => ControlFlow::Continue(()),
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => match within(expr) {
            Expr::InSubquery { .. } => ControlFlow::Continue(()),
            other => refuse_lists(other),
        },
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Or,
            right,
        } => {
            check_choice(left)?;
            check_choice(right)
        }
        other => refuse_lists(other),
    }
}

/// The expression without the parentheses around it.
pub(super) fn within(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => within(inner),
        other => other,
    }
}

fn check_choice(choice: &Expr) -> ControlFlow<Error> {
    match choice {
        Expr::Nested(inner) => check_choice(inner),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And | BinaryOperator::Or,
            right,
        } => {
            check_choice(left)?;
            check_choice(right)
        }
        Expr::InSubquery { negated: false, .. } => ControlFlow::Continue(()),
        other => refuse_lists(other),
    }
}

fn refuse_lists(of: &impl Visit) -> ControlFlow<Error> {
    of.visit(&mut Outermost::new(refuse_list))
}

/// Refuses expressions outside of subqueries.
pub(super) struct Outermost {
    depth: usize,
    refuse: fn(&Expr) -> ControlFlow<Error>,
}

impl Outermost {
    pub(super) fn new(refuse: fn(&Expr) -> ControlFlow<Error>) -> Self {
        Outermost { depth: 0, refuse }
    }
}

impl Visitor for Outermost {
    type Break = Error;

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        match self.depth {
            0 => (self.refuse)(expr),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn refuse_list(expr: &Expr) -> ControlFlow<Error> {
    match expr {
        Expr::InSubquery { expr: needle, .. } => refuse(
            "IN (SELECT ...) in this place",
            needle.as_ref(),
            "write it as a condition of WHERE, joined by AND, or as EXISTS",
        ),
        _ => ControlFlow::Continue(()),
    }
}

fn refuse_quantified(expr: &Expr) -> ControlFlow<Error> {
    let (name, left) = match expr {
        Expr::AnyOp { left, .. } => ("ANY (SELECT ...)", left),
        Expr::AllOp { left, .. } => ("ALL (SELECT ...)", left),
        _ => return ControlFlow::Continue(()),
    };
    refuse(
        &format!("{name} in this place"),
        left.as_ref(),
        "write it as a condition of WHERE, joined by AND",
    )
}

/// Where the query has what a message without a place speaks of: the first function or name that
/// the message holds as a word.
pub(crate) fn place_of(query: &Query, message: &str) -> Option<Location> {
    let words: Vec<String> = message
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .map(str::to_lowercase)
        .collect();
    let mut search = Search { words, name: None };
    match query.visit(&mut search) {
        ControlFlow::Break(at) => Some(at),
        ControlFlow::Continue(()) => search.name.or_else(|| {
            let start = query.span().start;
            (start.line > 0).then_some(start)
        }),
    }
}

struct Search {
    words: Vec<String>,
    name: Option<Location>,
}

impl Search {
    fn see(&mut self, name: &Ident) {
        let place = name.span.start;
        if self.name.is_none() && place.line > 0 && self.words.contains(&name.value.to_lowercase())
        {
            self.name = Some(place);
        }
    }
}

impl Visitor for Search {
    type Break = Location;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Location> {
        match expr {
            Expr::Function(function) => {
                let place = function.name.span().start;
                let known = self
                    .words
                    .contains(&function.name.to_string().to_lowercase());
                if known && place.line > 0 {
                    return ControlFlow::Break(place);
                }
            }
            Expr::Identifier(name) => self.see(name),
            Expr::CompoundIdentifier(names) => names.iter().for_each(|name| self.see(name)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
