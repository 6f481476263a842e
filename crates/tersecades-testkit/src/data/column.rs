//! Seeded columns: a type, a shape, a length.

use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::types::{Physical, Value};

use crate::random::Random;

/// How the values of a column are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    Constant,
    /// A few values in random order.
    Repeats,
    /// Ascending in small steps.
    Sorted,
    /// Anything the type holds, a tenth of it null.
    Random,
    /// The ends of the type and what lies next to them; for floats infinities and NaN too.
    Extremes,
    /// Nothing but nulls.
    AllNull,
    /// Every other row null.
    AlternatingNulls,
    /// One value but for 3 % exceptions.
    MostlyOne,
    /// Stretches of one value, some of them null.
    Runs,
    /// Small values, some nulls, and now and then one anywhere.
    Outliers,
    /// Values near a centre that moves, within a span of a power of two, with some far above or
    /// below and some null: deltas of every width. Like repeats for types that are no integers.
    Drift,
}

/// Every shape.
pub const SHAPES: &[Shape] = &[
    Shape::Constant,
    Shape::Repeats,
    Shape::Sorted,
    Shape::Random,
    Shape::Extremes,
    Shape::AllNull,
    Shape::AlternatingNulls,
    Shape::MostlyOne,
    Shape::Runs,
    Shape::Outliers,
    Shape::Drift,
];

impl Shape {
    /// Whether values stay small, so that sums and arithmetic stay within their types.
    pub fn is_tame(self) -> bool {
        !matches!(
            self,
            Shape::Random | Shape::Extremes | Shape::Outliers | Shape::MostlyOne | Shape::Drift
        )
    }
}

/// Every supported type, with and without time zone.
pub fn types() -> Vec<DataType> {
    let units = [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
        TimeUnit::Nanosecond,
    ];
    let mut types = vec![
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(20, 2),
        DataType::Date32,
        DataType::Utf8,
        DataType::Binary,
    ];
    types.extend(units.map(|unit| DataType::Timestamp(unit, None)));
    types.push(DataType::Timestamp(
        TimeUnit::Microsecond,
        Some("+02:00".into()),
    ));
    types
}

/// `rows` values of `data_type` in `shape`.
pub fn column(data_type: &DataType, shape: Shape, rows: usize, random: &mut Random) -> Vec<Value> {
    let base = random.between(0, 60);
    let mut run = (Value::Null, 0);
    let mut drift = Drift::new(random);
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let few = base + random.between(0, 7);
        values.push(match shape {
            Shape::Constant => small(data_type, base),
            Shape::Repeats => small(data_type, few),
            Shape::Sorted => small(data_type, base + row as i64 / 3),
            Shape::Random if random.one_in(10) => Value::Null,
            Shape::Random => any(data_type, random),
            Shape::Extremes => extreme(data_type, random),
            Shape::AllNull => Value::Null,
            Shape::AlternatingNulls if row % 2 == 0 => Value::Null,
            Shape::AlternatingNulls => small(data_type, few),
            Shape::MostlyOne if random.one_in(33) => any(data_type, random),
            Shape::MostlyOne => small(data_type, base),
            Shape::Runs => {
                if run.1 == 0 {
                    let value = small(data_type, few);
                    run = (
                        if few % 8 == 3 { Value::Null } else { value },
                        1 + random.below(90),
                    );
                }
                run.1 -= 1;
                run.0.clone()
            }
            Shape::Outliers if random.one_in(200) => extreme(data_type, random),
            Shape::Outliers | Shape::Drift if random.one_in(29) => Value::Null,
            Shape::Drift => drift
                .next(data_type, row, random)
                .unwrap_or(small(data_type, few)),
            Shape::Outliers => small(data_type, few),
        });
    }
    values
}

/// The state of [`Shape::Drift`].
struct Drift {
    centre: i128,
    span_bits: u32,
}

impl Drift {
    fn new(random: &mut Random) -> Self {
        let span_bits = *random.pick(&[0, 3, 8, 9, 16, 17, 31, 33]);
        Drift {
            centre: i128::from(random.between(-1 << 40, 1 << 40)),
            span_bits,
        }
    }

    /// The next value of an integer type.
    fn next(&mut self, data_type: &DataType, row: usize, random: &mut Random) -> Option<Value> {
        let physical = Physical::of(data_type).ok()?;
        let is_integer = matches!(physical, Physical::Integer { .. });
        if !is_integer || *data_type == DataType::Boolean {
            return None;
        }
        let (low, high) = integer_ends(data_type);
        let span = 1i64 << self.span_bits;
        if row.is_multiple_of(128) {
            self.centre += i128::from(random.between(-span, span));
            let inside = (low..=high).contains(&self.centre);
            self.centre = if inside {
                self.centre
            } else {
                (low + high) / 2
            };
        }
        let far = if random.one_in(60) {
            (span << 9) * random.between(-2, 2)
        } else {
            0
        };
        let value = self.centre + i128::from(random.between(0, span - 1) + far);
        Some(Value::Integer(value.clamp(low, high)))
    }
}

