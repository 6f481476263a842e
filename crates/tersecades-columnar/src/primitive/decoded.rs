//! The defaults of compare, fold and gather: decode unit by unit, then compute.

use std::ops::Range;

use crate::bitmap::{Bitmap, WORD_ROWS, ones};
use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::chunk::Chunk;
use crate::codec::{Codec, Work};
use crate::float_fold::fold_floats;
use crate::fold::{Asked, Fold};
use crate::kernels::kernels;
use crate::keys::fold_keys;
use crate::predicate::Predicate;
use crate::selection::{BlockSelection, Selection, Shape};
use crate::types::{Physical, float_key};
use crate::values::{Values, float_of_bits};

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
        mask_values(predicate, &mut values, &mut words[first..]);
    }
    out.intersect(within);
    work.values = values;
}

/// Writes into `words`, which are zero, which of the decoded `values` pass; floats are spoiled.
fn mask_values(predicate: &Predicate, values: &mut Values, words: &mut [u64]) {
    match (values.physical, predicate) {
        (Physical::Integer { .. }, Predicate::Keys(_)) => {}
        (Physical::Float { bytes }, Predicate::Keys(_)) => {
            for key in &mut values.keys {
                *key = float_key(float_of_bits(*key, bytes));
            }
        }
        _ => {
            for index in 0..values.len() {
                let bit = u64::from(matches(predicate, values, index));
                words[index / WORD_ROWS] |= bit << (index % WORD_ROWS);
            }
            return;
        }
    }
    for (keys, words) in values
        .keys
        .chunks(BLOCK_ROWS)
        .zip(words.chunks_mut(BLOCK_ROWS / WORD_ROWS))
    {
        mask_keys(predicate, keys, words);
    }
}

/// The rows of each unit of a chunk.
pub(crate) fn units(codec: &dyn Codec, rows: usize) -> impl Iterator<Item = Range<usize>> {
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
    if within.shape() == Shape::None {
        return;
    }
    let mut values = std::mem::take(&mut work.values);
    values.reset(chunk.physical());
    if within.shape() == Shape::Rows {
        codec.gather(chunk, within.list(), &mut values, work);
        match values.physical {
            Physical::Float { bytes } => fold_floats(&values.keys, bytes, None, asked, out),
            _ => fold_values(&values, 0..values.len(), asked, out),
        }
    } else {
        for range in units(codec, chunk.rows()) {
            let start = range.start;
            values.reset(chunk.physical());
            codec.decode(chunk, range, &mut values);
            work.tally.decoded += values.len() as u64;
            if matches!(
                values.physical,
                Physical::Integer { .. } | Physical::Float { .. }
            ) {
                fold_unit(&values, start, within, asked, out);
            } else if within.shape() == Shape::All {
                fold_values(&values, 0..values.len(), asked, out);
            } else {
                let chosen = ones(within.words(), start..start + values.len());
                fold_values(&values, chosen.map(|row| row - start), asked, out);
            }
        }
    }
    work.values = values;
}

/// Folds the decoded numbers of a unit that starts at row `start`, those that are selected.
fn fold_unit(values: &Values, start: usize, within: &Selection, asked: Asked, out: &mut Fold) {
    for (index, keys) in values.keys.chunks(BLOCK_ROWS).enumerate() {
        let mask = match within.block(start / BLOCK_ROWS + index) {
            BlockSelection::All => None,
            BlockSelection::Bits(words) => Some(words),
            BlockSelection::None => continue,
        };
        match values.physical {
            Physical::Float { bytes } => fold_floats(keys, bytes, mask, asked, out),
            physical => fold_keys(keys, physical, asked, mask, out),
        }
    }
}

/// Folds the decoded values at `indices`, one by one.
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

/// Whether every row of `codes` but nulls has a code below `end`.
///
/// Block by block, so that a short chunk of many rows needs no more memory than any other.
pub(crate) fn codes_below(codes: &Chunk, end: usize, validity: &Bitmap) -> bool {
    let valid = |row: usize| validity.is_empty() || validity.get(row);
    let mut values = Values::default();
    (0..block_count(codes.rows)).all(|block| {
        let rows = block_rows(block, codes.rows);
        values.reset(codes.physical);
        codes.codec.decode(codes, rows.clone(), &mut values);
        let mut keys = rows.zip(&values.keys);
        keys.all(|(row, code)| *code < end as u64 || !valid(row))
    })
}
