//! General-purpose compressors of bytes over values as they came.
//!
//! ```text
//! section 0:   units of 16 blocks, one after the other, each compressed by itself
//! section 1:   where each unit ends, u32
//! inner chunk: text only: bytes of each row, u32, under whichever codec suits them
//! ```
//! A unit holds the lanes (bits of the values) of its rows, or their text. One that is as long as
//! what it stands for is not compressed. No primitive works on compressed bytes; they are here for
//! what is kept or sent and hardly read, and as a yardstick. Compressing and decompressing
//! allocate.

pub mod lz4;
pub mod snappy;
pub mod zstd;

use std::fmt::Debug;
use std::ops::Range;

use crate::bitmap::WORD_ROWS;
use crate::block::UNIT_ROWS;
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work, compare_decoded, gather_decoded};
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::lane::with_lanes;
use crate::predicate::Predicate;
use crate::selection::{Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

use super::row_bytes::{self, RowEnds, TextBytes, text_of};
use super::units::{self, Units};

/// Bytes that a unit may hold however short it is, and how often it may hold its own length.
///
/// Numbers never come near; text beyond is not compressed, so that short bytes from outside cannot
/// claim much memory.
const HELD_BYTES: usize = 16 << 20;
const HELD_TIMES: usize = 1024;

/// A general-purpose compressor.
pub trait Compressor: Debug + Send + Sync + 'static {
    /// The wire id of its codec.
    const ID: u8;
    /// The codec's name.
    const NAME: &'static str;
    /// The codec's line.
    const SUMMARY: &'static str;
    /// Where it is specified.
    const SOURCE: &'static str;
    /// Whether there are levels to choose from.
    const HAS_LEVELS: bool = false;

    /// Memory and settings of a compression.
    type Encoder;
    /// Memory of a decompression.
    type Decoder;

    /// Ready to compress at `level`, or as is usual.
    ///
    /// # Errors
    /// `InvalidArgument` for a level that the compressor does not have.
    fn encoder(level: Option<f64>) -> Result<Self::Encoder>;

    /// Ready to decompress; `None` without memory.
    fn decoder() -> Option<Self::Decoder>;

    /// Appends `from`, compressed, to `to`.
    ///
    /// # Errors
    /// `Internal` when the library fails.
    fn compress(encoder: &mut Self::Encoder, from: &[u8], to: &mut Vec<u8>) -> Result<()>;

    /// Fills `to` from compressed bytes; `None` unless they hold exactly that much.
    fn decompress(decoder: &mut Self::Decoder, from: &[u8], to: &mut [u8]) -> Option<()>;
}

/// The codec of a compressor.
#[derive(Debug)]
pub struct ByteUnit<C>(pub C);

/// Whether a unit of `stored` bytes may stand for `held`.
fn may_hold(stored: usize, held: usize) -> bool {
    held <= HELD_BYTES || held / HELD_TIMES <= stored
}

/// Appends `from` as a unit.
fn add_unit<C: Compressor>(encoder: &mut C::Encoder, from: &[u8], to: &mut Vec<u8>) -> Result<()> {
    let start = to.len();
    C::compress(encoder, from, to)?;
    let stored = to.len() - start;
    if stored >= from.len() || !may_hold(stored, from.len()) {
        to.truncate(start);
        to.extend_from_slice(from);
    }
    Ok(())
}

/// The lanes or the text of `rows`, as bytes behind one another; for text, also adds the lengths.
fn collect(
    input: &Input<'_>,
    rows: impl Iterator<Item = usize>,
    lengths: &mut Vec<u32>,
    bytes: &mut Vec<u8>,
) {
    bytes.clear();
    match input.lanes {
        Lanes::Text { .. } => rows.for_each(|row| {
            let text = text_of(input, row);
            lengths.push(text.len() as u32);
            bytes.extend_from_slice(text);
        }),
        Lanes::Wide(lanes) => {
            rows.for_each(|row| bytes.extend_from_slice(&lanes[row].to_le_bytes()));
        }
        lanes => with_lanes!(lanes, lanes => {
            rows.for_each(|row| bytes.extend_from_slice(bytemuck::bytes_of(&lanes[row])));
        }, else {}),
    }
}

/// A chunk and what its units are decompressed with.
struct Reader<'a, C: Compressor> {
    chunk: &'a Chunk,
    units: Units<'a>,
    decoder: Option<C::Decoder>,
    bytes: Vec<u8>,
}

