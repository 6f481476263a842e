//! Column types: Arrow's logical types, and the few physical shapes the codecs see.
//!
//! Every fixed-width integer-like type (bool, integers, dates, times) becomes an unsigned *key*
//! that sorts as the values do: `key = value + bias`, where the bias is half the lane's range for
//! signed types and 0 for unsigned ones. Codecs work on keys alone, so one base-delta serves `i8`
//! and `timestamp[ns]` alike.

use arrow_schema::{DataType, TimeUnit};

use crate::error::{Error, Result};

/// How the values of a column lie in memory, whatever they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Physical {
    /// Booleans, integers, dates and times in lanes of 1, 2, 4 or 8 bytes.
    Integer {
        /// Bytes per lane.
        bytes: u8,
        /// Whether values are two's complement.
        signed: bool,
    },
    /// IEEE 754 numbers in lanes of 4 or 8 bytes.
    Float {
        /// Bytes per lane.
        bytes: u8,
    },
    /// Decimals in lanes of 16 bytes.
    Wide,
    /// UTF-8 text or byte strings.
    Text,
}

impl Physical {
    /// The physical shape of `data_type`.
    ///
    /// # Errors
    /// `Unsupported`, with the list of supported types, for nested and exotic types.
    pub fn of(data_type: &DataType) -> Result<Self> {
        let integer = |bytes, signed| Ok(Physical::Integer { bytes, signed });
        match data_type {
            DataType::Boolean | DataType::UInt8 => integer(1, false),
            DataType::Int8 => integer(1, true),
            DataType::UInt16 => integer(2, false),
            DataType::Int16 => integer(2, true),
            DataType::UInt32 => integer(4, false),
            DataType::Int32 | DataType::Date32 => integer(4, true),
            DataType::UInt64 => integer(8, false),
            DataType::Int64 | DataType::Timestamp(..) => integer(8, true),
            DataType::Float32 => Ok(Physical::Float { bytes: 4 }),
            DataType::Float64 => Ok(Physical::Float { bytes: 8 }),
            DataType::Decimal128(..) => Ok(Physical::Wide),
            DataType::Utf8 | DataType::Binary => Ok(Physical::Text),
            other => {
                let message = format!("columns of type {other} are not supported");
                let hint = "cast to bool, an integer, a float, decimal128, timestamp, date32, \
                            utf8 or binary";
                Err(Error::unsupported(message).hint(hint))
            }
        }
    }

    /// Bytes per lane; 0 for text, whose values have no fixed width.
    pub fn lane_bytes(self) -> usize {
        match self {
            Physical::Integer { bytes, .. } | Physical::Float { bytes } => usize::from(bytes),
            Physical::Wide => 16,
            Physical::Text => 0,
        }
    }

    /// The bits to XOR into a lane to turn value bits into key bits, and back.
    pub fn flip(self) -> u64 {
        match self {
            Physical::Integer {
                bytes,
                signed: true,
            } => 1 << (u32::from(bytes) * 8 - 1),
            _ => 0,
        }
    }

    /// The largest key of an integer lane (all ones for everything else).
    pub fn key_max(self) -> u64 {
        match self {
            Physical::Integer { bytes, .. } => u64::MAX >> (64 - u32::from(bytes) * 8),
            _ => u64::MAX,
        }
    }

    /// The key of an integer value; `None` when the value is outside the type.
    pub fn key_of(self, value: i128) -> Option<u64> {
        let key = u64::try_from(value + i128::from(self.flip())).ok()?;
        (key <= self.key_max()).then_some(key)
    }

    /// The integer value behind a key.
    pub fn value_of(self, key: u64) -> i128 {
        i128::from(key) - i128::from(self.flip())
    }
}

/// The integer type of lanes of `bytes` bytes, for what codecs keep inside.
pub(crate) fn integer_type(bytes: usize, signed: bool) -> DataType {
    match (bytes, signed) {
        (1, true) => DataType::Int8,
        (2, true) => DataType::Int16,
        (4, true) => DataType::Int32,
        (_, true) => DataType::Int64,
        (1, false) => DataType::UInt8,
        (2, false) => DataType::UInt16,
        (4, false) => DataType::UInt32,
        (_, false) => DataType::UInt64,
    }
}

