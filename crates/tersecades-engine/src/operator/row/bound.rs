//! A value that rows are compared with before keys are made of them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrayRef, Datum, Scalar};
use arrow_buffer::BooleanBuffer;
use arrow_cast::cast;
use arrow_ord::cmp;
use arrow_ord::sort::sort_to_indices;
use arrow_schema::{DataType, SortOptions};
use tersecades_columnar::arrow::lanes;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::{Physical, logical_type};

use super::keys::{SortOrder, canonical_floats};

/// Parts of a source that may be looked through in vain, one after the other.
const TRIES: u32 = 2;

/// How far an operator has come that keeps the first rows of an order, told to where rows come
/// from: none that come behind the bound are wanted.
#[derive(Debug, Clone)]
pub struct Reached {
    bound: Arc<Mutex<Option<Arc<Bound>>>>,
    tries: Arc<AtomicU32>,
    /// The order of the first column, and how many rows are kept, where nothing but the operator
    /// leaves rows out: of each part of the source no more are wanted.
    of_parts: Option<(SortOrder, usize)>,
}

impl Reached {
    /// Nothing is known yet; `of_parts` says of which order how many rows are kept, where all rows
    /// of the source come before the operator.
    pub(crate) fn new(of_parts: Option<(SortOrder, usize)>) -> Self {
        Reached {
            bound: Arc::default(),
            tries: Arc::new(AtomicU32::new(TRIES)),
            of_parts,
        }
    }

    /// Says that only rows before `bound` are wanted.
    pub(crate) fn set(&self, bound: Arc<Bound>) {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = Some(bound);
    }

    /// What rows must come before, if that is known and rules out most rows of most parts.
    pub(crate) fn get(&self) -> Option<Arc<Bound>> {
        if self.tries.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.clone()
    }

    /// Whether a part says by itself which of its rows may be wanted.
    pub(crate) fn goes_by_part(&self) -> bool {
        self.of_parts.is_some() && self.tries.load(Ordering::Relaxed) > 0
    }

    /// What the rows of a part must come before, of which `column` has all values; none where that
    /// is not known.
    ///
    /// # Errors
    /// What sorting says.
    pub(crate) fn of_part(&self, column: &ArrayRef) -> Result<Option<Bound>> {
        let parts = self.of_parts.filter(|_| self.goes_by_part());
        let Some((order, count)) = parts.filter(|(_, count)| *count < column.len()) else {
            return Ok(None);
        };
        let Some(last) = count.checked_sub(1) else {
            return Ok(None);
        };
        if !is_plain(&logical_type(column.data_type())) {
            return Ok(None);
        }
        let options = SortOptions {
            descending: order.descending,
            nulls_first: order.nulls_first,
        };
        let first = sort_to_indices(&canonical_floats(column), Some(options), Some(count))?;
        // Others that are equal to the last may come before it by the columns behind.
        Bound::new(column, first.value(last) as usize, order, false)
    }

    /// Says whether few rows of a part came before the bound.
    pub(crate) fn note(&self, few: bool) {
        let next = |tries: u32| match few {
            true => Some(TRIES),
            false => tries.checked_sub(1),
        };
        // Another thread may have noted the same.
        let _ = self
            .tries
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Has nothing left out from here on.
    pub(crate) fn close(&self) {
        self.tries.store(0, Ordering::Relaxed);
    }
}

/// The first column of a sort key.
#[derive(Debug)]
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

    /// Whether no integer from `low` to `high`, both included, comes before that of the bound, by
    /// the type of its column; no where that is not known.
    pub(crate) fn is_before_all(&self, low: i128, high: i128, has_nulls: bool) -> bool {
        let (value, _) = self.value.get();
        let physical = Physical::of(value.data_type());
        let Ok(physical @ Physical::Integer { .. }) = physical else {
            return false;
        };
        let bits = lanes(value).map(|lanes| lanes.bits(0));
        let best = if self.order.descending { high } else { low };
        let (Some(bits), Some(best)) = (bits, physical.key_of(best)) else {
            return false;
        };
        let bound = bits ^ physical.flip();
        let is_behind = match (self.order.descending, self.alone) {
            (false, true) => best >= bound,
            (false, false) => best > bound,
            (true, true) => best <= bound,
            (true, false) => best < bound,
        };
        // Nulls that come first are before it, and of a null nothing is known here.
        low <= high && is_behind && !self.is_null && !(has_nulls && self.order.nulls_first)
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
