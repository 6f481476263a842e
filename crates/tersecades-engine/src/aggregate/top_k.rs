//! `top_k`: the most frequent values, as a list.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use tersecades_columnar::error::{Error, Result};

use super::Aggregate;
use super::collected::value_count::{VALUES, ValueCounts};
use super::collected::{Collection, Collects, Finish, collected};
use super::mode::Place;
use super::result::{ResultColumn, value_of_ordered};

/// Most values that may be asked for.
const K_MAX: f64 = 65_536.0;

/// The `k` most frequent values that are not null, the most frequent first; of equally frequent
/// ones the least first.
#[derive(Debug)]
pub struct TopK;

impl Aggregate for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn summary(&self) -> &'static str {
        "list of the k most frequent values, exact, most frequent first"
    }

    fn collects(&self) -> Option<Collects> {
        Some(VALUES)
    }

    fn parameter(&self, given: Option<f64>) -> Result<f64> {
        match given {
            Some(k) if (1.0..=K_MAX).contains(&k) && k.fract() == 0.0 => Ok(k),
            _ => Err(Error::invalid("top_k needs a number of values")
                .hint("give a whole number from 1 to 65536")),
        }
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        let item = Field::new_list_field(argument.clone(), true);
        Ok(DataType::List(Arc::new(item)))
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let counts: &ValueCounts = collected(from)?;
        let argument = finish.argument;
        let place = Place::of(argument);
        let wanted = finish.reading.parameter as usize;
        let mut column = ResultColumn::new(
            &argument.data_type,
            argument.dictionary.get(),
            finish.order.len(),
        )?;
        let mut lengths = Vec::new();
        counts.for_each_group(finish.order, |values| {
            values.sort_unstable_by_key(|counted| place.by_rows(counted));
            lengths.push(wanted.min(values.len()));
            for counted in values.iter().take(wanted) {
                column.push(value_of_ordered(counted.key, &argument.data_type)?);
            }
            Ok(())
        })?;
        let items = cast(&column.finish(&argument.data_type)?, &argument.data_type)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        let item = Field::new_list_field(argument.data_type.clone(), true);
        Ok(Arc::new(ListArray::try_new(
            Arc::new(item),
            offsets,
            items,
            None,
        )?))
    }
}
