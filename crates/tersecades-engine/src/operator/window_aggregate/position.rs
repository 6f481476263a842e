//! Keys of few texts as positions: the rank of one text, or the ranks of two as row and column.
//!
//! ```text
//! key (eu, us) ──ranks 1, 4──▶ position 1 · width + 4      positions ascend as keys do, nulls last
//! ```

use tersecades_columnar::dictionary::Ranks;

use super::keys::{KeyColumn, KeyLayout, NULL_CODE};
use super::table::GroupTable;

/// Most positions of an array that has one for each key.
const POSITIONS_MAX: usize = 1 << 18;

/// Below one group in this many positions, it is cheaper to sort groups than to read all positions.
const POSITIONS_PER_GROUP_MAX: usize = 64;

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

    /// The position of `key`.
    #[inline]
    pub fn at(&self, keys: &KeyLayout, key: &[u64]) -> usize {
        let rank = |index: usize| {
            let (Some(column), Some(ranks)) = (keys.columns.get(index), self.ranks.get(index))
            else {
                return 0;
            };
            let table = ranks.as_ref().map_or(&[][..], |ranks| &*ranks.rank_of);
            let rank = table.get(column.part(key) as usize);
            rank.map_or(table.len(), |rank| *rank as usize)
        };
        rank(0) * self.width + rank(1)
    }

    /// Appends the keys of all positions, ascending.
    pub fn list_keys(&self, keys: &KeyLayout, into: &mut GroupTable) {
        let part = |index: usize, rank: usize| {
            let (column, ranks) = (keys.columns.get(index), self.ranks.get(index));
            let code = ranks.and_then(|ranks| ranks.as_ref()?.code_at.get(rank));
            let code = code.map_or(NULL_CODE, |code| u64::from(*code));
            column.map_or(0, |column| column.placed(code))
        };
        let second: Vec<u64> = (0..self.width).map(|rank| part(1, rank)).collect();
        for rank in 0..self.count / self.width {
            let first = part(0, rank);
            second.iter().for_each(|second| {
                into.push(&[first | second]);
            });
        }
    }
}

/// Calls `visit` with the index of each bit that is set in `marks`, ascending.
#[inline]
pub fn for_each_mark(marks: &[u64], mut visit: impl FnMut(usize)) {
    for (index, word) in marks.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            visit(index * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}
