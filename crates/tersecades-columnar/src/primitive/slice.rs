//! `slice`: a range of rows as a chunk of its own.

use std::ops::Range;

use crate::bitmap::WORD_ROWS;
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::{CodeLanes, Input, Lanes};
use crate::selection::Selection;
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;

/// The default of [`Codec::slice`]: decode the rows, encode them under the codec that suits them.
///
/// # Errors
/// What encoding says.
pub fn slice_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    rows: Range<usize>,
    out: &mut Chunk,
    work: &mut Work,
    encode: &mut EncodeWork,
) -> Result<()> {
    let mut values = std::mem::take(&mut work.values);
    values.reset(chunk.physical);
    codec.decode(chunk, rows.clone(), &mut values);
    work.tally.decoded += values.len() as u64;
    slice_validity(chunk, rows, &mut values);
    let encoded = encode_values(chunk, &values, out, encode);
    work.values = values;
    encoded
}

fn slice_validity(chunk: &Chunk, rows: Range<usize>, values: &mut Values) {
    if chunk.nulls == 0 {
        return;
    }
    values.validity.fill(rows.len(), true);
    let words = values.validity.words_mut();
    copy_bits(chunk.validity.words(), rows, words);
}

/// Copies the bits of `rows` to the start of `out`, whose length fits them.
fn copy_bits(words: &[u64], rows: Range<usize>, out: &mut [u64]) {
    let (first, shift) = (rows.start / WORD_ROWS, rows.start % WORD_ROWS);
    for (index, word) in out.iter_mut().enumerate() {
        let low = words[first + index] >> shift;
        let high = words.get(first + index + 1).copied().unwrap_or(0);
        *word = low | high.checked_shl((WORD_ROWS - shift) as u32).unwrap_or(0);
    }
    crate::selection::clear_tail(out, rows.len());
}

/// Encodes decoded values as values of the type of `chunk`.
fn encode_values(
    chunk: &Chunk,
    values: &Values,
    out: &mut Chunk,
    encode: &mut EncodeWork,
) -> Result<()> {
    let flip = values.physical.flip();
    let bits = values.keys.iter().map(|key| key ^ flip);
    let (mut bytes, mut shorts): (Vec<u8>, Vec<u16>) = (Vec::new(), Vec::new());
    let (mut words, mut longs): (Vec<u32>, Vec<u64>) = (Vec::new(), Vec::new());
    let lanes = match (values.physical, values.physical.lane_bytes()) {
        (Physical::Text, _) => {
            words.extend(bits.map(|bits| bits as u32));
            let dictionary = values.dictionary.as_ref();
            Lanes::Codes {
                codes: CodeLanes::U32(&words),
                dictionary: dictionary.ok_or_else(|| Error::internal("text has a table"))?,
            }
        }
        (Physical::Wide, _) => Lanes::Wide(&values.wide),
        (_, 1) => {
            bytes.extend(bits.map(|bits| bits as u8));
            Lanes::U8(&bytes)
        }
        (_, 2) => {
            shorts.extend(bits.map(|bits| bits as u16));
            Lanes::U16(&shorts)
        }
        (_, 4) => {
            words.extend(bits.map(|bits| bits as u32));
            Lanes::U32(&words)
        }
        _ => {
            longs.extend(bits);
            Lanes::U64(&longs)
        }
    };
    let validity = Some(&values.validity);
    out.encode_chosen(
        &Input {
            data_type: &chunk.data_type,
            physical: chunk.physical,
            lanes,
            validity: validity.filter(|validity| !validity.is_empty()),
            array: None,
        },
        encode,
    )
}

impl Chunk {
    /// Fills `out` with the values of `rows`.
    ///
    /// # Errors
    /// `InvalidArgument` for rows outside the chunk, and what encoding says.
    ///
    /// # Cost
    /// A copy of encoded bytes where the codec cuts there, which all do at the start of a block;
    /// else decoding and encoding. The ends of the rows are found in one pass.
    pub fn slice(
        &self,
        rows: Range<usize>,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        if rows.start > rows.end || rows.end > self.rows {
            return Err(Error::invalid(format!(
                "rows {rows:?} of a chunk of {} rows",
                self.rows
            )));
        }
        self.codec.slice(self, rows, out, work, encode)?;
        if !out.stats.known {
            out.settle(work);
        }
        Ok(())
    }

    /// Becomes an empty chunk of the type of `source` under `codec`, as null as its `rows` are.
    pub(crate) fn begin_slice(
        &mut self,
        codec: &'static dyn Codec,
        source: &Chunk,
        rows: Range<usize>,
    ) {
        self.begin(codec, &source.data_type, source.physical, rows.len());
        self.body.bytes.clear();
        if source.nulls == 0 {
            return;
        }
        self.validity.fill(rows.len(), true);
        copy_bits(
            source.validity.words(),
            rows.clone(),
            self.validity.words_mut(),
        );
        self.nulls = rows.len() - self.validity.count();
        if self.nulls == 0 {
            self.validity.clear();
        }
    }

    /// Finds the ends of the values, which some primitives leave open.
    pub fn settle(&mut self, work: &mut Work) {
        self.settle_stats(&Selection::all(self.rows), work);
    }

    /// Finds the ends of the values of `within`.
    pub(crate) fn settle_stats(&mut self, within: &Selection, work: &mut Work) {
        if !matches!(
            self.physical,
            Physical::Integer { .. } | Physical::Float { .. }
        ) {
            return;
        }
        let mut fold = Fold::default();
        let ends = Asked {
            ends: true,
            ..Asked::default()
        };
        self.fold(ends, within, &mut fold, work);
        if fold.count > 0 {
            self.stats = Stats::from_ends(fold.min as u64, fold.max as u64);
        }
    }
}
