//! `constant`: one value, and the exceptions.
//!
//! ```text
//! section 0:    the value's bits, u64
//! sections 1-3: patches: starts, rows, keys (see `patches`)
//! ```
//! For columns that are mostly one value, such as error codes. A comparison that the value fails
//! reads the patches alone: about 60 bytes per 1,024 rows of Pingmesh's error codes.
//! Example: `[0, 0, 5, 0]` is the value `0` and the patch `(row 2, 5)`.

use std::ops::Range;

use crate::bitmap::{Bitmap, WORD_ROWS};
use crate::block::{BLOCK_ROWS, block_count};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, LANE_ITEM, Work, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::{Input, Lanes};
use crate::kernels::kernels;
use crate::lane::{KeyLane, with_lanes};
use crate::narrow::single_range;
use crate::patch::{self as patches, Patches};
use crate::predicate::Predicate;
use crate::primitive::arithmetic::{Change, add_decoded};
use crate::primitive::fold_by::{GroupFold, fold_by_decoded, single};
use crate::primitive::pair::Bands;
use crate::primitive::rank::{rank_decoded, rank_of};
use crate::primitive::repeat::{Repeats, repeats_decoded};
use crate::selection::{Selection, Shape};
use crate::types::{Physical, float_key};
use crate::values::{Values, float_of_bits};

const VALUE: usize = 0;
const PATCHES: usize = 1;

/// One value, and the exceptions.
#[derive(Debug)]
pub struct Constant;

/// The value most rows have, if one has more than half of those looked at (Boyer and Moore's
/// vote).
fn majority(input: &Input<'_>, rows: impl Iterator<Item = usize>) -> u64 {
    let (mut winner, mut lead) = (0, 0usize);
    for row in rows.filter(|row| input.is_valid(*row)) {
        let key = input.key(row);
        match (lead, key == winner) {
            (0, _) => (winner, lead) = (key, 1),
            (_, true) => lead += 1,
            (_, false) => lead -= 1,
        }
    }
    winner
}

/// Collects every valid row whose key is not `value`.
fn collect_patches<T: KeyLane>(
    lanes: &[T],
    flip: u64,
    value: u64,
    validity: Option<&Bitmap>,
    work: &mut EncodeWork,
) {
    let range_mask = T::of(kernels()).range_mask_flat;
    for (block, values) in lanes.chunks(BLOCK_ROWS).enumerate() {
        patches::begin_block(work);
        let mut usual = [0; BLOCK_ROWS / WORD_ROWS];
        range_mask(values, T::cut(value ^ flip), T::cut(0), &mut usual);
        for (index, lanes) in values.chunks(WORD_ROWS).enumerate() {
            let word = block * BLOCK_ROWS / WORD_ROWS + index;
            let valid = validity.map_or(u64::MAX, |validity| validity.words()[word]);
            let inside = u64::MAX >> (WORD_ROWS - lanes.len());
            let mut odd = !usual[index] & valid & inside;
            while odd != 0 {
                let row = odd.trailing_zeros() as usize;
                work.patch_rows.push((index * WORD_ROWS + row) as u16);
                work.patch_keys.push(lanes[row].key() ^ flip);
                odd &= odd - 1;
            }
        }
    }
}

fn value_of(chunk: &Chunk) -> u64 {
    chunk.body.section::<u64>(VALUE)[0]
}

fn passes(physical: Physical, predicate: &Predicate, key: u64) -> bool {
    match physical {
        Physical::Float { bytes } => predicate.matches_key(float_key(float_of_bits(key, bytes))),
        _ => predicate.matches_key(key),
    }
}

/// Selects the rows of `within` whose keys pass.
fn compare_by(
    chunk: &Chunk,
    pass: impl Fn(u64) -> bool,
    (within, out): (&Selection, &mut Selection),
    work: &mut Work,
) {
    let patches = Patches::of(chunk, PATCHES);
    patches.prefetch_start();
    let usual = pass(value_of(chunk));
    work.tally.direct += patches.len() as u64;
    work.tally.skipped += (chunk.rows - patches.len()) as u64;
    if within.shape() == Shape::Rows {
        let list = out.set_rows(chunk.rows);
        patches.for_each_row(within.list(), |row, key| {
            if key.map_or(usual, &pass) {
                list.push(row);
            }
        });
        return;
    }
    if usual {
        out.set_all(chunk.rows);
        let words = out.bits_mut();
        for_each_patch(&patches, chunk.rows, |row, key| {
            if !pass(key) {
                words[row / WORD_ROWS] &= !(1 << (row % WORD_ROWS));
            }
        });
    } else {
        let list = out.set_rows(chunk.rows);
        for_each_patch(&patches, chunk.rows, |row, key| {
            if pass(key) {
                list.push(row as u32);
            }
        });
    }
    out.intersect(within);
}

