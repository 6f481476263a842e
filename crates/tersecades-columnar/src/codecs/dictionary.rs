//! `dictionary`: text as codes of a table that keeps the text.
//!
//! ```text
//! inner chunk: the codes, unsigned integers of 1, 2 or 4 bytes under whichever codec suits them
//! dictionary:  texts in order of first appearance, shared by all chunks of a column
//! ```
//! The codes are a chunk of their own, so run lengths or a constant of codes come for free. A
//! comparison is made once per distinct text and turned into ranges of codes.
//! Example: `["eu", "us", "eu"]` is the codes `0, 1, 0` and the table `["eu", "us"]`.
//!
//! Source: TerseCades (ATC'18) §3.1 hashes strings; here the text is kept, so nothing can merge.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;

use crate::bitmap::WORD_ROWS;
use crate::block::{block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, Codes, EncodeWork, Work, fold_decoded};
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::{CodeLanes, Input, Lanes};
use crate::predicate::{PassingCodes, Predicate};
use crate::primitive::decoded::codes_below;
use crate::primitive::repeat::Repeats;
use crate::selection::{Selection, Shape};
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;

/// Text as codes of a table that keeps the text.
#[derive(Debug)]
pub struct DictionaryCodes;

/// The narrowest unsigned type that is known to hold the codes.
fn code_type(codes: CodeLanes<'_>, dictionary: &Dictionary) -> DataType {
    match (codes, dictionary.len()) {
        (CodeLanes::U8(_), _) | (_, 0..=0x100) => DataType::UInt8,
        (_, 0x101..=0x1_0000) => DataType::UInt16,
        _ => DataType::UInt32,
    }
}

fn inner(chunk: &Chunk) -> Option<&Chunk> {
    chunk.body.inner[0].as_deref()
}

/// Gives nulls the code 0: whatever lies in their holes may be none of a text.
fn clear_holes(chunk: &Chunk, rows: impl Iterator<Item = usize>, codes: &mut [u64]) {
    if chunk.nulls() == 0 {
        return;
    }
    for (row, code) in rows.zip(codes) {
        if !chunk.validity.get(row) {
            *code = 0;
        }
    }
}

/// Tests the codes of `within` one by one.
fn look_up(
    codes: &Chunk,
    passing: &PassingCodes,
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let mut values = std::mem::take(&mut work.values);
    if within.shape() == Shape::Rows {
        values.reset(codes.physical);
        codes.codec.gather(codes, within.list(), &mut values, work);
        let rows = within.list().iter().zip(&values.keys);
        let passed = rows.filter(|(_, code)| passing.contains(**code));
        out.set_rows(codes.rows).extend(passed.map(|(row, _)| *row));
    } else {
        let words = out.set_bits(codes.rows);
        for block in 0..block_count(codes.rows) {
            let rows = block_rows(block, codes.rows);
            values.reset(codes.physical);
            codes.codec.decode(codes, rows.clone(), &mut values);
            let tested = values.keys.chunks(WORD_ROWS);
            for (word, codes) in words[rows.start / WORD_ROWS..].iter_mut().zip(tested) {
                let bit = |(at, code): (usize, &u64)| u64::from(passing.contains(*code)) << at;
                *word = codes.iter().enumerate().map(bit).sum();
            }
        }
        out.intersect(within);
    }
    work.tally.direct += within.count() as u64;
    work.values = values;
}

impl Codec for DictionaryCodes {
    fn id(&self) -> u8 {
        4
    }

