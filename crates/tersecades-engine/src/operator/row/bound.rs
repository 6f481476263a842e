//! A value that rows are compared with before keys are made of them.

use arrow_array::{Array, ArrayRef, Datum, Scalar};
use arrow_buffer::BooleanBuffer;
use arrow_cast::cast;
use arrow_ord::cmp;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::logical_type;

use super::keys::{SortOrder, canonical_floats};

/// The first column of a sort key.
pub(crate) struct Bound {
    value: Scalar<ArrayRef>,
    is_null: bool,
    order: SortOrder,
    /// Whether equal values come no sooner, since no column is behind this one.
    alone: bool,
}

/// Whether values of a type compare as their keys do.
fn is_plain(data_type: &DataType) -> bool {
    use DataType as T;
    let time = matches!(
        data_type,
        T::Timestamp(..) | T::Date32 | T::Date64 | T::Time32(_) | T::Time64(_) | T::Duration(_)
    );
    time || data_type.is_numeric() || matches!(data_type, T::Boolean | T::Utf8)
}

impl Bound {
    /// The value of `column` at `row`; none for types whose keys say more than their values.
    ///
    /// # Errors
    /// What casting says.
    pub(crate) fn new(
        column: &ArrayRef,
        row: usize,
        order: SortOrder,
        alone: bool,
    ) -> Result<Option<Self>> {
        let data_type = logical_type(column.data_type());
        if !is_plain(&data_type) {
            return Ok(None);
        }
        let value = canonical_floats(&cast(&column.slice(row, 1), &data_type)?);
        Ok(Some(Bound {
            is_null: value.logical_nulls().is_some_and(|nulls| nulls.is_null(0)),
            value: Scalar::new(value),
            order,
            alone,
        }))
    }

    /// Which rows may come before that of the bound; none where all may.
    ///
    /// # Errors
    /// What comparing says.
    pub(crate) fn before(&self, column: &ArrayRef) -> Result<Option<BooleanBuffer>> {
        let value = self.value.get().0.data_type();
        let physical = match column.data_type() {
            DataType::Dictionary(_, values) => values.as_ref(),
            data_type => data_type,
        };
        let in_dictionary = matches!(column.data_type(), DataType::Dictionary(..));
        if physical != value || (in_dictionary && value.is_floating()) {
            return Ok(None);
        }
        let column = canonical_floats(column);
        let SortOrder {
            descending,
            nulls_first,
        } = self.order;
        let (nulls_pass, values_pass) = match self.is_null {
            true if nulls_first => (!self.alone, BooleanBuffer::new_unset(column.len())),
            true => (!self.alone, BooleanBuffer::new_set(column.len())),
            false => {
                let compare = match (descending, self.alone) {
                    (false, true) => cmp::lt,
                    (false, false) => cmp::lt_eq,
                    (true, true) => cmp::gt,
                    (true, false) => cmp::gt_eq,
                };
                (nulls_first, compare(&column, &self.value)?.values().clone())
            }
        };
        Ok(Some(match column.logical_nulls() {
            None => values_pass,
            Some(nulls) if nulls_pass => &values_pass | &!nulls.inner(),
            Some(nulls) => &values_pass & nulls.inner(),
        }))
    }
}