/// A value of `data_type` that `number` names; larger numbers name larger values until the type
/// ends.
pub fn small(data_type: &DataType, number: i64) -> Value {
    match data_type {
        DataType::Boolean => Value::Integer(i128::from(number % 2)),
        DataType::Float32 | DataType::Float64 => Value::Float(number as f64 / 4.0 - 8.0),
        DataType::Decimal128(_, scale) => Value::Decimal(i128::from(number) * 25 - 999, *scale),
        DataType::Utf8 => Value::Text(format!("text-{number:04}")),
        DataType::Binary => Value::Binary(
            number
                .to_be_bytes()
                .into_iter()
                .filter(|byte| *byte != 0)
                .collect(),
        ),
        _ => {
            let (low, high) = integer_ends(data_type);
            let start = if low < 0 { -10 } else { 0 };
            Value::Integer((start + i128::from(number)).clamp(low, high))
        }
    }
}

/// Smallest and largest integer of `data_type`.
///
/// # Panics
/// For types that are not integers, dates or times.
pub fn integer_ends(data_type: &DataType) -> (i128, i128) {
    if *data_type == DataType::Boolean {
        return (0, 1);
    }
    let physical = Physical::of(data_type).unwrap();
    assert!(
        matches!(physical, Physical::Integer { .. }),
        "{data_type} is no integer"
    );
    (physical.value_of(0), physical.value_of(physical.key_max()))
}

/// Anything of `data_type`; floats stay finite and below 1e9, so that sums mean something.
pub fn any(data_type: &DataType, random: &mut Random) -> Value {
    match data_type {
        DataType::Float32 => {
            let float = random.between(-1_000_000, 1_000_000) as f32 / 1024.0;
            Value::Float(f64::from(float))
        }
        DataType::Float64 => {
            let digits = random.between(-1_000_000_000_000, 1_000_000_000_000);
            Value::Float(digits as f64 / 10_000.0)
        }
        DataType::Decimal128(_, scale) => {
            let digits = i128::from(random.between(i64::MIN, i64::MAX));
            Value::Decimal(digits * 7, *scale)
        }
        DataType::Utf8 => {
            let alphabet = ['a', 'b', 'z', 'A', '0', ' ', 'é', '中', '\u{1F680}'];
            let length = random.below(12);
            Value::Text((0..length).map(|_| *random.pick(&alphabet)).collect())
        }
        DataType::Binary => {
            let length = random.below(6);
            Value::Binary((0..length).map(|_| random.bits() as u8).collect())
        }
        _ => {
            let (low, high) = integer_ends(data_type);
            let span = high - low + 1;
            Value::Integer(low + i128::from(random.bits()) % span)
        }
    }
}

/// An end of `data_type`, or what lies next to it.
fn extreme(data_type: &DataType, random: &mut Random) -> Value {
    match data_type {
        DataType::Float32 => {
            let choices = [
                f32::MIN,
                f32::MAX,
                f32::MIN_POSITIVE,
                -0.0,
                0.0,
                f32::NAN,
                1.0,
            ];
            let infinite = [f32::INFINITY, f32::NEG_INFINITY];
            let all = [choices.as_slice(), &infinite].concat();
            Value::Float(f64::from(*random.pick(&all)))
        }
        DataType::Float64 => {
            let choices = [
                f64::MIN,
                f64::MAX,
                5e-324,
                -0.0,
                0.0,
                f64::NAN,
                9_007_199_254_740_992.0,
            ];
            let infinite = [f64::INFINITY, f64::NEG_INFINITY, -f64::NAN];
            let all = [choices.as_slice(), &infinite].concat();
            Value::Float(*random.pick(&all))
        }
        DataType::Decimal128(digits, scale) => {
            let most = 10i128.pow(u32::from(*digits)) - 1;
            Value::Decimal(*random.pick(&[most, -most, most - 1, 0, 1, -1]), *scale)
        }
        DataType::Utf8 => {
            let texts = ["", "\0", "\u{10FFFF}", "a", "a\0", "aa"];
            let long = "long ".repeat(60);
            Value::Text(
                random
                    .pick(&[texts.as_slice(), &[long.as_str()]].concat())
                    .to_string(),
            )
        }
        DataType::Binary => {
            let long = vec![0xFF; 300];
            let choices: [&[u8]; 6] = [b"", &[0], &[0xFF], &[0xFF, 0], b"a", &long];
            Value::Binary(random.pick(&choices).to_vec())
        }
        _ => {
            let (low, high) = integer_ends(data_type);
            let middle = if low < 0 { 0 } else { high / 2 + 1 };
            let choices = [low, high, low + 1, high - 1, middle, (middle - 1).max(low)];
            Value::Integer(*random.pick(&choices))
        }
    }
}
