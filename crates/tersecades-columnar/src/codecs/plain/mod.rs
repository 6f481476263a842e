//! `plain`: values as they came.
//!
//! ```text
//! an Arrow array kept as it is (zero-copy), or
//! section 0: lanes (bits of the values), or text
//! section 1: text only: offsets, i32, rows + 1
//! ```
//! For values that are looked at once on their way through, and whatever nothing else takes. Values
//! that are read again are copied where keeping the array would keep much else: a piece of a long
//! array, a column of a message that came in one piece.
//! Example: `[7, 9, 9]` as u8 is the three bytes `07 09 09`.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};

use crate::arrow::array_bytes;
use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::{Chunk, LANES};
use crate::codec::{
    Codec, EncodeWork, LANE_ITEM, Work, compare_decoded, fold_decoded, gather_decoded,
};
use crate::dictionary::{Dictionary, Interner};
use crate::error::{Error, Result};
use crate::float_fold::fold_floats;
use crate::fold::{Asked, Fold};
use crate::goal::Goal;
use crate::input::{Input, Lanes};
use crate::kernels::{GROUPS, Narrow, kernels, prefetch_rows};
use crate::lane::{KeyLane, lanes_section, with_lanes};
use crate::predicate::Predicate;
use crate::primitive::byte::bytes_decoded;
use crate::primitive::rank::{rank_decoded, rank_in_place, rank_of};
use crate::selection::{BlockSelection, Selection, Shape};
use crate::types::{Physical, float_key};
use crate::values::{Values, float_of_bits};

/// Section of the offsets of text.
const OFFSETS: usize = 1;

/// An array is kept where the memory it keeps is at most so many times its values, plus so much.
const HELD_TIMES: usize = 2;
const HELD_BYTES: usize = 4096;

/// Nanoseconds that comparing and folding a float take beyond an integer: its key is made, and
/// what rounding loses of a sum is kept (`pays` of the bench, kind `noise`).
const FLOAT_COMPARE_NS: f64 = 0.3;
const FLOAT_FOLD_NS: f64 = 0.55;

/// Nanoseconds per row and read that floats take beyond integers.
fn float_ns(physical: Physical, goal: &Goal) -> f64 {
    match physical {
        Physical::Float { .. } => {
            goal.uses.compare * FLOAT_COMPARE_NS + goal.uses.fold * FLOAT_FOLD_NS
        }
        _ => 0.0,
    }
}

/// Values as they came.
#[derive(Debug)]
pub struct Plain;

/// The values of a plain chunk.
fn lanes(chunk: &Chunk) -> Lanes<'_> {
    if let Some(array) = &chunk.body.array
        && let Some(lanes) = crate::arrow::lanes(array.as_ref())
    {
        return lanes;
    }
    match chunk.physical {
        Physical::Wide => Lanes::Wide(chunk.body.section(LANES)),
        Physical::Text => Lanes::Text {
            offsets: chunk.body.section(OFFSETS),
            bytes: chunk.body.section(LANES),
        },
        physical => lanes_section(&chunk.body, LANES, physical.lane_bytes()),
    }
}

/// Copies lanes into sections.
fn copy_lanes(lanes: Lanes<'_>, out: &mut Chunk) -> Result<()> {
    let body = &mut out.body;
    match lanes {
        Lanes::Wide(lanes) => body.add_section(LANES, lanes.len()).copy_from_slice(lanes),
        Lanes::Text { offsets, bytes } => {
            let (first, last) = (offsets.first().unwrap_or(&0), offsets.last().unwrap_or(&0));
            let text = &bytes[*first as usize..*last as usize];
            body.add_section(LANES, text.len()).copy_from_slice(text);
            let moved = body.add_section::<i32>(OFFSETS, offsets.len());
            moved
                .iter_mut()
                .zip(offsets)
                .for_each(|(to, from)| *to = from - first);
        }
        lanes => with_lanes!(lanes, lanes => {
            body.add_section(LANES, lanes.len()).copy_from_slice(lanes);
        }, else return Err(Error::internal("codes cannot be kept plain"))),
    }
    Ok(())
}

/// Whether an array is a good part of the memory that it keeps.
fn is_most(array: &ArrayRef) -> bool {
    array.get_buffer_memory_size() <= HELD_TIMES * array_bytes(array.as_ref()) + HELD_BYTES
}

