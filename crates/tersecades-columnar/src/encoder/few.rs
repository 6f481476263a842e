//! Columns of which few rows have values of their own: only these are looked at.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::transform::MutableArrayData;

use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::input::Lanes;
use crate::selection::Selection;
use crate::types::Physical;

use super::{CodeBuffer, ColumnEncoder};

/// The rows of a column that are spread over, in the memory of the batch before, by width.
#[derive(Default)]
pub(super) struct SpreadBuffer {
    bytes: Vec<u8>,
    shorts: Vec<u16>,
    words: Vec<u32>,
    longs: Vec<u64>,
}

impl SpreadBuffer {
    /// `few` in the rows of `kept`, the first of them elsewhere; `None` for what has no lanes of at
    /// most eight bytes.
    fn fill(&mut self, few: Lanes<'_>, kept: &Selection) -> Option<Lanes<'_>> {
        Some(match few {
            Lanes::U8(few) => Lanes::U8(spread(few, kept, &mut self.bytes)),
            Lanes::U16(few) => Lanes::U16(spread(few, kept, &mut self.shorts)),
            Lanes::U32(few) => Lanes::U32(spread(few, kept, &mut self.words)),
            Lanes::U64(few) => Lanes::U64(spread(few, kept, &mut self.longs)),
            Lanes::Wide(_) | Lanes::Text { .. } | Lanes::Codes { .. } => return None,
        })
    }
}

fn spread<'a, T: Copy>(few: &[T], kept: &Selection, out: &'a mut Vec<T>) -> &'a [T] {
    out.clear();
    out.resize(kept.rows(), few[0]);
    let mut next = 0;
    kept.for_each(|row| {
        out[row] = few[next];
        next += 1;
    });
    out
}

/// The array that [`ColumnEncoder::encode_few`] stands for.
fn whole(few: &ArrayRef, kept: &Selection) -> Result<ArrayRef> {
    let data = few.to_data();
    let mut rows = MutableArrayData::new(vec![&data], false, kept.rows());
    let mut next = 0;
    for row in 0..kept.rows() {
        let is_kept = kept.contains(row);
        let value = if is_kept { next } else { 0 };
        rows.try_extend(0, value, value + 1)?;
        next += usize::from(is_kept);
    }
    Ok(make_array(rows.freeze()))
}

impl ColumnEncoder {
    /// Encodes a column that holds the values of `few`, one after the other, in the rows of `kept`,
    /// and the first of them in all others.
    ///
    /// # Errors
    /// As [`ColumnEncoder::encode`]; `InvalidArgument` when there is no value, a null, or not one
    /// value for each row that is kept.
    ///
    /// # Cost
    /// A store for each row; all else for the few alone.
    pub fn encode_few(&mut self, few: &ArrayRef, kept: &Selection, out: &mut Chunk) -> Result<()> {
        if few.is_empty() || few.len() != kept.count() || few.logical_null_count() > 0 {
            let message = "few values go one to each row that is kept, and none is null";
            return Err(Error::invalid(message));
        }
        self.check_type(few)?;
        if self.is_cast(few.data_type()) {
            let few = arrow_cast::cast(few, &self.data_type)?;
            return self.encode_few(&few, kept, out);
        }
        self.validity.clear();
        match self.physical {
            Physical::Text => self.encode_few_texts(few, kept, out),
            _ => {
                let mut buffer = std::mem::take(&mut self.spread);
                let lanes = crate::arrow::lanes(few.as_ref());
                let encoded = match lanes.and_then(|few| buffer.fill(few, kept)) {
                    Some(lanes) => self.encode_lanes(lanes, None, out),
                    None => self.encode(&whole(few, kept)?, out),
                };
                self.spread = buffer;
                encoded
            }
        }
    }

    fn encode_few_texts(
        &mut self,
        few: &ArrayRef,
        kept: &Selection,
        out: &mut Chunk,
    ) -> Result<()> {
        let Some(dictionary) = self.dictionary.clone() else {
            return self.encode(&whole(few, kept)?, out);
        };
        let mut codes = std::mem::take(&mut self.codes);
        let mut buffer = std::mem::take(&mut self.spread);
        let encoded = match self.collect_codes(few, &dictionary, &mut codes) {
            Ok(true) => {
                let lanes = Lanes::Codes {
                    codes: buffer.fill_codes(&codes, kept),
                    dictionary: &dictionary,
                };
                self.encode_lanes(lanes, None, out)
            }
            Ok(false) => whole(few, kept).and_then(|whole| self.encode(&whole, out)),
            Err(error) => Err(error),
        };
        (self.codes, self.spread) = (codes, buffer);
        encoded
    }
}

impl SpreadBuffer {
    fn fill_codes(&mut self, few: &CodeBuffer, kept: &Selection) -> super::CodeLanes<'_> {
        match few.are_bytes {
            true => super::CodeLanes::U8(spread(&few.bytes, kept, &mut self.bytes)),
            false => super::CodeLanes::U32(spread(&few.words, kept, &mut self.words)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{BooleanArray, Decimal128Array, DictionaryArray, Int16Array, StringArray};
    use arrow_array::{TimestampMillisecondArray, UInt64Array};
    use arrow_schema::DataType;

    use super::*;
    use crate::codec::Work;

    #[test]
    fn few_rows_are_encoded_as_the_column_they_stand_for() {
        let texts = ["b", "a", "b", "c"];
        let coded: DictionaryArray<Int32Type> = texts.into_iter().collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int16Array::from(vec![7, -1, 7, 3])),
            Arc::new(UInt64Array::from(vec![u64::MAX, 0, 1, 2])),
            Arc::new(TimestampMillisecondArray::from(vec![5, 6, 7, 8])),
            Arc::new(Decimal128Array::from(vec![5, 6, 7, -8])),
            Arc::new(BooleanArray::from(vec![true, false, true, true])),
            Arc::new(StringArray::from(texts.to_vec())),
            Arc::new(coded),
        ];
        let mut kept = Selection::default();
        kept.set_rows(3_000).extend([0, 700, 1_024, 2_999]);
        for few in &columns {
            let mut encoder = ColumnEncoder::new(few.data_type()).unwrap();
            let expected = encoder.encode_new(&whole(few, &kept).unwrap()).unwrap();
            let mut found = Chunk::default();
            encoder.encode_few(few, &kept, &mut found).unwrap();
            let array = |chunk: &Chunk| {
                let all = Selection::all(chunk.rows());
                chunk.to_arrow(&all, &mut Work::default()).unwrap()
            };
            assert_eq!(&array(&found), &array(&expected));
            assert_eq!(found.rows(), 3_000);
        }
        let mut encoder = ColumnEncoder::new(&DataType::Int16).unwrap();
        let mut refused = |few: &[Option<i16>]| {
            let few: ArrayRef = Arc::new(Int16Array::from(few.to_vec()));
            assert!(
                encoder
                    .encode_few(&few, &kept, &mut Chunk::default())
                    .is_err()
            );
        };
        refused(&[Some(1), None, Some(2), Some(3)]);
        refused(&[Some(1)]);
    }
}
