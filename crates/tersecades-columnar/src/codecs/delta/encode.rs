//! Making the steps, and pricing them.

use crate::block::{BLOCK_ROWS, GROUPS, block_count};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::EncodeWork;
use crate::error::Result;
use crate::input::Input;
use crate::kernels::kernels;
use crate::lane::{KeyLane, with_lanes};
use crate::types::{Physical, integer_type};

use super::{ASCENDING, BLOCK_BYTES, FIRSTS, MAXIMA, MINIMA};

/// What a block's entries in the sections say.
#[derive(Clone, Copy, Default)]
struct Zone {
    first: u64,
    min: u64,
    max: u64,
    ascends: bool,
}

/// [`crate::codec::Codec::encode`] over lanes of one width.
pub(super) fn encode<T: KeyLane>(
    lanes: &[T],
    input: &Input<'_>,
    out: &mut Chunk,
    work: &mut EncodeWork,
) -> Result<()> {
    let blocks = block_count(lanes.len());
    let mut steps = std::mem::take(T::scratch(work));
    steps.clear();
    let mut zones = std::mem::take(&mut work.patch_keys);
    zones.clear();
    let flip = T::cut(input.physical.flip());
    let (mut filled, mut last) = ([T::cut(0); BLOCK_ROWS], T::cut(0));
    for (block, values) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let values = match input.validity {
            None => values,
            Some(_) => {
                fill_holes(values, input, block * BLOCK_ROWS, last, &mut filled);
                &filled[..values.len()]
            }
        };
        last = values[values.len() - 1];
        push_steps(values, &mut steps);
        let zone = zone_of(values, flip);
        zones.extend([zone.first, zone.min, zone.max, u64::from(zone.ascends)]);
    }
    for (index, section) in [FIRSTS, MINIMA, MAXIMA].into_iter().enumerate() {
        let entries = out.body.add_section::<u64>(section, blocks);
        let zones = zones.chunks_exact(4);
        entries
            .iter_mut()
            .zip(zones)
            .for_each(|(entry, zone)| *entry = zone[index]);
    }
    let ascending = out.body.add_section::<u8>(ASCENDING, blocks);
    let flags = zones.iter().skip(3).step_by(4);
    ascending
        .iter_mut()
        .zip(flags)
        .for_each(|(entry, flag)| *entry = *flag as u8);
    work.patch_keys = zones;
    let data_type = integer_type(size_of::<T>(), true);
    let step_input = Input {
        data_type: &data_type,
        physical: Physical::of(&data_type)?,
        lanes: T::lanes(&steps),
        validity: None,
        array: None,
    };
    let encoded = out.body.encode_inner(0, &step_input, work);
    *T::scratch(work) = steps;
    encoded
}

/// The block from row `start` on with every hole repeating the value before it; at the start of
/// the block the first value after it, and where there is none `last`.
fn fill_holes<T: KeyLane>(
    values: &[T],
    input: &Input<'_>,
    start: usize,
    last: T,
    filled: &mut [T; BLOCK_ROWS],
) {
    let mut rows = 0..values.len();
    let first = rows.find(|row| input.is_valid(start + row));
    let mut known = first.map_or(last, |row| values[row]);
    for (row, value) in values.iter().enumerate() {
        if input.is_valid(start + row) {
            known = *value;
        }
        filled[row] = known;
    }
}

/// Appends the steps of a block; that of its first row repeats the next.
fn push_steps<T: KeyLane>(values: &[T], steps: &mut Vec<T>) {
    let before = steps.last().copied();
    let step = |pair: &[T]| pair[1].wrapping_sub(pair[0]);
    let first = values.first_chunk::<2>().map(|pair| step(pair));
    steps.push(first.or(before).unwrap_or(T::cut(0)));
    steps.extend(values.windows(2).map(step));
}

fn zone_of<T: KeyLane>(values: &[T], flip: T) -> Zone {
    let (mut min, mut max) = ([T::MAX; GROUPS], [T::cut(0); GROUPS]);
    (T::of(kernels()).min_max)(values, flip, None, &mut min, &mut max);
    let key = |value: T| value ^ flip;
    Zone {
        first: key(values[0]).key(),
        min: min.into_iter().min().unwrap_or(T::cut(0)).key(),
        max: max.into_iter().max().unwrap_or(T::cut(0)).key(),
        ascends: values.windows(2).all(|pair| key(pair[0]) <= key(pair[1])),
    }
}

/// [`crate::codec::Codec::estimate`]: the steps inside each window, as the best codec takes them.
pub(super) fn estimate(sample: &Sample<'_>) -> Estimate {
    with_lanes!(sample.input.lanes, lanes => estimate_lanes(lanes, sample),
        else Estimate::from(f64::INFINITY))
}

fn estimate_lanes<T: KeyLane>(lanes: &[T], sample: &Sample<'_>) -> Estimate {
    let mut steps: Vec<T> = Vec::with_capacity(sample.rows());
    let mut known = Vec::with_capacity(BLOCK_ROWS);
    for window in sample.windows {
        known.clear();
        let valid = window.clone().filter(|row| sample.input.is_valid(*row));
        known.extend(valid.map(|row| lanes[row]));
        if !known.is_empty() {
            push_steps(&known, &mut steps);
        }
        // A hole repeats what is before it: no step.
        steps.resize(steps.len() + window.len() - known.len(), T::cut(0));
    }
    let data_type = integer_type(size_of::<T>(), true);
    let mut estimate = sample.inner(&data_type, T::lanes(&steps));
    estimate.bytes_per_row += BLOCK_BYTES as f64 / BLOCK_ROWS as f64;
    estimate
}
