//! Keys of few texts as positions: the rank of one text, or the ranks of two as row and column.
//!
//! ```text
//! key (eu, us) ──ranks 1, 4──▶ position 1 · width + 4      positions ascend as keys do, nulls last
//! ```

use tersecades_columnar::dictionary::Ranks;

use super::keys::{KeyColumn, KeyLayout, KeyPlace, NULL_CODE};

/// Most positions of an array that has one for each key.
const POSITIONS_MAX: usize = 1 << 18;

/// Below one group in this many positions, it is cheaper to sort groups than to read all positions.
const POSITIONS_PER_GROUP_MAX: usize = 64;

/// Bits behind the point of `1 / width`: as many as leave quotients of positions exact.
const INVERSE_BITS: u32 = 40;

/// The positions of all keys that the dictionaries of a layout allow.
#[derive(Debug, Clone)]
pub struct Positions {
    /// Ranks of the texts of each column, at least one.
    ranks: Vec<Option<Ranks>>,
    width: usize,
    count: usize,
}

/// The ranks of the texts of each column.
pub fn ranks_of(keys: &KeyLayout) -> Vec<Option<Ranks>> {
    let ranks = |column: &KeyColumn| column.dictionary().get().map(|texts| texts.ranks());
    keys.columns.iter().map(ranks).collect()
}

impl Positions {
    /// Those of keys whose texts rank by `ranks`; `None` unless keys are one or two texts, and
    /// positions few beside `groups`.
    pub fn of(keys: &KeyLayout, ranks: &[Option<Ranks>], groups: usize) -> Option<Self> {
        let texts = keys.columns.iter().all(|column| column.is_text());
        if keys.words != 1 || !texts {
            return None;
        }
        // Null, whose code is in no table, has the rank behind every text.
        let extent = |index: usize| match ranks.get(index) {
            Some(ranks) => ranks.as_ref().map_or(1, |ranks| ranks.rank_of.len() + 1),
            None => 1,
        };
        let (width, count) = (extent(1), extent(0).saturating_mul(extent(1)));
        let few = count <= POSITIONS_MAX && count <= groups.saturating_mul(POSITIONS_PER_GROUP_MAX);
        few.then(|| Positions {
            ranks: ranks.to_vec(),
            width,
            count,
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether the dictionaries still are those that the ranks were taken of.
    pub fn are_current(&self, keys: &KeyLayout) -> bool {
        let mut columns = keys.columns.iter().zip(&self.ranks);
        columns.all(|(column, ranks)| {
            let texts = column.dictionary().get().map_or(0, |texts| texts.len());
            ranks.as_ref().map_or(0, |ranks| ranks.rank_of.len()) == texts
        })
    }

    /// Appends the positions of packed `keys`.
    pub fn list(&self, layout: &KeyLayout, keys: &[u64], into: &mut Vec<u32>) {
        let [first, second] = layout.places();
        let [rows, columns] = [0, 1].map(|index| self.table(index, |ranks| &ranks.rank_of));
        let rank = |place: KeyPlace, table: &[u32], key: &u64| {
            let code = place.part(std::slice::from_ref(key)) as usize;
            table.get(code).map_or(table.len(), |rank| *rank as usize)
        };
        into.extend(keys.iter().map(|key| {
            let row = rank(first, rows, key);
            (row * self.width + rank(second, columns, key)) as u32
        }));
    }

    /// The codes of text column `index` at `positions`; that of a null is `u32::MAX`.
    pub fn codes(&self, index: usize, positions: &[u32]) -> Vec<u32> {
        let table = self.table(index, |ranks| &ranks.code_at);
        let (width, inverse) = (
            self.width as u64,
            (1 << INVERSE_BITS) / self.width as u64 + 1,
        );
        let code = |at: &u32| {
            let row = (u64::from(*at) * inverse) >> INVERSE_BITS;
            let rank = match index {
                0 => row,
                _ => u64::from(*at) - row * width,
            };
            table
                .get(rank as usize)
                .copied()
                .unwrap_or(NULL_CODE as u32)
        };
        positions.iter().map(code).collect()
    }

    /// What is known of the texts of column `index`; empty where there is none.
    fn table(&self, index: usize, of: impl Fn(&Ranks) -> &[u32]) -> &[u32] {
        let ranks = self.ranks.get(index).and_then(Option::as_ref);
        ranks.map_or(&[], of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_have_the_codes_of_their_ranks_at_every_width() {
        for texts in [[1usize, 1], [3, 1], [1, 511], [511, 511], [7, 13]] {
            // Texts rank backwards; null is behind them.
            let ranks = texts.map(|count| {
                let backwards: Vec<u32> = (0..count as u32).rev().collect();
                Some(Ranks {
                    rank_of: backwards.clone().into(),
                    code_at: backwards.into(),
                })
            });
            let (width, count) = (texts[1] + 1, (texts[0] + 1) * (texts[1] + 1));
            let positions = Positions {
                ranks: ranks.to_vec(),
                width,
                count,
            };
            let all: Vec<u32> = (0..count as u32).collect();
            for (index, count) in texts.into_iter().enumerate() {
                let rank = |at: usize| [at / width, at % width][index];
                let code = |at: usize| (count - 1).checked_sub(rank(at)).map(|code| code as u32);
                let expected: Vec<u32> = (0..all.len())
                    .map(|at| code(at).unwrap_or(NULL_CODE as u32))
                    .collect();
                assert_eq!(positions.codes(index, &all), expected, "{texts:?}");
            }
        }
    }
}
