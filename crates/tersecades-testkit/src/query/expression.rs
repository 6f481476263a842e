//! Seeded expressions over the columns at one point of a query.

use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::predicate::Comparison;
use tersecades_columnar::types::Value;
use tersecades_engine::expression::{Expression, col};

use super::function::{null_together, text_bytes};
use super::scope::{Column, Scope};
use crate::data::column::small;
use crate::random::Random;

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

/// A constant to compare `column` with: one of its values, or one near them.
pub fn constant(column: &Column, random: &mut Random) -> Value {
    let number = random.between(0, 70);
    if column.samples.is_empty() {
        return small(&column.data_type, number);
    }
    match random.pick(&column.samples) {
        Value::Integer(integer) if column.data_type != DataType::Boolean => {
            let near = integer + i128::from(random.between(-1, 1));
            Value::Integer(near.clamp(i64::MIN.into(), i64::MAX.into()))
        }
        sample => sample.clone(),
    }
}

/// A condition of at most `depth` levels.
pub fn condition(scope: &Scope, depth: usize, random: &mut Random) -> Expression {
    if depth > 0 && random.one_in(2) {
        let left = condition(scope, depth - 1, random);
        return match random.below(5) {
            0 => !left,
            1 | 2 => left.and(condition(scope, depth - 1, random)),
            _ => left.or(condition(scope, depth - 1, random)),
        };
    }
    term(scope, random)
}

fn compare(how: Comparison, left: Expression, right: Expression) -> Expression {
    Expression::Compare(how, Box::new(left), Box::new(right))
}

fn term(scope: &Scope, random: &mut Random) -> Expression {
    let column = random.pick(&scope.columns).clone();
    let name = || col(column.name.clone());
    let how = *random.pick(&COMPARISONS);
    let literal = Expression::Literal(constant(&column, random));
    match random.below(10) {
        9 if column.data_type == DataType::Utf8 => {
            let limit = Expression::from(random.between(-1, 9));
            compare(how, text_bytes(&column.name), limit)
        }
        9 => {
            let other = &random.pick(&scope.columns).name;
            null_together(&column.name, other, random.one_in(2))
        }
        0 => name().is_null(),
        1 => {
            let count = random.between(1, 4);
            let list = (0..count).map(|_| constant(&column, random)).collect();
            Expression::OneOf(Box::new(name()), list)
        }
        2 => name().between(literal, Expression::Literal(constant(&column, random))),
        3 => compare(how.mirrored(), literal, name()),
        4 => {
            let same = scope.that(|other| other.data_type == column.data_type);
            compare(how, name(), col(random.pick(&same).name.clone()))
        }
        5 => match scope.that(Column::is_small_integer).as_slice() {
            [] => compare(how, name(), literal),
            small => {
                let sum =
                    col(random.pick(small).name.clone()) + col(random.pick(small).name.clone());
                compare(how, sum, Expression::from(random.between(-20, 120)))
            }
        },
        6 if column.data_type == DataType::Boolean => name(),
        _ => compare(how, name(), literal),
    }
}

/// A computed column named `name`, and its expression.
pub fn computed(scope: &Scope, name: &str, random: &mut Random) -> (Column, Expression) {
    let number = random.between(0, 12);
    let integers = scope.that(Column::is_small_integer);
    let floats = scope.that(|c| c.tame && c.exact && c.data_type.is_floating());
    let bytes = scope.that(|c| c.data_type == DataType::UInt8);
    let (data_type, expression) = match random.below(6) {
        0 if !integers.is_empty() => {
            let from = col(random.pick(&integers).name.clone());
            let how = random.below(5);
            let expression = match how {
                0 => from + number,
                1 => from - number,
                2 => from * number,
                3 => from / number,
                _ => from % number,
            };
            (DataType::Int64, expression)
        }
        1 if !floats.is_empty() => {
            let from = col(random.pick(&floats).name.clone());
            (
                DataType::Float64,
                if random.one_in(2) {
                    from * 0.5
                } else {
                    from + 2.25
                },
            )
        }
        2 if !integers.is_empty() => {
            let to = random.pick(&[DataType::Int64, DataType::Float64]).clone();
            let from = col(random.pick(&integers).name.clone());
            (to.clone(), from.cast(to))
        }
        3 if !bytes.is_empty() => (
            DataType::Timestamp(TimeUnit::Second, None),
            calendar(&bytes, random),
        ),
        4 if !integers.is_empty() => {
            let from = Box::new(col(random.pick(&integers).name.clone()));
            let unit = *random.pick(&[TimeUnit::Second, TimeUnit::Millisecond]);
            (
                DataType::Timestamp(unit, None),
                Expression::EpochTime(from, unit),
            )
        }
        _ => (DataType::Boolean, condition(scope, 1, random)),
    };
    let column = Column {
        name: name.to_owned(),
        data_type,
        exact: true,
        tame: true,
        samples: Vec::new(),
    };
    (column, expression)
}

/// A date and time whose parts are valid whatever the column holds.
fn calendar(bytes: &[&Column], random: &mut Random) -> Expression {
    let part = |limit: i64, random: &mut Random| col(random.pick(bytes).name.clone()) % limit;
    let mut parts = vec![part(130, random) + 1950i64];
    let limits = [(12i64, 1i64), (28, 1), (24, 0), (60, 0), (60, 0)];
    for (limit, first) in limits.into_iter().take(random.below(6)) {
        parts.push(part(limit, random) + first);
    }
    Expression::MakeTimestamp(parts)
}
