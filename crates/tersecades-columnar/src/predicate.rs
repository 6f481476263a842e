//! Comparisons with constants, compiled once for a column's type.
//!
//! Every comparison (=, ≠, <, ≤, >, ≥, between, in) becomes a sorted list of disjoint inclusive
//! ranges over the column's *keys*, so a codec has one thing to evaluate. Constants the type
//! cannot hold (`x > 2.5` on integers, `x = 300` on bytes) are rounded to the range with the same
//! rows, never wrapped.

mod comparison;
mod passing;

use std::cmp::Ordering;
use std::ops::Bound;

use arrow_schema::DataType;

use crate::decimal::{digits_nearest_to, nearest_float};
use crate::error::{Error, Result};
use crate::types::{Physical, Value, float_key};

pub use comparison::Comparison;
pub use passing::PassingCodes;

use passing::Known;

/// An inclusive range of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRange {
    /// Smallest key.
    pub low: u64,
    /// Largest key.
    pub high: u64,
}

impl KeyRange {
    /// Whether `key` is inside.
    #[inline]
    pub fn contains(self, key: u64) -> bool {
        key.wrapping_sub(self.low) <= self.high.wrapping_sub(self.low)
    }
}

type TextRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Which texts pass, and the codes they have in the dictionary met last.
#[derive(Debug)]
pub struct TextPredicate {
    ranges: Vec<TextRange>,
    negated: bool,
    known: Known,
}

/// The rows wanted, as ranges over one column's keys.
#[derive(Debug)]
pub enum Predicate {
    /// Over keys of integers (see [`Physical::key_of`]) or floats (see [`float_key`]).
    Keys(Vec<KeyRange>),
    /// Over 128-bit values.
    Wide(Vec<(i128, i128)>),
    /// Over bytes of text.
    Text(TextPredicate),
}

/// Answer of statistics to a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// No value can pass.
    None,
    /// Every value passes.
    All,
    /// Values must be looked at.
    Some,
}

/// A constant placed between the representable values of a column: those from `least` to `floor`,
/// if there are any, are equal to it; `floor` is the largest one not above it.
struct Place {
    least: i128,
    floor: i128,
}

impl Place {
    fn new(floor: i128, exact: bool) -> Self {
        Place {
            least: floor.saturating_add(i128::from(!exact)),
            floor,
        }
    }
}

impl Predicate {
    /// The keys that pass, where they are one range.
    pub fn as_range(&self) -> Option<KeyRange> {
        match self {
            Predicate::Keys(ranges) if ranges.len() == 1 => Some(ranges[0]),
            _ => None,
        }
    }

    /// Rows where the column compares so with `constant`.
    ///
    /// # Errors
    /// `SchemaMismatch` when the constant's type cannot be compared with the column's.
    ///
    /// # Examples
    /// ```
    /// use arrow_schema::DataType;
    /// use tersecades_columnar::predicate::{Comparison, Predicate};
    /// let over = Predicate::compare(&DataType::UInt8, Comparison::Greater, &2.5.into()).unwrap();
    /// assert!(over.matches_key(3) && !over.matches_key(2));
    /// ```
    pub fn compare(data_type: &DataType, how: Comparison, constant: &Value) -> Result<Self> {
        if let Physical::Text = Physical::of(data_type)? {
            return text_compare(how, constant);
        }
        if *constant == Value::Null {
            return from_ranges(data_type, Vec::new());
        }
        let Place { least, floor } = place(data_type, constant)?;
        let (below, above) = (least.saturating_sub(1), floor.saturating_add(1));
        let ranges = match how {
            Comparison::Equal => vec![(least, floor)],
            Comparison::NotEqual => vec![(i128::MIN, below), (above, i128::MAX)],
            Comparison::Less => vec![(i128::MIN, below)],
            Comparison::LessOrEqual => vec![(i128::MIN, floor)],
            Comparison::Greater => vec![(above, i128::MAX)],
            Comparison::GreaterOrEqual => vec![(least, i128::MAX)],
        };
        from_ranges(data_type, ranges)
    }

    /// Rows between two constants, both included.
    ///
    /// # Errors
    /// As [`Predicate::compare`].
    pub fn between(data_type: &DataType, low: &Value, high: &Value) -> Result<Self> {
        if *low == Value::Null || *high == Value::Null {
            return Predicate::one_of(data_type, &[]);
        }
        if let Physical::Text = Physical::of(data_type)? {
            let range = (
                Bound::Included(text(low)?.to_vec()),
                Bound::Included(text(high)?.to_vec()),
            );
            return Ok(text_predicate(vec![range], false));
        }
        let (from, to) = (place(data_type, low)?, place(data_type, high)?);
        from_ranges(data_type, vec![(from.least, to.floor)])
    }