    fn name(&self) -> &'static str {
        "dictionary"
    }

    fn summary(&self) -> &'static str {
        "codes of 1, 2 or 4 bytes, themselves encoded, and a table that keeps the text"
    }

    fn source(&self) -> &'static str {
        "TerseCades (ATC 2018) §3.1, but with the text kept"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.lanes, Lanes::Codes { .. })
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let bytes = match sample.input.lanes {
            Lanes::Codes { codes, dictionary } => match code_type(codes, dictionary) {
                DataType::UInt8 => 1.0,
                DataType::UInt16 => 2.0,
                _ => 4.0,
            },
            _ => f64::INFINITY,
        };
        bytes.into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let Lanes::Codes { codes, dictionary } = input.lanes else {
            return Err(Error::internal("dictionary takes codes"));
        };
        let data_type = code_type(codes, dictionary);
        let (mut bytes, mut shorts) = (
            std::mem::take(&mut work.bytes),
            std::mem::take(&mut work.shorts),
        );
        let lanes = match (codes, &data_type) {
            (CodeLanes::U8(codes), _) => Lanes::U8(codes),
            (CodeLanes::U32(codes), DataType::UInt8) => {
                bytes.clear();
                bytes.extend(codes.iter().map(|code| *code as u8));
                Lanes::U8(&bytes)
            }
            (CodeLanes::U32(codes), DataType::UInt16) => {
                shorts.clear();
                shorts.extend(codes.iter().map(|code| *code as u16));
                Lanes::U16(&shorts)
            }
            (CodeLanes::U32(codes), _) => Lanes::U32(codes),
        };
        let code_input = Input {
            data_type: &data_type,
            physical: Physical::of(&data_type)?,
            lanes,
            validity: input.validity,
            array: None,
        };
        let encoded = out.body.encode_inner(0, &code_input, work);
        (work.bytes, work.shorts) = (bytes, shorts);
        encoded?;
        out.body.dictionary = Some(Arc::clone(dictionary));
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        let (Some(inner), Some(dictionary)) = (inner(chunk), chunk.dictionary()) else {
            return Err(Error::corrupt(
                "a dictionary chunk lacks its codes or its table",
            ));
        };
        if chunk.physical != Physical::Text || inner.rows != chunk.rows {
            return Err(Error::corrupt("codes do not match the number of rows"));
        }
        let unsigned = matches!(
            inner.physical,
            Physical::Integer {
                signed: false,
                bytes: 1..=4
            }
        );
        if !unsigned || inner.codec.codes(inner).is_some() {
            return Err(Error::corrupt("codes are not unsigned integers"));
        }
        inner.codec.validate(inner)?;
        match codes_below(inner, dictionary.len(), &chunk.validity) {
            true => Ok(()),
            false => Err(Error::corrupt("a code has no text")),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        if let Some(inner) = inner(chunk) {
            let first = out.keys.len();
            inner.codec.decode(inner, rows.clone(), out);
            clear_holes(chunk, rows, &mut out.keys[first..]);
            out.dictionary = chunk.dictionary().map(Arc::clone);
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
        match (inner(chunk), chunk.dictionary()) {
            (Some(inner), Some(dictionary)) => {
                let passing = predicate.over_codes(dictionary);
                match passing.ranges() {
                    Some(ranges) => inner.compare(ranges, within, out, work),
                    None => look_up(inner, &passing, within, out, work),
                }
            }
            _ => out.set_none(chunk.rows),
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
        let counted = Asked::default();
        match inner(chunk) {
            Some(inner) if asked == counted => inner.fold(counted, within, out, work),
            _ => fold_decoded(self, chunk, asked, within, out, work),
        }
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        if let Some(inner) = inner(chunk) {
            let first = out.keys.len();
            inner.codec.gather(inner, rows, out, work);
            let rows = rows.iter().map(|row| *row as usize);
            clear_holes(chunk, rows, &mut out.keys[first..]);
            out.dictionary = chunk.dictionary().map(Arc::clone);
        }
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        if let Some(inner) = inner(chunk) {
            inner.codec.prefetch(inner, rows);
        }
    }

    fn repeats(&self, chunk: &Chunk, within: &Selection, out: &mut Repeats, work: &mut Work) {
        if let (Some(inner), Some(dictionary)) = (inner(chunk), chunk.dictionary()) {
            inner.codec.repeats(inner, within, out, work);
            out.values.dictionary = Some(Arc::clone(dictionary));
            out.merge_codes(dictionary.len(), &mut work.totals);
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
        let mut part = out.body.take_inner(0).unwrap_or_default();
        out.begin_slice(chunk.codec, chunk, rows.clone());
        if let Some(inner) = inner(chunk) {
            inner.codec.slice(inner, rows, &mut part, work, encode)?;
            let mut valid = Selection::all(out.rows);
            if out.nulls > 0 {
                valid.retain_words(out.validity.words());
            }
            part.stats = Stats::default();
            part.settle_stats(&valid, work);
        }
        out.body.inner[0] = Some(part);
        out.body.dictionary = chunk.dictionary().map(Arc::clone);
        Ok(())
    }

    fn codes<'a>(&self, chunk: &'a Chunk) -> Option<Codes<'a>> {
        Some(Codes {
            codes: inner(chunk)?,
            dictionary: chunk.dictionary()?,
        })
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}
