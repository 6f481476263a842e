//! Groups of columns of few values by direct address: no key is packed or hashed.
//!
//! ```text
//! source codes       3 1 3 …  ┐ a block at a time       cell 3·n + 7 ──▶ group 0
//! destination codes  7 2 7 …  ┘ (they stay in cache)    cell 1·n + 2 ──▶ group 1
//! ```
//! A text's part of the key is its code, an integer's its distance from the least. Where cells are
//! few beside the rows of a batch, rows are counted and folded by cell, and groups looked up once
//! for each cell that has rows.

use std::sync::Arc;

use tersecades_columnar::block::{BLOCK_ROWS, block_count, block_rows};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::kernels::kernels;
use tersecades_columnar::selection::{BlockSelection, Selection, Shape};
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use crate::aggregate::batch_fold::BUCKET_ROWS_MIN;
use crate::frame::Frame;

use super::direct::AXES;
use super::keys::{KeyColumn, KeyLayout};
use super::table::GroupTable;

/// Most cells that rows are folded by: one 64-bit number for each stays in the first-level cache.
const CELLS_MAX: usize = 4_096;

/// Fewer rows for each cell than this are looked up one by one.
const CELL_ROWS_MIN: usize = 16;

/// Ids that are cells mean nothing to who does not count them.
const _: () = assert!(CELL_ROWS_MIN >= BUCKET_ROWS_MIN);

/// What the ids of rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assigned {
    /// There are none: keys have to be packed.
    No,
    /// Groups.
    Groups,
    /// Cells by direct address, so many in all.
    Cells(usize),
}

/// The parts of keys of one block, their memory reused.
#[derive(Debug, Default)]
pub struct PartReader {
    decoded: Values,
    parts: [Vec<u64>; AXES],
}

impl PartReader {
    /// Appends to `ids` the group of each row of `within`, new ones included, or its cell; does
    /// nothing unless all keys are texts whose codes all panes share, or integers of few values,
    /// without nulls.
    pub fn assign(
        &mut self,
        layout: &KeyLayout,
        (frame, within): (&Frame, &Selection),
        (groups, ids): (&mut GroupTable, &mut Vec<u32>),
        work: &mut Work,
    ) -> Assigned {
        let columns = layout.columns.len();
        if layout.standard_map || !(1..=AXES).contains(&columns) {
            return Assigned::No;
        }
        let mut chunks = [None; AXES];
        for (column, into) in layout.columns.iter().zip(&mut chunks) {
            *into = parts_of(column, frame);
            if into.is_none() {
                return Assigned::No;
            }
        }
        let rows = within.count();
        if !groups.cover(layout, layout.spans(frame), rows) {
            return Assigned::No;
        }
        ids.reserve(rows);
        if within.shape() == Shape::Rows {
            let chunks = chunks.into_iter().flatten();
            chunks.clone().for_each(|chunk| chunk.prefetch(within));
            for (chunk, into) in chunks.zip(&mut self.parts) {
                chunk.gather(within, &mut self.decoded, work);
                std::mem::swap(&mut self.decoded.keys, into);
            }
            let [first, second] = &self.parts;
            groups.assign_parts(first, second, ids);
            return Assigned::Groups;
        }
        work.tally.gathered += (columns * rows) as u64;
        let cells = groups.cells().len();
        if cells <= CELLS_MAX && rows >= cells * CELL_ROWS_MIN {
            let address = |first: &_, second: &_| groups.address_parts(first, second, ids);
            if self.for_each_block(chunks, within, address) {
                return Assigned::Cells(cells);
            }
            ids.clear();
        }
        self.for_each_block(chunks, within, |first, second| {
            groups.assign_parts(first, second, ids);
            true
        });
        Assigned::Groups
    }

    /// Hands `visit` the parts of the selected rows, block by block, as long as it says true; says
    /// whether it always did.
    fn for_each_block(
        &mut self,
        chunks: [Option<&Chunk>; AXES],
        within: &Selection,
        mut visit: impl FnMut(&[u64], &[u64]) -> bool,
    ) -> bool {
        for block in 0..block_count(within.rows()) {
            let selected = within.block(block);
            if matches!(selected, BlockSelection::None) {
                continue;
            }
            for (chunk, into) in chunks.into_iter().flatten().zip(&mut self.parts) {
                self.decoded.reset(chunk.physical());
                let rows = block_rows(block, chunk.rows());
                chunk.codec().decode(chunk, rows, &mut self.decoded);
                std::mem::swap(&mut self.decoded.keys, into);
                if let BlockSelection::Bits(words) = selected {
                    let kept = (kernels().bitmap.compact)(words, into);
                    into.truncate(kept);
                }
            }
            let [first, second] = &self.parts;
            if !visit(first, second) {
                return false;
            }
        }
        true
    }
}

/// The parts of a key column as they lie: its integers or, if its texts lie in the dictionary that
/// all panes share, their codes.
fn parts_of<'a>(column: &KeyColumn, frame: &'a Frame) -> Option<&'a Chunk> {
    let chunk = frame.column(column.slot);
    if chunk.nulls() > 0 {
        return None;
    }
    if !column.is_text() {
        let in_blocks = chunk.codec().unit_rows() <= BLOCK_ROWS;
        let is_integer = matches!(chunk.physical(), Physical::Integer { .. });
        return (in_blocks && is_integer).then_some(chunk);
    }
    let codes = chunk.codes()?;
    let shared = column.dictionary().adopt(codes.dictionary);
    Arc::ptr_eq(shared, codes.dictionary).then_some(codes.codes)
}
