//! Integer keys within a narrow range as a bitmap with ranks.

use tersecades_columnar::error::Result;
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use super::{ABSENT, doubled};

/// Integers between the ends of the keys for each row of the table, at most.
const CELLS_PER_ROW_MAX: u64 = 128;

/// Integers that a word of [`RankedKeys`] has a bit for.
const WORD_KEYS: usize = u64::BITS as usize;

/// The rows of integer keys, by a bit for each integer between their ends.
///
/// ```text
/// keys 40, 41, 43   word 0: bits 1101, 0 keys before    rank of 43: 0 + bits below its own = 2
/// ```
/// Source: the rank of succinct bitmaps (Jacobson, FOCS 1989).
#[derive(Debug)]
pub(super) struct RankedKeys {
    first: u64,
    /// Which of 64 integers are keys, and how many keys lie before.
    words: Vec<(u64, u32)>,
    /// The row of each key in ascending order; none where that is its rank.
    rows: Vec<u32>,
}

impl RankedKeys {
    /// Indexes `keys` where they lie close enough.
    pub(super) fn new(keys: &Values) -> Result<Option<Self>> {
        if !matches!(keys.physical, Physical::Integer { .. }) {
            return Ok(None);
        }
        let valid = || (0..keys.len()).filter(|row| keys.is_valid(*row));
        let (mut first, mut last) = (u64::MAX, 0);
        for row in valid() {
            (first, last) = (first.min(keys.keys[row]), last.max(keys.keys[row]));
        }
        let span = last.saturating_sub(first);
        if span / CELLS_PER_ROW_MAX > valid().count() as u64 {
            return Ok(None);
        }
        let mut sorted: Vec<(u64, u32)> = valid().map(|row| (keys.keys[row], row as u32)).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(doubled());
        }
        let mut words = vec![(0, 0); span as usize / WORD_KEYS + 1];
        for (key, _) in &sorted {
            let at = (key - first) as usize;
            words[at / WORD_KEYS].0 |= 1 << (at % WORD_KEYS);
        }
        let mut before = 0;
        for (bits, rank) in &mut words {
            *rank = before;
            before += u64::count_ones(*bits);
        }
        let in_order = sorted.iter().zip(0..).all(|((_, row), rank)| *row == rank);
        let rows = match in_order {
            true => Vec::new(),
            false => sorted.iter().map(|(_, row)| *row).collect(),
        };
        Ok(Some(RankedKeys { first, words, rows }))
    }

    /// The row of `key`, [`ABSENT`] where there is none.
    #[inline]
    pub(super) fn row(&self, key: u64) -> u32 {
        let at = key.wrapping_sub(self.first) as usize;
        let Some((bits, before)) = self.words.get(at / WORD_KEYS) else {
            return ABSENT;
        };
        let bit = 1 << (at % WORD_KEYS);
        let rank = before + (bits & (bit - 1)).count_ones();
        let row = match self.rows.is_empty() {
            true => rank,
            false => self.rows.get(rank as usize).copied().unwrap_or(ABSENT),
        };
        if bits & bit == 0 { ABSENT } else { row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(keys: &[u64]) -> Values {
        let mut values = Values::default();
        values.keys.extend(keys);
        values
    }

    #[test]
    fn rows_of_ranked_keys_are_those_of_a_search() {
        let ascending: Vec<u64> = (0..500).map(|key| 70 + key * 7).collect();
        let backwards: Vec<u64> = ascending.iter().rev().copied().collect();
        let highest: Vec<u64> = (0..130).map(|key| u64::MAX - key).collect();
        for keys in [
            &[][..],
            &[9],
            &[0, 63, 64, 65, 127, 128],
            &ascending,
            &backwards,
            &highest,
        ] {
            let ranked = RankedKeys::new(&keys_of(keys)).unwrap().unwrap();
            assert_eq!(ranked.rows.is_empty(), keys.is_sorted());
            let near = keys
                .iter()
                .flat_map(|key| [key.wrapping_sub(1), *key, key.wrapping_add(1)]);
            for key in near.chain([0, 62, u64::MAX]) {
                let row = keys.iter().position(|known| *known == key);
                assert_eq!(
                    ranked.row(key),
                    row.map_or(ABSENT, |row| row as u32),
                    "{key}"
                );
            }
        }
    }

    #[test]
    fn keys_far_apart_or_twice_are_not_ranked() {
        let far = RankedKeys::new(&keys_of(&[0, u64::MAX])).unwrap();
        assert!(far.is_none());
        assert!(RankedKeys::new(&keys_of(&[5, 6, 5])).is_err());
    }
}
