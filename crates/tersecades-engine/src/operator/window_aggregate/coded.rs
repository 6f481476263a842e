//! Groups of text columns by the codes their chunks lie in: no key is packed or hashed.
//!
//! ```text
//! source codes       3 1 3 …  ┐ a block at a time       cell 3·n + 7 ──▶ group 0
//! destination codes  7 2 7 …  ┘ (they stay in cache)    cell 1·n + 2 ──▶ group 1
//! ```

use std::sync::Arc;

use tersecades_columnar::block::{BLOCK_ROWS, block_count};
use tersecades_columnar::codec::{Codes, Work};
use tersecades_columnar::selection::{BlockSelection, Selection, Shape};
use tersecades_columnar::values::Values;

use crate::frame::Frame;

use super::keys::{KeyColumn, KeyLayout};
use super::table::GroupTable;

/// Columns that a key may have.
const COLUMNS_MAX: usize = 2;

/// Codes of one block, their memory reused.
#[derive(Debug, Default)]
pub struct CodeReader {
    decoded: Values,
    codes: [Vec<u64>; COLUMNS_MAX],
}

impl CodeReader {
    /// Appends to `ids` the group of each row of `within`, new ones included; does nothing and says
    /// false unless all keys are texts without nulls, whose codes all panes share.
    pub fn assign(
        &mut self,
        layout: &KeyLayout,
        (frame, within): (&Frame, &Selection),
        (groups, ids): (&mut GroupTable, &mut Vec<u32>),
        work: &mut Work,
    ) -> bool {
        let dense = matches!(within.shape(), Shape::All | Shape::Bits);
        let columns = layout.columns.len();
        if !dense || layout.standard_map || !(1..=COLUMNS_MAX).contains(&columns) {
            return false;
        }
        let mut coded = [None; COLUMNS_MAX];
        for (column, into) in layout.columns.iter().zip(&mut coded) {
            *into = codes_of(column, frame);
            if into.is_none() {
                return false;
            }
        }
        groups.prepare(layout);
        ids.reserve(within.count());
        for block in 0..block_count(within.rows()) {
            let selected = within.block(block);
            if matches!(selected, BlockSelection::None) {
                continue;
            }
            for (codes, into) in coded.iter().flatten().zip(&mut self.codes) {
                codes.read(block, &mut self.decoded);
                match selected {
                    BlockSelection::Bits(words) => keep(&self.decoded.keys, words, into),
                    _ => std::mem::swap(&mut self.decoded.keys, into),
                }
            }
            let [first, second] = &mut self.codes;
            if columns == 1 {
                second.resize(first.len().max(BLOCK_ROWS), 0);
            }
            groups.assign_codes(first, second, ids);
        }
        work.tally.gathered += (columns * ids.len()) as u64;
        true
    }
}

/// The codes of a key column, if its texts lie in the dictionary that all panes share.
fn codes_of<'a>(column: &KeyColumn, frame: &'a Frame) -> Option<Codes<'a>> {
    let chunk = frame.column(column.slot);
    let codes = chunk.codes().filter(|_| chunk.nulls() == 0)?;
    let shared = column.dictionary().adopt(codes.dictionary);
    Arc::ptr_eq(shared, codes.dictionary).then_some(codes)
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