impl<'a, C: Compressor> Reader<'a, C> {
    fn new(chunk: &'a Chunk) -> Self {
        Reader {
            chunk,
            units: Units::of(chunk),
            decoder: C::decoder(),
            bytes: Vec::new(),
        }
    }

    /// Decompresses unit `index` of `held` bytes.
    ///
    /// # Errors
    /// `Corrupt`; a chunk that `validate` accepted has none.
    fn load(&mut self, index: usize, held: usize) -> Result<&[u8]> {
        let unit = self.units.get(index);
        if unit.len() == held {
            return Ok(unit);
        }
        let corrupt = || Error::corrupt(format!("unit {index} is not of {}", C::NAME));
        if !may_hold(unit.len(), held) {
            return Err(corrupt());
        }
        self.bytes.resize(held, 0);
        let decoder = self.decoder.as_mut().ok_or_else(corrupt)?;
        C::decompress(decoder, unit, &mut self.bytes).ok_or_else(corrupt)?;
        Ok(&self.bytes)
    }

    /// Appends the numbers of `rows`.
    fn decode_numbers(&mut self, rows: Range<usize>, out: &mut Values) -> Result<()> {
        let (physical, width) = (self.chunk.physical, self.chunk.physical.lane_bytes());
        for (index, unit) in units::touched(rows.clone(), self.chunk.rows) {
            let covered = units::covered(&unit, &rows);
            let bytes = self.load(index, unit.len() * width)?;
            append_lanes(
                &bytes[covered.start * width..covered.end * width],
                physical,
                out,
            );
        }
        Ok(())
    }

    /// Calls `visit` with the text of every one of `wanted`, which ascend.
    fn for_each_text(
        &mut self,
        wanted: impl IntoIterator<Item = usize>,
        ends: &mut RowEnds,
        mut visit: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let lengths = row_bytes::validated_lengths(self.chunk)?;
        let mut wanted = wanted.into_iter().peekable();
        while let Some(first) = wanted.peek().copied() {
            let Some((index, unit)) = units::touched(first..first + 1, self.chunk.rows).next()
            else {
                return Ok(());
            };
            let held = ends.load(lengths, unit.clone());
            let bytes = self.load(index, held)?;
            while let Some(row) = wanted.next_if(|row| unit.contains(row)) {
                visit(row, &bytes[ends.of(row - unit.start)]);
            }
        }
        Ok(())
    }

    /// Appends the texts of `wanted`.
    fn decode_text(
        &mut self,
        wanted: impl IntoIterator<Item = usize>,
        out: &mut Values,
        work: &mut Work,
    ) -> Result<()> {
        let mut interner = out
            .dictionary
            .get_or_insert_with(Dictionary::new)
            .interner();
        let mut ends = RowEnds::take(work);
        let done = self.for_each_text(wanted, &mut ends, |_, text| {
            // `validate` has counted the text, so that there always is a code.
            out.keys.push(interner.code(text).map_or(0, u64::from));
        });
        ends.give_back(work);
        done
    }
}

/// Appends lanes that lie in `bytes`.
fn append_lanes(bytes: &[u8], physical: Physical, out: &mut Values) {
    let flip = physical.flip();
    match physical.lane_bytes() {
        1 => out.keys.extend(bytes.iter().map(|b| u64::from(*b) ^ flip)),
        2 => {
            let lanes = bytes.as_chunks::<2>().0.iter().copied();
            out.keys
                .extend(lanes.map(|b| u64::from(u16::from_le_bytes(b)) ^ flip));
        }
        4 => {
            let lanes = bytes.as_chunks::<4>().0.iter().copied();
            out.keys
                .extend(lanes.map(|b| u64::from(u32::from_le_bytes(b)) ^ flip));
        }
        8 => {
            let lanes = bytes.as_chunks::<8>().0.iter().copied();
            out.keys.extend(lanes.map(|b| u64::from_le_bytes(b) ^ flip));
        }
        _ => {
            let lanes = bytes.as_chunks::<16>().0.iter().copied();
            out.wide.extend(lanes.map(i128::from_le_bytes));
        }
    }
}

impl<C: Compressor> Codec for ByteUnit<C> {
    fn id(&self) -> u8 {
        C::ID
    }

