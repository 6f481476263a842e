//! Which codes of a dictionary pass a predicate on its texts.

use std::sync::{Arc, Mutex, PoisonError};

use super::{KeyRange, Predicate, TextPredicate};
use crate::bitmap::WORD_ROWS;
use crate::dictionary::{Dictionary, Reader};

/// Ranges of codes up to which comparing with each costs less than looking each code up.
const RANGES_MAX: usize = 8;

/// The codes that pass, for as many texts as the dictionary had.
#[derive(Debug)]
pub struct PassingCodes {
    texts: usize,
    bits: Vec<u64>,
    ranges: Option<Predicate>,
}

impl Default for PassingCodes {
    fn default() -> Self {
        PassingCodes {
            texts: 0,
            bits: Vec::new(),
            ranges: Some(Predicate::Keys(Vec::new())),
        }
    }
}

impl PassingCodes {
    /// The codes as a predicate on them, where they are few ranges.
    pub fn ranges(&self) -> Option<&Predicate> {
        self.ranges.as_ref()
    }

    /// Whether `code` passes; what is no code does not.
    #[inline]
    pub fn contains(&self, code: u64) -> bool {
        let word = self.bits.get(code as usize / WORD_ROWS);
        word.is_some_and(|word| word >> (code as usize % WORD_ROWS) & 1 == 1)
    }

    /// Those of a dictionary that had fewer texts when `self` was made.
    fn grown(&self, texts: &Reader<'_>, predicate: &TextPredicate) -> Self {
        let mut bits = self.bits.clone();
        bits.resize(texts.len().div_ceil(WORD_ROWS), 0);
        let mut ranges = match &self.ranges {
            Some(Predicate::Keys(ranges)) => Some(ranges.clone()),
            _ => None,
        };
        for code in self.texts..texts.len() {
            if predicate.matches(texts.get(code as u32)) {
                bits[code / WORD_ROWS] |= 1 << (code % WORD_ROWS);
                ranges = ranges.and_then(|ranges| with_code(ranges, code as u64));
            }
        }
        PassingCodes {
            texts: texts.len(),
            bits,
            ranges: ranges.map(Predicate::Keys),
        }
    }
}

/// `ranges` and a code behind all of theirs, unless they become more than [`RANGES_MAX`].
fn with_code(mut ranges: Vec<KeyRange>, code: u64) -> Option<Vec<KeyRange>> {
    match ranges.last_mut() {
        Some(last) if last.high + 1 == code => last.high = code,
        _ => ranges.push(KeyRange {
            low: code,
            high: code,
        }),
    }
    (ranges.len() <= RANGES_MAX).then_some(ranges)
}

/// The passing codes of the dictionary met last.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Option<(u64, Arc<PassingCodes>)>>);

impl Predicate {
    /// The codes of `dictionary` whose texts pass; kept for the next chunk of the same column.
    ///
    /// # Cost
    /// One test for each text that the dictionary did not have the last time.
    pub fn over_codes(&self, dictionary: &Dictionary) -> Arc<PassingCodes> {
        let Predicate::Text(predicate) = self else {
            return Arc::default();
        };
        let texts = dictionary.read();
        let last = predicate.known.0.lock();
        let mut last = last.unwrap_or_else(PoisonError::into_inner);
        let known = match &*last {
            Some((id, codes)) if *id == dictionary.id() => Arc::clone(codes),
            _ => Arc::default(),
        };
        if known.texts == texts.len() {
            return known;
        }
        let codes = Arc::new(known.grown(&texts, predicate));
        *last = Some((dictionary.id(), Arc::clone(&codes)));
        codes
    }
}
