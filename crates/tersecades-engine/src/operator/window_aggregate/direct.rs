//! Group ids by direct address: a cell for each key that one or two columns of few values make.
//!
//! ```text
//! texts     codes 0 … 11            cell = (first - origin) · extent of the second
//! integers  statistics say 40 … 99         + (second - origin)
//! ```
//! Where later rows widen what a column spans, the cells are laid out anew, in steps that double.

use tersecades_columnar::kernels::Grid;

use super::keys::{KeyLayout, KeyPlace};
use super::packer::PackedKeys;

/// The cell of a key without a group.
pub const EMPTY: u32 = u32::MAX;

/// Columns that a key by direct address may have.
pub const AXES: usize = 2;

/// Words of a key by direct address: two columns of 64 bits and the bits of their nulls.
pub const WORDS_MAX: usize = 3;

/// Most cells for texts: 1 MiB, which stays in the second-level cache.
const TEXT_CELLS_MAX: usize = 1 << 18;

/// Most cells for each group or row at hand where integers are among the columns: no more memory
/// than hashing takes.
const CELLS_A_GROUP: usize = 4;

/// Most cells where integers are among the columns: they are numbered by 32 bits.
const INTEGER_CELLS_MAX: usize = 1 << 31;

/// The values between which a column's parts of keys lie: `extent` of them, from `origin` on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// The least.
    pub origin: u64,
    /// How many.
    pub extent: u64,
}

impl Span {
    /// From `min` to `max`, both included; no value where there are too many to count.
    pub fn of_ends(min: u64, max: u64) -> Self {
        let extent = (max - min).saturating_add(1);
        Span {
            origin: min,
            extent: if extent == u64::MAX { 0 } else { extent },
        }
    }

    fn last(self) -> u64 {
        self.origin + (self.extent - 1)
    }

    fn holds(self, other: Span) -> bool {
        other.extent == 0
            || self.extent > 0 && self.origin <= other.origin && other.last() <= self.last()
    }

    fn joined(self, other: Span) -> Self {
        match (self.extent, other.extent) {
            (0, _) => other,
            (_, 0) => self,
            _ => Span::of_ends(self.origin.min(other.origin), self.last().max(other.last())),
        }
    }

    /// This span or, if it is wider than `known`, one at least twice as wide as that.
    fn with_room(self, known: Span) -> Self {
        let room = known.extent.saturating_mul(2).saturating_sub(self.extent);
        let (below, above) = match (self.extent > known.extent, self.origin < known.origin) {
            (false, _) => (0, 0),
            (true, true) => (room.min(self.origin), 0),
            (true, false) => (0, room.min(u64::MAX - self.last())),
        };
        Span {
            origin: self.origin - below,
            extent: self.extent + below + above,
        }
    }
}

/// Which cell a key has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Address {
    places: [KeyPlace; AXES],
    spans: [Span; AXES],
    /// The one word for nulls of so few columns.
    null_word: Option<usize>,
}

impl Address {
    /// The cell of `key`, if it has one.
    #[inline]
    pub fn cell(&self, key: &[u64]) -> Option<usize> {
        let ([rows, columns], [first, second]) = (&self.spans, &self.places);
        if rows.extent == 0 {
            return None;
        }
        let first = first.part(key).wrapping_sub(rows.origin);
        let second = second.part(key).wrapping_sub(columns.origin);
        let inside = first < rows.extent && second < columns.extent;
        let has_null = self.null_word.and_then(|word| key.get(word));
        let has_null = has_null.is_some_and(|nulls| *nulls != 0);
        (inside && !has_null).then(|| (first * columns.extent + second) as usize)
    }

    /// The key of a first and a second part, of at most `WORDS` words, and zeros behind it.
    #[inline]
    pub fn key<const WORDS: usize>(&self, parts: [u64; AXES]) -> [u64; WORDS] {
        let mut key = [0; WORDS];
        for (place, part) in self.places.iter().zip(parts) {
            place.put(part, &mut key);
        }
        key
    }
}

/// The cells, and the columns that they are addressed by.
#[derive(Debug, Clone, Default)]
pub struct DirectCells {
    address: Address,
    cells: Vec<u32>,
}

impl DirectCells {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Which cell a key has.
    pub fn address(&self) -> Address {
        self.address
    }

    /// What the columns span.
    pub fn spans(&self) -> [Span; AXES] {
        self.address.spans
    }

    /// Where keys have cells.
    pub fn grid(&self) -> Grid {
        let spans = self.address.spans;
        Grid {
            origins: spans.map(|span| span.origin),
            extents: spans.map(|span| span.extent),
        }
    }

    /// Bytes of memory held.
    pub fn byte_size(&self) -> usize {
        self.cells.capacity() * size_of::<u32>()
    }

    /// The cell of `key`, if it has one.
    #[inline]
    pub fn cell(&self, key: &[u64]) -> Option<usize> {
        self.address.cell(key)
    }

    /// The group in `cell`.
    #[inline]
    pub fn get(&self, cell: usize) -> u32 {
        self.cells[cell]
    }

    /// Sets the group in `cell`.
    #[inline]
    pub fn set(&mut self, cell: usize, id: u32) {
        self.cells[cell] = id;
    }

    /// All cells, row by row of the first column.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// As [`DirectCells::cells`], to set groups.
    pub fn cells_mut(&mut self) -> &mut [u32] {
        &mut self.cells
    }

    /// Forgets the groups of `keys`, of `words` words each.
    pub fn clear(&mut self, keys: &[u64], words: usize) {
        for key in keys.chunks_exact(words.max(1)) {
            if let Some(cell) = self.cell(key) {
                self.cells[cell] = EMPTY;
            }
        }
    }

