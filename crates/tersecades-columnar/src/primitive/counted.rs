//! Counting integers that lie close together: a cell for each key between the ends of a chunk.
//!
//! ```text
//! ends 1000 and 1003     keys 1000 1003 1001 1003     cells 1 1 0 2
//! ```
//! Where a chunk lies as bases and narrow deltas the cells are found from the deltas themselves.
//! Neighbours of equal value would each wait for the store of the one before, so where keys are few
//! each has several cells, which take turns.

use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::chunk::Chunk;
use crate::codec::{Codec, Work};
use crate::lane::KeyLane;
use crate::narrow::with_deltas;
use crate::primitive::pair::Bands;
use crate::primitive::repeat::Repeats;
use crate::selection::{Selection, Shape};
use crate::types::Physical;

use super::for_each_unit;

/// Cells of a key where keys are few.
const LANES: usize = 4;

/// Most keys with several cells: they stay in the first-level cache.
const LANED_MAX: u64 = 1_024;

/// Fewer rows for each key than this are not counted in cells.
const KEY_ROWS_MIN: u64 = 4;

/// How often each key of a range came.
struct Cells {
    base: u64,
    lanes: usize,
    counts: Vec<u32>,
}

impl Cells {
    /// Cells for the keys of `chunk` in memory of `work`, where that pays for so many rows.
    fn of(chunk: &Chunk, rows: usize, work: &mut Work) -> Option<Self> {
        let stats = chunk.stats;
        if !stats.known || !matches!(chunk.physical, Physical::Integer { .. }) {
            return None;
        }
        let keys = (stats.max - stats.min).checked_add(1)?;
        if keys.checked_mul(KEY_ROWS_MIN)? > rows as u64 {
            return None;
        }
        let lanes = if keys <= LANED_MAX { LANES } else { 1 };
        let mut counts = std::mem::take(&mut work.list);
        counts.clear();
        counts.resize(keys as usize * lanes, 0);
        Some(Cells {
            base: stats.min,
            lanes,
            counts,
        })
    }

    /// Counts the keys that are `shift` above those of `lanes`.
    fn count<D: KeyLane>(&mut self, lanes: &[D], shift: u64) {
        let shift = shift.wrapping_sub(self.base);
        let mut add = |lane: &D, turn: usize, stride: usize| {
            let cell = lane.key().wrapping_add(shift) as usize * stride + turn;
            self.counts[cell] += 1;
        };
        if self.lanes == 1 {
            return lanes.iter().for_each(|lane| add(lane, 0, 1));
        }
        let (fours, rest) = lanes.as_chunks::<LANES>();
        for four in fours {
            for (turn, lane) in four.iter().enumerate() {
                add(lane, turn, LANES);
            }
        }
        rest.iter().for_each(|lane| add(lane, 0, LANES));
    }

    /// The first cell of `key`.
    fn of_key(&mut self, key: u64) -> &mut u32 {
        let cell = (key - self.base) as usize * self.lanes;
        &mut self.counts[cell]
    }

    /// Counts every row of a chunk.
    fn count_bands(&mut self, bands: &Bands<'_>, rows: usize) {
        for block in 0..block_count(rows) {
            let len = block_rows(block, rows).len();
            let bases = bands.bases_of(block);
            let group = BLOCK_ROWS / bases.len();
            let Some(deltas) = bands.deltas else {
                *self.of_key(bases[0]) += len as u32;
                continue;
            };
            with_deltas!(deltas, block, lanes => {
                for (lanes, base) in lanes.chunks(group).zip(bases) {
                    self.count(lanes, *base);
                }
            }, zero {
                for (index, base) in bases.iter().enumerate().take(len.div_ceil(group)) {
                    *self.of_key(*base) += group.min(len - index * group) as u32;
                }
            });
        }
    }

    /// Puts what was counted into `out`, keys ascending, and the memory back into `work`.
    fn write(self, out: &mut Repeats, work: &mut Work) {
        let keys = self.counts.chunks_exact(self.lanes);
        for (distance, cells) in keys.enumerate() {
            let count = cells.iter().map(|cell| u64::from(*cell)).sum();
            out.add(self.base + distance as u64, count);
        }
        work.list = self.counts;
    }
}