    fn name(&self) -> &'static str {
        C::NAME
    }

    fn summary(&self) -> &'static str {
        C::SUMMARY
    }

    fn source(&self) -> &'static str {
        C::SOURCE
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn tier(&self) -> Tier {
        Tier::Cold
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn takes_number(&self) -> bool {
        C::HAS_LEVELS
    }

    fn unit_rows(&self) -> usize {
        UNIT_ROWS
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let (mut lengths, mut held, mut stored) = (Vec::new(), Vec::new(), Vec::new());
        let rows = sample.windows.iter().cloned().flatten();
        collect(sample.input, rows, &mut lengths, &mut held);
        let added = C::encoder(None)
            .and_then(|mut encoder| add_unit::<C>(&mut encoder, &held, &mut stored));
        if added.is_err() {
            return f64::INFINITY.into();
        }
        let inner = match sample.input.physical {
            Physical::Text => row_bytes::estimate_lengths(sample, &lengths),
            _ => Estimate::from(0.0),
        };
        let bytes = stored.len() as f64 / sample.rows() as f64;
        Estimate {
            bytes_per_row: bytes + size_of::<u32>() as f64 / UNIT_ROWS as f64 + inner.bytes_per_row,
            inner_ns: inner.inner_ns,
        }
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let mut encoder = C::encoder(work.parameter)?;
        let (mut stored, mut ends, mut lengths) = (
            std::mem::take(&mut work.bytes),
            std::mem::take(&mut work.ends),
            std::mem::take(&mut work.patch_starts),
        );
        stored.clear();
        ends.clear();
        lengths.clear();
        let mut held = Vec::new();
        for (_, rows) in units::touched(0..input.rows(), input.rows()) {
            collect(input, rows, &mut lengths, &mut held);
            add_unit::<C>(&mut encoder, &held, &mut stored)?;
            ends.push(units::end(&stored)?);
        }
        Units::write(&mut out.body, &stored, &ends);
        let encoded = match input.physical {
            Physical::Text => row_bytes::encode_lengths(&lengths, out, work),
            _ => Ok(()),
        };
        (work.bytes, work.ends, work.patch_starts) = (stored, ends, lengths);
        encoded
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[1, 4]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        Units::of(chunk).validate(chunk.rows)?;
        let mut reader = Reader::<C>::new(chunk);
        if chunk.physical != Physical::Text {
            if chunk.inner().next().is_some() {
                return Err(Error::corrupt("numbers have no lengths"));
            }
            let width = chunk.physical.lane_bytes();
            return units::touched(0..chunk.rows, chunk.rows)
                .try_for_each(|(index, rows)| reader.load(index, rows.len() * width).map(drop));
        }
        let lengths = row_bytes::validate_lengths(chunk, C::NAME)?;
        let (mut ends, mut counted) = (RowEnds::default(), TextBytes::default());
        for (index, rows) in units::touched(0..chunk.rows, chunk.rows) {
            let held = ends.load(lengths, rows.clone());
            counted.add(held)?;
            let bytes = reader.load(index, held)?;
            (0..rows.len()).try_for_each(|row| {
                row_bytes::check_text(&chunk.data_type, &bytes[ends.of(row)])
            })?;
        }
        Ok(())
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let mut reader = Reader::<C>::new(chunk);
        // `validate` has decompressed every unit, so that neither fails.
        let _ = match chunk.physical {
            Physical::Text => reader.decode_text(rows, out, &mut Work::default()),
            _ => reader.decode_numbers(rows, out),
        };
    }

    fn compare(
        &self,
        chunk: &Chunk,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        if chunk.physical != Physical::Text {
            return compare_decoded(self, chunk, predicate, within, out, work);
        }
        let mut reader = Reader::<C>::new(chunk);
        let mut ends = RowEnds::take(work);
        work.tally.decoded += within.count() as u64;
        let _ = if within.shape() == Shape::Rows {
            let list = out.set_rows(chunk.rows);
            let wanted = within.list().iter().map(|row| *row as usize);
            reader.for_each_text(wanted, &mut ends, |row, text| {
                if predicate.matches_text(text) {
                    list.push(row as u32);
                }
            })
        } else {
            let words = out.set_bits(chunk.rows);
            let wanted = (0..chunk.rows).filter(|row| within.contains(*row));
            reader.for_each_text(wanted, &mut ends, |row, text| {
                let bit = u64::from(predicate.matches_text(text));
                words[row / WORD_ROWS] |= bit << (row % WORD_ROWS);
            })
        };
        out.intersect(within);
        ends.give_back(work);
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        if chunk.physical != Physical::Text {
            return gather_decoded(self, chunk, rows, out, work);
        }
        work.tally.decoded += rows.len() as u64;
        let wanted = rows.iter().map(|row| *row as usize);
        let _ = Reader::<C>::new(chunk).decode_text(wanted, out, work);
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

#[cfg(test)]
mod tests;
