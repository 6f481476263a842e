//! Tests put to codes: which values of a dictionary pass is found once, a row costs a comparison.

use std::sync::Arc;

use arrow_array::{Array, StringArray};
use tersecades_columnar::kernels::{Lane, WORD_LANES, kernels};
use tersecades_columnar::predicate::{KeyRange, Predicate};

use super::page::STRETCH;

/// Words of bits of a stretch.
const WORDS: usize = STRETCH / WORD_LANES;

/// Most ranges that codes are compared with; more are looked up code by code.
const RANGES_MAX: usize = 4;

/// The codes of a dictionary whose values pass, and those that have none: reading these fails.
#[derive(Debug)]
pub(super) enum CodeTest {
    /// From a code on, so many more.
    Ranges(Vec<(u32, u32)>),
    /// A bit for each code.
    Codes(Vec<u64>),
}

impl CodeTest {
    /// The codes of the numbers of `table` that pass all `tests`, of integers whose keys have
    /// `flip` flipped.
    pub(super) fn of_numbers<W: Lane>(table: &[W], flip: u64, tests: &[Arc<Predicate>]) -> Self {
        let words = table.len().div_ceil(WORD_LANES);
        let mut passing = vec![u64::MAX; words];
        let (mut found, mut part) = (vec![0; words], vec![0; words]);
        for test in tests {
            let Predicate::Keys(ranges) = &**test else {
                continue;
            };
            found.fill(0);
            for range in ranges {
                mark_keys(table, *range, flip, &mut part);
                (kernels().bitmap.or)(&mut found, &part);
            }
            (kernels().bitmap.and)(&mut passing, &found);
        }
        CodeTest::of_bits(passing, table.len())
    }

    /// The codes of the texts that pass all `tests`.
    pub(super) fn of_texts(texts: &StringArray, tests: &[Arc<Predicate>]) -> Self {
        let mut passing = vec![0; texts.len().div_ceil(WORD_LANES)];
        for (code, text) in texts.iter().flatten().enumerate() {
            let passes = tests.iter().all(|test| test.matches_text(text.as_bytes()));
            passing[code / WORD_LANES] |= u64::from(passes) << (code % WORD_LANES);
        }
        CodeTest::of_bits(passing, texts.len())
    }

    /// The codes whose bit is set, and those from `count` on.
    fn of_bits(mut passing: Vec<u64>, count: usize) -> Self {
        passing.resize(count / WORD_LANES + 1, 0);
        passing[count / WORD_LANES] |= u64::MAX << (count % WORD_LANES);
        let is_set = |code: &usize| passing[code / WORD_LANES] >> (code % WORD_LANES) & 1 == 1;
        let (mut ranges, mut from) = (Vec::new(), 0);
        while let Some(first) = (from..=count).find(is_set) {
            let behind = (first..=count).find(|code| !is_set(code));
            let last = behind.map_or(u32::MAX, |behind| behind as u32 - 1);
            ranges.push((first as u32, last - first as u32));
            match behind {
                Some(behind) if ranges.len() < RANGES_MAX => from = behind,
                Some(_) => return CodeTest::Codes(passing),
                None => break,
            }
        }
        CodeTest::Ranges(ranges)
    }

    /// Sets the bits of `out` whose code may pass, and clears the others.
    pub(super) fn mark(&self, codes: &[u32], out: &mut [u64]) {
        match self {
            CodeTest::Ranges(ranges) => {
                out.fill(0);
                let mut part = [0; WORDS];
                for (codes, out) in codes.chunks(STRETCH).zip(out.chunks_mut(WORDS)) {
                    let part = &mut part[..out.len()];
                    for (low, span) in ranges {
                        (kernels().u32.range_mask_flat)(codes, *low, *span, part);
                        (kernels().bitmap.or)(out, part);
                    }
                }
            }
            CodeTest::Codes(passing) => {
                let may_pass = |code: u32| match passing.get(code as usize / WORD_LANES) {
                    Some(word) => word >> (code as usize % WORD_LANES) & 1,
                    None => 1,
                };
                for (codes, word) in codes.chunks(WORD_LANES).zip(out) {
                    let bits = codes.iter().zip(0..);
                    *word = bits.fold(0, |word, (code, bit)| word | may_pass(*code) << bit);
                }
            }
        }
    }
}

/// Sets the bits of the lanes whose key, the lane with `flip` flipped, is in `range`.
pub(super) fn mark_keys<W: Lane>(values: &[W], range: KeyRange, flip: u64, out: &mut [u64]) {
    let (low, span) = (range.low ^ flip, range.high - range.low);
    let (low, span) = (W::truncate(low), W::truncate(span));
    (W::of(kernels()).range_mask_flat)(values, low, span, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_pass_are_marked_in_ranges_and_one_by_one() {
        for (count, step) in [
            (0, 1),
            (1, 1),
            (5, 2),
            (64, 9),
            (200, 30),
            (200, 3),
            (700, 1),
        ] {
            for wants in [0, 1] {
                let passes = |code: usize| code >= count || code / step % 2 == wants;
                let mut bits = vec![0; count.div_ceil(WORD_LANES)];
                for code in (0..count).filter(|code| passes(*code)) {
                    bits[code / WORD_LANES] |= 1 << (code % WORD_LANES);
                }
                let test = CodeTest::of_bits(bits, count);
                let starts = |code: usize| code == 0 || !passes(code - 1);
                let runs = (0..=count).filter(|code| passes(*code) && starts(*code));
                let few = runs.count() <= RANGES_MAX;
                assert_eq!(matches!(test, CodeTest::Ranges(_)), few, "{count} {step}");
                let codes: Vec<u32> = (0..3_000)
                    .map(|row| row * 7 % 911)
                    .chain([u32::MAX])
                    .collect();
                let mut out = vec![u64::MAX; codes.len().div_ceil(WORD_LANES)];
                test.mark(&codes, &mut out);
                for (row, code) in codes.iter().enumerate() {
                    let marked = out[row / WORD_LANES] >> (row % WORD_LANES) & 1 == 1;
                    assert_eq!(marked, passes(*code as usize), "{count} {step} {code}");
                }
            }
        }
    }
}
