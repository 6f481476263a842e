//! The border with Arrow: array buffers as lanes, without copying.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, DictionaryArray, Int32Array, PrimitiveArray, StringArray,
};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use bytemuck::{cast_slice, try_cast_slice};

use crate::input::Lanes;

fn values<T: ArrowPrimitiveType>(array: &dyn Array) -> &[T::Native] {
    array.as_primitive::<T>().values()
}

/// The values of `array` as lanes; `None` for booleans (bits in Arrow) and dictionaries, which
/// the encoder converts.
pub fn lanes(array: &dyn Array) -> Option<Lanes<'_>> {
    let lanes = match array.data_type() {
        DataType::Int8 => Lanes::U8(cast_slice(values::<Int8Type>(array))),
        DataType::UInt8 => Lanes::U8(values::<UInt8Type>(array)),
        DataType::Int16 => Lanes::U16(cast_slice(values::<Int16Type>(array))),
        DataType::UInt16 => Lanes::U16(values::<UInt16Type>(array)),
        DataType::Int32 => Lanes::U32(cast_slice(values::<Int32Type>(array))),
        DataType::Date32 => Lanes::U32(cast_slice(values::<Date32Type>(array))),
        DataType::UInt32 => Lanes::U32(values::<UInt32Type>(array)),
        DataType::Float32 => Lanes::U32(cast_slice(values::<Float32Type>(array))),
        DataType::Int64 => Lanes::U64(cast_slice(values::<Int64Type>(array))),
        DataType::UInt64 => Lanes::U64(values::<UInt64Type>(array)),
        DataType::Float64 => Lanes::U64(cast_slice(values::<Float64Type>(array))),
        DataType::Timestamp(unit, _) => Lanes::U64(cast_slice(match unit {
            TimeUnit::Second => values::<TimestampSecondType>(array),
            TimeUnit::Millisecond => values::<TimestampMillisecondType>(array),
            TimeUnit::Microsecond => values::<TimestampMicrosecondType>(array),
            TimeUnit::Nanosecond => values::<TimestampNanosecondType>(array),
        })),
        DataType::Decimal128(..) => Lanes::Wide(values::<Decimal128Type>(array)),
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            Lanes::Text {
                offsets: array.value_offsets(),
                bytes: array.value_data(),
            }
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            Lanes::Text {
                offsets: array.value_offsets(),
                bytes: array.value_data(),
            }
        }
        _ => return None,
    };
    Some(lanes)
}

/// The dictionary array of `keys` into `values`.
///
/// # Errors
/// `InvalidArgumentError` for a valid key outside `values`.
///
/// # Cost
/// One pass of vector code over keys of 32 bits, where Arrow's own constructor goes key by key.
pub fn dictionary<K>(
    keys: PrimitiveArray<K>,
    values: ArrayRef,
) -> Result<DictionaryArray<K>, ArrowError>
where
    K: ArrowDictionaryKeyType,
    K::Native: bytemuck::Pod,
{
    let greatest = u32::try_from(values.len()).unwrap_or(0).wrapping_sub(1);
    // Of a key outside, the top bit is set, or that of its distance below the greatest allowed.
    let bits = |key: u32| key | greatest.wrapping_sub(key);
    // Keys of other widths are as many lanes by chance alone, where there are none.
    let lanes: &[u32] = try_cast_slice(keys.values()).unwrap_or_default();
    let all = lanes.iter().fold(greatest, |all, key| all | bits(*key));
    if all >> 31 == 1 || lanes.len() != keys.len() {
        return DictionaryArray::try_new(keys, values);
    }
    // SAFETY: no key, valid or not, is negative or beyond the last value.
    Ok(unsafe { DictionaryArray::new_unchecked(keys, values) })
}

/// Texts as a dictionary array that lists each row's, whether they repeat or not.
///
/// # Errors
/// What Arrow says of more rows than keys of 32 bits reach.
pub fn row_by_row(texts: StringArray) -> Result<DictionaryArray<Int32Type>, ArrowError> {
    let rows = i32::try_from(texts.len());
    let rows = rows.map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
    let (offsets, bytes, nulls) = texts.into_parts();
    let keys = Int32Array::new((0..rows).collect(), nulls);
    dictionary(keys, Arc::new(StringArray::new(offsets, bytes, None)))
}

/// Whether an array lists the value of each row, as [`row_by_row`] does.
pub fn is_row_by_row(array: &DictionaryArray<Int32Type>) -> bool {
    let mut keys = array.keys().values().iter().zip(0..);
    array.len() == array.values().len() && keys.all(|(key, row)| *key == row)
}

/// Bytes of the values of `array`, validity and unused buffer parts not counted.
pub fn array_bytes(array: &dyn Array) -> usize {
    match lanes(array) {
        Some(Lanes::U8(lanes)) => size_of_val(lanes),
        Some(Lanes::U16(lanes)) => size_of_val(lanes),
        Some(Lanes::U32(lanes)) => size_of_val(lanes),
        Some(Lanes::U64(lanes)) => size_of_val(lanes),
        Some(Lanes::Wide(lanes)) => size_of_val(lanes),
        Some(Lanes::Text { offsets, .. }) => {
            let text = offsets.last().unwrap_or(&0) - offsets.first().unwrap_or(&0);
            size_of_val(offsets) + text as usize
        }
        Some(Lanes::Codes { .. }) | None => array.get_buffer_memory_size(),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{UInt8Array, UInt32Array};
    use arrow_buffer::ScalarBuffer;

    use super::*;

    #[test]
    fn keys_of_other_widths_are_for_arrow() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        for keys in [vec![], vec![2, 0, 1], vec![0, 1, 2, 0], vec![0, 1, 2, 3]] {
            let keys = UInt8Array::from(keys);
            let found = dictionary(keys.clone(), Arc::clone(&texts)).ok();
            let expected = DictionaryArray::try_new(keys, Arc::clone(&texts)).ok();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn dictionaries_are_those_of_arrow() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        let nulls = |keys: Vec<Option<i32>>| Int32Array::from(keys);
        let hidden = Int32Array::new(vec![7, 1].into(), Some(vec![false, true].into()));
        for keys in [
            nulls(vec![]),
            nulls(vec![Some(0), None, Some(2)]),
            nulls(vec![Some(0), Some(3)]),
            nulls(vec![Some(-1)]),
            nulls(vec![Some(i32::MIN), Some(1)]),
            nulls(vec![Some(i32::MAX)]),
            nulls(vec![None]),
            hidden,
        ] {
            for values in [&texts, &none] {
                let found = dictionary(keys.clone(), Arc::clone(values)).ok();
                let expected = DictionaryArray::try_new(keys.clone(), Arc::clone(values)).ok();
                assert_eq!(found, expected, "{keys:?} of {}", values.len());
                let unsigned = keys.values().iter().map(|key| key.cast_unsigned());
                let unsigned = ScalarBuffer::from_iter(unsigned);
                let keys = UInt32Array::new(unsigned, keys.nulls().cloned());
                let found = dictionary(keys.clone(), Arc::clone(values)).ok();
                let expected = DictionaryArray::try_new(keys.clone(), Arc::clone(values)).ok();
                assert_eq!(found, expected, "{keys:?} of {}", values.len());
            }
        }
    }
}
