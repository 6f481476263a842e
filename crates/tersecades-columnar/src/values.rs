//! Decoded values of some rows of one column: what `gather` and `decode` fill.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, make_array};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_data::ArrayDataBuilder;
use arrow_schema::DataType;

use crate::bitmap::Bitmap;
use crate::dictionary::Dictionary;
use crate::error::Result;
use crate::types::{Physical, Value, float_key};

/// Values in decoded form, their memory reused.
///
/// Integers lie in `keys` as ordered keys, floats as their raw bits, text as codes of
/// `dictionary`; decimals lie in `wide`.
#[derive(Debug, Clone)]
pub struct Values {
    /// What the lanes mean.
    pub physical: Physical,
    /// Keys, raw float bits or text codes.
    pub keys: Vec<u64>,
    /// 128-bit values.
    pub wide: Vec<i128>,
    /// Which rows are not null; empty when all are.
    pub validity: Bitmap,
    /// The table behind text codes.
    pub dictionary: Option<Arc<Dictionary>>,
}

impl Default for Values {
    fn default() -> Self {
        Values {
            physical: Physical::Integer {
                bytes: 8,
                signed: true,
            },
            keys: Vec::new(),
            wide: Vec::new(),
            validity: Bitmap::default(),
            dictionary: None,
        }
    }
}

impl Values {
    /// Empties, for values of `physical`.
    pub fn reset(&mut self, physical: Physical) {
        self.physical = physical;
        self.keys.clear();
        self.wide.clear();
        self.validity.clear();
        self.dictionary = None;
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        if self.physical == Physical::Wide {
            self.wide.len()
        } else {
            self.keys.len()
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether row `index` is not null.
    #[inline]
    pub fn is_valid(&self, index: usize) -> bool {
        self.validity.is_empty() || self.validity.get(index)
    }

    /// The integer at `index`, null or not.
    #[inline]
    pub fn integer(&self, index: usize) -> i128 {
        match self.physical {
            Physical::Wide => self.wide[index],
            physical => physical.value_of(self.keys[index]),
        }
    }

    /// The float at `index`, null or not; integers convert.
    #[inline]
    pub fn float(&self, index: usize) -> f64 {
        match self.physical {
            Physical::Float { bytes } => float_of_bits(self.keys[index], bytes),
            _ => self.integer(index) as f64,
        }
    }

    /// A key that sorts as the value does, null or not; text sorts by code.
    #[inline]
    pub fn ordered(&self, index: usize) -> i128 {
        match self.physical {
            Physical::Wide => self.wide[index],
            Physical::Float { .. } => i128::from(float_key(self.float(index))),
            _ => i128::from(self.keys[index]),
        }
    }

    /// The value at `index`.
    pub fn value(&self, index: usize) -> Value {
        if !self.is_valid(index) {
            return Value::Null;
        }
        match self.physical {
            Physical::Integer { .. } => Value::Integer(self.integer(index)),
            Physical::Float { .. } => Value::Float(self.float(index)),
            Physical::Wide => Value::Decimal(self.wide[index], 0),
            Physical::Text => match &self.dictionary {
                Some(dictionary) => {
                    let bytes = dictionary.read().get(self.keys[index] as u32).to_vec();
                    String::from_utf8(bytes)
                        .map_or_else(|error| Value::Binary(error.into_bytes()), Value::Text)
                }
                None => Value::Null,
            },
        }
    }

    /// An Arrow array of `data_type` with these values; text becomes `dictionary<uint32, …>`.
    ///
    /// # Errors
    /// `Corrupt` when text is not UTF-8 or the bytes do not make an array of `data_type`.
    ///
    /// # Cost
    /// One pass over values that stay in their memory where they are of 8 or 16 bytes; text shares
    /// the dictionary's array.
    pub fn into_array(self, data_type: &DataType) -> Result<ArrayRef> {
        let nulls = (!self.validity.is_empty()).then(|| self.validity.to_nulls());
        if let DataType::Boolean = data_type {
            let bits = BooleanBuffer::collect_bool(self.keys.len(), |i| self.keys[i] != 0);
            return Ok(Arc::new(BooleanArray::new(bits, nulls)));
        }
        match self.physical {
            Physical::Text => {
                let codes = self.keys.iter().map(|code| *code as u32).collect();
                let empty = Dictionary::new();
                let dictionary = self.dictionary.as_deref().unwrap_or(&empty);
                dictionary.coded(codes, nulls, data_type)
            }
            Physical::Wide => {
                let array = Decimal128Array::new(self.wide.into(), nulls);
                Ok(Arc::new(array.with_data_type(data_type.clone())))
            }
            Physical::Integer { .. } | Physical::Float { .. } => {
                let data = ArrayDataBuilder::new(data_type.clone())
                    .len(self.keys.len())
                    .add_buffer(self.into_lanes())
                    .nulls(nulls)
                    .build()?;
                Ok(make_array(data))
            }
        }
    }

    /// The raw lanes, as Arrow lays them out.
    fn into_lanes(mut self) -> Buffer {
        let flip = self.physical.flip();
        self.keys.iter_mut().for_each(|key| *key ^= flip);
        let bits = self.keys.iter();
        match self.physical.lane_bytes() {
            1 => Buffer::from_vec(bits.map(|b| *b as u8).collect::<Vec<u8>>()),
            2 => Buffer::from_vec(bits.map(|b| *b as u16).collect::<Vec<u16>>()),
            4 => Buffer::from_vec(bits.map(|b| *b as u32).collect::<Vec<u32>>()),
            _ => Buffer::from_vec(self.keys),
        }
    }
}

/// The float whose raw bits, in a lane of `bytes` bytes, are `bits`.
#[inline]
pub fn float_of_bits(bits: u64, bytes: u8) -> f64 {
    if bytes == 4 {
        f64::from(f32::from_bits(bits as u32))
    } else {
        f64::from_bits(bits)
    }
}
