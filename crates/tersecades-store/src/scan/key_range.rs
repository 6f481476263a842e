//! Which groups of a run can hold wanted keys.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, BinaryArray, Decimal128Array, Float64Array, Int64Array, StringArray,
    UInt64Array,
};
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use crate::run::{self, Fences, Run};
use crate::schema::StoreSchema;
use crate::sort_key::prefix;

use super::ColumnRange;

/// The wanted values of the first column that rows are sorted by.
#[derive(Debug, Default)]
pub(crate) struct KeyRange {
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    /// The hash of the key, where one is wanted.
    hash: Option<u64>,
}

impl KeyRange {
    /// What `ranges` say of the key.
    pub(crate) fn new(schema: &StoreSchema, ranges: &[ColumnRange]) -> Result<Self> {
        let sorted = schema.sort_columns();
        let Some(first) = sorted.first() else {
            return Ok(KeyRange::default());
        };
        let range_of = |column: &usize| {
            let name = schema.fields().field(*column).name();
            ranges.iter().find(|range| range.column == *name)
        };
        let bytes = |column: &usize, value: &Value| {
            let array = to_array(value, schema.fields().field(*column).data_type());
            array.map(|array| prefix(&array)).transpose()
        };
        let Some(range) = range_of(first) else {
            return Ok(KeyRange::default());
        };
        let mut key = Some(Vec::new());
        for column in schema.key_columns() {
            let point = range_of(column).filter(|range| range.low == range.high);
            let part = match point {
                Some(range) => bytes(column, &range.low)?,
                None => None,
            };
            key = key.zip(part).map(|(key, part)| [key, part].concat());
        }
        Ok(KeyRange {
            low: bytes(first, &range.low)?,
            high: bytes(first, &range.high)?,
            hash: key.filter(|key| !key.is_empty()).map(|key| run::hash(&key)),
        })
    }

    /// Whether a run may hold a wanted key, by its filter.
    pub(crate) fn may_be_in(&self, run: &Run) -> bool {
        self.hash.is_none_or(|hash| run.may_hold(hash))
    }

    /// Whether wanted keys may lie between those of two rows, which may not be known.
    pub(crate) fn may_be_between(&self, fences: Option<&Fences>) -> bool {
        let Some((first, last)) = fences else {
            return true;
        };
        let begins = |high: &Vec<u8>| first <= high || first.starts_with(high);
        let ends = |low: &Vec<u8>| low <= last;
        self.high.as_ref().is_none_or(begins) && self.low.as_ref().is_none_or(ends)
    }

    /// The groups that may hold wanted keys, by their fences.
    pub(crate) fn groups(&self, run: &Run) -> Range<usize> {
        let groups = run.groups();
        let start = self.low.as_ref().map_or(0, |low| {
            groups.partition_point(|group| group.fences.1.as_slice() < low.as_slice())
        });
        let end = self.high.as_ref().map_or(groups.len(), |high| {
            groups.partition_point(|group| {
                let first = group.fences.0.as_slice();
                first <= high.as_slice() || first.starts_with(high)
            })
        });
        start..end.max(start)
    }
}

/// `value` as one of `data_type`; `None` where it is not one.
fn to_array(value: &Value, data_type: &DataType) -> Option<ArrayRef> {
    let array: ArrayRef = match value {
        // Fences tell the two zeros apart, comparisons do not.
        _ if data_type.is_floating() => return None,
        Value::Null => return None,
        Value::Integer(value) => match i64::try_from(*value) {
            Ok(value) => Arc::new(Int64Array::from(vec![value])),
            Err(_) => Arc::new(UInt64Array::from(vec![u64::try_from(*value).ok()?])),
        },
        Value::Float(value) => Arc::new(Float64Array::from(vec![*value])),
        Value::Decimal(digits, scale) => {
            let array = Decimal128Array::from(vec![*digits]);
            Arc::new(array.with_precision_and_scale(38, *scale).ok()?)
        }
        Value::Text(text) => Arc::new(StringArray::from(vec![text.as_str()])),
        Value::Binary(bytes) => Arc::new(BinaryArray::from(vec![bytes.as_slice()])),
    };
    let cast = arrow_cast::cast(&array, data_type).ok()?;
    let back = arrow_cast::cast(&cast, array.data_type()).ok()?;
    // A value that changes on the way is none of the type: fences do not help.
    (cast.null_count() == 0 && back.to_data() == array.to_data()).then_some(cast)
}
