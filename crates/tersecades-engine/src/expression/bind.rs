//! From names to slots: every operator is checked against the types of its parts, and whatever
//! is the same for all rows is computed once.

use arrow_cast::can_cast_types;
use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::types::{Physical, Value, logical_type};

use super::arithmetic::decimal_type;
use super::ast::{Arithmetic, Expression};
use super::call::bind_call;
use super::compute::{Inputs, evaluate};
use super::display::type_name;
use super::literal::{Constant, Family, constant_of, literal_array};
use super::node::{Bound, Node};
use super::total::{casts_all, computes_all};
use crate::frame::Scope;

/// Binds an expression of any type.
///
/// # Errors
/// `InvalidArgument` for unknown columns, `SchemaMismatch` and `Unsupported` for operators that
/// do not fit their operands; all name the part of the expression.
pub(super) fn bind(expression: &Expression, scope: &Scope) -> Result<Bound> {
    let (node, data_type) = match expression {
        Expression::Column(name) => {
            let (data_type, slot) = scope.find(name)?;
            return Ok(Bound {
                node: Node::Column(slot),
                data_type: logical_type(data_type),
            });
        }
        Expression::Literal(value) => return bind_literal(value),
        Expression::Compare(how, a, b) => (bind_compare(*how, a, b, scope)?, DataType::Boolean),
        Expression::Arithmetic(how, a, b) => bind_arithmetic(*how, a, b, scope)?,
        Expression::And(..) | Expression::Or(..) | Expression::Not(_) => {
            (bind_truth(expression, scope)?, DataType::Boolean)
        }
        Expression::IsNull(input) => {
            let node = Node::IsNull(Box::new(bind(input, scope)?.node));
            (node, DataType::Boolean)
        }
        Expression::OneOf(input, list) => (bind_list(input, list, scope)?, DataType::Boolean),
        Expression::Cast(input, to) => bind_cast(expression, input, to, scope)?,
        Expression::MakeTimestamp(parts) => bind_timestamp(expression, parts, scope)?,
        Expression::EpochTime(input, unit) => {
            let bound = bind(input, scope)?;
            if Family::of(&bound.data_type) != Family::Number {
                return Err(expected_number(expression, input, &bound.data_type));
            }
            let node = Node::EpochTime(Box::new(bound.node), *unit);
            (node, DataType::Timestamp(*unit, None))
        }
        Expression::Call {
            function,
            arguments,
        } => bind_call(expression, function, arguments, scope)?,
    };
    fold(Bound { node, data_type })
}

/// Binds an expression that must be true, false or unknown.
///
/// # Errors
/// As [`bind`]; `SchemaMismatch` for other types.
pub(super) fn bind_truth(expression: &Expression, scope: &Scope) -> Result<Node> {
    match expression {
        Expression::And(..) => bind_chain(expression, Node::All, scope),
        Expression::Or(..) => bind_chain(expression, Node::Any, scope),
        Expression::Not(input) => Ok(Node::Not(Box::new(bind_truth(input, scope)?))),
        Expression::Literal(Value::Integer(value @ (0 | 1))) => Ok(Node::Truth(Some(*value == 1))),
        Expression::Literal(Value::Null) => Ok(Node::Truth(None)),
        other => {
            let bound = bind(other, scope)?;
            match (Family::of(&bound.data_type), bound.node) {
                (Family::Boolean, Node::Constant(array)) => {
                    let value = constant_of(&array).map(|constant| constant.value);
                    Ok(Node::Truth(value.and_then(|value| match value {
                        Value::Integer(value) => Some(value == 1),
                        _ => None,
                    })))
                }
                (Family::Boolean, node) => Ok(node),
                _ => Err(not_a_condition(other, &bound.data_type)),
            }
        }
    }
}

/// Binds a chain of AND or OR, which `join` makes of its parts; those that may fail come last, in
/// the order written.
fn bind_chain(expression: &Expression, join: fn(Vec<Node>) -> Node, scope: &Scope) -> Result<Node> {
    let parts = operands(expression);
    let parts: Result<Vec<_>> = parts.iter().map(|part| bind_truth(part, scope)).collect();
    let (failing, total): (Vec<_>, Vec<_>) = parts?.into_iter().partition(Node::may_fail);
    if failing.is_empty() {
        return Ok(join(total));
    }
    let first = (!total.is_empty()).then(|| join(total));
    Ok(Node::InTurn {
        parts: first.into_iter().chain(failing).collect(),
        settles: matches!(expression, Expression::Or(..)),
    })
}

