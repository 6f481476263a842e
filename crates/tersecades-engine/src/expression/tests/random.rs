//! Random expressions and selections, the same for the same seed.

use arrow_schema::DataType;
use tersecades_columnar::predicate::Comparison;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;

use crate::expression::{Arithmetic, Expression, col, lit};

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

pub(super) fn selection(random: &mut Random, rows: usize) -> Selection {
    let mut selection = Selection::all(rows);
    let share = match random.below(4) {
        0 => return selection,
        1 => 40,
        2 => 2,
        _ => 5,
    };
    selection
        .set_rows(rows)
        .extend((0..rows as u32).filter(|_| random.below(share) == 0));
    if random.below(2) == 0 {
        selection.settle();
    }
    selection
}

const HOW: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

fn boxed(expression: Expression) -> Box<Expression> {
    Box::new(expression)
}

/// A constant that a column of the test table is worth comparing with.
fn constant(random: &mut Random, column: &str) -> Value {
    if random.below(20) == 0 {
        return Value::Null;
    }
    let small = random.below(9) as i64 - 3;
    match column {
        "s" => Value::from(*random.pick(&["", "a", "b", "bb", "zz", "Ärger"])),
        "f" => Value::from(random.below(2) == 0),
        "t" => match random.below(3) {
            0 => Value::from(*random.pick(&["1970-01-01", "1970-01-01T00:00:00.0025"])),
            _ => Value::from(small),
        },
        "m" => Value::Decimal(i128::from(small) * 125 / 2, 2 + random.below(2) as i8),
        _ => match random.below(8) {
            0 => Value::from(*random.pick(&[i64::MAX, i64::MIN, 255, 256, -1, 1 << 40])),
            1 => Value::from(small as f64 + 0.5),
            2 => Value::from(*random.pick(&[f64::NAN, -0.0, f64::INFINITY, 1e19])),
            _ => Value::from(small),
        },
    }
}

const COLUMNS: [&str; 9] = ["i", "b", "c", "u", "d", "s", "f", "t", "m"];

fn leaf(random: &mut Random) -> Expression {
    let column = *random.pick(&COLUMNS);
    match random.below(10) {
        0 => col(column).is_null(),
        1 => {
            let list: Vec<Value> = (0..random.below(4))
                .map(|_| constant(random, column))
                .collect();
            col(column).one_of(list)
        }
        2 => col("f"),
        3 => lit(random
            .pick(&[Value::Integer(1), Value::Integer(0), Value::Null])
            .clone()),
        4 => col(column).is_null(),
        5 | 6 => {
            let constant = lit(constant(random, column));
            Expression::Compare(*random.pick(&HOW), boxed(constant), boxed(col(column)))
        }
        _ => {
            let constant = lit(constant(random, column));
            Expression::Compare(*random.pick(&HOW), boxed(col(column)), boxed(constant))
        }
    }
}

/// A condition; about half of them run encoded as a whole.
pub(super) fn condition(random: &mut Random, depth: usize) -> Expression {
    if depth == 0 {
        return leaf(random);
    }
    match random.below(9) {
        0..3 => condition(random, depth - 1).and(condition(random, depth - 1)),
        3 | 4 => condition(random, depth - 1).or(condition(random, depth - 1)),
        5 => !condition(random, depth - 1),
        6 => {
            let (a, b) = (number(random, depth - 1), number(random, depth - 1));
            Expression::Compare(*random.pick(&HOW), boxed(a), boxed(b))
        }
        7 => {
            let column = *random.pick(&["s", "t", "f"]);
            Expression::Compare(*random.pick(&HOW), boxed(col(column)), boxed(col(column)))
        }
        _ => leaf(random),
    }
}

/// A number that depends on the row.
pub(super) fn number(random: &mut Random, depth: usize) -> Expression {
    if depth == 0 || random.below(4) == 0 {
        return match random.below(12) {
            0 => col("m"),
            1 => col("u"),
            2 | 3 => col("b"),
            4 => col("i").cast(DataType::Float64),
            5 => col("c").cast(DataType::Int64),
            6 | 7 => col("d"),
            8 | 9 => col("i"),
            _ => col("c"),
        };
    }
    let how = *random.pick(&[
        Arithmetic::Add,
        Arithmetic::Subtract,
        Arithmetic::Multiply,
        Arithmetic::Divide,
        Arithmetic::Remainder,
    ]);
    let decimal_free = |expression: Expression| match expression.columns().contains(&"m") {
        true => expression.cast(DataType::Float64),
        false => expression,
    };
    let left = decimal_free(number(random, depth - 1));
    let right = match random.below(3) {
        0 => lit(random.below(7) as i64 - 2),
        _ => decimal_free(number(random, depth - 1)),
    };
    Expression::Arithmetic(how, boxed(left), boxed(right))
}
