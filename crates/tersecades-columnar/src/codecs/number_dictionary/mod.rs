//! `number_dictionary`: each distinct number once, in order, and codes.
//!
//! ```text
//! section 0:   distinct keys of the chunk in the order of their values, one lane each
//! inner chunk: the codes, unsigned integers of 1, 2 or 4 bytes under whichever codec suits them
//!
//! key(i) = section 0 at code(i)
//! ```
//! Codes sort as values do, so a comparison becomes ranges of codes and is answered by the codes
//! alone, and so are the ends. Byte codes of integers are looked up and added in registers; other
//! sums count how often each code occurs. Adding a constant changes the numbers alone. Floats keep
//! their bits: -0 stands before 0, NaNs come last, and each payload has its code.
//! The hole of a null repeats the code before it.
//! Example: `[7, 1000, 7]` is the table `7, 1000` and the codes `0, 1, 0`.

mod estimate;
#[cfg(test)]
mod tests;

use std::ops::Range;

use arrow_schema::DataType;

use crate::bitmap::Bitmap;
use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, LANE_ITEM, Work, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold, Spread};
use crate::input::{Input, Lanes};
use crate::kernels::{CodeTable, kernels};
use crate::lane::{add_lanes_section, lanes_section};
use crate::predicate::{KeyRange, Predicate};
use crate::primitive::arithmetic::{Change, RESULT, map_decoded};
use crate::primitive::decoded::codes_below;
use crate::primitive::repeat::Repeats;
use crate::selection::{BlockSelection, Selection, Shape};
use crate::stats::Stats;
use crate::types::{Physical, float_key};
use crate::values::{Values, float_of_bits};

const TABLE: usize = 0;

/// Folds count codes where at least this many rows are selected for each distinct number.
const COUNTED_MIN: usize = 4;

/// Each distinct number once, in order, and codes.
#[derive(Debug)]
pub struct NumberDictionary;

/// The narrowest unsigned type for codes below `count`.
fn code_type(count: usize) -> DataType {
    match count {
        0..=0x100 => DataType::UInt8,
        0x101..=0x1_0000 => DataType::UInt16,
        _ => DataType::UInt32,
    }
}

/// The key that sorts and compares as the number does.
fn ordered(physical: Physical, key: u64) -> u64 {
    match physical {
        Physical::Float { bytes } => float_key(float_of_bits(key, bytes)),
        _ => key,
    }
}

/// Where a key stands in the table: by value, equal floats by sign and then by bits.
fn place(physical: Physical, key: u64) -> (u64, bool, u64) {
    let negative = match physical {
        Physical::Float { bytes } => key >> (8 * bytes - 1) & 1 == 1,
        _ => false,
    };
    (ordered(physical, key), !negative, key)
}

/// The table and the codes of one chunk.
#[derive(Clone, Copy)]
struct View<'a> {
    physical: Physical,
    table: Lanes<'a>,
    codes: &'a Chunk,
}

impl<'a> View<'a> {
    fn of(chunk: &'a Chunk) -> Option<Self> {
        Some(View {
            physical: chunk.physical,
            table: lanes_section(&chunk.body, TABLE, chunk.physical.lane_bytes()),
            codes: chunk.body.inner[0].as_deref()?,
        })
    }