/// The parts of a chain of the operator that `expression` is, in the order written.
pub(super) fn operands(expression: &Expression) -> Vec<&Expression> {
    let is_and = matches!(expression, Expression::And(..));
    let mut parts = Vec::new();
    let mut open = vec![expression];
    while let Some(part) = open.pop() {
        match part {
            Expression::And(a, b) if is_and => open.extend([&**b, &**a]),
            Expression::Or(a, b) if !is_and => open.extend([&**b, &**a]),
            other => parts.push(other),
        }
    }
    parts
}

fn bind_literal(value: &Value) -> Result<Bound> {
    let array = literal_array(value)?;
    let data_type = array.data_type().clone();
    Ok(Bound {
        node: Node::Constant(array),
        data_type,
    })
}

/// Computes an expression without columns; its errors appear here and not at the first row.
fn fold(bound: Bound) -> Result<Bound> {
    let mut columns = false;
    bound.node.for_each_slot(&mut |_| columns = true);
    if columns || !bound.node.is_immutable() {
        return Ok(bound);
    }
    let array = evaluate(&bound.node, &Inputs::of_constants())?.array;
    Ok(Bound {
        node: Node::Constant(array),
        data_type: bound.data_type,
    })
}

/// A side of a comparison: the same for all rows, or not.
enum Side {
    Constant(Constant),
    Computed(Bound),
}

fn bind_side(expression: &Expression, scope: &Scope) -> Result<Side> {
    if let Expression::Literal(value) = expression {
        return Ok(Side::Constant(Constant {
            value: value.clone(),
            data_type: None,
        }));
    }
    let bound = bind(expression, scope)?;
    let constant = match &bound.node {
        Node::Constant(array) => constant_of(array),
        _ => None,
    };
    Ok(constant.map_or(Side::Computed(bound), Side::Constant))
}

fn bind_compare(how: Comparison, a: &Expression, b: &Expression, scope: &Scope) -> Result<Node> {
    let text = || {
        format!(
            "{}",
            Expression::Compare(how, Box::new(a.clone()), Box::new(b.clone()))
        )
    };
    match (bind_side(a, scope)?, bind_side(b, scope)?) {
        (Side::Computed(bound), Side::Constant(constant)) => {
            test(how, bound, &constant, (a, b)).map_err(|error| within(error, &text()))
        }
        (Side::Constant(constant), Side::Computed(bound)) => {
            test(how.mirrored(), bound, &constant, (b, a)).map_err(|error| within(error, &text()))
        }
        (
            Side::Constant(Constant {
                value: Value::Null, ..
            }),
            Side::Constant(_),
        )
        | (
            Side::Constant(_),
            Side::Constant(Constant {
                value: Value::Null, ..
            }),
        ) => Ok(Node::Truth(None)),
        (Side::Constant(_), Side::Constant(constant)) => {
            let bound = bind(a, scope)?;
            test(how, bound, &constant, (a, b)).map_err(|error| within(error, &text()))
        }
        (Side::Computed(left), Side::Computed(right)) => {
            let family = Family::of(&left.data_type);
            if family != Family::of(&right.data_type) || family == Family::Other {
                let error = mismatch((a, &left.data_type), (b, &right.data_type));
                return Err(within(error, &text()));
            }
            let alike = are_alike(&left.data_type, &right.data_type);
            Ok(match (left.node, right.node) {
                (Node::Column(a), Node::Column(b)) if alike => Node::CompareColumns(how, [a, b]),
                (a, b) => Node::Compare(how, Box::new(a), Box::new(b)),
            })
        }
    }
}

/// Whether values of two types are integers that compare as numbers.
fn are_alike(a: &DataType, b: &DataType) -> bool {
    let is_integer = |data_type| matches!(Physical::of(data_type), Ok(Physical::Integer { .. }));
    (a == b || a.is_integer() && b.is_integer()) && is_integer(a) && is_integer(b)
}

