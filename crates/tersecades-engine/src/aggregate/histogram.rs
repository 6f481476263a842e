//! `histogram`: how many values fall into each bucket of one width.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::float_of;

use super::collected::value_count::{BUCKETS, ValueCounts};
use super::collected::{Collection, Collects, Finish, collected};
use super::{Aggregate, require_numeric};

/// The buckets that hold values, ascending, as a list of `{bucket, count}`.
///
/// A bucket `[b, b + width)` is named by its lower end, a multiple of the width computed in
/// 64-bit floats. Infinities and NaN have buckets of their own.
#[derive(Debug)]
pub struct Histogram;

fn fields() -> Fields {
    Fields::from(vec![
        Field::new("bucket", DataType::Float64, false),
        Field::new("count", DataType::Int64, false),
    ])
}

fn item() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Struct(fields()), false))
}

impl Aggregate for Histogram {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn summary(&self) -> &'static str {
        "list of {bucket, count}: values in each bucket of a width, named by its lower end"
    }

    fn collects(&self) -> Option<Collects> {
        Some(BUCKETS)
    }

    fn parameter(&self, given: Option<f64>) -> Result<f64> {
        match given {
            Some(width) if width > 0.0 && width.is_finite() => Ok(width),
            _ => Err(Error::invalid("histogram needs a bucket width")
                .hint("give a number above 0, such as 10")),
        }
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric(self.name(), argument)?;
        Ok(DataType::List(item()))
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let counts: &ValueCounts = collected(from)?;
        let width = finish.reading.parameter;
        let (mut buckets, mut rows, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        counts.for_each_group(finish.order, |values| {
            values.sort_unstable_by_key(|counted| counted.key);
            lengths.push(values.len());
            for counted in values.iter() {
                buckets.push(float_of(counted.key as u64) * width);
                rows.push(i64::try_from(counted.rows).unwrap_or(i64::MAX));
            }
            Ok(())
        })?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Float64Array::from(buckets)),
            Arc::new(Int64Array::from(rows)),
        ];
        let items = Arc::new(StructArray::try_new(fields(), columns, None)?);
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(item(), offsets, items, None)?))
    }
}
