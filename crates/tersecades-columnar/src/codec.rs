//! The narrow waist: what a codec must give, and what it may do better than decoding.
//!
//! A codec must name itself, accept types, `estimate`, `encode`, `validate` and `decode`. Every
//! other primitive has a default here that decodes and computes, which is also the oracle its
//! overrides are tested against. Operators call the primitives through [`Chunk`] and never name a
//! codec; [`Tally`] counts which way each value went.

use std::fmt::Debug;
use std::ops::Range;

use crate::bitmap::WORD_ROWS;
use crate::block::BLOCK_ROWS;
use crate::choose::{Estimate, Sample, choose_inside};
use crate::chunk::Chunk;
use crate::dictionary::Dictionary;
use crate::error::Result;
use crate::fold::{Asked, Fold};
use crate::goal::{Goal, Tier};
use crate::input::Input;
use crate::kernels::kernels;
use crate::predicate::Predicate;
use crate::primitive::arithmetic::{Change, add_decoded, map_decoded};
use crate::primitive::fold_by::{GroupFold, fold_by_decoded};
use crate::primitive::rank::rank_decoded;
use crate::primitive::repeat::{Repeats, repeats_decoded};
use crate::primitive::slice::slice_decoded;
use crate::scheme::Scheme;
use crate::selection::{Selection, Shape};
use crate::types::{Physical, float_key};
use crate::values::{Values, float_of_bits};

/// How many values each way of answering took; the "ran encoded" figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Values answered for by statistics, bases or runs without being looked at.
    pub skipped: u64,
    /// Values computed on in encoded form.
    pub direct: u64,
    /// Values decoded because no encoded form of the primitive exists.
    pub decoded: u64,
    /// Values fetched because the answer needed them.
    pub gathered: u64,
}

impl Tally {
    /// Adds another tally.
    pub fn merge(&mut self, other: Tally) {
        self.skipped += other.skipped;
        self.direct += other.direct;
        self.decoded += other.decoded;
        self.gathered += other.gathered;
    }
}

/// Reused memory and counters that every primitive gets.
#[derive(Debug, Default)]
pub struct Work {
    /// What happened.
    pub tally: Tally,
    /// Decoded values of a block.
    pub(crate) values: Values,
    /// Decoded values of a second column, or a single value.
    pub(crate) others: Values,
    /// A number for each code of a dictionary.
    pub(crate) totals: Vec<u64>,
    /// Row list.
    pub(crate) list: Vec<u32>,
    /// A selection narrowed by validity.
    pub(crate) selection: Selection,
    /// Bytes, one or two a block.
    pub(crate) marks: Vec<u8>,
}

/// What encoders are told, and their reused memory.
#[derive(Debug, Default)]
pub struct EncodeWork {
    /// What the column is encoded for.
    pub goal: Goal,
    /// Whether results of arithmetic are written past the caches, for results that are not read
    /// soon.
    pub past_caches: bool,
    /// The number that the scheme sets the codec by.
    pub(crate) parameter: Option<f64>,
    /// What the scheme says of the codecs inside.
    pub(crate) rest: Scheme,
    /// Codecs around this one.
    depth: usize,
    /// Memory of the codec inside.
    nested: Option<Box<EncodeWork>>,
    pub(crate) patch_starts: Vec<u32>,
    pub(crate) patch_rows: Vec<u16>,
    pub(crate) patch_keys: Vec<u64>,
    pub(crate) keys: Vec<u64>,
    pub(crate) ends: Vec<u32>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) shorts: Vec<u16>,
}

impl EncodeWork {
    /// Encodes `input` as the chunk inside another: by the scheme where it says how, else by
    /// choice. The memory of `spare` is reused.
    ///
    /// The chunk keeps no validity: its holes belong to the chunk around it.
    ///
    /// # Errors
    /// What [`Codec::encode`] says.
    pub(crate) fn encode_inner(
        &mut self,
        input: &Input<'_>,
        spare: Option<Box<Chunk>>,
    ) -> Result<Box<Chunk>> {
        let mut chunk = spare.unwrap_or_default();
        let nested = self.nested.get_or_insert_default();
        nested.goal.clone_from(&self.goal);
        nested.depth = self.depth + 1;
        match self.rest.first() {
            Some(stage) if stage.codec.accepts(input) => chunk.encode(&self.rest, input, nested)?,
            _ => {
                let candidates = choose_inside(input, &self.goal, nested.depth);
                chunk.encode(&candidates.codec().into(), input, nested)?;
                chunk.candidates = candidates;
            }
        }
        chunk.validity.clear();
        chunk.nulls = 0;
        Ok(chunk)
    }
}

/// Codes of a chunk's values and the table behind them.
#[derive(Debug, Clone, Copy)]
pub struct Codes<'a> {
    /// The codes, themselves an encoded chunk of unsigned integers.
    pub codes: &'a Chunk,
    /// The table.
    pub dictionary: &'a std::sync::Arc<Dictionary>,
}

