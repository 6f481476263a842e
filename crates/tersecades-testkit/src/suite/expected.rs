//! What folding plain values gives: exact integers, compensated floats, ends by value.

use arrow_schema::DataType;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::{Physical, Value, float_key};

use crate::oracle::order::order;

/// The largest magnitude whose squares, however many a chunk adds, stay finite.
const SQUARE_MAX: f64 = 1e150;

/// What folding some values gives.
pub(super) struct Expected {
    physical: Physical,
    count: u64,
    exact: Exact,
    floats: Floats,
    /// Smallest and largest ordered key.
    ends: Option<(i128, i128)>,
}

impl Expected {
    /// Folds `values`.
    pub(super) fn of(data_type: &DataType, values: &[&Value]) -> Self {
        let present: Vec<&Value> = values
            .iter()
            .copied()
            .filter(|value| **value != Value::Null)
            .collect();
        let physical = Physical::of(data_type).unwrap();
        let ends = match physical {
            Physical::Text => None,
            _ => {
                let smallest = present.iter().min_by(|a, b| order(a, b));
                let largest = present.iter().max_by(|a, b| order(a, b));
                smallest
                    .zip(largest)
                    .map(|(a, b)| (ordered(physical, a), ordered(physical, b)))
            }
        };
        let float = matches!(physical, Physical::Float { .. });
        let is_exact = !float && physical != Physical::Text;
        Expected {
            physical,
            count: present.len() as u64,
            exact: exact(if is_exact { &present } else { &[] }),
            floats: floats(if float { &present } else { &[] }),
            ends,
        }
    }

    /// The first way in which `got` is another fold, in words.
    ///
    /// Sums of squares of decimals and ends of text mean nothing and are not compared.
    pub(super) fn difference(&self, asked: Asked, got: &Fold) -> Option<String> {
        if got.count != self.count {
            return Some(format!("count {} instead of {}", got.count, self.count));
        }
        let difference = match self.physical {
            Physical::Text => None,
            Physical::Float { .. } => self.floats.difference(asked, got),
            Physical::Integer { .. } | Physical::Wide => self.exact_difference(asked, got),
        };
        if difference.is_some() || !asked.ends {
            return difference;
        }
        let (min, max) = self.ends?;
        let wrong = (got.min, got.max) != (min, max);
        wrong.then(|| format!("ends {}, {} instead of {min}, {max}", got.min, got.max))
    }

    fn exact_difference(&self, asked: Asked, got: &Fold) -> Option<String> {
        let Exact { sum, squares } = self.exact;
        if asked.sum && (got.sum != sum || got.carries != 0) {
            return Some(format!("sum {} instead of {sum}", got.sum));
        }
        let found = got.squares.words();
        let wrong = asked.squares && self.physical != Physical::Wide && found != squares;
        wrong.then(|| format!("squares {found:?} instead of {squares:?}"))
    }
}

fn ordered(physical: Physical, value: &Value) -> i128 {
    match value {
        Value::Integer(integer) => i128::from(physical.key_of(*integer).unwrap()),
        Value::Float(float) => i128::from(float_key(*float)),
        Value::Decimal(digits, _) => *digits,
        other => panic!("{other:?} has no ordered key"),
    }
}

#[derive(Clone, Copy)]
struct Exact {
    sum: i128,
    squares: [u64; 3],
}

/// Sum and sum of squares, in school arithmetic: 64-bit words with carries.
fn exact(values: &[&Value]) -> Exact {
    let mut exact = Exact {
        sum: 0,
        squares: [0; 3],
    };
    for value in values {
        let (Value::Integer(number) | Value::Decimal(number, _)) = value else {
            panic!("{value:?} is no exact number");
        };
        exact.sum += number;
        let Ok(size) = u64::try_from(number.unsigned_abs()) else {
            continue;
        };
        let square = u128::from(size) * u128::from(size);
        let parts = [square as u64, (square >> 64) as u64, 0];
        let mut carry = 0u128;
        for (word, part) in exact.squares.iter_mut().zip(parts) {
            let sum = u128::from(*word) + u128::from(part) + carry;
            *word = sum as u64;
            carry = sum >> 64;
        }
    }
    exact
}

struct Floats {
    count: f64,
    /// Largest magnitude.
    size: f64,
    sum: f64,
    deviation: f64,
}

fn floats(values: &[&Value]) -> Floats {
    let float = |value: &&Value| match value {
        Value::Float(float) => *float,
        other => panic!("{other:?} is no float"),
    };
    let floats: Vec<f64> = values.iter().map(float).collect();
    let count = floats.len() as f64;
    let largest = |size: f64, float: &f64| match float.is_nan() {
        true => f64::INFINITY,
        false => size.max(float.abs()),
    };
    let size = floats.iter().fold(0.0, largest);
    let sum: f64 = floats.iter().sum();
    let mean = sum / count;
    let deviation = floats
        .iter()
        .map(|float| (float - mean) * (float - mean))
        .sum();
    Floats {
        count,
        size,
        sum,
        deviation,
    }
}

impl Floats {
    fn difference(&self, asked: Asked, got: &Fold) -> Option<String> {
        let Floats {
            count,
            size,
            sum,
            deviation,
        } = *self;
        if asked.sum && !near(sum, got.float_sum.total(), 1e-12 * size * count, size) {
            return Some(format!("sum {} instead of {sum}", got.float_sum.total()));
        }
        if !asked.squares || count == 0.0 {
            return None;
        }
        let (mean, spread) = (sum / count, got.spread);
        let overflows = size.is_finite() && size > SQUARE_MAX;
        let right = overflows
            || near(mean, spread.mean, 1e-12 * size, size)
                && near(deviation, spread.deviation, 1e-12 * size * size, size);
        let right = right && spread.count as f64 == count;
        (!right).then(|| format!("spread {spread:?} instead of {count}, {mean}, {deviation}"))
    }
}

/// Where sums of finite values overflow depends on the way they are added: then anything goes.
fn near(expected: f64, got: f64, slack: f64, size: f64) -> bool {
    if !expected.is_finite() || !slack.is_finite() {
        return size.is_finite() || expected.is_finite() || !got.is_finite();
    }
    // Numbers below the smallest normal one have few digits.
    (expected - got).abs() <= 1e-9 * expected.abs() + slack + f64::MIN_POSITIVE
}