    /// Makes cells for keys whose parts span `spans`, and puts the groups of `keys` into them;
    /// `at_hand` groups or rows are to be served.
    ///
    /// Whether every key without a null has a cell.
    ///
    /// # Cost
    /// Nothing where there are cells for all; a cell each, where not.
    pub fn cover(
        &mut self,
        layout: &KeyLayout,
        spans: [Span; AXES],
        (known_keys, at_hand): (PackedKeys<'_>, usize),
    ) -> bool {
        if self.is_fit(spans) {
            return true;
        }
        let PackedKeys { keys, words } = known_keys;
        let known = match keys.is_empty() && layout.is_text() {
            true => [Span::default(); AXES],
            false => self.spans(),
        };
        let exact = [0, 1].map(|axis| known[axis].joined(spans[axis]));
        let roomy = [0, 1].map(|axis| exact[axis].with_room(known[axis]));
        let most = match layout.is_text() {
            true => TEXT_CELLS_MAX,
            false => CELLS_A_GROUP.saturating_mul(at_hand).min(INTEGER_CELLS_MAX),
        };
        let cells = |spans: [Span; AXES]| spans[0].extent.saturating_mul(spans[1].extent);
        let alone = if keys.is_empty() { spans } else { exact };
        let mut fitting = [roomy, exact, alone].into_iter();
        let Some(spans) = fitting.find(|spans| (1..=most as u64).contains(&cells(*spans))) else {
            return false;
        };
        self.address = Address {
            places: layout.places(),
            spans,
            null_word: layout.null_word(),
        };
        self.cells.clear();
        self.cells.resize(cells(spans) as usize, EMPTY);
        for (id, key) in keys.chunks_exact(words.max(1)).enumerate() {
            if let Some(cell) = self.cell(key) {
                self.cells[cell] = id as u32;
            }
        }
        true
    }

    fn is_fit(&self, spans: [Span; AXES]) -> bool {
        let mut pairs = self.address.spans.iter().zip(spans);
        !self.cells.is_empty() && pairs.all(|(known, wanted)| known.holds(wanted))
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::super::table::GroupTable;
    use super::*;

    fn span(origin: u64, extent: u64) -> Span {
        Span { origin, extent }
    }

    #[test]
    fn spans_hold_join_and_widen_at_both_ends() {
        assert_eq!(Span::of_ends(0, u64::MAX).extent, 0);
        assert_eq!(Span::of_ends(3, 3), span(3, 1));
        assert!(span(2, 5).holds(span(3, 4)));
        assert!(!span(2, 5).holds(span(3, 5)));
        assert!(span(2, 5).holds(span(9, 0)));
        assert_eq!(span(2, 5).joined(span(1, 2)), span(1, 6));
        assert_eq!(span(10, 6).with_room(span(10, 5)), span(10, 10));
        assert_eq!(span(9, 6).with_room(span(10, 5)), span(5, 10));
        assert_eq!(span(0, 6).with_room(span(1, 5)), span(0, 6));
        let last = u64::MAX;
        assert_eq!(span(last - 5, 6).with_room(span(last - 5, 5)).last(), last);
    }

    #[test]
    fn groups_are_those_of_a_search_whatever_is_covered() {
        for types in [
            vec![DataType::Int64],
            vec![DataType::Int32, DataType::Int16],
            vec![DataType::UInt64, DataType::Int64],
        ] {
            let columns = types.iter().map(|t| (String::from("k"), t.clone(), 0));
            let layout = KeyLayout::new(&columns.collect::<Vec<_>>()).unwrap();
            let null = layout.null_word().unwrap();
            let mut table = GroupTable::new(&layout);
            let mut seen: Vec<Vec<u64>> = Vec::new();
            let mut state = 11u64;
            let mut below = |bound: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) % bound
            };
            for round in 0..200 {
                let (origin, extent) = (below(60), 1 + below(30));
                let second = if types.len() == 1 {
                    span(0, 1)
                } else {
                    span(40, 7)
                };
                let spans = [span(origin, extent), second];
                let covered = table.cover(&layout, Some(spans), below(300) as usize);
                let parts = |part: u64, axis: usize| spans[axis].origin + part % spans[axis].extent;
                let rows: Vec<[u64; 2]> = (0..below(400))
                    .map(|_| [parts(below(99), 0), parts(below(99), 1)])
                    .collect();
                let mut keys = Vec::new();
                for pair in &rows {
                    let mut key = vec![0; layout.words];
                    for (place, part) in layout.places().iter().zip(*pair) {
                        place.put(part, &mut key);
                    }
                    keys.push(key);
                }
                let mut ids = Vec::new();
                if covered && round % 2 == 0 {
                    let (first, second): (Vec<u64>, Vec<u64>) =
                        rows.iter().map(|[first, second]| (first, second)).unzip();
                    table.assign_parts(&first, &second, &mut ids);
                } else {
                    // Keys of a round without nulls lack their word.
                    let nulls = if round % 3 == 0 { 1 } else { 2 };
                    keys.iter_mut().for_each(|key| key[null] = below(nulls));
                    let words = if nulls == 1 { null } else { layout.words };
                    let packed: Vec<&[u64]> = keys.iter().map(|key| &key[..words]).collect();
                    let keys = &packed.concat();
                    table.assign_packed(PackedKeys { keys, words }, &mut ids);
                }
                for (key, id) in keys.iter().zip(&ids) {
                    let known = seen.iter().position(|known| known == key);
                    let expected = known.unwrap_or(seen.len());
                    if known.is_none() {
                        seen.push(key.clone());
                    }
                    assert_eq!(*id as usize, expected, "round {round} of {types:?}");
                }
                if round == 120 {
                    table.clear();
                    seen.clear();
                }
            }
            assert_eq!(table.packed().widened(layout.words), seen.concat());
        }
    }
}
