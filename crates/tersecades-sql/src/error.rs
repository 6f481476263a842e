//! DataFusion's errors in the terms of ours, with line, column and the nearest name.

use std::borrow::Cow;

use datafusion_common::{Column, DataFusionError, SchemaError};
use datafusion_sql::sqlparser::ast::Query;
use tersecades_columnar::error::{Error, ErrorKind};
use tersecades_columnar::nearest::nearest;

use crate::function::window::Edge;
use crate::parse::{check, place};

/// What lengths of time are counted in.
pub(crate) const UNITS_OF_TIME: &str = "units of time are nanoseconds, microseconds, \
    milliseconds, seconds, minutes, hours, days and weeks";

/// What is said of a pattern before what is wrong with it.
const NO_PATTERN: &str = "a pattern is no regular expression";

/// What an error of planning or of a scalar function means.
pub(crate) fn of_datafusion(error: &DataFusionError) -> Error {
    let place = error
        .diagnostic()
        .and_then(|diagnostic| diagnostic.span)
        .map(|span| {
            let (line, column) = (span.start.line, span.start.column);
            format!(" at line {line}, column {column}")
        });
    let error = of_root(error, &place.unwrap_or_default());
    match error.message() {
        message if is_far_time(message) => {
            error.hint("CAST(x AS TIMESTAMP(6)) holds such times; TRY_CAST gives null instead")
        }
        message if message.starts_with(NO_PATTERN) => {
            error.hint("a character that means something is itself behind `\\`")
        }
        _ => error,
    }
}

/// Whether a message says that nanoseconds do not reach a time.
fn is_far_time(message: &str) -> bool {
    message.contains("be represented as nanoseconds")
        || message.contains("to Timestamp(ns)") && !message.contains("Unsupported CAST")
}

fn of_root(error: &DataFusionError, place: &str) -> Error {
    let with_place =
        |kind: ErrorKind, message: &str| Error::new(kind, format!("{}{place}", shown(message)));
    match error {
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => {
            of_root(inner, place)
        }
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => of_datafusion(first),
            None => Error::internal("an empty list of errors"),
        },
        DataFusionError::Shared(inner) => of_root(inner, place),
        DataFusionError::External(inner) => match inner.downcast_ref::<Error>() {
            Some(own) => placed(own, place),
            None => with_place(ErrorKind::InvalidArgument, &inner.to_string()),
        },
        DataFusionError::SchemaError(inner, _) => of_schema(inner, place),
        DataFusionError::NotImplemented(message) => {
            with_place(ErrorKind::Unsupported, &format!("not supported: {message}"))
        }
        DataFusionError::ArrowError(inner, _) => of_arrow(&inner.to_string(), place),
        DataFusionError::ResourcesExhausted(message) => {
            with_place(ErrorKind::LimitExceeded, message)
        }
        DataFusionError::Internal(message) => with_place(ErrorKind::Unsupported, message)
            .hint("this form of the query is not supported; write it another way"),
        DataFusionError::Plan(message) => of_plan(message, place),
        DataFusionError::Execution(message) => with_place(ErrorKind::InvalidArgument, message),
        other => with_place(ErrorKind::InvalidArgument, &other.to_string()),
    }
}

/// What planning says, of names and numbers of columns above all.
fn of_plan(message: &str, place: &str) -> Error {
    let of_kind = |kind: ErrorKind, said: &str| Error::new(kind, format!("{said}{place}"));
    let invalid = |said: &str| of_kind(ErrorKind::InvalidArgument, said);
    let quoted = |quote: char| message.split(quote).nth(1);
    if message.contains("must appear in the GROUP BY clause") {
        let column = quoted('"').unwrap_or("a column");
        return invalid(&format!(
            "`{column}` is neither grouped by nor in an aggregate"
        ))
        .hint(format!("add it to GROUP BY, or write any_value({column})"));
    }
    if message.ends_with("has more than 38 digits") {
        return of_kind(ErrorKind::Unsupported, &shown(message))
            .hint("CAST the other side AS DOUBLE, or write fewer digits");
    }
    if message.starts_with("Invalid function '") {
        let name = quoted('\'').unwrap_or_default();
        return invalid(&format!("`{name}` is no function of single rows")).hint(format!(
            "functions of rows in an order are written {name}(x) OVER (ORDER BY ts)"
        ));
    }
    if message.starts_with("Projections require unique") {
        let name = doubled_name(quoted('"').unwrap_or_default());
        return invalid(&format!("two columns are named `{name}`"))
            .hint("give one of them another name with AS");
    }
    if message.starts_with("Too many columns!") {
        return invalid(
            "a subquery that stands for a value, or behind `x IN`, has several columns",
        )
        .hint("select one, or write (a, b) IN (SELECT x, y FROM ...)");
    }
    if message.starts_with("UNION queries have different number") {
        return invalid("the queries of UNION have different numbers of columns")
            .hint("select as many columns in each, NULL AS x where one has none");
    }
    if message.starts_with("Source table contains ") {
        let said = message.replace("Source table contains", "the table has");
        let said = said.replace(" but only ", ", and ");
        let said = said.replace("names given as column alias", "names are given to them");
        return invalid(&said).hint("name all columns, or none");
    }
    invalid(&shown(message))
}

