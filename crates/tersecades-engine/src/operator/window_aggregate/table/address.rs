//! Groups of the parts of keys by direct address.

use super::super::direct::{AXES, EMPTY, Span, WORDS_MAX};
use super::{ASSIGNED, GroupTable};

/// Where more than one key in so many is new, those that follow are taken for new ones first.
const FRESH_EVERY: usize = 8;

impl GroupTable {
    /// Appends to `ids` the cell of each pair of parts, as [`GroupTable::assign_parts`] its group;
    /// says false where there is one without a cell.
    pub fn address_parts(&self, first: &[u64], second: &[u64], ids: &mut Vec<u32>) -> bool {
        let [rows, columns] = self.direct.spans();
        let distance = |part: u64, span: Span| part.wrapping_sub(span.origin);
        if second.is_empty() {
            ids.extend(first.iter().map(|first| distance(*first, rows) as u32));
        } else {
            let cell = |(first, second): (&u64, &u64)| {
                let row = distance(*first, rows).wrapping_mul(columns.extent);
                row.wrapping_add(distance(*second, columns)) as u32
            };
            ids.extend(first.iter().zip(second).map(cell));
        }
        all_below(first, rows) && all_below(second, columns)
    }

    /// Appends the group of each cell to `groups`, new ones for cells that have `rows` and none.
    pub fn assign_addressed(&mut self, rows: &[u64], groups: &mut Vec<u32>) {
        let [first, second] = self.direct.spans();
        for (cell, rows) in rows.iter().enumerate() {
            let known = self.direct.get(cell);
            groups.push(match (known, *rows) {
                (EMPTY, 1..) => {
                    let (row, column) = (cell as u64 / second.extent, cell as u64 % second.extent);
                    self.assign_pair([row + first.origin, column + second.origin])
                }
                _ => known,
            });
        }
    }

    /// Appends to `ids` the group of each pair of parts, new ones included; the parts of a second
    /// column that is not there are none. Leaves distances from the first cell in place of parts.
    pub fn assign_parts(&mut self, first: &mut [u64], second: &mut [u64], ids: &mut Vec<u32>) {
        let [rows, columns] = self.direct.spans();
        if !all_below(first, rows) || !all_below(second, columns) {
            let second = |index: usize| second.get(index).copied().unwrap_or(0);
            let firsts = first.iter().enumerate();
            ids.extend(firsts.map(|(index, first)| self.assign_pair([*first, second(index)])));
            return;
        }
        for (parts, span) in [(&mut *first, rows), (&mut *second, columns)] {
            if span.origin != 0 {
                parts.iter_mut().for_each(|part| *part -= span.origin);
            }
        }
        let mut fresh = false;
        for start in (0..first.len()).step_by(ASSIGNED) {
            let rows = start..first.len().min(start + ASSIGNED);
            let second = second.get(rows.clone()).unwrap_or_default();
            fresh = self.assign_cells((&first[rows], second), fresh, ids);
        }
    }

    /// As [`GroupTable::assign_parts`], for distances that cells are known for; whether many keys
    /// were new. Where many will be, `fresh`, they are not looked for among the known ones first.
    fn assign_cells(
        &mut self,
        (first, second): (&[u64], &[u64]),
        fresh: bool,
        ids: &mut Vec<u32>,
    ) -> bool {
        let (cells, start) = (self.direct.cells(), ids.len());
        if fresh {
            ids.resize(start + first.len(), EMPTY);
        } else if second.is_empty() {
            ids.extend(first.iter().map(|cell| cells[*cell as usize]));
        } else {
            let width = self.direct.spans()[1].extent;
            let pairs = first.iter().zip(second);
            ids.extend(pairs.map(|(first, second)| cells[(first * width + second) as usize]));
        }
        let (ids, known) = (&mut ids[start..], self.len);
        if fresh {
            match self.words {
                1 => self.assign_new::<1>((first, second), ids),
                2 => self.assign_new::<2>((first, second), ids),
                _ => self.assign_new::<WORDS_MAX>((first, second), ids),
            }
        } else if ids.iter().fold(0, |all, id| all | id) > EMPTY / 2 {
            // Groups below 2^31 lack the top bit, which the one that is none has.
            let [rows, columns] = self.direct.spans();
            for (index, id) in ids.iter_mut().enumerate().filter(|(_, id)| **id == EMPTY) {
                let second = second.get(index).copied().unwrap_or(0);
                *id = self.assign_pair([first[index] + rows.origin, second + columns.origin]);
            }
        }
        (self.len - known) * FRESH_EVERY > ids.len()
    }

    /// Sets `ids` to the groups of cells at these distances from the first one, new ones included;
    /// as [`GroupTable::assign_direct`], without a branch.
    fn assign_new<const WORDS: usize>(
        &mut self,
        (first, second): (&[u64], &[u64]),
        ids: &mut [u32],
    ) {
        let [rows, columns] = self.direct.spans();
        let address = self.direct.address();
        self.keys.resize((self.len + ids.len()) * WORDS, 0);
        let (keys, _) = self.keys.as_chunks_mut::<WORDS>();
        let (cells, mut next) = (self.direct.cells_mut(), self.len);
        for (index, (id, first)) in ids.iter_mut().zip(first).enumerate() {
            let second = second.get(index).copied().unwrap_or(0);
            let cell = &mut cells[(first * columns.extent + second) as usize];
            keys[next] = address.key([first + rows.origin, second + columns.origin]);
            let new = *cell == EMPTY;
            *id = if new { next as u32 } else { *cell };
            *cell = *id;
            next += usize::from(new);
        }
        self.len = next;
        self.keys.truncate(next * WORDS);
    }

    fn assign_pair(&mut self, parts: [u64; AXES]) -> u32 {
        let key = self.direct.address().key::<WORDS_MAX>(parts);
        self.assign_fitting(&key[..self.words])
    }
}

/// Whether all parts lie in `span`, which is no longer than 2^63.
///
/// Of the distance from its origin of one that does not, the top bit is set, or that of how far the
/// distance lies below the greatest: vector code on every processor, as there is no early end.
fn all_below(parts: &[u64], span: Span) -> bool {
    let Some(greatest) = span.extent.checked_sub(1) else {
        return parts.is_empty();
    };
    let bits = |distance: u64| distance | greatest.wrapping_sub(distance);
    let distances = parts.iter().map(|part| part.wrapping_sub(span.origin));
    distances.fold(0, |all, distance| all | bits(distance)) >> (u64::BITS - 1) == 0
}
