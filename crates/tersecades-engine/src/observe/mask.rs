//! Arrays of which some rows are kept, and what the other rows hold instead.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt32Array, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_select::take::take;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::Selection;

/// One row of so many is kept at most where rows are fetched before they are reduced.
const SPARSE: usize = 4;

/// What rows hold that are not kept.
enum Elsewhere<'a> {
    /// The value of this row.
    Row(usize),
    /// What this array holds.
    Array(&'a ArrayData),
}

/// Whether rows of arrays of this type can be kept by themselves.
pub(super) fn is_maskable(data_type: &DataType) -> bool {
    matches!(width(data_type), Some(1 | 2 | 4 | 8 | 16))
}

/// Bytes of a value, or of a dictionary's key.
fn width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Dictionary(key, _) => key.primitive_width(),
        other => other.primitive_width(),
    }
}

/// A column as it is kept.
pub enum Kept {
    /// A value or null for each row.
    Whole(ArrayRef),
    /// Values of the selected rows; all others hold the first of them.
    Few(ArrayRef, Selection),
}

/// What `reduce` makes of `array` where rows are `kept`; all others hold one of its values, so that
/// they take no room.
///
/// What cannot be masked, or holds no value, is reduced as it is.
///
/// # Errors
/// What `reduce` says, and Arrow of the result.
///
/// # Cost
/// Where few rows are kept and none is null, only they are reduced.
pub(super) fn keep_only(
    array: &ArrayRef,
    kept: Selection,
    reduce: impl Fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<Kept> {
    let is_sparse = is_maskable(array.data_type()) && kept.count() <= array.len() / SPARSE;
    if is_sparse && !kept.is_empty() && array.logical_null_count() == 0 {
        let mut rows = Vec::with_capacity(kept.count());
        kept.for_each(|row| rows.push(row as u32));
        let few = take(array, &UInt32Array::from(rows), None)?;
        return Ok(Kept::Few(reduce(&few)?, kept));
    }
    keep_among(&reduce(array)?, &kept).map(Kept::Whole)
}

/// `array` where rows are `kept`; all others hold one of its values.
fn keep_among(array: &ArrayRef, kept: &Selection) -> Result<ArrayRef> {
    let nulls = array.nulls();
    let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let first_kept = match nulls {
        None => kept.first(),
        Some(nulls) => nulls.valid_indices().find(|row| kept.contains(*row)),
    };
    let filler = first_kept.or_else(|| (0..array.len()).find(|row| is_valid(*row)));
    let Some(filler) = filler.filter(|_| is_maskable(array.data_type())) else {
        return Ok(Arc::clone(array));
    };
    let mut validity = BooleanBufferBuilder::new(array.len());
    if nulls.is_some() {
        validity.append_n(array.len(), true);
        kept.for_each(|row| validity.set_bit(row, is_valid(row)));
    }
    let validity = nulls.map(|_| NullBuffer::new(validity.finish()));
    merged(array, Elsewhere::Row(filler), kept, validity)
}

/// `elsewhere` with the rows of `array` where they are `kept`, null where `array` is.
///
/// # Errors
/// What Arrow says of the types.
pub(super) fn overwrite(
    elsewhere: &ArrayRef,
    array: &ArrayRef,
    kept: &Selection,
) -> Result<ArrayRef> {
    let array = match array.data_type() == elsewhere.data_type() {
        true => Arc::clone(array),
        false => arrow_cast::cast(array, elsewhere.data_type())?,
    };
    let nulls = array.nulls().cloned();
    merged(&array, Elsewhere::Array(&elsewhere.to_data()), kept, nulls)
}

fn merged(
    array: &ArrayRef,
    elsewhere: Elsewhere<'_>,
    kept: &Selection,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let data = array.to_data();
    let buffer = match width(array.data_type()) {
        Some(1) => lanes::<u8>(&data, elsewhere, kept),
        Some(2) => lanes::<u16>(&data, elsewhere, kept),
        Some(4) => lanes::<u32>(&data, elsewhere, kept),
        Some(8) => lanes::<u64>(&data, elsewhere, kept),
        Some(16) => lanes::<i128>(&data, elsewhere, kept),
        _ => return Err(Error::internal("what is masked has lanes")),
    };
    let built = data.into_builder().offset(0).len(kept.rows());
    Ok(make_array(
        built.buffers(vec![buffer]).nulls(nulls).build()?,
    ))
}

fn lanes<T: ArrowNativeType>(
    data: &ArrayData,
    elsewhere: Elsewhere<'_>,
    kept: &Selection,
) -> Buffer {
    let lanes = &data.buffer::<T>(0)[..data.len()];
    let mut out = match elsewhere {
        Elsewhere::Row(row) => vec![lanes[row]; lanes.len()],
        Elsewhere::Array(other) => other.buffer::<T>(0)[..lanes.len()].to_vec(),
    };
    kept.for_each(|row| out[row] = lanes[row]);
    Buffer::from_vec(out)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Int16Array};

    use super::*;

    fn rows(kept: &[u32], rows: usize) -> Selection {
        let mut selection = Selection::default();
        selection.set_rows(rows).extend(kept);
        selection
    }

    #[test]
    fn few_rows_are_reduced_alone() {
        let array: ArrayRef = Arc::new((0..100).collect::<Int16Array>());
        let wanted = [3, 10, 11, 17, 50, 99];
        let lengths = |array: &ArrayRef| {
            assert_eq!(array.len(), wanted.len());
            Ok(Arc::clone(array))
        };
        let found = keep_only(&array, rows(&wanted, 100), lengths).unwrap();
        let Kept::Few(few, kept) = found else {
            panic!("six of a hundred are few");
        };
        let expected: ArrayRef = Arc::new(Int16Array::from(wanted.map(|row| row as i16).to_vec()));
        assert_eq!((&few, kept.list()), (&expected, &wanted[..]));
        let nullable: ArrayRef = Arc::new(Int16Array::from(vec![None, Some(1), None, Some(2)]));
        let same = |array: &ArrayRef| Ok(Arc::clone(array));
        let found = keep_only(&nullable, rows(&[3], 4), same).unwrap();
        assert!(matches!(found, Kept::Whole(array) if array.len() == 4));
    }

    #[test]
    fn rows_that_are_not_kept_take_the_first_kept_value() {
        let array: ArrayRef = Arc::new(Int16Array::from(vec![
            None,
            Some(4),
            Some(7),
            None,
            Some(9),
        ]));
        let found = keep_among(&array.slice(1, 4), &rows(&[1, 2], 4)).unwrap();
        let expected: ArrayRef = Arc::new(Int16Array::from(vec![Some(7), Some(7), None, Some(7)]));
        assert_eq!(&found, &expected);
        let found = keep_among(&array, &rows(&[0], 5)).unwrap();
        let expected: ArrayRef = Arc::new(Int16Array::from(vec![
            None,
            Some(4),
            Some(4),
            Some(4),
            Some(4),
        ]));
        assert_eq!(&found, &expected, "no kept row has a value");
        let none: ArrayRef = Arc::new(Int16Array::from(vec![None::<i16>; 3]));
        assert_eq!(&keep_among(&none, &rows(&[], 3)).unwrap(), &none);
    }

    #[test]
    fn texts_are_masked_by_their_codes() {
        let texts: DictionaryArray<Int32Type> = ["a", "b", "c", "b"].into_iter().collect();
        let array: ArrayRef = Arc::new(texts);
        let found = keep_among(&array, &rows(&[1, 3], 4)).unwrap();
        assert_eq!(
            found.as_dictionary::<Int32Type>().keys().values()[..],
            [1, 1, 1, 1]
        );
    }

    #[test]
    fn kept_rows_overwrite_what_is_elsewhere() {
        let array: ArrayRef = Arc::new(Int16Array::from(vec![Some(1), None, Some(3)]));
        let base: ArrayRef = Arc::new(Int16Array::from(vec![Some(0), None, Some(0)]));
        let found = overwrite(&base, &array, &rows(&[2], 3)).unwrap();
        let expected: ArrayRef = Arc::new(Int16Array::from(vec![Some(0), None, Some(3)]));
        assert_eq!(&found, &expected);
    }
}
