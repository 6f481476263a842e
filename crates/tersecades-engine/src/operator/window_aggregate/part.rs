//! Groups of columns of few values by direct address: no key is packed or hashed.
//!
//! ```text
//! source codes       3 1 3 …  ┐ a block at a time       cell 3·n + 7 ──▶ group 0
//! destination codes  7 2 7 …  ┘ (they stay in cache)    cell 1·n + 2 ──▶ group 1
//! ```
//! A text's part of the key is its code, an integer's its distance from the least.

use std::sync::Arc;

use tersecades_columnar::block::{BLOCK_ROWS, block_count, block_rows};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::selection::{BlockSelection, Selection, Shape};
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use crate::frame::Frame;

use super::direct::AXES;
use super::keys::{KeyColumn, KeyLayout};
use super::table::GroupTable;

/// The parts of keys of one block, their memory reused.
#[derive(Debug, Default)]
pub struct PartReader {
    decoded: Values,
    parts: [Vec<u64>; AXES],
}

impl PartReader {
    /// Appends to `ids` the group of each row of `within`, new ones included; does nothing and says
    /// false unless all keys are texts whose codes all panes share, or integers of few values,
    /// without nulls.
    pub fn assign(
        &mut self,
        layout: &KeyLayout,
        (frame, within): (&Frame, &Selection),
        (groups, ids): (&mut GroupTable, &mut Vec<u32>),
        work: &mut Work,
    ) -> bool {
        let columns = layout.columns.len();
        if layout.standard_map || !(1..=AXES).contains(&columns) {
            return false;
        }
        let mut chunks = [None; AXES];
        for (column, into) in layout.columns.iter().zip(&mut chunks) {
            *into = parts_of(column, frame);
            if into.is_none() {
                return false;
            }
        }
        if !groups.cover(layout, layout.spans(frame), within.count()) {
            return false;
        }
        let chunks = chunks.into_iter().flatten();
        ids.reserve(within.count());
        if within.shape() == Shape::Rows {
            chunks.clone().for_each(|chunk| chunk.prefetch(within));
            for (chunk, into) in chunks.zip(&mut self.parts) {
                chunk.gather(within, &mut self.decoded, work);
                std::mem::swap(&mut self.decoded.keys, into);
            }
            let [first, second] = &mut self.parts;
            groups.assign_parts(first, second, ids);
            return true;
        }
        for block in 0..block_count(within.rows()) {
            let selected = within.block(block);
            if matches!(selected, BlockSelection::None) {
                continue;
            }
            for (chunk, into) in chunks.clone().zip(&mut self.parts) {
                self.decoded.reset(chunk.physical());
                let rows = block_rows(block, chunk.rows());
                chunk.codec().decode(chunk, rows, &mut self.decoded);
                match selected {
                    BlockSelection::Bits(words) => keep(&self.decoded.keys, words, into),
                    _ => std::mem::swap(&mut self.decoded.keys, into),
                }
            }
            let [first, second] = &mut self.parts;
            groups.assign_parts(first, second, ids);
        }
        work.tally.gathered += (columns * ids.len()) as u64;
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

/// Replaces `into` by the selected of a block's codes.
fn keep(codes: &[u64], words: &[u64], into: &mut Vec<u64>) {
    into.clear();
    for (codes, word) in codes.chunks(u64::BITS as usize).zip(words) {
        if *word == u64::MAX {
            into.extend_from_slice(codes);
            continue;
        }
        let mut rest = *word;
        while rest != 0 {
            into.push(codes[rest.trailing_zeros() as usize]);
            rest &= rest - 1;
        }
    }
}