    /// The first code whose number does not come before `key`.
    fn first_from(&self, key: u64) -> usize {
        let (mut low, mut high) = (0, self.table.len());
        while low < high {
            let middle = low.midpoint(high);
            match ordered(self.physical, self.table.bits(middle)) < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Appends the ranges of codes that mean the keys in `ranges`.
    fn code_ranges(&self, ranges: &[KeyRange], out: &mut Vec<KeyRange>) {
        let code_max = self.codes.physical.key_max();
        for range in ranges {
            let low = self.first_from(range.low);
            let end = match range.high.checked_add(1) {
                Some(above) => self.first_from(above),
                None => self.table.len(),
            };
            if low >= end {
                continue;
            }
            let high = match end == self.table.len() {
                true => code_max,
                false => end as u64 - 1,
            };
            match out.last_mut() {
                Some(last) if last.high + 1 == low as u64 => last.high = high,
                _ => out.push(KeyRange {
                    low: low as u64,
                    high,
                }),
            }
        }
    }

    /// Replaces codes by what they stand for.
    fn look_up(&self, codes: &mut [u64]) {
        match self.table {
            Lanes::U16(table) => replace(codes, table),
            Lanes::U32(table) => replace(codes, table),
            Lanes::U64(table) => replace(codes, table),
            _ => {}
        }
    }

    /// Whether integers have codes of one byte.
    fn has_byte_codes(&self) -> bool {
        let integers = matches!(self.physical, Physical::Integer { .. });
        integers && self.codes.physical.lane_bytes() == 1
    }

    /// Whether adding floats in another order than that of the rows could leave the finite.
    fn may_overflow(&self) -> bool {
        let Physical::Float { bytes } = self.physical else {
            return false;
        };
        let ends = [0, self.table.len() - 1].map(|code| {
            let size = float_of_bits(self.table.bits(code), bytes).abs();
            size * self.codes.rows as f64
        });
        !(ends[0] + ends[1]).is_finite()
    }

    /// The sum of integers that byte codes of the selected rows stand for.
    fn sum_of_bytes(&self, within: &Selection, work: &mut Work) -> i128 {
        let base = self.table.bits(0);
        let numbers = (0..self.table.len()).map(|code| self.table.bits(code) - base);
        let table = CodeTable::of(numbers);
        let mut bytes = [0; BLOCK_ROWS];
        let mut sum = 0;
        for block in 0..block_count(self.codes.rows) {
            let mask = match within.block(block) {
                BlockSelection::None => continue,
                BlockSelection::All => None,
                BlockSelection::Bits(words) => Some(words),
            };
            let codec = self.codes.codec;
            codec.decode_bytes(self.codes, block, &mut bytes, work);
            let codes = &bytes[..block_rows(block, self.codes.rows).len()];
            sum += (kernels().code_sum)(codes, &table, mask);
        }
        let count = within.count() as i128;
        count * self.physical.value_of(base) + sum as i128
    }

    /// Fills `out` with the bits of changed numbers, in order as they are; false where one of them,
    /// which no row needs, leaves 64 bits.
    fn change_table(&self, change: Change, out: &mut Vec<u64>) -> bool {
        let number = |code| change.apply(self.physical.value_of(self.table.bits(code)));
        out.clear();
        out.extend((0..self.table.len()).map(|code| number(code) as u64 ^ RESULT.flip()));
        let mut ends = [0, self.table.len().saturating_sub(1)].into_iter();
        self.table.is_empty() || ends.all(|code| i64::try_from(number(code)).is_ok())
    }

    /// Adds `count` times the number of `code`.
    fn add_repeats(&self, code: usize, count: u64, asked: Asked, out: &mut Fold) {
        let key = self.table.bits(code);
        let Physical::Float { bytes } = self.physical else {
            return out.add_repeats(self.physical, key, count as usize, asked);
        };
        let value = float_of_bits(key, bytes);
        out.count += count;
        if asked.sum {
            out.float_sum.add_times(value, count as u32);
        }
        if asked.squares {
            out.spread.merge(Spread {
                count,
                mean: value,
                deviation: 0.0,
            });
        }
        if asked.ends {
            out.add_end(i128::from(float_key(value)));
        }
    }
}

fn replace<T: Copy + Into<u64>>(codes: &mut [u64], table: &[T]) {
    for code in codes {
        *code = table[*code as usize].into();
    }
}

/// The ranges of codes for `predicate`, in memory of `work`.
fn over_codes(view: &View<'_>, predicate: &Predicate, work: &mut Work) -> Predicate {
    let mut ranges = std::mem::take(&mut work.ranges);
    ranges.clear();
    if let Predicate::Keys(keys) = predicate {
        view.code_ranges(keys, &mut ranges);
    }
    Predicate::Keys(ranges)
}

/// Numbers every row's key; a null repeats the number before it.
fn number_rows(input: &Input<'_>, work: &mut EncodeWork) {
    let (distinct, codes) = (&mut work.distinct, &mut work.ends);
    distinct.clear();
    codes.clear();
    let (mut known, mut code) = (None, 0);
    codes.extend((0..input.rows()).map(|row| {
        if input.is_valid(row) {
            let key = input.key(row);
            if known != Some(key) {
                (known, code) = (Some(key), distinct.number(key));
            }
        }
        code
    }));
    if distinct.len() == 0 && input.rows() > 0 {
        distinct.number(0);
    }
}

/// Encodes codes below `count` as the chunk inside.
fn encode_codes(codes: &[u32], count: usize, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
    let data_type = code_type(count);
    let mut bytes = std::mem::take(&mut work.bytes);
    let mut shorts = std::mem::take(&mut work.shorts);
    let lanes = match data_type {
        DataType::UInt8 => {
            bytes.clear();
            bytes.extend(codes.iter().map(|code| *code as u8));
            Lanes::U8(&bytes)
        }
        DataType::UInt16 => {
            shorts.clear();
            shorts.extend(codes.iter().map(|code| *code as u16));
            Lanes::U16(&shorts)
        }
        _ => Lanes::U32(codes),
    };
    let input = Input {
        physical: Physical::of(&data_type)?,
        data_type: &data_type,
        lanes,
        validity: None,
        array: None,
    };
    let encoded = out.body.encode_inner(0, &input, work);
    (work.bytes, work.shorts) = (bytes, shorts);
    encoded
}

/// Integers of two bytes or more, and floats: a code is never larger than a byte.
fn holds(physical: Physical) -> bool {
    match physical {
        Physical::Integer { bytes, .. } => bytes > 1,
        Physical::Float { .. } => true,
        Physical::Wide | Physical::Text => false,
    }
}

impl Codec for NumberDictionary {
    fn id(&self) -> u8 {
        8
    }

    fn name(&self) -> &'static str {
        "number_dictionary"
    }

    fn summary(&self) -> &'static str {
        "distinct numbers in order, and codes of 1, 2 or 4 bytes, themselves encoded"
    }

