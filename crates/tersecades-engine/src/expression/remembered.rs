//! Results of a function for texts that it was run on in batches before.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::take::take;
use tersecades_columnar::dictionary::Dictionary;
use tersecades_columnar::error::Result;

/// Texts that are remembered, about: with more, they hardly come again.
const TEXTS_MAX: usize = 1 << 16;

/// What a function that always gives the same gave for texts.
#[derive(Debug)]
pub(super) struct Remembered {
    texts: Arc<Dictionary>,
    /// Where the result for each text is, by its code, and the one for null.
    places: Vec<u32>,
    null: Option<u32>,
    results: Option<ArrayRef>,
}

impl Default for Remembered {
    fn default() -> Self {
        Remembered {
            texts: Dictionary::new(),
            places: Vec::new(),
            null: None,
            results: None,
        }
    }
}

impl Remembered {
    /// The result for each of `values`; `run` gives those for the values that it is given.
    ///
    /// # Errors
    /// What `run` says.
    pub(super) fn results_of(
        &mut self,
        values: &ArrayRef,
        run: impl FnOnce(ArrayRef) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        if *values.data_type() != DataType::Utf8 || self.places.len() >= TEXTS_MAX {
            return run(Arc::clone(values));
        }
        let known = self.results.as_ref().map_or(0, |results| results.len());
        let (mut wanted, mut fresh) = (Vec::with_capacity(values.len()), Vec::new());
        let mut interner = self.texts.interner();
        for (at, text) in values.as_string::<i32>().iter().enumerate() {
            let next = (known + fresh.len()) as u32;
            let place = match text {
                None => *self.null.get_or_insert(next),
                Some(text) => {
                    let code = interner.code(text.as_bytes())? as usize;
                    if code == self.places.len() {
                        self.places.push(next);
                    }
                    self.places[code]
                }
            };
            if place == next {
                fresh.push(at as u32);
            }
            wanted.push(place);
        }
        drop(interner);
        if let Some(results) = self.results.as_ref().filter(|_| fresh.is_empty()) {
            return Ok(take(results, &UInt32Array::from(wanted), None)?);
        }
        let results = run(take(values, &UInt32Array::from(fresh), None)?);
        // Of texts without a result nothing is known.
        let known = std::mem::take(self);
        let results = match &known.results {
            Some(known) => concat(&[&**known, &*results?])?,
            None => results?,
        };
        let found = take(&results, &UInt32Array::from(wanted), None)?;
        *self = Remembered {
            results: Some(results),
            ..known
        };
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{Int64Array, StringArray};
    use tersecades_columnar::error::Error;

    use super::*;

    /// Lengths, -1 for null.
    fn lengths(values: &ArrayRef) -> Vec<i64> {
        let texts = values.as_string::<i32>().iter();
        texts
            .map(|text| text.map_or(-1, |text| text.len() as i64))
            .collect()
    }

    /// Checks the results for `texts`; how many the function ran on.
    fn ask(remembered: &mut Remembered, texts: Vec<Option<String>>) -> usize {
        let values: ArrayRef = Arc::new(StringArray::from(texts));
        let mut asked = 0;
        let results = remembered.results_of(&values, |values| {
            asked = values.len();
            Ok(Arc::new(Int64Array::from(lengths(&values))))
        });
        let results = results.unwrap();
        let results = results.as_primitive::<Int64Type>().values();
        assert_eq!(**results, lengths(&values));
        asked
    }

    fn texts(range: std::ops::Range<usize>) -> Vec<Option<String>> {
        range
            .map(|at| Some("x".repeat(at % 50) + &at.to_string()))
            .collect()
    }

    #[test]
    fn a_text_is_asked_for_once() {
        let remembered = &mut Remembered::default();
        assert_eq!(ask(remembered, texts(0..10)), 10);
        assert_eq!(ask(remembered, texts(3..8)), 0);
        let with_null = [vec![None], texts(5..12), vec![None]].concat();
        assert_eq!(ask(remembered, with_null.clone()), 3);
        assert_eq!(ask(remembered, with_null), 0);
    }

    #[test]
    fn what_failed_is_asked_for_again() {
        let remembered = &mut Remembered::default();
        assert_eq!(ask(remembered, texts(0..4)), 4);
        let values: ArrayRef = Arc::new(StringArray::from(texts(2..6)));
        let failed = remembered.results_of(&values, |_| Err(Error::invalid("no")));
        assert_eq!(
            failed.unwrap_err().to_string(),
            Error::invalid("no").to_string()
        );
        assert_eq!(ask(remembered, texts(2..6)), 4);
    }

    #[test]
    fn more_texts_than_come_again_are_asked_for_each_time() {
        let remembered = &mut Remembered::default();
        let half = TEXTS_MAX / 2 + 1;
        assert_eq!(ask(remembered, texts(0..half)), half);
        assert_eq!(ask(remembered, texts(half..2 * half)), half);
        assert_eq!(ask(remembered, texts(0..7)), 7);
    }
}