/// The name of a column as DataFusion shows it: `t.b AS x`.
fn doubled_name(column: &str) -> &str {
    match column.rsplit_once(" AS ") {
        Some((_, name)) => name,
        None => column.rsplit('.').next().unwrap_or(column),
    }
}

/// The error with a place of its query, unless it has one.
pub(crate) fn at_place(error: &Error, query: &Query) -> Error {
    let message = error.message();
    if message.contains(" line ") || error.kind() == ErrorKind::Internal {
        return error.clone();
    }
    match check::place_of(query, message) {
        Some(at) => placed(error, &place(at)),
        None => error.clone(),
    }
}

/// The error with a place of its query, unless it is one of a row, which says more.
fn placed(own: &Error, place: &str) -> Error {
    if own.context().row.is_some() {
        return own.clone();
    }
    let mut error = Error::new(own.kind(), format!("{}{place}", own.message()));
    if let Some(file) = &own.context().file {
        error = error.file(file);
    }
    if let Some(column) = &own.context().column {
        error = error.column(column);
    }
    match own.hint_text() {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn of_arrow(message: &str, place: &str) -> Error {
    if let Some((_, text)) = message.split_once("syntax for type interval: ") {
        return Error::invalid(format!("{} is no interval{place}", first_line(text)))
            .hint(UNITS_OF_TIME);
    }
    let overflow = ["overflow", "leaves the range", "too large", "out of range"];
    match overflow.iter().any(|word| message.contains(word)) {
        true => Error::limit(format!("{}{place}", first_line(message)))
            .hint("cast an operand: CAST(x AS DOUBLE)"),
        false => Error::invalid(format!("{}{place}", first_line(message)))
            .hint("TRY_CAST gives null where a value does not fit"),
    }
}

fn of_schema(error: &SchemaError, place: &str) -> Error {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => {
            let name = field.name.as_str();
            let shown = field.flat_name();
            let error = Error::invalid(format!("unknown column `{shown}`{place}")).column(name);
            // The columns of a select list stand beside those that they are made of.
            let mut known: Vec<&str> = Vec::with_capacity(valid_fields.len());
            for field in valid_fields {
                if !known.contains(&field.name.as_str()) {
                    known.push(&field.name);
                }
            }
            let edges = Edge::BOTH.map(Edge::column);
            let of_window = nearest(name, &edges).filter(|_| name.starts_with("window"));
            let alike = spellings(field, valid_fields);
            match (alike.as_slice(), nearest(name, &known).or(of_window)) {
                ([one], _) => error.hint(format!("write {one}")),
                ([_, ..], _) => error.hint(format!("write one of {}", alike.join(", "))),
                ([], Some(near)) if near == name => error.hint(format!(
                    "GROUP BY tumble(ts, ...), or another window, has `{near}`"
                )),
                ([], Some(near)) => error.hint(format!("did you mean `{near}`?")),
                ([], None) if known.is_empty() => error,
                ([], None) => error.hint(format!("the columns are: {}", known.join(", "))),
            }
        }
        SchemaError::AmbiguousReference { field } => {
            let message = format!("column `{}` is ambiguous{place}", field.name);
            Error::invalid(message)
                .column(&field.name)
                .hint("write table.column")
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            Error::invalid(format!("two columns are named `{name}`{place}"))
                .hint("give one of them another name with AS")
        }
        SchemaError::DuplicateQualifiedField { name, .. } => {
            Error::invalid(format!("two columns are named `{name}`{place}"))
                .hint("give one of the tables another name with AS")
        }
    }
}

/// The columns, in quotes, that `wanted` is but for the case of its letters or of its table's.
fn spellings(wanted: &Column, columns: &[Column]) -> Vec<String> {
    let lower = wanted.name.to_lowercase();
    let mut alike: Vec<String> = Vec::new();
    for column in columns {
        let table = match (&wanted.relation, &column.relation) {
            (None, _) => String::new(),
            (Some(wanted), Some(table)) if wanted == table => String::new(),
            (Some(wanted), Some(table))
                if wanted.to_string().to_lowercase() == table.to_string().to_lowercase() =>
            {
                format!("\"{table}\".")
            }
            _ => continue,
        };
        let name = format!("{table}\"{}\"", column.name);
        if column.name.to_lowercase() == lower && !alike.contains(&name) {
            alike.push(name);
        }
    }
    alike
}

/// What is shown of a message; of one about a regular expression the last line says what is wrong.
fn shown(message: &str) -> Cow<'_, str> {
    match message.rsplit_once("\nerror: ") {
        Some((before, what)) if before.contains("regex parse error") => {
            let what = first_line(what);
            format!("{NO_PATTERN}: {what}").into()
        }
        _ => first_line(message).into(),
    }
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or(message).trim_end()
}