/// One way to encode a column's values, and to work on them encoded.
///
/// Selections handed to primitives never contain a null row; the caller ([`Chunk`]) has removed
/// them, and removes them from `compare`'s result.
pub trait Codec: Debug + Send + Sync {
    /// The number that names the codec in encoded bytes, for ever.
    fn id(&self) -> u8;

    /// The name users see.
    fn name(&self) -> &'static str;

    /// One line for docs and `inspect`: layout and source.
    fn summary(&self) -> &'static str;

    /// Whether the codec can encode `input` at all.
    fn accepts(&self, input: &Input<'_>) -> bool;

    /// The warmest tier the codec is meant for.
    fn tier(&self) -> Tier {
        Tier::Hot
    }

    /// Whether values may come back changed; such a codec is used only where it is asked for.
    fn is_lossy(&self) -> bool {
        false
    }

    /// Most chunks that one of this codec holds inside.
    fn inner_max(&self) -> usize {
        0
    }

    /// Rows that are best decoded together, a multiple of [`BLOCK_ROWS`].
    fn unit_rows(&self) -> usize {
        BLOCK_ROWS
    }

    /// What encoding a column would give, judged from a sample of it.
    fn estimate(&self, sample: &Sample<'_>) -> Estimate;

    /// Encodes `input` into `out`, whose memory is reused.
    ///
    /// # Errors
    /// `LimitExceeded` when the input is larger than the codec's layout can address.
    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()>;

    /// Checks everything the primitives rely on, for chunks that come from outside.
    ///
    /// # Errors
    /// `Corrupt`, naming the block, for bytes that no `encode` could have produced.
    fn validate(&self, chunk: &Chunk) -> Result<()>;

    /// Appends the values of `rows` to `out`.
    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values);

    /// Selects the rows of `within` that pass `predicate`.
    fn compare(
        &self,
        chunk: &Chunk,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        compare_decoded(self.decoder(), chunk, predicate, within, out, work);
    }

    /// Folds the values of `within` into `out`.
    fn fold(
        &self,
        chunk: &Chunk,
        asked: Asked,
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        fold_decoded(self.decoder(), chunk, asked, within, out, work);
    }

    /// Appends the values of the listed rows, ascending, to `out`.
    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        gather_decoded(self.decoder(), chunk, rows, out, work);
    }

    /// Asks for what the listed rows need, ahead of fetching them.
    fn prefetch(&self, _chunk: &Chunk, _rows: &[u32]) {}

    /// Appends the values of `within`, each with its number of rows, to `out`.
    fn repeats(&self, chunk: &Chunk, within: &Selection, out: &mut Repeats, work: &mut Work) {
        repeats_decoded(self.decoder(), chunk, within, out, work);
    }

    /// Appends a number that sorts as the value does for each row of `within` to `out`.
    fn rank(&self, chunk: &Chunk, within: &Selection, out: &mut Vec<u64>, work: &mut Work) {
        rank_decoded(self.decoder(), chunk, within, out, work);
    }

    /// Adds the values of `within` to the groups `ids`, one for each of its rows.
    fn fold_by(
        &self,
        chunk: &Chunk,
        within: &Selection,
        ids: &[u32],
        out: &mut dyn GroupFold,
        work: &mut Work,
    ) {
        fold_by_decoded(self.decoder(), chunk, within, ids, out, work);
    }

    /// Whether [`Codec::map`] works on the encoded form.
    fn maps(&self, _chunk: &Chunk, _change: Change) -> bool {
        false
    }

    /// Fills `out` with `change` made to each integer; every result of a valid row fits `i64`.
    ///
    /// # Errors
    /// What encoding says.
    fn map(
        &self,
        chunk: &Chunk,
        change: Change,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        map_decoded(self.decoder(), chunk, change, out, work, encode)
    }

    /// Whether [`Codec::add`] works on the encoded form.
    fn adds(&self, _chunk: &Chunk, _other: &Chunk) -> bool {
        false
    }

    /// Fills `out` with the sums of two chunks of as many integers; every sum of two valid rows
    /// fits `i64`.
    ///
    /// # Errors
    /// What encoding says.
    fn add(
        &self,
        chunk: &Chunk,
        other: &Chunk,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        add_decoded(chunk, other, out, work, encode)
    }

    /// Fills `out` with the values of `rows`, which lie inside the chunk; the ends may stay open.
    ///
    /// # Errors
    /// What encoding says.
    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        slice_decoded(self.decoder(), chunk, rows, out, work, encode)
    }

    /// The chunk as codes and table, if that is how it lies.
    fn codes<'a>(&self, _chunk: &'a Chunk) -> Option<Codes<'a>> {
        None
    }

    /// This codec, as the defaults of the primitives need it.
    fn decoder(&self) -> &dyn Codec;
}