    /// Rows equal to one of `constants`; nulls among them match nothing.
    ///
    /// # Errors
    /// As [`Predicate::compare`].
    pub fn one_of(data_type: &DataType, constants: &[Value]) -> Result<Self> {
        let present = constants
            .iter()
            .filter(|constant| **constant != Value::Null);
        if let Physical::Text = Physical::of(data_type)? {
            let exact = |bytes: &[u8]| {
                (
                    Bound::Included(bytes.to_vec()),
                    Bound::Included(bytes.to_vec()),
                )
            };
            let ranges: Result<Vec<_>> = present.map(|c| Ok(exact(text(c)?))).collect();
            return Ok(text_predicate(ranges?, false));
        }
        let mut ranges = Vec::new();
        for constant in present {
            let Place { least, floor } = place(data_type, constant)?;
            ranges.push((least, floor));
        }
        from_ranges(data_type, ranges)
    }

    /// Rows whose key lies in `low..=high`.
    pub fn key_range(low: u64, high: u64) -> Self {
        let mut predicate = Predicate::Keys(Vec::new());
        predicate.set_key_range(low, high);
        predicate
    }

    /// Becomes [`Predicate::key_range`], keeping the memory.
    pub fn set_key_range(&mut self, low: u64, high: u64) {
        if !matches!(self, Predicate::Keys(_)) {
            *self = Predicate::Keys(Vec::new());
        }
        if let Predicate::Keys(ranges) = self {
            ranges.clear();
            ranges.extend((low <= high).then_some(KeyRange { low, high }));
        }
    }

    /// Whether a key passes; text and wide predicates never match a key.
    #[inline]
    pub fn matches_key(&self, key: u64) -> bool {
        match self {
            Predicate::Keys(ranges) => ranges.iter().any(|range| range.contains(key)),
            Predicate::Wide(_) | Predicate::Text(_) => false,
        }
    }

    /// Whether a 128-bit value passes.
    pub fn matches_wide(&self, value: i128) -> bool {
        match self {
            Predicate::Wide(ranges) => ranges.iter().any(|(a, b)| (*a..=*b).contains(&value)),
            Predicate::Keys(_) | Predicate::Text(_) => false,
        }
    }

    /// Whether a text passes.
    pub fn matches_text(&self, bytes: &[u8]) -> bool {
        match self {
            Predicate::Text(predicate) => predicate.matches(bytes),
            Predicate::Keys(_) | Predicate::Wide(_) => false,
        }
    }

    /// What the smallest and largest key of some values say.
    pub fn coverage(&self, min: u64, max: u64) -> Coverage {
        let Predicate::Keys(ranges) = self else {
            return Coverage::Some;
        };
        if ranges
            .iter()
            .any(|range| range.low <= min && max <= range.high)
        {
            return Coverage::All;
        }
        match ranges
            .iter()
            .any(|range| range.low <= max && min <= range.high)
        {
            true => Coverage::Some,
            false => Coverage::None,
        }
    }
}

impl TextPredicate {
    /// Where texts that pass and texts that do not may meet.
    pub(crate) fn cut_points(&self) -> Vec<Vec<u8>> {
        let after = |text: &Vec<u8>| [text.as_slice(), b"\0"].concat();
        let mut points = Vec::new();
        for (low, high) in &self.ranges {
            points.extend(match low {
                Bound::Included(low) => Some(low.clone()),
                Bound::Excluded(low) => Some(after(low)),
                Bound::Unbounded => None,
            });
            points.extend(match high {
                Bound::Included(high) => Some(after(high)),
                Bound::Excluded(high) => Some(high.clone()),
                Bound::Unbounded => None,
            });
        }
        points.sort_unstable();
        points.dedup();
        points
    }

    fn matches(&self, bytes: &[u8]) -> bool {
        self.matches_ordered(|constant| bytes.cmp(constant))
    }

    /// Whether a text passes that `order` compares with a constant.
    pub(crate) fn matches_ordered(&self, order: impl Fn(&[u8]) -> Ordering) -> bool {
        let inside = self.ranges.iter().any(|(low, high)| {
            let above = match low {
                Bound::Included(low) => order(low).is_ge(),
                Bound::Excluded(low) => order(low).is_gt(),
                Bound::Unbounded => true,
            };
            above
                && match high {
                    Bound::Included(high) => order(high).is_le(),
                    Bound::Excluded(high) => order(high).is_lt(),
                    Bound::Unbounded => true,
                }
        });
        inside != self.negated
    }
}

fn text_predicate(ranges: Vec<TextRange>, negated: bool) -> Predicate {
    Predicate::Text(TextPredicate {
        ranges,
        negated,
        known: Known::default(),
    })
}

fn text(value: &Value) -> Result<&[u8]> {
    match value {
        Value::Text(text) => Ok(text.as_bytes()),
        Value::Binary(bytes) => Ok(bytes),
        other => Err(
            Error::schema(format!("cannot compare a text column with {other:?}"))
                .hint("quote the constant"),
        ),
    }
}

