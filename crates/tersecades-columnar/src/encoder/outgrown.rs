//! When text stops being dictionary-encoded.
//!
//! ```text
//! hot     read again        at the limit
//!         read once         most of many texts differ
//! cold                      most rows differ, or new texts take more bytes than text compressed
//! any                       most rows differ and are long, or the dictionary is full
//! ```

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};

use crate::choose::choose_by_unit;
use crate::dictionary::Dictionary;
use crate::goal::Tier;
use crate::input::Input;

use super::{CodeBuffer, ColumnEncoder, plain_text};

/// Distinct texts above which a column stops being dictionary-encoded.
pub const CARDINALITY_LIMIT: usize = 1 << 20;

/// Bytes of texts, mostly distinct, above which they stop being dictionary-encoded.
const DISTINCT_BYTES: usize = 256 << 20;

/// Rows of the cold tier after which text that is mostly distinct stops being dictionary-encoded.
const DISTINCT_ROWS: usize = 4 * 1024;

/// Texts that came one by one after which, if they are mostly distinct and read but once, text
/// stops being dictionary-encoded.
const DISTINCT_TEXTS: usize = 128 * 1024;

/// As [`DISTINCT_TEXTS`], where nothing but their bytes is asked for: if more than one in
/// [`PASSED_SHARE`] is new, seeking them costs more than what they are.
const PASSED_TEXTS: usize = 16 * 1024;

/// See [`PASSED_TEXTS`].
const PASSED_SHARE: usize = 16;

/// Fewest rows of an array that tell how many new texts are still to come.
const TELLING_ROWS: usize = 512;

/// How many times as much as text codes must cost to be given up: new texts become fewer.
const DEARER_MIN: f64 = 1.1;

impl ColumnEncoder {
    /// Whether codes no longer pay after those of `array`, before which `known` texts were known.
    pub(super) fn outgrows(
        &mut self,
        dictionary: &Dictionary,
        array: &ArrayRef,
        (known, codes): (usize, &CodeBuffer),
    ) -> bool {
        self.coded_rows += array.len();
        let texts = array.as_any_dictionary_opt();
        let texts = texts.map_or(array.len(), |coded| coded.values().len());
        // More texts than rows are those of arrays to come as well.
        self.sought += if texts > array.len() { 0 } else { texts };
        let uses = self.work.goal.uses;
        let texts = dictionary.len();
        let differ = texts > self.coded_rows / 2;
        let is_distinct = match self.work.goal.tier {
            _ if differ && dictionary.byte_size() > DISTINCT_BYTES => true,
            Tier::Cold if differ && self.coded_rows >= DISTINCT_ROWS => true,
            Tier::Cold => self.costs_more(dictionary, array, (known, &codes.words)),
            Tier::Hot if uses.reads > 1.0 => false,
            Tier::Hot if !uses.keyed => {
                self.sought >= PASSED_TEXTS && texts > self.sought / PASSED_SHARE
            }
            Tier::Hot => self.sought >= DISTINCT_TEXTS && texts > self.sought / 3 * 2,
        };
        texts > CARDINALITY_LIMIT || is_distinct
    }

