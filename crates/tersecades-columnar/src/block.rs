//! The block: 1,024 values of one column, the unit of every kernel call.
//!
//! Inside a block eight bases, one for each group of 128 values, fill one cache line: one vector
//! compare tests the whole block against a constant. Blocks are not objects; a chunk keeps all
//! bases together, then all maxima, then widths and offsets, then the deltas, then the patches
//! (structure of arrays), because a base stored inline with its deltas makes skipping 7 to 11
//! times slower.

/// Values of one block.
pub const BLOCK_ROWS: usize = 1024;

/// Values that share one base.
pub const GROUP_ROWS: usize = 128;

/// Bases of one block.
pub const GROUPS: usize = BLOCK_ROWS / GROUP_ROWS;

/// Rows that general-purpose compressors take together: enough to learn from, few enough that one
/// row can be had without the rest of the chunk.
pub const UNIT_ROWS: usize = 16 * BLOCK_ROWS;

/// Blocks needed for `rows` values.
pub fn block_count(rows: usize) -> usize {
    rows.div_ceil(BLOCK_ROWS)
}

/// The rows of block `block` in a chunk of `rows` rows.
pub fn block_rows(block: usize, rows: usize) -> std::ops::Range<usize> {
    let start = (block * BLOCK_ROWS).min(rows);
    start..(start + BLOCK_ROWS).min(rows)
}

const _: () = assert!(GROUPS * size_of::<u64>() == crate::aligned::CACHE_LINE_BYTES);