fn test(
    how: Comparison,
    bound: Bound,
    constant: &Constant,
    (column, other): (&Expression, &Expression),
) -> Result<Node> {
    let Some(value) = constant.place(&bound.data_type) else {
        return Err(misplaced(column, &bound.data_type, other, &constant.value));
    };
    if value == Value::Null {
        return Ok(Node::Truth(None));
    }
    let predicate = Predicate::compare(&bound.data_type, how, &value)?;
    Ok(Node::Test {
        input: Box::new(bound.node),
        data_type: bound.data_type,
        predicate,
    })
}

fn bind_list(input: &Expression, list: &[Value], scope: &Scope) -> Result<Node> {
    let bound = bind(input, scope)?;
    let mut placed = Vec::with_capacity(list.len());
    for value in list {
        let constant = Constant {
            value: value.clone(),
            data_type: None,
        };
        placed.push(constant.place(&bound.data_type).ok_or_else(|| {
            let literal = Expression::Literal(value.clone());
            let error = misplaced(input, &bound.data_type, &literal, value);
            within(error, &format!("{input} IN (...)"))
        })?);
    }
    let predicate = Predicate::one_of(&bound.data_type, &placed)?;
    let test = Node::Test {
        input: Box::new(bound.node),
        data_type: bound.data_type,
        predicate,
    };
    match placed.contains(&Value::Null) {
        // Not being in a list with a null is unknown.
        true => Ok(Node::Any(vec![test, Node::Truth(None)])),
        false => Ok(test),
    }
}

fn bind_arithmetic(
    how: Arithmetic,
    a: &Expression,
    b: &Expression,
    scope: &Scope,
) -> Result<(Node, DataType)> {
    let whole = Expression::Arithmetic(how, Box::new(a.clone()), Box::new(b.clone()));
    let is_null = |side: &Expression| matches!(side, Expression::Literal(Value::Null));
    if is_null(a) || is_null(b) {
        return Err(Error::unsupported(format!("`{whole}` is always null"))
            .hint("leave it out, or write CAST(NULL AS BIGINT)"));
    }
    let (left, right) = (bind(a, scope)?, bind(b, scope)?);
    let (x, y) = (&left.data_type, &right.data_type);
    for (side, data_type, other) in [(a, x, y), (b, y, x)] {
        match Family::of(data_type) {
            Family::Number => {}
            Family::Time if how == Arithmetic::Subtract && data_type == other => {}
            Family::Time => return Err(no_time_arithmetic(&whole, other)),
            _ => return Err(expected_number(&whole, side, data_type)),
        }
    }
    let decimal = |data_type: &DataType| matches!(data_type, DataType::Decimal128(..));
    let decimals = decimal(x) || decimal(y);
    // A quotient of decimals has more digits than any scale.
    let is_quotient = decimals && how == Arithmetic::Divide;
    let (number, result) = if x.is_floating() || y.is_floating() || is_quotient {
        (DataType::Float64, DataType::Float64)
    } else if decimals {
        let result = decimal_type(how, x, y).map_err(|error| {
            Error::limit(format!("`{whole}`: {error}")).hint("cast an operand to DOUBLE")
        })?;
        (DataType::Decimal128(38, 0), result)
    } else {
        (DataType::Int64, DataType::Int64)
    };
    let total = number == DataType::Float64 || computes_all(how, &left, &right);
    let sides = Box::new((left.node, right.node));
    Ok((
        Node::Arithmetic {
            how,
            sides,
            number,
            total,
            text: whole.to_string(),
        },
        result,
    ))
}

fn bind_cast(
    whole: &Expression,
    input: &Expression,
    to: &DataType,
    scope: &Scope,
) -> Result<(Node, DataType)> {
    let to = logical_type(to);
    Physical::of(&to).map_err(|error| within(error, &whole.to_string()))?;
    if let Expression::Literal(Value::Null) = input {
        return Ok((Node::Constant(arrow_array::new_null_array(&to, 1)), to));
    }
    let bound = bind(input, scope)?;
    if bound.data_type == to {
        return Ok((bound.node, to));
    }
    if !can_cast_types(&bound.data_type, &to) {
        let (from, to) = (type_name(&bound.data_type), type_name(&to));
        return Err(Error::unsupported(format!(
            "cannot cast {from} to {to} in `{whole}`"
        )));
    }
    let node = Node::Cast {
        total: casts_all(&bound.data_type, &to),
        input: Box::new(bound.node),
        to: to.clone(),
        text: whole.to_string(),
    };
    Ok((node, to))
}

