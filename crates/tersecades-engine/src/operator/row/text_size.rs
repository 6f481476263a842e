//! How much text rows bring, and how many of them are given at once.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use tersecades_columnar::arrow::array_bytes;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::types::logical_type;

use super::shape::GIVEN_ROWS;

/// Bytes of text that rows given at once have in one column, by the mean of all rows: Arrow's
/// offsets reach eight times as far.
const GIVEN_BYTES: usize = 256 << 20;

/// The texts of a column, as many bytes as they take where each row has its own.
#[derive(Debug, Clone, Default)]
pub(super) struct TextSize {
    bytes: usize,
    rows: usize,
    /// Whether some come back so: codes do not, unless others are no codes.
    is_plain: bool,
}

impl TextSize {
    /// Adds the texts of `array`, encoded as `chunk`; other values take none.
    pub(super) fn add(&mut self, array: &ArrayRef, chunk: &Chunk) {
        let logical = logical_type(array.data_type());
        if !matches!(logical, DataType::Utf8 | DataType::Binary) {
            return;
        }
        let rows = array.len();
        self.rows += rows;
        self.bytes += match array.as_any_dictionary_opt().map(|coded| coded.values()) {
            Some(texts) => array_bytes(texts.as_ref()) / texts.len().max(1) * rows,
            None => array_bytes(array.as_ref()),
        };
        self.is_plain |= chunk.dictionary().is_none();
    }

    fn row_bytes(&self) -> usize {
        match self.is_plain {
            true => self.bytes / self.rows.max(1),
            false => 0,
        }
    }
}

/// How many rows whose columns have `texts` are given at once: [`GIVEN_ROWS`], fewer of long ones.
pub(super) fn given_rows(texts: &[TextSize]) -> usize {
    let row_bytes = texts.iter().map(TextSize::row_bytes).max().unwrap_or(0);
    (GIVEN_BYTES / row_bytes.max(1)).clamp(1, GIVEN_ROWS)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use arrow_cast::cast;
    use tersecades_columnar::encoder::ColumnEncoder;

    use super::*;

    /// How many rows are given of `array`, encoded with a dictionary or without.
    fn given(array: &ArrayRef, coded: bool) -> usize {
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        if !coded {
            encoder.keep_text();
        }
        let mut size = TextSize::default();
        size.add(array, &encoder.encode_new(array).unwrap());
        given_rows(&[TextSize::default(), size])
    }

    #[test]
    fn fewer_rows_of_long_texts_are_given_at_once() {
        let texts = |bytes: usize| -> ArrayRef {
            let texts = (0..100).map(|row| format!("{row:0bytes$}"));
            Arc::new(StringArray::from_iter_values(texts))
        };
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        assert_eq!(given(&numbers, false), GIVEN_ROWS);
        assert_eq!(given(&texts(100), false), GIVEN_ROWS);
        assert_eq!(given(&texts(8_192), true), GIVEN_ROWS, "codes are short");
        let dictionary = cast(&texts(8_192), &crate::source::text_type()).unwrap();
        for long in [texts(8_192), dictionary] {
            let bytes = given(&long, false) * 8_192;
            assert!((GIVEN_BYTES / 2..=GIVEN_BYTES).contains(&bytes), "{bytes}");
        }
        assert!(given_rows(&[]) == GIVEN_ROWS);
    }
}