fn text_at<'a>(offsets: &[i32], bytes: &'a [u8], row: usize) -> &'a [u8] {
    &bytes[offsets[row] as usize..offsets[row + 1] as usize]
}

impl Codec for Plain {
    fn id(&self) -> u8 {
        0
    }

    fn name(&self) -> &'static str {
        "plain"
    }

    fn summary(&self) -> &'static str {
        "values as they came, zero-copy from Arrow"
    }

    fn source(&self) -> &'static str {
        "Apache Arrow's columnar format"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let input = sample.input;
        let bytes = match input.lanes {
            Lanes::Text { offsets, .. } => {
                let text = offsets.last().unwrap_or(&0) - offsets.first().unwrap_or(&0);
                f64::from(text) / input.rows().max(1) as f64 + 4.0
            }
            _ => input.physical.lane_bytes() as f64,
        };
        Estimate {
            bytes_per_row: bytes,
            inner_ns: float_ns(input.physical, sample.goal),
        }
    }

    fn apart_ns(&self, chunk: &Chunk, goal: &Goal) -> f64 {
        float_ns(chunk.physical, goal)
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let is_kept = work.goal.uses.reads > 1.0;
        if let Some(array) = input.array.filter(|array| !is_kept || is_most(array)) {
            out.body.array = Some(Arc::clone(array));
            return Ok(());
        }
        copy_lanes(input.lanes, out)
    }

    fn sections(&self, physical: Physical) -> &'static [usize] {
        match physical {
            Physical::Text => &[1, 4],
            _ => &[LANE_ITEM],
        }
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        let lanes = lanes(chunk);
        if lanes.len() != chunk.rows {
            return Err(Error::corrupt(
                "plain values do not match the number of rows",
            ));
        }
        let Lanes::Text { offsets, bytes } = lanes else {
            return Ok(());
        };
        let ascending = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let inside = offsets.first().is_some_and(|first| *first >= 0)
            && offsets
                .last()
                .is_some_and(|last| *last as usize <= bytes.len());
        match ascending && inside {
            true => Ok(()),
            false => Err(Error::corrupt("text offsets are out of order or range")),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let flip = chunk.physical.flip();
        match lanes(chunk) {
            Lanes::Wide(lanes) => out.wide.extend_from_slice(&lanes[rows]),
            Lanes::Text { offsets, bytes } => {
                let dictionary = out.dictionary.get_or_insert_with(Dictionary::new);
                let texts = rows.map(|row| text_at(offsets, bytes, row));
                let mut codes = dictionary.interner();
                out.keys.extend(texts.map(|text| code(&mut codes, text)));
            }
            lanes => with_lanes!(lanes, lanes => {
                extend_keys(&lanes[rows], flip, &mut out.keys);
            }, else {}),
        }
    }

    fn decode_bytes(
        &self,
        chunk: &Chunk,
        block: usize,
        out: &mut [u8; BLOCK_ROWS],
        work: &mut Work,
    ) {
        let Lanes::U8(lanes) = lanes(chunk) else {
            return bytes_decoded(self, chunk, block, out, work);
        };
        let flip = chunk.physical.flip() as u8;
        let bytes = &lanes[block_rows(block, chunk.rows)];
        for (byte, lane) in out.iter_mut().zip(bytes) {
            *byte = lane ^ flip;
        }
    }

    fn compare(
        &self,
        chunk: &Chunk,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        let lanes = lanes(chunk);
        if within.shape() == Shape::Rows {
            let list = out.set_rows(chunk.rows);
            let pass = |row: &u32| passes(chunk.physical, lanes, predicate, *row as usize);
            list.extend(within.list().iter().copied().filter(pass));
            work.tally.direct += within.count() as u64;
            return;
        }
        let physical = chunk.physical;
        match (physical, predicate) {
            (Physical::Integer { .. }, Predicate::Keys(_)) => {
                let flip = physical.flip();
                with_lanes!(lanes, lanes => {
                    compare_lanes(lanes, flip, predicate, out);
                }, else out.set_none(chunk.rows));
            }
            (Physical::Float { .. }, Predicate::Keys(_)) => match lanes {
                Lanes::U32(lanes) => {
                    compare_floats(lanes, kernels().float.single_keys, predicate, out);
                }
                Lanes::U64(lanes) => {
                    compare_floats(lanes, kernels().float.keys, predicate, out);
                }
                _ => return compare_decoded(self, chunk, predicate, within, out, work),
            },
            (Physical::Text, Predicate::Text(_)) => {
                let words = out.set_bits(chunk.rows);
                for row in 0..chunk.rows {
                    let bit = u64::from(passes(physical, lanes, predicate, row));
                    words[row / WORD_ROWS] |= bit << (row % WORD_ROWS);
                }
            }
            _ => return compare_decoded(self, chunk, predicate, within, out, work),
        }
        work.tally.direct += chunk.rows as u64;
        out.intersect(within);
    }

    fn fold(
        &self,
        chunk: &Chunk,
        asked: Asked,
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        let positive = chunk.stats.known && chunk.stats.min >= chunk.physical.flip();
        let integer = matches!(chunk.physical, Physical::Integer { .. });
        let by_rows = within.shape() == Shape::Rows;
        if let (Physical::Float { bytes: 8 }, Lanes::U64(bits)) = (chunk.physical, lanes(chunk))
            && !by_rows
        {
            return fold_doubles(bits, asked, within, out, work);
        }
        if !(integer && positive) || asked.squares || by_rows {
            return fold_decoded(self, chunk, asked, within, out, work);
        }
        if asked.is_sum_alone() && within.shape() == Shape::All {
            out.count += chunk.rows as u64;
            work.tally.direct += chunk.rows as u64;
            let sum = with_lanes!(lanes(chunk), lanes => lane_sum(lanes), else 0);
            return out.add_sum(i128::try_from(sum).unwrap_or(i128::MAX));
        }
        with_lanes!(lanes(chunk), lanes => {
            fold_blocks(lanes, chunk.physical.flip(), asked, within, out, work);
        }, else {});
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        let flip = chunk.physical.flip();
        match lanes(chunk) {
            Lanes::Wide(lanes) => out.wide.extend(rows.iter().map(|row| lanes[*row as usize])),
            Lanes::Text { offsets, bytes } => {
                let dictionary = out.dictionary.get_or_insert_with(Dictionary::new);
                let texts = rows
                    .iter()
                    .map(|row| text_at(offsets, bytes, *row as usize));
                let mut codes = dictionary.interner();
                out.keys.extend(texts.map(|text| code(&mut codes, text)));
            }
            Lanes::Codes { .. } => gather_decoded(self, chunk, rows, out, work),
            lanes => with_lanes!(lanes, lanes => {
                out.keys.extend(rows.iter().map(|row| lanes[*row as usize].key() ^ flip));
            }, else {}),
        }
    }

    fn rank(&self, chunk: &Chunk, within: &Selection, out: &mut Vec<u64>, work: &mut Work) {
        let physical = chunk.physical;
        if within.shape() == Shape::All && matches!(physical, Physical::Integer { .. }) {
            return rank_in_place(self, chunk, within, out, work);
        }
        let flip = physical.flip();
        let mut push = |bits: u64| out.push(rank_of(physical, bits ^ flip));
        match lanes(chunk) {
            Lanes::Text { .. } => return rank_decoded(self, chunk, within, out, work),
            lanes => with_lanes!(lanes, lanes => {
                within.for_each(|row| push(lanes[row].key()));
            }, else {}),
        }
        work.tally.direct += within.count() as u64;
    }

    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        _work: &mut Work,
        _encode: &mut EncodeWork,
    ) -> Result<()> {
        out.begin_slice(chunk.codec, chunk, rows.clone());
        if let Some(array) = &chunk.body.array {
            out.body.array = Some(array.slice(rows.start, rows.len()));
            return Ok(());
        }
        copy_lanes(lanes(chunk).slice(rows.start, rows.end), out)
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        with_lanes!(lanes(chunk), lanes => prefetch_rows(lanes, rows), else {});
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

/// Appends the keys of `lanes`.
fn extend_keys<T: KeyLane>(lanes: &[T], flip: u64, keys: &mut Vec<u64>)
where
    u64: Narrow<T>,
{
    let widen = <u64 as Narrow<T>>::pair(kernels()).widen;
    let start = keys.len();
    keys.resize(start + lanes.len(), 0);
    let blocks = keys[start..].chunks_mut(BLOCK_ROWS);
    for (lanes, keys) in lanes.chunks(BLOCK_ROWS).zip(blocks) {
        widen(lanes, &[0; GROUPS], flip, keys);
    }
}

/// The table is a fresh one for this chunk, and a chunk never holds more text than a table takes,
/// so there always is a code.
fn code(codes: &mut Interner<'_>, text: &[u8]) -> u64 {
    codes.code(text).map_or(0, u64::from)
}

/// Sum and ends of lanes that are not negative; statistics from a wire may say so wrongly, which
/// makes the sum wrong and nothing else.
fn fold_blocks<T: KeyLane>(
    lanes: &[T],
    flip: u64,
    asked: Asked,
    within: &Selection,
    out: &mut Fold,
    work: &mut Work,
) {
    let table = T::of(kernels());
    for (block, lanes) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let mask = match within.block(block) {
            BlockSelection::None => continue,
            BlockSelection::All => None,
            BlockSelection::Bits(words) => Some(words),
        };
        work.tally.direct += lanes.len() as u64;
        out.count += mask.map_or(lanes.len() as u64, kernels().bitmap.count);
        if asked.sum {
            let mut sums = [0u128; GROUPS];
            (table.sum)(lanes, mask, &mut sums);
            out.add_sum(i128::try_from(sums.iter().sum::<u128>()).unwrap_or(i128::MAX));
        }
        if asked.ends {
            let (mut min, mut max) = ([T::MAX; GROUPS], [T::cut(0); GROUPS]);
            (table.min_max)(lanes, T::cut(flip), mask, &mut min, &mut max);
            for (min, max) in min
                .iter()
                .zip(&max)
                .filter(|(min, max)| min.key() <= max.key())
            {
                out.add_end(i128::from(min.key()));
                out.add_end(i128::from(max.key()));
            }
        }
    }
}

