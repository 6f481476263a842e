//! `symbols`: text as codes of one byte for its most frequent strings of up to eight bytes.
//!
//! ```text
//! section 0:   length of each symbol, 1 to 8, u8; at most 255 symbols
//! section 1:   the symbols, u64, first byte lowest
//! section 2:   codes of all rows, one row after the other; 255 says that the next byte is itself
//! section 3:   where each block's codes start, u32
//! inner chunk: codes of each row, u32, under whichever codec suits them
//! ```
//! For text of too many distinct values for a dictionary. Each row is decoded by itself, so a
//! lookup reads one row, and a comparison reads a row only as far as it agrees with the constant.
//! The table is learned from a sample of the chunk. Encoding and decoding allocate.
//! Example: with symbols `http://`, `.com`, `ab` the text `http://ab.com` is the codes `0, 2, 1`.
//!
//! Source: P. Boncz, T. Neumann, V. Leis, "FSST: Fast Random Access String Compression",
//! PVLDB 13(11), 2020.

mod table;

use std::ops::Range;

use fsst::Compressor;

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work};
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::predicate::Predicate;
use crate::selection::{Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

use super::row_bytes::{self, RowEnds, TextBytes, text_of};
use table::Table;

const LENGTHS: usize = 0;
const SYMBOLS: usize = 1;
const CODES: usize = 2;
const STARTS: usize = 3;

/// Most rows that symbols are learned from.
const SAMPLE_ROWS: usize = 4096;

/// Text as codes of its most frequent strings.
#[derive(Debug)]
pub struct Symbols;

/// A symbol table made for the texts of about [`SAMPLE_ROWS`] of `rows`.
fn train(input: &Input<'_>, rows: impl ExactSizeIterator<Item = usize>) -> Compressor {
    let step = rows.len().div_ceil(SAMPLE_ROWS).max(1);
    let texts = rows.step_by(step).map(|row| text_of(input, row));
    Compressor::train(&texts.filter(|text| !text.is_empty()).collect())
}

/// The parts of a chunk.
struct View<'a> {
    table: Table,
    codes: &'a [u8],
    starts: &'a [u32],
    lengths: &'a Chunk,
}

impl<'a> View<'a> {
    fn of(chunk: &'a Chunk) -> Option<Self> {
        Some(View {
            table: Table::of(chunk),
            codes: chunk.body.section(CODES),
            starts: chunk.body.section(STARTS),
            lengths: row_bytes::lengths(chunk)?,
        })
    }

    /// Calls `visit` with the codes of every one of `wanted`, which ascend.
    fn for_each(
        &self,
        wanted: impl IntoIterator<Item = usize>,
        ends: &mut RowEnds,
        mut visit: impl FnMut(usize, &'a [u8]),
    ) {
        let mut loaded = 0..0;
        let mut codes = self.codes;
        for row in wanted {
            if !loaded.contains(&row) {
                let Some(rows) = row_bytes::stretches(self.lengths, row..row + 1).next() else {
                    return;
                };
                ends.load(self.lengths, rows.clone());
                codes = &self.codes[self.starts[rows.start / BLOCK_ROWS] as usize..];
                loaded = rows;
            }
            visit(row, &codes[ends.of(row - loaded.start)]);
        }
    }

    fn decode(&self, wanted: impl IntoIterator<Item = usize>, out: &mut Values, work: &mut Work) {
        let mut interner = out
            .dictionary
            .get_or_insert_with(Dictionary::new)
            .interner();
        let (mut ends, mut text) = (RowEnds::take(work), std::mem::take(&mut work.marks));
        self.for_each(wanted, &mut ends, |_, codes| {
            text.clear();
            self.table.append(codes, &mut text);
            // `validate` has counted the text, so that there always is a code.
            out.keys.push(interner.code(&text).map_or(0, u64::from));
        });
        work.marks = text;
        ends.give_back(work);
    }
}

impl Codec for Symbols {
    fn id(&self) -> u8 {
        17
    }

    fn name(&self) -> &'static str {
        "symbols"
    }

