//! `xor`: floats by what differs from a float shortly before.
//!
//! ```text
//! section 0: where each block's stream starts, in 64-bit words, u32, blocks + 1 of them
//! section 1: the streams, each read alone
//!
//! stream = the first value's bits, then per value, lowest bit first
//!   00 index:7                             the value `index` + 1 before, again
//!   01 index:7 class:3 length:6 middle     XOR with that value: leading zeros of the class,
//!                                          `length` bits, then zeros (`length` is 5 bits for f32)
//!   10 tail                                XOR with the value before, zeros of the class as before
//!   11 class:3 tail                        the same with its own class
//! ```
//! Neighbouring measurements share sign, exponent and leading digits, so their XOR starts with
//! zeros; equal low bits within the last 128 values are found by a table. Nulls repeat the value
//! before. Whole blocks are cut out as they are; all
//! else decodes. Pricing a column allocates.
//! Example: `[1.0, 1.0]` is the 64 bits of `1.0`, then `00` and the index 0: two words.
//!
//! Source: Pelkonen et al., Gorilla, VLDB 2015; Liakos, Papakonstantinopoulou and Kotidis, Chimp,
//! VLDB 2022.

use std::ops::Range;

use crate::bits::{BitReader, BitWriter};
use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work};
use crate::error::{Error, Result};
use crate::goal::Tier;
use crate::input::Input;
use crate::primitive::slice::slice_decoded;
use crate::stream::{self, Streams};
use crate::types::Physical;
use crate::values::Values;

const STREAMS: usize = 0;

/// Leading zeros that each class stands for.
const CLASSES: [u32; 8] = [0, 8, 12, 16, 18, 20, 22, 24];
const CLASS_BITS: u32 = 3;

/// Values that may be referred to.
const NEAR: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 7;

/// Low bits by which an earlier value is found.
const LOW_BITS: u32 = 14;

/// Values, by their low bits: row in the block plus one.
type Table = [u16; 1 << LOW_BITS];

const REPEAT: u64 = 0b00;
const MIDDLE: u64 = 0b01;
const TAIL: u64 = 0b10;
const TAIL_OF_CLASS: u64 = 0b11;

/// Floats by what differs from a float shortly before.
#[derive(Debug)]
pub struct Xor;

/// How wide values are.
#[derive(Debug, Clone, Copy)]
struct Width {
    bits: u32,
    length_bits: u32,
}

impl Width {
    fn of(physical: Physical) -> Self {
        match physical.lane_bytes() {
            4 => Width {
                bits: 32,
                length_bits: 5,
            },
            _ => Width {
                bits: 64,
                length_bits: 6,
            },
        }
    }

    /// The class with the most leading zeros that `difference` has.
    fn class(self, difference: u64) -> usize {
        let zeros = difference.leading_zeros() - (u64::BITS - self.bits);
        CLASSES.partition_point(|class| *class <= zeros) - 1
    }
}

/// Appends the stream of `values`, of which at most a block is given.
fn encode_block(values: &[u64], width: Width, table: &mut Table, out: &mut Vec<u8>) {
    table.fill(0);
    let mut writer = BitWriter::new(out);
    let mut last_class = 0;
    for (row, value) in values.iter().enumerate() {
        let slot = &mut table[*value as usize % table.len()];
        let found = usize::from(*slot).checked_sub(1);
        *slot = row as u16 + 1;
        if row == 0 {
            writer.put(*value, width.bits);
            continue;
        }
        let found = found.filter(|found| row - found <= NEAR);
        if let Some(found) = found {
            let index = (row - found - 1) as u64;
            let difference = value ^ values[found];
            if difference == 0 {
                writer.put(REPEAT | index << 2, 2 + INDEX_BITS);
                continue;
            }
            last_class = width.class(difference);
            let trailing = difference.trailing_zeros();
            let length = width.bits - CLASSES[last_class] - trailing;
            writer.put(MIDDLE | index << 2, 2 + INDEX_BITS);
            writer.put(last_class as u64, CLASS_BITS);
            writer.put(u64::from(length), width.length_bits);
            writer.put(difference >> trailing, length);
            continue;
        }
        let difference = value ^ values[row - 1];
        let class = width.class(difference);
        if class == last_class {
            writer.put(TAIL, 2);
        } else {
            writer.put(TAIL_OF_CLASS | (class as u64) << 2, 2 + CLASS_BITS);
        }
        last_class = class;
        writer.put(difference, width.bits - CLASSES[class]);
    }
    writer.finish();
}

