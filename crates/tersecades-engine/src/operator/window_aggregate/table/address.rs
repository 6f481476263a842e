//! Groups of the parts of keys by direct address.

use tersecades_columnar::kernels::{Grid, kernels};

use super::super::direct::{AXES, EMPTY, WORDS_MAX};
use super::{ASSIGNED, GroupTable};

/// Where more than one key in so many is new, those that follow are taken for new ones first.
const FRESH_EVERY: usize = 8;

impl GroupTable {
    /// Appends to `ids` the cell of each pair of parts, as [`GroupTable::assign_parts`] its group;
    /// says false, and appends what means nothing, where there is one without a cell.
    pub fn address_parts(&self, first: &[u64], second: &[u64], ids: &mut Vec<u32>) -> bool {
        let start = ids.len();
        ids.resize(start + first.len(), 0);
        (kernels().cells)(&self.direct.grid(), first, second, &mut ids[start..])
    }

    /// Appends the group of each cell to `groups`, new ones for cells that have `rows` and none.
    pub fn assign_addressed(&mut self, rows: &[u64], groups: &mut Vec<u32>) {
        for (cell, rows) in rows.iter().enumerate() {
            let known = self.direct.get(cell);
            groups.push(match (known, *rows) {
                (EMPTY, 1..) => self.assign_cell(cell),
                _ => known,
            });
        }
    }

    /// Appends to `ids` the group of each pair of parts, new ones included; the parts of a second
    /// column that is not there are none.
    pub fn assign_parts(&mut self, first: &[u64], second: &[u64], ids: &mut Vec<u32>) {
        let start = ids.len();
        if !self.address_parts(first, second, ids) {
            ids.truncate(start);
            let second = |index: usize| second.get(index).copied().unwrap_or(0);
            let firsts = first.iter().enumerate();
            ids.extend(firsts.map(|(index, first)| self.assign_pair([*first, second(index)])));
            return;
        }
        let mut fresh = false;
        for (index, ids) in ids[start..].chunks_mut(ASSIGNED).enumerate() {
            let rows = index * ASSIGNED..index * ASSIGNED + ids.len();
            let second = second.get(rows.clone()).unwrap_or_default();
            fresh = self.assign_cells((&first[rows], second), fresh, ids);
        }
    }

    /// Sets `ids`, cells of these parts, to their groups, new ones included; whether many keys were
    /// new. Where many will be, `fresh`, they are not looked for among the known ones first.
    fn assign_cells(
        &mut self,
        (first, second): (&[u64], &[u64]),
        fresh: bool,
        ids: &mut [u32],
    ) -> bool {
        let known = self.len;
        if fresh {
            match self.words {
                1 => self.assign_new::<1>((first, second), ids),
                2 => self.assign_new::<2>((first, second), ids),
                _ => self.assign_new::<WORDS_MAX>((first, second), ids),
            }
            return (self.len - known) * FRESH_EVERY > ids.len();
        }
        let (cells, mut found) = (self.direct.cells(), [0; ASSIGNED]);
        let found = &mut found[..ids.len()];
        for (group, cell) in found.iter_mut().zip(&*ids) {
            *group = cells[*cell as usize];
        }
        // Groups below 2^31 lack the top bit, which the one that is none has.
        if found.iter().fold(0, |all, group| all | group) > EMPTY / 2 {
            let unknown = found.iter_mut().zip(&*ids);
            for (group, cell) in unknown.filter(|(group, _)| **group == EMPTY) {
                *group = self.assign_cell(*cell as usize);
            }
        }
        ids.copy_from_slice(found);
        (self.len - known) * FRESH_EVERY > ids.len()
    }

    /// [`GroupTable::assign_cells`] for new keys, without a branch.
    fn assign_new<const WORDS: usize>(
        &mut self,
        (first, second): (&[u64], &[u64]),
        ids: &mut [u32],
    ) {
        let address = self.direct.address();
        self.keys.resize((self.len + ids.len()) * WORDS, 0);
        let (keys, _) = self.keys.as_chunks_mut::<WORDS>();
        let (cells, mut next) = (self.direct.cells_mut(), self.len);
        for (index, (id, first)) in ids.iter_mut().zip(first).enumerate() {
            let second = second.get(index).copied().unwrap_or(0);
            let cell = &mut cells[*id as usize];
            keys[next] = address.key([*first, second]);
            let new = *cell == EMPTY;
            *id = if new { next as u32 } else { *cell };
            *cell = *id;
            next += usize::from(new);
        }
        self.len = next;
        self.keys.truncate(next * WORDS);
    }

    /// The group of the key in `cell`, new if there is none.
    fn assign_cell(&mut self, cell: usize) -> u32 {
        let Grid { origins, extents } = self.direct.grid();
        let (row, column) = (cell as u64 / extents[1], cell as u64 % extents[1]);
        self.assign_pair([row + origins[0], column + origins[1]])
    }

    fn assign_pair(&mut self, parts: [u64; AXES]) -> u32 {
        let key = self.direct.address().key::<WORDS_MAX>(parts);
        self.assign_fitting(&key[..self.words])
    }
}