fn bind_timestamp(
    whole: &Expression,
    parts: &[Expression],
    scope: &Scope,
) -> Result<(Node, DataType)> {
    if parts.is_empty() || parts.len() > 6 {
        return Err(Error::invalid(format!(
            "make_timestamp takes 1 to 6 parts, got {}",
            parts.len()
        ))
        .hint("year, month, day, hour, minute, second"));
    }
    let mut nodes = Vec::with_capacity(parts.len());
    for part in parts {
        let bound = bind(part, scope)?;
        if !bound.data_type.is_integer() {
            return Err(expected_number(whole, part, &bound.data_type)
                .hint("make_timestamp takes integers: CAST(x AS BIGINT)"));
        }
        nodes.push(bound.node);
    }
    Ok((
        Node::MakeTimestamp(nodes),
        DataType::Timestamp(TimeUnit::Second, None),
    ))
}

/// The same error, saying which expression it is about.
pub(super) fn within(error: Error, text: &str) -> Error {
    let hint = error.hint_text().map(str::to_owned);
    let placed = Error::new(error.kind(), format!("{} in `{text}`", error.message()));
    match hint {
        Some(hint) => placed.hint(hint),
        None => placed,
    }
}

fn called(expression: &Expression, data_type: &DataType) -> String {
    format!(
        "{} `{expression}` ({})",
        Family::of(data_type).noun(),
        type_name(data_type)
    )
}

fn mismatch((a, x): (&Expression, &DataType), (b, y): (&Expression, &DataType)) -> Error {
    let error = Error::schema(format!(
        "cannot compare {} with {}",
        called(a, x),
        called(b, y)
    ));
    match (Family::of(x), Family::of(y)) {
        (Family::Time, Family::Number) => {
            error.hint(format!("make it a time: epoch_s({b}), epoch_ms({b}), ..."))
        }
        (Family::Number, Family::Time) => {
            error.hint(format!("make it a time: epoch_s({a}), epoch_ms({a}), ..."))
        }
        _ => error.hint(format!("convert one: CAST({b} AS {})", type_name(x))),
    }
}

fn misplaced(
    column: &Expression,
    data_type: &DataType,
    literal: &Expression,
    value: &Value,
) -> Error {
    let family = Family::of(data_type);
    let noun = match value {
        Value::Text(_) => "text",
        Value::Binary(_) => "bytes",
        _ => "number",
    };
    let error = Error::schema(format!(
        "cannot compare {} with {noun} `{literal}`",
        called(column, data_type)
    ));
    match family {
        Family::Text => error.hint(format!("quote the constant: '{literal}'")),
        Family::Time => error.hint("write times as '2024-01-31' or '2024-01-31 12:00:00.5'"),
        Family::Boolean => error.hint("conditions are true (1) or false (0)"),
        Family::Number if noun == "text" => error.hint("leave the quotes out"),
        _ => error.hint(format!("convert one: CAST({column} AS ...)")),
    }
}

fn not_a_condition(expression: &Expression, data_type: &DataType) -> Error {
    let (noun, name) = (Family::of(data_type).noun(), type_name(data_type));
    Error::schema(format!(
        "`{expression}` is a {noun} ({name}), expected a condition"
    ))
    .hint(format!("compare it with something: {expression} <> ..."))
}

fn expected_number(whole: &Expression, part: &Expression, data_type: &DataType) -> Error {
    let (noun, name) = (Family::of(data_type).noun(), type_name(data_type));
    Error::schema(format!(
        "`{part}` is {noun} ({name}), expected a number in `{whole}`"
    ))
    .hint(format!("convert it: CAST({part} AS DOUBLE)"))
}

fn no_time_arithmetic(whole: &Expression, other: &DataType) -> Error {
    let error = Error::unsupported(format!("no such arithmetic on times: `{whole}`"));
    match Family::of(other) {
        Family::Time => error.hint("times of one type subtract; CAST one to the other's type"),
        _ => error.hint("compute on ticks: CAST(x AS BIGINT), then epoch_ms(...) and the like"),
    }
}