/// The default of [`Codec::compare`]: decode unit by unit, then test.
pub fn compare_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    predicate: &Predicate,
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let mut values = std::mem::take(&mut work.values);
    let rows = chunk.rows();
    if within.shape() == Shape::Rows {
        values.reset(chunk.physical());
        codec.gather(chunk, within.list(), &mut values, work);
        let list = out.set_rows(rows);
        let kept = within.list().iter().enumerate();
        list.extend(
            kept.filter(|(i, _)| matches(predicate, &values, *i))
                .map(|(_, row)| *row),
        );
        work.values = values;
        return;
    }
    let words = out.set_bits(rows);
    for range in units(codec, rows) {
        let first = range.start / WORD_ROWS;
        values.reset(chunk.physical());
        codec.decode(chunk, range, &mut values);
        work.tally.decoded += values.len() as u64;
        for index in 0..values.len() {
            let bit = u64::from(matches(predicate, &values, index));
            words[first + index / WORD_ROWS] |= bit << (index % WORD_ROWS);
        }
    }
    out.intersect(within);
    work.values = values;
}

/// The rows of each unit of a chunk.
fn units(codec: &dyn Codec, rows: usize) -> impl Iterator<Item = Range<usize>> {
    let unit = codec.unit_rows();
    (0..rows.div_ceil(unit)).map(move |index| index * unit..rows.min((index + 1) * unit))
}

/// The rows of the unit that holds `row`.
fn unit_of(codec: &dyn Codec, row: usize, rows: usize) -> Range<usize> {
    let unit = codec.unit_rows();
    let start = row / unit * unit;
    start..rows.min(start + unit)
}

/// Whether decoded row `index` passes, null or not.
fn matches(predicate: &Predicate, values: &Values, index: usize) -> bool {
    match (values.physical, &values.dictionary) {
        (Physical::Wide, _) => predicate.matches_wide(values.wide[index]),
        (Physical::Text, Some(dictionary)) => {
            predicate.matches_text(dictionary.read().get(values.keys[index] as u32))
        }
        (Physical::Float { bytes }, _) => {
            predicate.matches_key(float_key(float_of_bits(values.keys[index], bytes)))
        }
        _ => predicate.matches_key(values.keys[index]),
    }
}

/// The default of [`Codec::fold`]: decode unit by unit, then fold.
pub fn fold_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    asked: Asked,
    within: &Selection,
    out: &mut Fold,
    work: &mut Work,
) {
    let mut values = std::mem::take(&mut work.values);
    values.reset(chunk.physical());
    if within.shape() == Shape::Rows {
        codec.gather(chunk, within.list(), &mut values, work);
        fold_values(&values, 0..values.len(), asked, out);
    } else {
        for range in units(codec, chunk.rows()) {
            let start = range.start;
            values.reset(chunk.physical());
            codec.decode(chunk, range, &mut values);
            work.tally.decoded += values.len() as u64;
            let chosen = (0..values.len()).filter(|index| within.contains(start + index));
            fold_values(&values, chosen, asked, out);
        }
    }
    work.values = values;
}

/// Folds the decoded values at `indices`.
pub fn fold_values(
    values: &Values,
    indices: impl Iterator<Item = usize>,
    asked: Asked,
    out: &mut Fold,
) {
    let float = matches!(values.physical, Physical::Float { .. });
    for index in indices {
        out.count += 1;
        if float {
            let value = values.float(index);
            if asked.sum {
                out.float_sum.add(value);
            }
            if asked.squares {
                out.spread.add(value);
            }
        } else if values.physical != Physical::Text {
            let value = values.integer(index);
            if asked.sum {
                out.add_sum(value);
            }
            if asked.squares && values.physical != Physical::Wide {
                out.squares.add_square(value);
            }
        }
        if asked.ends {
            out.add_end(values.ordered(index));
        }
    }
}

/// The default of [`Codec::gather`]: decode every touched unit, keep the listed rows.
pub fn gather_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    rows: &[u32],
    out: &mut Values,
    work: &mut Work,
) {
    let mut block_values = Values::default();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let range = unit_of(codec, *first as usize, chunk.rows());
        let inside = rest.partition_point(|row| (*row as usize) < range.end);
        block_values.reset(chunk.physical());
        codec.decode(chunk, range.clone(), &mut block_values);
        work.tally.decoded += range.len() as u64;
        for row in &rest[..inside] {
            let index = *row as usize - range.start;
            match chunk.physical() {
                Physical::Wide => out.wide.push(block_values.wide[index]),
                _ => out.keys.push(block_values.keys[index]),
            }
        }
        out.dictionary = block_values.dictionary.take();
        rest = &rest[inside..];
    }
}

/// Writes into `words` which of `keys` pass the ranges of `predicate`.
pub(crate) fn mask_keys(predicate: &Predicate, keys: &[u64], words: &mut [u64]) {
    let Predicate::Keys(ranges) = predicate else {
        return;
    };
    let mut part = [0u64; BLOCK_ROWS / WORD_ROWS];
    let part = &mut part[..keys.len().div_ceil(WORD_ROWS)];
    words[..part.len()].fill(0);
    for range in ranges {
        (kernels().u64.range_mask_flat)(keys, range.low, range.high - range.low, part);
        (kernels().bitmap.or)(&mut words[..part.len()], part);
    }
}