fn text_compare(how: Comparison, constant: &Value) -> Result<Predicate> {
    if *constant == Value::Null {
        return Ok(text_predicate(Vec::new(), false));
    }
    let bytes = text(constant)?.to_vec();
    let range = match how {
        Comparison::Equal | Comparison::NotEqual => {
            (Bound::Included(bytes.clone()), Bound::Included(bytes))
        }
        Comparison::Less => (Bound::Unbounded, Bound::Excluded(bytes)),
        Comparison::LessOrEqual => (Bound::Unbounded, Bound::Included(bytes)),
        Comparison::Greater => (Bound::Excluded(bytes), Bound::Unbounded),
        Comparison::GreaterOrEqual => (Bound::Included(bytes), Bound::Unbounded),
    };
    Ok(text_predicate(vec![range], how == Comparison::NotEqual))
}

/// Where `constant` lies among the values of a column of `data_type`.
fn place(data_type: &DataType, constant: &Value) -> Result<Place> {
    let physical = Physical::of(data_type)?;
    let mismatch = || {
        Error::schema(format!(
            "cannot compare a column of type {data_type} with {constant:?}"
        ))
    };
    if let Physical::Float { .. } = physical {
        let value = match constant {
            Value::Float(value) => *value,
            Value::Integer(value) => return Ok(place_among_floats(*value)),
            Value::Decimal(digits, scale) => nearest_float(*digits, *scale),
            _ => return Err(mismatch()),
        };
        return Ok(Place::new(i128::from(float_key(value)), true));
    }
    let column_scale = match data_type {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    };
    match constant {
        Value::Integer(value) => Ok(rescale(*value, 0, column_scale)),
        Value::Decimal(digits, scale) => Ok(rescale(*digits, *scale, column_scale)),
        Value::Float(value) if value.is_nan() => Ok(Place::new(i128::MAX, false)),
        Value::Float(value) if column_scale == 0 => {
            Ok(Place::new(value.floor() as i128, value.fract() == 0.0))
        }
        // Decimals beside floats are floats.
        Value::Float(value) => {
            let equal = digits_nearest_to(*value, column_scale);
            Ok(Place {
                least: equal.start,
                floor: equal.end - 1,
            })
        }
        _ => Err(mismatch()),
    }
}

/// Where an integer lies among the floats, which above 2^53 are sparser than integers.
fn place_among_floats(value: i128) -> Place {
    let nearest = value as f64;
    let order = (nearest as i128).cmp(&value);
    let floor = i128::from(float_key(nearest)) - i128::from(order.is_gt());
    Place::new(floor, order.is_eq())
}

/// `digits * 10^-from` as a place among multiples of `10^-to`.
fn rescale(digits: i128, from: i8, to: i8) -> Place {
    let shift = i32::from(to) - i32::from(from);
    let factor = 10i128.checked_pow(shift.unsigned_abs());
    match (shift >= 0, factor) {
        (true, factor) => {
            let limit = if digits < 0 { i128::MIN } else { i128::MAX };
            let scaled = factor.and_then(|factor| digits.checked_mul(factor));
            Place::new(scaled.unwrap_or(limit), scaled.is_some())
        }
        (false, Some(factor)) => {
            Place::new(digits.div_euclid(factor), digits.rem_euclid(factor) == 0)
        }
        (false, None) => Place::new(if digits < 0 { -1 } else { 0 }, digits == 0),
    }
}

/// Sorts, joins and clamps value ranges to the key space of `data_type`.
fn from_ranges(data_type: &DataType, mut ranges: Vec<(i128, i128)>) -> Result<Predicate> {
    ranges.retain(|(low, high)| low <= high);
    ranges.sort_unstable();
    let mut joined: Vec<(i128, i128)> = Vec::new();
    for (low, high) in ranges {
        match joined.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => joined.push((low, high)),
        }
    }
    let physical = Physical::of(data_type)?;
    let (flip, key_max) = match physical {
        Physical::Wide => return Ok(Predicate::Wide(joined)),
        Physical::Integer { .. } => (i128::from(physical.flip()), i128::from(physical.key_max())),
        Physical::Float { .. } | Physical::Text => (0, i128::from(u64::MAX)),
    };
    let clamp = |value: i128| value.saturating_add(flip).clamp(0, key_max) as u64;
    let inside = |(low, high): &&(i128, i128)| {
        high.saturating_add(flip) >= 0 && low.saturating_add(flip) <= key_max
    };
    let keys = joined.iter().filter(inside);
    Ok(Predicate::Keys(
        keys.map(|(low, high)| KeyRange {
            low: clamp(*low),
            high: clamp(*high),
        })
        .collect(),
    ))
}

#[cfg(test)]
mod tests;
