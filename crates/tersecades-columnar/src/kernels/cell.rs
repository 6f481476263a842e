//! Cells by direct address: pairs of numbers as their place in a grid.

/// A grid of numbers: `extents[0]` rows of `extents[1]` cells, from `origins` on.
///
/// No extent is greater than 2^63.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The first row and the first column.
    pub origins: [u64; 2],
    /// How many there are of each.
    pub extents: [u64; 2],
}

/// What [`super::Kernels::cells`] answers.
///
/// Of the distance from its origin of a number outside, the top bit is set, or that of how far the
/// distance lies below the greatest: no lane needs a branch.
#[inline(always)]
pub(super) fn cells(grid: &Grid, rows: &[u64], columns: &[u64], out: &mut [u32]) -> bool {
    assert_eq!(rows.len(), out.len(), "a cell for each pair");
    let Grid { origins, extents } = *grid;
    let [Some(last_row), Some(last_column)] = extents.map(|extent| extent.checked_sub(1)) else {
        return rows.is_empty();
    };
    let (width, mut outside) = (extents[1] as u32, 0);
    if columns.is_empty() {
        for (cell, row) in out.iter_mut().zip(rows) {
            let row = row.wrapping_sub(origins[0]);
            outside |= row | last_row.wrapping_sub(row);
            *cell = (row as u32).wrapping_mul(width);
        }
    } else {
        assert_eq!(rows.len(), columns.len(), "a column for each row");
        for ((cell, row), column) in out.iter_mut().zip(rows).zip(columns) {
            let row = row.wrapping_sub(origins[0]);
            let column = column.wrapping_sub(origins[1]);
            outside |= row | last_row.wrapping_sub(row);
            outside |= column | last_column.wrapping_sub(column);
            *cell = (row as u32).wrapping_mul(width).wrapping_add(column as u32);
        }
    }
    outside >> (u64::BITS - 1) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::levels;
    use crate::kernels::tests::{LENGTHS, Random};

    #[test]
    fn pairs_have_their_place_and_none_outside_has_one() {
        let mut random = Random(0x9c31);
        for kernels in levels() {
            for length in LENGTHS.into_iter().chain([1_025]) {
                for origins in [[0, 0], [7, 1 << 40], [u64::MAX - 9_999, u64::MAX - 299]] {
                    let grid = Grid {
                        origins,
                        extents: [10_000, 300],
                    };
                    let mut part = |axis: usize| -> Vec<u64> {
                        let distance = |_| random.bits() % grid.extents[axis];
                        let parts = (0..length).map(distance);
                        parts.map(|part| origins[axis] + part).collect()
                    };
                    let (mut rows, columns) = (part(0), part(1));
                    let mut out = vec![0; length];
                    assert!((kernels.cells)(&grid, &rows, &columns, &mut out));
                    let pairs = rows.iter().zip(&columns);
                    let cell = |(row, column)| (row - origins[0]) * 300 + (column - origins[1]);
                    let expected = pairs.map(cell);
                    assert!(expected.eq(out.iter().map(|cell| u64::from(*cell))));
                    let alone = Grid {
                        origins,
                        extents: [10_000, 1],
                    };
                    assert!((kernels.cells)(&alone, &rows, &[], &mut out));
                    let distances = rows.iter().map(|row| row - origins[0]);
                    assert!(distances.eq(out.iter().map(|cell| u64::from(*cell))));
                    let Some(at) = (random.bits() as usize).checked_rem(length) else {
                        continue;
                    };
                    for outside in [origins[0].wrapping_sub(1), origins[0].wrapping_add(10_000)] {
                        rows[at] = outside;
                        assert!(!(kernels.cells)(&grid, &rows, &columns, &mut out));
                        assert!(!(kernels.cells)(&alone, &rows, &[], &mut out));
                    }
                }
            }
        }
    }

    #[test]
    fn a_grid_without_cells_has_none() {
        let grid = Grid {
            origins: [0; 2],
            extents: [0, 1],
        };
        for kernels in levels() {
            assert!((kernels.cells)(&grid, &[], &[], &mut []));
            assert!(!(kernels.cells)(&grid, &[0], &[0], &mut [0]));
        }
    }
}
