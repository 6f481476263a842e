//! From one value for each group to a result column.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::dictionary::Dictionary;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::{Physical, Value, float_of};
use tersecades_columnar::values::Values;

/// Collects results of one type.
#[derive(Debug)]
pub struct ResultColumn {
    /// The values so far; codes of text mean its dictionary.
    pub values: Values,
    nulls: Vec<usize>,
}

impl ResultColumn {
    /// No value of `data_type`, with room for `rows`; texts are codes of `dictionary`.
    ///
    /// # Errors
    /// `Unsupported` for types that no column has.
    pub fn new(
        data_type: &DataType,
        dictionary: Option<&Arc<Dictionary>>,
        rows: usize,
    ) -> Result<Self> {
        let mut values = Values::default();
        values.reset(Physical::of(data_type)?);
        match values.physical {
            Physical::Wide => values.wide.reserve_exact(rows),
            _ => values.keys.reserve_exact(rows),
        }
        values.dictionary = dictionary.map(Arc::clone);
        Ok(ResultColumn {
            values,
            nulls: Vec::new(),
        })
    }

    /// Appends a value; one that the type cannot hold becomes null.
    pub fn push(&mut self, value: Value) {
        let physical = self.values.physical;
        match (physical, value) {
            (Physical::Wide, Value::Decimal(digits, _)) => self.values.wide.push(digits),
            (Physical::Wide, _) => {
                self.nulls.push(self.values.wide.len());
                self.values.wide.push(0);
            }
            (Physical::Float { bytes: 4 }, Value::Float(float)) => {
                self.values.keys.push(u64::from((float as f32).to_bits()));
            }
            (Physical::Float { .. }, Value::Float(float)) => self.values.keys.push(float.to_bits()),
            (_, Value::Integer(integer)) if physical.key_of(integer).is_some() => {
                self.values
                    .keys
                    .push(physical.key_of(integer).unwrap_or_default());
            }
            _ => {
                self.nulls.push(self.values.keys.len());
                self.values.keys.push(0);
            }
        }
    }

    /// The column.
    ///
    /// # Errors
    /// `Corrupt` when text is not UTF-8.
    pub fn finish(mut self, data_type: &DataType) -> Result<ArrayRef> {
        if !self.nulls.is_empty() {
            self.values.validity.fill(self.values.len(), true);
            self.nulls
                .iter()
                .for_each(|row| self.values.validity.set(*row, false));
        }
        self.values.into_array(data_type)
    }
}

/// The value behind an ordered key of a column of type `data_type`.
///
/// # Errors
/// `Unsupported` for types that no column has.
pub fn value_of_ordered(key: i128, data_type: &DataType) -> Result<Value> {
    Ok(match (Physical::of(data_type)?, data_type) {
        (Physical::Wide, DataType::Decimal128(_, scale)) => Value::Decimal(key, *scale),
        (Physical::Float { .. }, _) => Value::Float(float_of(key as u64)),
        // Texts are codes of the argument's dictionary.
        (physical, _) => Value::Integer(physical.value_of(key as u64)),
    })
}