impl Codec for Constant {
    fn id(&self) -> u8 {
        1
    }

    fn name(&self) -> &'static str {
        "constant"
    }

    fn summary(&self) -> &'static str {
        "one value for the chunk, exceptions as patches"
    }

    fn source(&self) -> &'static str {
        "PFOR's exceptions (Zukowski et al., ICDE 2006) around one value"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(
            input.physical,
            Physical::Integer { .. } | Physical::Float { .. }
        ) && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let input = sample.input;
        let rows = || sample.windows.iter().cloned().flatten();
        let winner = majority(input, rows());
        let odd = rows()
            .filter(|row| input.is_valid(*row) && input.key(*row) != winner)
            .count();
        let share = odd as f64 / sample.rows() as f64;
        let bytes = share * (2.0 + input.physical.lane_bytes() as f64) + 4.0 / BLOCK_ROWS as f64;
        bytes.into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let step = (input.rows() / 512).max(1);
        let value = majority(input, (0..input.rows()).step_by(step));
        out.body.add_section::<u64>(VALUE, 1)[0] = value;
        patches::begin(work);
        let flip = input.physical.flip();
        with_lanes!(input.lanes, lanes => {
            collect_patches(lanes, flip, value, input.validity, work);
        }, else return Err(Error::internal("constant takes lanes of at most eight bytes")));
        patches::begin_block(work);
        patches::write(&mut out.body, PATCHES, input.physical.lane_bytes(), work);
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[8, 4, 2, LANE_ITEM]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        if chunk.body.section::<u64>(VALUE).len() != 1 {
            return Err(Error::corrupt("a constant chunk has no value"));
        }
        if !matches!(
            chunk.physical,
            Physical::Integer { .. } | Physical::Float { .. }
        ) {
            return Err(Error::corrupt("a constant chunk of a type it cannot hold"));
        }
        if value_of(chunk) > u64::MAX >> (64 - 8 * chunk.physical.lane_bytes()) {
            return Err(Error::corrupt(
                "a constant chunk's value is too large for its type",
            ));
        }
        Patches::of(chunk, PATCHES).validate(chunk.rows)
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let start = out.keys.len();
        out.keys.resize(start + rows.len(), value_of(chunk));
        let patches = Patches::of(chunk, PATCHES);
        for block in rows.start / BLOCK_ROWS..block_count(rows.end) {
            for index in patches.of_block(block) {
                let row = block * BLOCK_ROWS + patches.row(index);
                if rows.contains(&row) {
                    out.keys[start + row - rows.start] = patches.key(index);
                }
            }
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
        let physical = chunk.physical;
        match single_range(predicate, physical.key_max()) {
            Some((range, inverted)) if matches!(physical, Physical::Integer { .. }) => {
                let pass = |key| range.contains(key) != inverted;
                compare_by(chunk, pass, (within, out), work);
            }
            _ => {
                let pass = |key| passes(physical, predicate, key);
                compare_by(chunk, pass, (within, out), work);
            }
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
        let integer = matches!(chunk.physical, Physical::Integer { .. });
        if !integer || within.shape() == Shape::Rows {
            return fold_decoded(self, chunk, asked, within, out, work);
        }
        let usual = value_of(chunk);
        let patches = Patches::of(chunk, PATCHES);
        let mut rest = within.count();
        work.tally.direct += rest as u64;
        for_each_patch(&patches, chunk.rows, |row, key| {
            if within.contains(row) {
                rest -= 1;
                out.add_repeats(chunk.physical, key, 1, asked);
            }
        });
        out.add_repeats(chunk.physical, usual, rest, asked);
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        let patches = Patches::of(chunk, PATCHES);
        let usual = value_of(chunk);
        work.tally.direct += rows.len() as u64;
        out.keys.reserve(rows.len());
        patches.for_each_row(rows, |_, key| out.keys.push(key.unwrap_or(usual)));
    }

    fn repeats(&self, chunk: &Chunk, within: &Selection, out: &mut Repeats, work: &mut Work) {
        let patches = Patches::of(chunk, PATCHES);
        if within.shape() == Shape::Rows && within.count() < patches.len() {
            return repeats_decoded(self, chunk, within, out, work);
        }
        let mut rest = within.count();
        work.tally.direct += rest as u64;
        for_each_patch(&patches, chunk.rows, |row, key| {
            if within.contains(row) {
                rest -= 1;
                out.add(key, 1);
            }
        });
        out.add(value_of(chunk), rest as u64);
    }

    fn rank(&self, chunk: &Chunk, within: &Selection, out: &mut Vec<u64>, work: &mut Work) {
        let patches = Patches::of(chunk, PATCHES);
        if within.shape() != Shape::All && !patches.is_empty() {
            return rank_decoded(self, chunk, within, out, work);
        }
        let start = out.len();
        let rows = within.count();
        work.tally.direct += rows as u64;
        out.resize(start + rows, rank_of(chunk.physical, value_of(chunk)));
        for_each_patch(&patches, chunk.rows, |row, key| {
            out[start + row] = rank_of(chunk.physical, key);
        });
    }

    fn fold_by(
        &self,
        chunk: &Chunk,
        within: &Selection,
        ids: &[u32],
        out: &mut dyn GroupFold,
        work: &mut Work,
    ) {
        let patches = Patches::of(chunk, PATCHES);
        if within.shape() != Shape::All && !patches.is_empty() {
            return fold_by_decoded(self, chunk, within, ids, out, work);
        }
        work.tally.direct += ids.len() as u64;
        let (mut usual, mut odd) = (Values::default(), Values::default());
        let usual = single(chunk, value_of(chunk), &mut usual);
        let mut next = 0;
        for_each_patch(&patches, chunk.rows, |row, key| {
            out.add_same(&ids[next..row], usual);
            out.add_same(&ids[row..=row], single(chunk, key, &mut odd));
            next = row + 1;
        });
        out.add_same(&ids[next..], usual);
    }

    fn maps(&self, _chunk: &Chunk, _change: Change) -> bool {
        true
    }

    fn map(
        &self,
        chunk: &Chunk,
        change: Change,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        let key = |key| change.key(chunk.physical, key);
        work.tally.direct += chunk.rows as u64;
        out.begin_results(chunk.codec, chunk);
        out.body.add_section::<u64>(VALUE, 1)[0] = key(value_of(chunk));
        Patches::of(chunk, PATCHES).collect(chunk.rows, 0..chunk.rows, encode, key);
        patches::write(&mut out.body, PATCHES, out.physical.lane_bytes(), encode);
        Ok(())
    }

    fn bands<'a>(&self, chunk: &'a Chunk) -> Option<Bands<'a>> {
        let value = chunk.body.section::<u64>(VALUE);
        let integer = matches!(chunk.physical, Physical::Integer { .. });
        integer.then(|| Bands {
            physical: chunk.physical,
            bases: value,
            maxima: value,
            bases_a_block: 0,
            deltas: None,
            patches: Some(Patches::of(chunk, PATCHES)),
        })
    }

    fn adds(&self, chunk: &Chunk, other: &Chunk) -> bool {
        is_single(chunk) && other.codec.maps(other, addition(chunk))
    }

    fn add(
        &self,
        chunk: &Chunk,
        other: &Chunk,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        match is_single(chunk) {
            true => other.codec.map(other, addition(chunk), out, work, encode),
            false => add_decoded(chunk, other, out, work, encode),
        }
    }

    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        _work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        out.begin_slice(chunk.codec, chunk, rows.clone());
        out.body.add_section::<u64>(VALUE, 1)[0] = value_of(chunk);
        Patches::of(chunk, PATCHES).collect(chunk.rows, rows, encode, |key| key);
        patches::write(&mut out.body, PATCHES, out.physical.lane_bytes(), encode);
        Ok(())
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

/// Whether every row has the one value.
fn is_single(chunk: &Chunk) -> bool {
    chunk.nulls == 0 && Patches::of(chunk, PATCHES).is_empty()
}

/// Adding the value; the caller knows that it fits.
fn addition(chunk: &Chunk) -> Change {
    let value = chunk.physical.value_of(value_of(chunk));
    Change::Add(i64::try_from(value).unwrap_or_default())
}

fn for_each_patch(patches: &Patches<'_>, rows: usize, mut visit: impl FnMut(usize, u64)) {
    with_lanes!(patches.keys(), keys => {
        for block in 0..block_count(rows) {
            let range = patches.of_block(block);
            let patched = patches.rows()[range.clone()].iter();
            for (row, key) in patched.zip(&keys[range]) {
                visit(block * BLOCK_ROWS + usize::from(*row), key.key());
            }
        }
    }, else {});
}

const _: () = assert!(BLOCK_ROWS.is_multiple_of(WORD_ROWS) && BLOCK_ROWS <= 1 << 16);