/// The type a column has inside the engine: dictionary arrays are the type of their values, large
/// offsets and views are the plain string types, and types that few sources write are the next one
/// that holds all their values; a column of nothing but null is text.
pub fn logical_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => logical_type(values),
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Float16 => DataType::Float32,
        other => other.clone(),
    }
}

/// Order-preserving key of a float: negative zero equals zero, every NaN is equal and last.
///
/// # Source
/// The usual IEEE 754 bit trick; PostgreSQL's total order for NaN.
pub fn float_key(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    let bits = (value + 0.0).to_bits();
    let sign = u64::MAX * (bits >> 63);
    bits ^ (sign | 1 << 63)
}

/// The float behind a [`float_key`].
pub fn float_of(key: u64) -> f64 {
    if key == u64::MAX {
        return f64::NAN;
    }
    let sign = u64::MAX * (1 - (key >> 63));
    f64::from_bits(key ^ (sign | 1 << 63))
}

/// A single value, as literals, constants and results carry it.
///
/// Integers, booleans, dates and times share [`Value::Integer`]; the column's type says which.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Absent.
    Null,
    /// Bool (0 or 1), integer, date (days) or time (ticks of the column's unit).
    Integer(i128),
    /// Float.
    Float(f64),
    /// Unscaled decimal digits and their scale.
    Decimal(i128, i8),
    /// UTF-8 text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

macro_rules! value_from_integer {
    ($($t:ty),*) => {$(
        impl From<$t> for Value {
            fn from(value: $t) -> Self {
                Value::Integer(i128::from(value))
            }
        }
    )*};
}
value_from_integer!(bool, i8, i16, i32, i64, u8, u16, u32, u64);

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_of_signed_values() {
        let physical = Physical::of(&DataType::Int16).unwrap();
        let keys: Vec<u64> = [-32768, -1, 0, 1, 32767]
            .iter()
            .map(|v| physical.key_of(*v).unwrap())
            .collect();
        assert!(keys.is_sorted());
        assert_eq!(keys, [0, 32767, 32768, 32769, 65535]);
        assert_eq!(physical.key_of(32768), None);
        assert_eq!(physical.value_of(keys[0]), -32768);
    }

    #[test]
    fn float_keys_are_a_total_order_with_nan_last() {
        let order = [
            f64::NEG_INFINITY,
            -1.5,
            -1e-300,
            0.0,
            1e-300,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(order.windows(2).all(|w| float_key(w[0]) < float_key(w[1])));
        assert_eq!(float_key(-0.0), float_key(0.0));
        assert_eq!(float_key(-f64::NAN), float_key(f64::NAN));
        assert!(order.iter().take(7).all(|v| float_of(float_key(*v)) == *v));
    }

    #[test]
    fn rare_types_become_those_that_hold_their_values() {
        use arrow_array::{ArrayRef, Date64Array, FixedSizeBinaryArray, Float32Array, NullArray};
        use std::sync::Arc;

        let halves: ArrayRef = Arc::new(Float32Array::from(vec![0.5, -2.0]));
        let bytes = FixedSizeBinaryArray::try_from_iter([[1, 2], [3, 4]].into_iter()).unwrap();
        let columns: [ArrayRef; 4] = [
            Arc::new(Date64Array::from(vec![86_400_000, -1])),
            arrow_cast::cast(&halves, &DataType::Float16).unwrap(),
            Arc::new(bytes),
            Arc::new(NullArray::new(2)),
        ];
        for column in columns {
            let expected = arrow_cast::cast(&column, &logical_type(column.data_type())).unwrap();
            let mut encoder = crate::encoder::ColumnEncoder::new(column.data_type()).unwrap();
            let chunk = encoder.encode_new(&column).unwrap();
            let all = crate::selection::Selection::all(2);
            let found = chunk.to_arrow(&all, &mut crate::codec::Work::default());
            let found = arrow_cast::cast(&found.unwrap(), expected.data_type()).unwrap();
            assert_eq!(*found, *expected);
        }
    }
}