/// Counts the values of `within` in cells; false, and nothing done, where that does not pay.
pub(super) fn count_in_cells(
    codec: &dyn Codec,
    chunk: &Chunk,
    within: &Selection,
    out: &mut Repeats,
    work: &mut Work,
) -> bool {
    let Some(mut cells) = Cells::of(chunk, within.count(), work) else {
        return false;
    };
    let bands = codec.bands(chunk).filter(|bands| {
        let patched = bands.patches.is_some_and(|patches| !patches.is_empty());
        within.shape() == Shape::All && !patched && !work.decode_first
    });
    match bands {
        Some(bands) => {
            work.tally.direct += chunk.rows as u64;
            cells.count_bands(&bands, chunk.rows);
        }
        None => for_each_unit(codec, chunk, within, work, |values| {
            cells.count(&values.keys, 0);
        }),
    }
    cells.write(out, work);
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, UInt64Array};

    use super::*;
    use crate::encoder::ColumnEncoder;
    use crate::scheme::Scheme;

    const SCHEMES: [&str; 10] = [
        "plain",
        "base_delta",
        "frame_of_reference",
        "patched(frame_of_reference)",
        "gcd(bit_pack)",
        "run_length",
        "sequence",
        "number_dictionary(frame_of_reference)",
        "linear(bit_pack)",
        "varint",
    ];

    /// Columns whose keys are few, lie at the ends of their type, jump, or are one.
    fn columns() -> Vec<ArrayRef> {
        let draw = |row: u64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let signed = |value: &dyn Fn(u64) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..5_000).map(value)))
        };
        let holes = (0..5_000).map(|row| (row % 3 > 0).then(|| draw(row) as i64 % 9));
        vec![
            signed(&|row| (draw(row) % 100) as i64 - 50),
            signed(&|row| i64::MIN + (draw(row) % 256) as i64),
            signed(&|row| (row / 1_100 * 200 + draw(row) % 2) as i64),
            signed(&|row| (draw(row) % 1_250) as i64 * 7),
            signed(&|row| if draw(row) % 60 == 0 { 1_000 } else { 3 }),
            signed(&|_| -4),
            Arc::new(UInt64Array::from_iter_values(
                (0..4_097).map(|row| u64::MAX - draw(row) % 1_024),
            )),
            Arc::new(Int64Array::from_iter(holes)),
        ]
    }

    fn selections(rows: usize) -> Vec<Selection> {
        let (mut list, mut bits) = (Selection::default(), Selection::default());
        list.set_rows(rows).extend((0..rows as u32).step_by(3));
        let words = bits.set_bits(rows);
        crate::bitmap::set_range(words, 70..rows - 1_030);
        vec![Selection::all(rows), list, bits]
    }

    fn decoded_counts(chunk: &Chunk, within: &Selection) -> BTreeMap<u64, u64> {
        let mut values = crate::values::Values::default();
        chunk.gather(within, &mut values, &mut Work::default());
        let mut counts = BTreeMap::new();
        for index in (0..values.len()).filter(|index| values.is_valid(*index)) {
            *counts.entry(values.keys[index]).or_default() += 1;
        }
        counts
    }

    #[test]
    fn counts_are_those_of_the_decoded_values() {
        let mut counted = 0;
        for array in columns() {
            for scheme in SCHEMES {
                let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
                encoder.require(scheme.parse::<Scheme>().unwrap()).unwrap();
                let chunk = encoder.encode_new(&array).unwrap();
                for within in selections(chunk.rows()) {
                    let expected = decoded_counts(&chunk, &within);
                    let (mut repeats, mut work) = (Repeats::default(), Work::default());
                    chunk.repeats(&within, &mut repeats, &mut work);
                    let mut got: BTreeMap<u64, u64> = BTreeMap::new();
                    for (key, count) in repeats.values.keys.iter().zip(&repeats.counts) {
                        *got.entry(*key).or_default() += count;
                    }
                    assert_eq!(got, expected, "{scheme}");
                    counted += usize::from(repeats.len() <= expected.len());
                }
            }
        }
        assert!(counted > 140, "{counted} of 240 come as one pair a value");
    }

    #[test]
    fn narrow_deltas_are_counted_without_decoding() {
        let array: ArrayRef =
            Arc::new(Int64Array::from_iter_values((0..9_000).map(|row| row % 77)));
        for scheme in ["frame_of_reference", "base_delta"] {
            let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
            encoder.require(scheme.parse::<Scheme>().unwrap()).unwrap();
            let chunk = encoder.encode_new(&array).unwrap();
            let (mut repeats, mut work) = (Repeats::default(), Work::default());
            chunk.repeats(&Selection::all(9_000), &mut repeats, &mut work);
            assert_eq!((repeats.len(), work.tally.decoded), (77, 0), "{scheme}");
        }
    }
}
