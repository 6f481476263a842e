//! Arithmetic on encoded values: the keys of results, and the rows that are computed by themselves.
//!
//! A base that would leave 64 bits belongs to a group without values, whose base may be any; else
//! the caller decodes.

use crate::aligned::CACHE_LINE_BYTES;
use crate::block::BLOCK_ROWS;
use crate::chunk::Chunk;
use crate::codec::EncodeWork;
use crate::primitive::arithmetic::RESULT;
use crate::types::Physical;

use super::banded::{BASES, DELTAS, MAXIMA, OFFSETS, WIDTHS};
use super::{section_mut, widest};

/// How far the keys of results lie above the sum of the keys of `sides`.
pub(crate) fn bias(sides: &[Physical]) -> i128 {
    let flips = sides.iter().map(|side| i128::from(side.flip()));
    i128::from(RESULT.flip()) - flips.sum::<i128>()
}

/// Whether group `group` of the chunk, of `N` a block, has a value.
pub(crate) fn has_values<const N: usize>(chunk: &Chunk, group: usize) -> bool {
    let rows = group * (BLOCK_ROWS / N)..chunk.rows.min((group + 1) * (BLOCK_ROWS / N));
    match chunk.nulls {
        0 => !rows.is_empty(),
        _ => rows.into_iter().any(|row| chunk.validity.get(row)),
    }
}

/// `base` where values up to `span` above it are keys; any such base if the group has no values.
pub(crate) fn place(base: i128, span: u64, has_values: impl FnOnce() -> bool) -> Option<u64> {
    let top = i128::from(u64::MAX - span);
    if (0..=top).contains(&base) {
        return Some(base as u64);
    }
    (!has_values()).then(|| base.clamp(0, top) as u64)
}

/// Writes the delta of a row whose key is known, and its patch where the delta cannot hold it.
///
/// A row without a key is null on one side.
pub(super) fn put<const N: usize>(
    block: usize,
    row: usize,
    key: Option<u64>,
    out: &mut Chunk,
    encode: &mut EncodeWork,
) {
    let group = block * N + row / (BLOCK_ROWS / N);
    let base = section_mut::<u64>(out, BASES)[group];
    let width = usize::from(section_mut::<u8>(out, WIDTHS)[block]);
    let reach = widest(width);
    let key = key.unwrap_or(base);
    let delta = key.saturating_sub(base).min(reach);
    if key < base || key - base > reach {
        encode.patch_rows.push(row as u16);
        encode.patch_keys.push(key);
    } else {
        let maximum = &mut section_mut::<u64>(out, MAXIMA)[group];
        *maximum = key.max(*maximum);
    }
    let line = section_mut::<u32>(out, OFFSETS)[block] as usize;
    let at = line * CACHE_LINE_BYTES + row * width;
    let deltas = section_mut::<u8>(out, DELTAS);
    deltas[at..at + width].copy_from_slice(&delta.to_le_bytes()[..width]);
}

impl Chunk {
    /// Becomes a chunk of results without sections, its bytes stale.
    pub(super) fn begin_shift(&mut self, source: &Chunk) {
        self.begin(
            source.codec,
            &arrow_schema::DataType::Int64,
            RESULT,
            source.rows,
        );
        self.nulls = source.nulls;
        self.validity.clone_from(&source.validity);
    }
}