    fn source(&self) -> &'static str {
        "order-preserving dictionaries (Binnig, Hildenbrand and Färber, SIGMOD 2009)"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        holds(input.physical) && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        estimate::estimate(sample)
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        number_rows(input, work);
        let physical = input.physical;
        let mut table = std::mem::take(&mut work.keys);
        table.clear();
        let ranks = work.distinct.sort(|key| place(physical, key), &mut table);
        for code in &mut work.ends {
            *code = ranks[*code as usize];
        }
        add_lanes_section(&mut out.body, TABLE, physical.lane_bytes(), &table);
        if let (Some(first), Some(last)) = (table.first(), table.last())
            && out.nulls < input.rows()
        {
            out.stats = Stats::from_ends(ordered(physical, *first), ordered(physical, *last));
        }
        let codes = std::mem::take(&mut work.ends);
        let encoded = encode_codes(&codes, table.len(), out, work);
        (work.keys, work.ends) = (table, codes);
        encoded
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[LANE_ITEM]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        let view = View::of(chunk).filter(|view| {
            let unsigned = matches!(
                view.codes.physical,
                Physical::Integer {
                    signed: false,
                    bytes: 1..=4
                }
            );
            holds(chunk.physical) && unsigned && view.codes.rows == chunk.rows
        });
        let Some(View { table, codes, .. }) = view else {
            return Err(Error::corrupt("a dictionary of numbers lacks its codes"));
        };
        let place = |code: usize| place(chunk.physical, table.bits(code));
        if !(1..table.len()).all(|code| place(code - 1) < place(code)) {
            return Err(Error::corrupt("distinct numbers are out of order"));
        }
        codes.codec.validate(codes)?;
        // Statistics of the chunks inside may leave out the codes of null rows.
        match codes_below(codes, table.len(), &Bitmap::default()) {
            true => Ok(()),
            false => Err(Error::corrupt("a code has no number")),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        if let Some(view) = View::of(chunk) {
            let start = out.keys.len();
            view.codes.codec.decode(view.codes, rows, out);
            view.look_up(&mut out.keys[start..]);
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
        let Some(view) = View::of(chunk) else {
            return out.set_none(chunk.rows);
        };
        let predicate = over_codes(&view, predicate, work);
        view.codes.compare(&predicate, within, out, work);
        if let Predicate::Keys(ranges) = predicate {
            work.ranges = ranges;
        }
    }

    fn fold(
        &self,
        chunk: &Chunk,
        asked: Asked,
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        let Some(view) = View::of(chunk) else {
            return;
        };
        if !asked.sum && !asked.squares {
            let mut codes = Fold::default();
            view.codes.fold(asked, within, &mut codes, work);
            out.count += codes.count;
            if asked.ends && codes.count > 0 {
                let end = |code: i128| ordered(view.physical, view.table.bits(code as usize));
                out.add_end(i128::from(end(codes.min)));
                out.add_end(i128::from(end(codes.max)));
            }
            return;
        }
        let few = within.count() <= COUNTED_MIN * view.table.len();
        if within.shape() == Shape::Rows || few || view.may_overflow() {
            return fold_decoded(self, chunk, asked, within, out, work);
        }
        work.tally.direct += within.count() as u64;
        if asked.is_sum_alone() && view.has_byte_codes() {
            out.count += within.count() as u64;
            return out.add_sum(view.sum_of_bytes(within, work));
        }
        let mut codes = std::mem::take(&mut work.repeats);
        codes.reset(view.codes.physical);
        view.codes
            .codec
            .repeats(view.codes, within, &mut codes, work);
        for (code, count) in codes.values.keys.iter().zip(&codes.counts) {
            view.add_repeats(*code as usize, *count, asked, out);
        }
        work.repeats = codes;
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        if let Some(view) = View::of(chunk) {
            let start = out.keys.len();
            view.codes.codec.gather(view.codes, rows, out, work);
            view.look_up(&mut out.keys[start..]);
        }
    }

    fn repeats(&self, chunk: &Chunk, within: &Selection, out: &mut Repeats, work: &mut Work) {
        if let Some(view) = View::of(chunk) {
            debug_assert!(out.values.keys.is_empty(), "of another unit");
            view.codes.codec.repeats(view.codes, within, out, work);
            view.look_up(&mut out.values.keys);
        }
    }

    fn maps(&self, chunk: &Chunk, change: Change) -> bool {
        let integers = matches!(chunk.physical, Physical::Integer { .. });
        integers && matches!(change, Change::Add(_) | Change::Multiply(1..))
    }

    fn map(
        &self,
        chunk: &Chunk,
        change: Change,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        let view = View::of(chunk).filter(|_| self.maps(chunk, change));
        let moved = view.filter(|view| view.change_table(change, &mut encode.keys));
        let Some(view) = moved else {
            return map_decoded(self, chunk, change, out, work, encode);
        };
        let mut codes = out.body.take_inner(0).unwrap_or_default();
        (*codes).clone_from(view.codes);
        out.begin_results(chunk.codec, chunk);
        add_lanes_section(&mut out.body, TABLE, RESULT.lane_bytes(), &encode.keys);
        out.body.inner[0] = Some(codes);
        work.tally.direct += chunk.rows as u64;
        Ok(())
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        if let Some(view) = View::of(chunk) {
            view.codes.codec.prefetch(view.codes, rows);
        }
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}
