//! The row layout: the rows of a batch one after another, its columns as views of them.
//!
//! ```text
//! row 0                              row 1
//! | time 8 | src 4 | dst 4 | err 1 | pad | time 8 | src 4 | ...
//! ```
//! Wider values stand first, so that every value is aligned; a row takes a multiple of eight bytes.
//!
//! # Source
//! TerseCades (USENIX ATC'18) §3.2: the layout that column stores are compared with; it serves
//! queries that touch whole rows.

use std::sync::Arc;

use crate::aligned::AlignedBytes;
use crate::chunk::{Chunk, LANES};
use crate::registry;

/// Bytes that the length of a row is a multiple of.
const ROW_ALIGNMENT: usize = 8;

/// Fixed-width rows, one after another.
#[derive(Default)]
pub(crate) struct RowBlock {
    bytes: AlignedBytes,
    /// Bytes from one row to the next.
    stride: usize,
}

/// One column of a block of rows.
#[derive(Clone)]
pub(crate) struct RowView {
    block: Arc<RowBlock>,
    offset: usize,
}

/// Values of one width at equal distances.
#[derive(Clone, Copy)]
pub(crate) struct Strided<'a> {
    bytes: &'a [u8],
    stride: usize,
    width: usize,
}

impl<'a> Strided<'a> {
    /// The values of a chunk in row layout.
    pub(crate) fn of(chunk: &'a Chunk) -> Self {
        let width = chunk.physical.lane_bytes();
        match &chunk.body.rows {
            Some(view) => Strided {
                bytes: view.block.bytes.bytes().get(view.offset..).unwrap_or(&[]),
                stride: view.block.stride,
                width,
            },
            None => Strided {
                bytes: chunk.body.section(LANES),
                stride: width,
                width,
            },
        }
    }

    /// The bytes of the value in row `row`.
    #[inline]
    pub(crate) fn value(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.stride..][..self.width]
    }

    /// The low eight bytes of the value in row `row`.
    #[inline]
    pub(crate) fn bits(&self, row: usize) -> u64 {
        let mut bits = [0; 8];
        let value = self.value(row);
        bits[..value.len()].copy_from_slice(value);
        u64::from_le_bytes(bits)
    }

    /// The sixteen bytes of the value in row `row`.
    pub(crate) fn wide(&self, row: usize) -> i128 {
        let mut bits = [0; 16];
        let value = self.value(row);
        bits[..value.len()].copy_from_slice(value);
        i128::from_le_bytes(bits)
    }
}

/// Blocks to use again once no batch holds them.
#[derive(Default)]
pub(crate) struct RowPool {
    blocks: Vec<Arc<RowBlock>>,
}

/// Blocks kept for reuse.
const POOL_BLOCKS: usize = 16;

impl RowPool {
    /// Puts the values of all columns that lie in the row layout, each apart, into common rows.
    ///
    /// # Cost
    /// One pass over the values.
    pub(crate) fn weave(&mut self, columns: &mut [Chunk]) {
        let mut parts: Vec<&mut Chunk> = columns.iter_mut().filter_map(row_part).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.physical.lane_bytes()));
        let widths: Vec<usize> = parts.iter().map(|p| p.physical.lane_bytes()).collect();
        let stride = widths.iter().sum::<usize>().next_multiple_of(ROW_ALIGNMENT);
        let rows = parts.first().map_or(0, |part| part.rows);
        let mut shared = self.take();
        if let Some(block) = Arc::get_mut(&mut shared) {
            block.stride = stride;
            block.bytes.clear();
            block.bytes.grow(rows * stride);
            let bytes = block.bytes.bytes_mut();
            let mut offset = 0;
            for (part, width) in parts.iter().zip(&widths) {
                let values = Strided::of(part);
                for (row, target) in bytes.chunks_exact_mut(stride).take(rows).enumerate() {
                    target[offset..offset + width].copy_from_slice(values.value(row));
                }
                offset += width;
            }
        }
        let mut offset = 0;
        for (part, width) in parts.into_iter().zip(widths) {
            part.body.clear();
            let block = Arc::clone(&shared);
            part.body.rows = Some(RowView { block, offset });
            offset += width;
        }
        if self.blocks.len() < POOL_BLOCKS {
            self.blocks.push(shared);
        }
    }

    fn take(&mut self) -> Arc<RowBlock> {
        let free = |block: &Arc<RowBlock>| Arc::strong_count(block) == 1;
        match self.blocks.iter().position(free) {
            Some(index) => self.blocks.swap_remove(index),
            None => Arc::default(),
        }
    }
}

/// The part of a column that lies in the row layout: the column itself, or its codes.
fn row_part(column: &mut Chunk) -> Option<&mut Chunk> {
    let row = registry::row_layout().id();
    match column.codec.id() == row {
        true => Some(column),
        false => column
            .body
            .inner
            .iter_mut()
            .flatten()
            .map(Box::as_mut)
            .find(|inner| inner.codec.id() == row),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt8Array};

    use super::*;
    use crate::batch::{BatchEncoder, Layout};
    use crate::codec::Work;
    use crate::selection::Selection;

    fn rows(shift: i64) -> RecordBatch {
        let times: ArrayRef = Arc::new(Int64Array::from_iter(
            (0..3_000).map(|row| (row % 7 != 3).then_some(row * 1_000 - shift)),
        ));
        let codes: ArrayRef = Arc::new(UInt8Array::from_iter_values(
            (0..3_000).map(|row| row as u8),
        ));
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..3_000).map(|row| ["a", "bc", ""][row % 3]),
        ));
        let loads: ArrayRef = Arc::new(Float64Array::from_iter_values((0..3_000).map(f64::from)));
        let columns = [
            ("code", codes),
            ("time", times),
            ("name", names),
            ("load", loads),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn columns_of_common_rows_give_back_what_came() {
        let mut encoder = BatchEncoder::new(&rows(0).schema()).unwrap();
        encoder.lay_out(Layout::Row).unwrap();
        let mut batch = encoder.encode_new(&rows(0)).unwrap();
        for shift in [5, 9] {
            encoder.encode(&rows(shift), &mut batch).unwrap();
            let all = Selection::all(batch.rows());
            let back = batch.to_arrow(&all, &mut Work::default()).unwrap();
            for (back, came) in back.columns().iter().zip(rows(shift).columns()) {
                let back = arrow_cast::cast(back, came.data_type()).unwrap();
                assert_eq!(&back, came);
            }
        }
        let codecs: Vec<String> = batch.columns().iter().map(Chunk::codec_label).collect();
        assert_eq!(codecs, ["row", "row", "dictionary(row)", "row"]);
        let stride = Strided::of(batch.column(0)).stride;
        assert_eq!((stride, Strided::of(batch.column(1)).stride), (24, 24));
    }
}
