//! Floats to multiples and patches.

use crate::bitmap::Bitmap;
use crate::block::BLOCK_ROWS;
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::EncodeWork;
use crate::error::{Error, Result};
use crate::goal::Goal;
use crate::input::{Input, Lanes};
use crate::lane::KeyLane;
use crate::patch::{self as patches, Patches};
use crate::stats::Stats;
use crate::types::float_key;
use crate::values::float_of_bits;

use super::{Grid, MULTIPLES, MULTIPLES_PHYSICAL, PATCHES, multiple_of_key, multiples};

/// Nanoseconds that folding a float kept apart takes beside the multiples.
const FOLD_NS: f64 = 5.0;

/// Most rows that are looked at to price a column.
const SAMPLE_ROWS: usize = 1_024;

/// Prices a column whose multiples are those that `keeps` is content with.
pub(crate) fn estimate(
    grid: Grid,
    sample: &Sample<'_>,
    keeps: impl Fn(f64, f64) -> bool,
) -> Estimate {
    let mut multiples = [0u64; SAMPLE_ROWS];
    let (mut rows, mut patched, mut last) = (0, 0, 0);
    let sampled = sample.windows.iter().cloned().flatten();
    let sampled = sampled.filter(|row| sample.input.is_valid(*row));
    for (slot, row) in multiples.iter_mut().zip(sampled) {
        let value = float_of_bits(sample.input.lanes.bits(row), grid.bytes);
        match grid.place(value, &keeps) {
            (multiple, true) => last = multiple as u64,
            (_, false) => patched += 1,
        }
        *slot = last;
        rows += 1;
    }
    let inner = sample.inner(&MULTIPLES, Lanes::U64(&multiples[..rows]));
    let share = f64::from(patched) / rows.max(1) as f64;
    let patch_bytes = share * (2.0 + f64::from(grid.bytes)) + 4.0 / BLOCK_ROWS as f64;
    Estimate {
        bytes_per_row: inner.bytes_per_row + patch_bytes,
        inner_ns: inner.inner_ns + patches::correction_ns(share, FOLD_NS, sample.goal),
    }
}

/// What the patches of `chunk` take to correct answers by.
pub(crate) fn apart_ns(chunk: &Chunk, goal: &Goal) -> f64 {
    let share = Patches::of(chunk, PATCHES).len() as f64 / chunk.rows.max(1) as f64;
    patches::correction_ns(share, FOLD_NS, goal)
}

/// Encodes the values of `input` that `keeps` is content with as multiples, the others as patches,
/// and takes the statistics of what comes back.
///
/// # Errors
/// What the codec inside says.
pub(crate) fn encode(
    grid: Grid,
    input: &Input<'_>,
    keeps: impl Fn(f64, f64) -> bool,
    out: &mut Chunk,
    work: &mut EncodeWork,
) -> Result<()> {
    let mut keys = std::mem::take(&mut work.keys);
    keys.clear();
    patches::begin(work);
    let kept = match input.lanes {
        Lanes::U32(lanes) => {
            let place = |lane: &u32| grid.place(f64::from(f32::from_bits(*lane)), &keeps);
            split(lanes, input.validity, place, &mut keys, work)
        }
        Lanes::U64(lanes) => {
            let place = |lane: &u64| grid.place(f64::from_bits(*lane), &keeps);
            split(lanes, input.validity, place, &mut keys, work)
        }
        _ => return Err(Error::internal("floats have lanes of four or eight bytes")),
    };
    patches::begin_block(work);
    patches::write(&mut out.body, PATCHES, usize::from(grid.bytes), work);
    let inner = Input {
        data_type: &MULTIPLES,
        physical: MULTIPLES_PHYSICAL,
        lanes: Lanes::U64(&keys),
        validity: input.validity,
        array: None,
    };
    let encoded = out.body.encode_inner(0, &inner, work);
    work.keys = keys;
    encoded?;
    out.stats = stats(grid, out, kept > 0);
    Ok(())
}

/// Appends a multiple for every lane to `keys`, its bits as they lie, and collects the patches;
/// returns how many multiples stand for their values.
///
/// Rows without a multiple of their own hold the one before; the first ones the first.
fn split<T: KeyLane>(
    lanes: &[T],
    validity: Option<&Bitmap>,
    place: impl Fn(&T) -> (i64, bool),
    keys: &mut Vec<u64>,
    work: &mut EncodeWork,
) -> usize {
    let (mut kept, mut first, mut last) = (0, None, 0);
    keys.resize(lanes.len(), 0);
    for (block, lanes) in lanes.chunks(BLOCK_ROWS).enumerate() {
        patches::begin_block(work);
        let start = block * BLOCK_ROWS;
        let keys = &mut keys[start..start + lanes.len()];
        let mut stands = [false; BLOCK_ROWS];
        for ((key, stands), lane) in keys.iter_mut().zip(&mut stands).zip(lanes) {
            let (multiple, is_right) = place(lane);
            (*key, *stands) = (multiple as u64, is_right);
        }
        if validity.is_none() && stands[..lanes.len()].iter().all(|stands| *stands) {
            kept += lanes.len();
            first = first.or(Some(start));
            last = keys[lanes.len() - 1];
            continue;
        }
        for (row, (key, lane)) in keys.iter_mut().zip(lanes).enumerate() {
            let valid = validity.is_none_or(|validity| validity.get(start + row));
            if valid && stands[row] {
                kept += 1;
                first = first.or(Some(start + row));
                last = *key;
                continue;
            }
            *key = last;
            if valid {
                work.patch_rows.push(row as u16);
                work.patch_keys.push(lane.key());
            }
        }
    }
    if let Some(first) = first {
        let key = keys[first];
        keys[..first].fill(key);
    }
    kept
}

/// The ends of the values that come back; `kept`: whether there are multiples that stand for one.
fn stats(grid: Grid, chunk: &Chunk, kept: bool) -> Stats {
    let (mut low, mut high) = (u64::MAX, 0);
    let mut add = |value: f64| {
        low = low.min(float_key(value));
        high = high.max(float_key(value));
    };
    if let Some(inner) = multiples(chunk).filter(|inner| kept && inner.stats.known) {
        add(grid.value(multiple_of_key(inner.stats.min)));
        add(grid.value(multiple_of_key(inner.stats.max)));
    }
    let patches = Patches::of(chunk, PATCHES);
    for index in 0..patches.len() {
        add(float_of_bits(patches.key(index), grid.bytes));
    }
    Stats::from_ends(low, high)
}
