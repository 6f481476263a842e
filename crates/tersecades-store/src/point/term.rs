//! One column of a wanted key.

use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::stats::Stats;
use tersecades_columnar::types::{Physical, Value};

/// A column that is compared, and the value it is compared with.
pub(super) struct Term {
    data_type: DataType,
    physical: Physical,
    pub(super) predicate: Predicate,
    /// The wanted key, where integers are compared.
    pub(super) point: Option<u64>,
}

impl Term {
    /// A column of `data_type`, compared with nothing yet.
    ///
    /// # Errors
    /// `Unsupported` for types without values.
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        Ok(Term {
            data_type: data_type.clone(),
            physical: Physical::of(data_type)?,
            predicate: Predicate::key_range(1, 0),
            point: None,
        })
    }

    /// Looks for `value` from here on; whether the column can hold it.
    ///
    /// # Errors
    /// `SchemaMismatch` for a value of another type.
    pub(super) fn aim(&mut self, value: &Value) -> Result<bool> {
        self.point = None;
        if let (Physical::Integer { .. }, Value::Integer(value)) = (self.physical, value) {
            self.point = self.physical.key_of(*value);
            if let Some(key) = self.point {
                self.predicate.set_key_range(key, key);
            }
            return Ok(self.point.is_some());
        }
        self.predicate = Predicate::between(&self.data_type, value, value)?;
        Ok(true)
    }

    /// Whether some of `rows` values, `nulls` of them null, may be the wanted one.
    pub(super) fn may_be_in(&self, stats: Stats, nulls: usize, rows: usize) -> bool {
        match self.point {
            Some(key) if stats.known => nulls < rows && stats.min <= key && key <= stats.max,
            _ => nulls < rows,
        }
    }

    /// Appends the bytes of the wanted value as they stand in sort keys; `false` for other values
    /// than integers.
    pub(super) fn write_sort_bytes(&self, out: &mut Vec<u8>) -> bool {
        let Some(key) = self.point else {
            return false;
        };
        // One byte says that it is not null, then the value follows, largest byte first.
        out.push(1);
        out.extend_from_slice(&key.to_be_bytes()[8 - self.physical.lane_bytes()..]);
        true
    }
}