/// Fills `values` from their stream; any bits are values.
fn decode_block(stream: &[u8], width: Width, values: &mut [u64]) {
    let mut reader = BitReader::new(stream);
    let mut class = 0;
    for row in 0..values.len() {
        if row == 0 {
            values[row] = reader.take(width.bits);
            continue;
        }
        let form = reader.take(2);
        values[row] = if form == REPEAT || form == MIDDLE {
            let index = reader.take(INDEX_BITS) as usize;
            let near = (row - 1).checked_sub(index).map_or(0, |near| values[near]);
            if form == REPEAT {
                near
            } else {
                class = reader.take(CLASS_BITS) as usize;
                let length = reader.take(width.length_bits) as u32;
                let length = length.min(width.bits - CLASSES[class]);
                let trailing = width.bits - CLASSES[class] - length;
                near ^ reader.take(length).checked_shl(trailing).unwrap_or(0)
            }
        } else {
            if form == TAIL_OF_CLASS {
                class = reader.take(CLASS_BITS) as usize;
            }
            values[row - 1] ^ reader.take(width.bits - CLASSES[class])
        };
    }
}

/// Replaces `out` by the bits of `rows`, at most a block; a null has those of the value before.
fn load(input: &Input<'_>, rows: Range<usize>, out: &mut Vec<u64>) {
    let mut last = 0;
    out.clear();
    out.extend(rows.map(|row| {
        if input.is_valid(row) {
            last = input.lanes.bits(row);
        }
        last
    }));
}

impl Codec for Xor {
    fn id(&self) -> u8 {
        14
    }

    fn name(&self) -> &'static str {
        "xor"
    }

    fn summary(&self) -> &'static str {
        "floats as the bits in which they differ from one of the 128 before, block by block"
    }

    fn source(&self) -> &'static str {
        "Gorilla (Pelkonen et al., VLDB 2015); Chimp (Liakos et al., PVLDB 15, 2022)"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        input.is_float()
    }

    fn tier(&self) -> Tier {
        Tier::Cold
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let width = Width::of(sample.input.physical);
        let (mut values, mut bytes) = (Vec::new(), Vec::new());
        let mut table: Table = [0; 1 << LOW_BITS];
        for window in sample.windows {
            for start in window.clone().step_by(BLOCK_ROWS) {
                let rows = start..window.end.min(start + BLOCK_ROWS);
                load(sample.input, rows, &mut values);
                encode_block(&values, width, &mut table, &mut bytes);
            }
        }
        let starts = 4.0 / BLOCK_ROWS as f64;
        (bytes.len() as f64 / sample.rows() as f64 + starts).into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let width = Width::of(input.physical);
        let mut table: Table = [0; 1 << LOW_BITS];
        stream::begin(work);
        for block in 0..block_count(input.rows()) {
            load(input, block_rows(block, input.rows()), &mut work.keys);
            encode_block(&work.keys, width, &mut table, &mut work.bytes);
            stream::end_block(work);
        }
        stream::write(&mut out.body, STREAMS, work);
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[4, 1]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        match chunk.physical {
            Physical::Float { .. } => Streams::of(chunk, STREAMS).validate(chunk.rows),
            _ => Err(Error::corrupt("an xor chunk of no floats")),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let streams = Streams::of(chunk, STREAMS);
        let mut values = [0; BLOCK_ROWS];
        for block in rows.start / BLOCK_ROWS..block_count(rows.end) {
            let start = block * BLOCK_ROWS;
            let values = &mut values[..(rows.end - start).min(BLOCK_ROWS)];
            decode_block(streams.of_block(block), Width::of(chunk.physical), values);
            out.keys
                .extend_from_slice(&values[rows.start.saturating_sub(start)..]);
        }
    }

    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        if !rows.start.is_multiple_of(BLOCK_ROWS) {
            return slice_decoded(self, chunk, rows, out, work, encode);
        }
        out.begin_slice(chunk.codec, chunk, rows.clone());
        let blocks = rows.start / BLOCK_ROWS..block_count(rows.end);
        Streams::of(chunk, STREAMS).collect(blocks, encode);
        stream::write(&mut out.body, STREAMS, encode);
        Ok(())
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}