    /// Whether the texts that the second half of `array` added, and its codes, cost more than its
    /// text compressed.
    ///
    /// # Cost
    /// A unit of text is compressed each time that rows have doubled, where new texts outweigh
    /// codes.
    fn costs_more(
        &mut self,
        dictionary: &Dictionary,
        array: &ArrayRef,
        (known, codes): (usize, &[u32]),
    ) -> bool {
        let (first, second) = codes.split_at(codes.len() / 2);
        if second.len() < TELLING_ROWS || self.coded_rows < 2 * self.compared_rows {
            return false;
        }
        let texts = dictionary.len();
        let met = first.iter().max().map_or(0, |code| *code as usize + 1);
        let added = (texts - known.max(met)) as f64 / second.len() as f64;
        let added_bytes = added * dictionary.byte_size() as f64 / texts.max(1) as f64;
        let code_bytes = f64::from(usize::BITS - texts.leading_zeros()) / 8.0;
        if added_bytes < code_bytes {
            return false;
        }
        self.compared_rows = self.coded_rows;
        let Ok(text) = plain_text(array, &self.data_type) else {
            return false;
        };
        let Some(lanes) = crate::arrow::lanes(text.as_ref()) else {
            return false;
        };
        let input = Input {
            data_type: &self.data_type,
            physical: self.physical,
            lanes,
            validity: None,
            array: Some(&text),
        };
        let goal = &self.work.goal;
        let candidates = choose_by_unit(&input, goal);
        let least = candidates.iter().next();
        let codes_ns = goal.read_ns(added_bytes + code_bytes);
        least.is_some_and(|text| DEARER_MIN * text.scan_ns < codes_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;
    use arrow_schema::DataType;

    use super::*;
    use crate::chunk::Chunk;
    use crate::codec::Work;
    use crate::dictionary::TEXT_BYTES_LIMIT;
    use crate::goal::Goal;
    use crate::selection::Selection;

    fn codec(tier: Tier, text: impl Fn(usize) -> String, arrays: usize) -> String {
        let mut encoder = ColumnEncoder::new(&DataType::Utf8).unwrap();
        encoder.aim(Goal::of_tier(tier));
        let mut label = String::new();
        for index in 0..arrays {
            let rows = index * 2_000..(index + 1) * 2_000;
            let array: ArrayRef = Arc::new(StringArray::from_iter_values(rows.map(&text)));
            let chunk = encoder.encode_new(&array).unwrap();
            let back = chunk.to_arrow(&Selection::all(2_000), &mut Work::default());
            let back = arrow_cast::cast(&back.unwrap(), &DataType::Utf8).unwrap();
            assert_eq!(&back, &array);
            label = chunk.codec().name().to_owned();
        }
        label
    }

    #[test]
    fn lines_of_logs_are_compressed_and_names_are_coded() {
        let line = |row: usize| {
            format!(
                "10:{:02} sshd[{}]: connection closed by peer",
                row / 60,
                row
            )
        };
        let name = |row: usize| format!("switch-{}.rack-{}.example", row % 700, row % 7);
        assert_ne!(codec(Tier::Cold, line, 1), "dictionary");
        assert_eq!(codec(Tier::Hot, line, 1), "dictionary");
        for arrays in [1, 2, 9] {
            assert_eq!(codec(Tier::Cold, name, arrays), "dictionary");
        }
        // Every fourth line is new.
        let some = |row: usize| {
            if row.is_multiple_of(4) {
                line(row)
            } else {
                line(row % 8)
            }
        };
        assert_ne!(codec(Tier::Cold, some, 3), "dictionary");
    }

    #[test]
    fn texts_that_come_again_thousands_of_rows_later_are_compressed() {
        let text = |row: usize| {
            let text = (row / 9_000 * 3_000 + row % 3_000) as u64 + 1;
            let bits = text.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{bits:016x}{:08x}", bits.wrapping_mul(bits) >> 32)
        };
        let mut encoder = ColumnEncoder::new(&DataType::Utf8).unwrap();
        encoder.aim(Goal::of_tier(Tier::Cold));
        let array: ArrayRef = Arc::new(StringArray::from_iter_values((0..36_000).map(text)));
        let chunk = encoder.encode_new(&array).unwrap();
        assert_eq!(chunk.codec().name(), "zstd");
    }

    /// Encodes `arrays` into a dictionary that has room for `bytes` of text; whether each is codes.
    fn are_codes(bytes: usize, arrays: &[ArrayRef]) -> Vec<bool> {
        let mut encoder = ColumnEncoder::new(&DataType::Utf8).unwrap();
        encoder.dictionary = Some(Dictionary::with_room(bytes));
        let are_codes = arrays.iter().map(|array| {
            let chunk = encoder.encode_new(array).unwrap();
            if chunk.dictionary().is_none() {
                let all = Selection::all(array.len());
                let back = chunk.to_arrow(&all, &mut Work::default()).unwrap();
                let plain = |array| arrow_cast::cast(array, &DataType::Utf8).unwrap();
                assert_eq!(&plain(&back), &plain(array));
            }
            chunk.dictionary().is_some()
        });
        are_codes.collect()
    }

    #[test]
    fn text_beyond_a_full_dictionary_stays_text() {
        let plain = |texts: [&str; 6]| -> ArrayRef { Arc::new(StringArray::from(texts.to_vec())) };
        let coded = |texts| arrow_cast::cast(&plain(texts), &coded_type()).unwrap();
        let few = ["a", "b", "a", "a", "b", "a"];
        let more = ["b", "cc", "ddd", "b", "a", "a"];
        for room in 2..8 {
            let codes = [true, room == 7, room == 7];
            let arrays = [plain(few), plain(more), plain(few)];
            assert_eq!(are_codes(room, &arrays), codes, "room for {room} bytes");
            let arrays = [coded(few), coded(more), coded(few)];
            assert_eq!(are_codes(room, &arrays), codes, "room for {room} bytes");
        }
    }

    #[test]
    fn few_texts_beyond_a_full_dictionary_stay_text() {
        let plain: ArrayRef = Arc::new(StringArray::from(vec!["b", "cc", "ddd", "b"]));
        let coded = arrow_cast::cast(&plain, &coded_type()).unwrap();
        let mut kept = Selection::default();
        kept.set_rows(3_000).extend([0, 700, 1_024, 2_999]);
        for few in [&plain, &coded] {
            let mut encoder = ColumnEncoder::new(&DataType::Utf8).unwrap();
            encoder.dictionary = Some(Dictionary::with_room(5));
            let mut chunk = Chunk::default();
            encoder.encode_few(few, &kept, &mut chunk).unwrap();
            let (codes, encoder_codes) = (chunk.dictionary(), encoder.dictionary());
            assert!(codes.is_none() && encoder_codes.is_none());
            let back = chunk.to_arrow(&kept, &mut Work::default()).unwrap();
            let back = arrow_cast::cast(&back, &DataType::Utf8).unwrap();
            assert_eq!((&back, chunk.rows()), (&plain, 3_000));
        }
    }

    fn coded_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }

    #[test]
    fn many_bytes_of_text_stay_codes_only_where_rows_repeat() {
        let room = TEXT_BYTES_LIMIT - DISTINCT_BYTES;
        let array = |text: fn(usize) -> usize| -> ArrayRef {
            let texts = (0..1_000).map(|row| format!("{:04}", text(row)));
            Arc::new(StringArray::from_iter_values(texts))
        };
        let (new, known): (ArrayRef, ArrayRef) = (array(|row| row), array(|row| row % 9));
        assert_eq!(
            are_codes(room, &[new.clone(), known.clone()]),
            [false, false]
        );
        assert_eq!(are_codes(room, &[known.clone(), known]), [true, true]);
        assert_eq!(are_codes(room + 9_000, &[new]), [true]);
    }
}