fn fold_doubles(bits: &[u64], asked: Asked, within: &Selection, out: &mut Fold, work: &mut Work) {
    for (block, bits) in bits.chunks(BLOCK_ROWS).enumerate() {
        let mask = match within.block(block) {
            BlockSelection::None => continue,
            BlockSelection::All => None,
            BlockSelection::Bits(words) => Some(words),
        };
        work.tally.direct += bits.len() as u64;
        fold_floats(bits, 8, mask, asked, out);
    }
}

fn lane_sum<T: KeyLane>(lanes: &[T]) -> u128 {
    (T::of(kernels()).sum_flat)(lanes)
}

fn passes(physical: Physical, lanes: Lanes<'_>, predicate: &Predicate, row: usize) -> bool {
    match (physical, lanes) {
        (_, Lanes::Wide(lanes)) => predicate.matches_wide(lanes[row]),
        (_, Lanes::Text { offsets, bytes }) => predicate.matches_text(text_at(offsets, bytes, row)),
        (Physical::Float { bytes }, lanes) => {
            predicate.matches_key(float_key(float_of_bits(lanes.bits(row), bytes)))
        }
        (physical, lanes) => predicate.matches_key(lanes.bits(row) ^ physical.flip()),
    }
}

/// One wrapping range test per lane: XOR with the sign bit and subtracting half the range are the
/// same modulo the lane, so signed lanes need no conversion.
fn compare_lanes<T: KeyLane>(lanes: &[T], flip: u64, predicate: &Predicate, out: &mut Selection) {
    let Predicate::Keys(ranges) = predicate else {
        return;
    };
    let table = T::of(kernels());
    let words = out.set_bits(lanes.len());
    for (block, values) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let first = block * BLOCK_ROWS / WORD_ROWS;
        let words = &mut words[first..first + values.len().div_ceil(WORD_ROWS)];
        let mut part = [0; BLOCK_ROWS / WORD_ROWS];
        // Codes of a dictionary that has outgrown these lanes are in no row.
        for range in ranges.iter().filter(|range| range.low <= T::MAX.key()) {
            let span = range.high.min(T::MAX.key()) - range.low;
            let (low, span) = (T::cut(range.low ^ flip), T::cut(span));
            (table.range_mask_flat)(values, low, span, &mut part[..words.len()]);
            words
                .iter_mut()
                .zip(&part)
                .for_each(|(word, part)| *word |= part);
        }
    }
}

fn compare_floats<T>(
    lanes: &[T],
    keys: fn(&[T], &mut [u64]),
    predicate: &Predicate,
    out: &mut Selection,
) {
    let words = out.set_bits(lanes.len());
    let mut room = [0; BLOCK_ROWS];
    for (block, bits) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let room = &mut room[..bits.len()];
        keys(bits, room);
        let first = block * BLOCK_ROWS / WORD_ROWS;
        crate::codec::mask_keys(predicate, room, &mut words[first..]);
    }
}