    fn summary(&self) -> &'static str {
        "text as one-byte codes of its most frequent strings, row by row (FSST)"
    }

    fn source(&self) -> &'static str {
        "FSST (Boncz, Neumann and Leis, PVLDB 13, 2020)"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.lanes, Lanes::Text { .. })
    }

    fn tier(&self) -> Tier {
        Tier::Cold
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let rows: Vec<usize> = sample.windows.iter().cloned().flatten().collect();
        let compressor = train(sample.input, rows.iter().copied());
        let texts: Vec<&[u8]> = rows.iter().map(|row| text_of(sample.input, *row)).collect();
        let (mut codes, mut ends) = (Vec::new(), Vec::new());
        compressor.compress_bulk_into::<LANES>(&texts, &mut codes, &mut ends);
        let mut start = 0;
        let lengths: Vec<u32> = ends
            .iter()
            .map(|end| (*end - std::mem::replace(&mut start, *end)) as u32)
            .collect();
        let inner = row_bytes::estimate_lengths(sample, &lengths);
        let table = (compressor.n_symbols() * 9) as f64 / sample.input.rows().max(1) as f64;
        let bytes = codes.len() as f64 / sample.rows() as f64 + 4.0 / BLOCK_ROWS as f64;
        Estimate {
            bytes_per_row: bytes + table + inner.bytes_per_row,
            inner_ns: inner.inner_ns,
        }
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let rows = input.rows();
        let compressor = train(input, 0..rows);
        let (mut codes, mut ends, mut lengths) = (
            std::mem::take(&mut work.bytes),
            std::mem::take(&mut work.keys),
            std::mem::take(&mut work.ends),
        );
        codes.clear();
        lengths.clear();
        let starts = out.body.add_section::<u32>(STARTS, block_count(rows));
        let mut texts: Vec<&[u8]> = Vec::with_capacity(BLOCK_ROWS);
        for (block, first) in starts.iter_mut().enumerate() {
            texts.clear();
            texts.extend(block_rows(block, rows).map(|row| text_of(input, row)));
            let mut start = codes.len() as u64;
            *first = u32::try_from(start)
                .map_err(|_| Error::limit("the codes of a chunk of text passed 4 GiB"))?;
            ends.clear();
            compressor.compress_bulk_into::<LANES>(&texts, &mut codes, &mut ends);
            let length = |end: &u64| (*end - std::mem::replace(&mut start, *end)) as u32;
            lengths.extend(ends.iter().map(length));
        }
        let symbols = compressor.symbol_table();
        let values = out.body.add_section::<u64>(SYMBOLS, symbols.len());
        values
            .iter_mut()
            .zip(symbols)
            .for_each(|(to, from)| *to = from.to_u64());
        let sizes = compressor.symbol_lengths();
        out.body
            .add_section::<u8>(LENGTHS, sizes.len())
            .copy_from_slice(sizes);
        out.body
            .add_section::<u8>(CODES, codes.len())
            .copy_from_slice(&codes);
        let encoded = row_bytes::encode_lengths(&lengths, out, work);
        (work.bytes, work.keys, work.ends) = (codes, ends, lengths);
        encoded
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[1, 8, 1, 4]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        if chunk.physical != Physical::Text {
            return Err(Error::corrupt("a symbols chunk of a type it cannot hold"));
        }
        let lengths = row_bytes::validate_lengths(chunk, self.name())?;
        Table::validate(chunk)?;
        let (table, codes) = (Table::of(chunk), chunk.body.section::<u8>(CODES));
        let starts = chunk.body.section::<u32>(STARTS);
        if starts.len() != block_count(chunk.rows) {
            return Err(Error::corrupt("starts do not match the blocks"));
        }
        let (mut ends, mut counted) = (Values::default(), TextBytes::default());
        let (mut text, mut start) = (Vec::new(), 0);
        for rows in row_bytes::stretches(lengths, 0..chunk.rows) {
            ends.reset(lengths.physical);
            lengths.codec.decode(lengths, rows.clone(), &mut ends);
            for (row, length) in rows.zip(&ends.keys) {
                if row % BLOCK_ROWS == 0 && starts[row / BLOCK_ROWS] as usize != start {
                    return Err(Error::corrupt("a block's codes start elsewhere"));
                }
                let end = start + *length as usize;
                let codes = codes.get(start..end);
                let codes = codes.filter(|codes| table.has_all(codes));
                let codes = codes.ok_or_else(|| Error::corrupt("a code has no symbol"))?;
                text.clear();
                table.append(codes, &mut text);
                counted.add(text.len())?;
                row_bytes::check_text(&chunk.data_type, &text)?;
                start = end;
            }
        }
        match start == codes.len() {
            true => Ok(()),
            false => Err(Error::corrupt("codes behind the last row")),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        if let Some(view) = View::of(chunk) {
            view.decode(rows, out, &mut Work::default());
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
        let (Some(view), Predicate::Text(predicate)) = (View::of(chunk), predicate) else {
            return out.set_none(chunk.rows);
        };
        let table = &view.table;
        let passes =
            |codes: &[u8]| predicate.matches_ordered(|constant| table.order(codes, constant));
        let mut ends = RowEnds::take(work);
        if within.shape() == Shape::Rows {
            let list = out.set_rows(chunk.rows);
            let wanted = within.list().iter().map(|row| *row as usize);
            view.for_each(wanted, &mut ends, |row, codes| {
                if passes(codes) {
                    list.push(row as u32);
                }
            });
        } else {
            let words = out.set_bits(chunk.rows);
            let wanted = (0..chunk.rows).filter(|row| within.contains(*row));
            view.for_each(wanted, &mut ends, |row, codes| {
                words[row / WORD_ROWS] |= u64::from(passes(codes)) << (row % WORD_ROWS);
            });
            out.intersect(within);
        }
        work.tally.direct += within.count() as u64;
        ends.give_back(work);
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        if let Some(view) = View::of(chunk) {
            work.tally.decoded += rows.len() as u64;
            view.decode(rows.iter().map(|row| *row as usize), out, work);
        }
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

/// Texts that are encoded at a time.
const LANES: usize = Compressor::DEFAULT_BULK_LANES;
