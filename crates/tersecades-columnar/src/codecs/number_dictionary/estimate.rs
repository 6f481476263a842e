//! Pricing a dictionary of numbers from a sample.
//!
//! How many distinct numbers the chunk has is guessed from those the sample has once (`f1`) and
//! more than once: `sqrt(rows / sampled) f1 + others`, which errs least in the worst case. Where
//! numbers repeat near one another only, as in sorted columns, each part of the column has its
//! own, and those grow as the rows do.
//!
//! Source: Charikar, Chaudhuri, Motwani and Narasayya, "Towards Estimation Error Guarantees for
//! Distinct Values" (PODS 2000), the guaranteed-error estimator.

use arrow_schema::DataType;

use crate::choose::{Estimate, SAMPLE_ROWS_MAX, Sample};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::lane::KeyLane;
use crate::narrow::width_of;
use crate::types::Physical;

use super::{code_type, ordered};

/// Rows that tell at first sight that most numbers are distinct, and how many must be.
const PROBE_ROWS: usize = 128;
const PROBE_DISTINCT: usize = 120;

/// Most distinct numbers among the rows of a sample: of more, the guess of all is too low too
/// often.
const SAMPLE_SHARE_MAX: f64 = 0.6;

/// Most distinct numbers among the rows of a column.
const TABLE_SHARE_MAX: f64 = 0.5;

/// Expected bytes per row; infinite where the numbers are too many, or as narrow as codes.
pub(super) fn estimate(sample: &Sample<'_>) -> Estimate {
    let input = sample.input;
    let mut room = [0; SAMPLE_ROWS_MAX];
    let keys = sample.keys(&mut room);
    let cold = sample.goal.tier == Tier::Cold;
    if !cold && is_narrow(input, keys, &DataType::UInt8) || is_distinct(keys) {
        return f64::INFINITY.into();
    }
    let (mut table_room, mut ranks_room) = ([0; SAMPLE_ROWS_MAX], [0; SAMPLE_ROWS_MAX]);
    let ranks = &mut ranks_room[..keys.len()];
    let count = rank(
        keys,
        |key| ordered(input.physical, key),
        &mut table_room,
        ranks,
    );
    let table = &table_room[..count];
    if count as f64 > SAMPLE_SHARE_MAX * keys.len() as f64 {
        return f64::INFINITY.into();
    }
    let distinct = distinct_of(sample, count, ranks);
    let data_type = code_type(distinct as usize);
    let narrow = match cold {
        true => is_narrow_in_bits(input, table, distinct as u64),
        false => is_narrow(input, table, &data_type),
    };
    let table_bytes = distinct * input.physical.lane_bytes() as f64 / input.rows() as f64;
    if narrow || table_bytes > TABLE_SHARE_MAX * input.physical.lane_bytes() as f64 {
        return f64::INFINITY.into();
    }
    let spread = distinct / count as f64;
    for (key, rank) in keys.iter_mut().zip(&*ranks) {
        *key = (f64::from(*rank) * spread) as u64;
    }
    let price = |lanes: Lanes<'_>| sample.inner(&data_type, lanes);
    let rows = keys.len();
    let mut estimate = match data_type {
        DataType::UInt8 => price(Lanes::U8(&cut(keys)[..rows])),
        DataType::UInt16 => price(Lanes::U16(&cut(keys)[..rows])),
        _ => price(Lanes::U32(&cut(keys)[..rows])),
    };
    estimate.bytes_per_row += table_bytes;
    estimate
}

/// Whether nearly all of a few keys from all over the sample differ.
fn is_distinct(keys: &[u64]) -> bool {
    let mut probe = [0; PROBE_ROWS];
    let step = (keys.len() / PROBE_ROWS).max(1);
    for (slot, key) in probe.iter_mut().zip(keys.iter().step_by(step)) {
        *slot = *key;
    }
    probe.sort_unstable();
    keys.len() >= PROBE_ROWS && probe.chunk_by(u64::eq).count() > PROBE_DISTINCT
}

/// Puts the distinct `keys` into `table` and the rank of each into `ranks`; how many there are.
///
/// Floats that are equal count as one, whatever their bits.
fn rank(
    keys: &[u64],
    ordered: impl Fn(u64) -> u64,
    table: &mut [u64; SAMPLE_ROWS_MAX],
    ranks: &mut [u16],
) -> usize {
    let mut sorted = [(0u64, 0u16); SAMPLE_ROWS_MAX];
    let sorted = &mut sorted[..keys.len()];
    for ((slot, key), row) in sorted.iter_mut().zip(keys).zip(0..) {
        *slot = (ordered(*key), row);
    }
    sorted.sort_unstable();
    let mut count = 0;
    for same in sorted.chunk_by(|(one, _), (other, _)| one == other) {
        table[count] = keys[usize::from(same[0].1)];
        for (_, row) in same {
            ranks[usize::from(*row)] = count as u16;
        }
        count += 1;
    }
    count
}

/// How many distinct numbers the column has, where the sample has `count`, of these ranks.
fn distinct_of(sample: &Sample<'_>, count: usize, ranks: &[u16]) -> f64 {
    let input = sample.input;
    // Occurrences of each number, and the windows it occurs in.
    let mut seen = [(0u16, 0u8); SAMPLE_ROWS_MAX];
    let mut ranks_left = ranks.iter();
    for (index, window) in sample.windows.iter().enumerate() {
        let valid = window.clone().filter(|row| input.is_valid(*row)).count();
        for rank in ranks_left.by_ref().take(valid) {
            let (times, windows) = &mut seen[usize::from(*rank)];
            *times += 1;
            *windows |= 1 << (index % 8);
        }
    }
    let number = |pass: fn(&(u16, u8)) -> bool| {
        seen[..count].iter().filter(|seen| pass(seen)).count() as f64
    };
    let once = number(|(times, _)| *times == 1);
    let near = number(|(times, windows)| *times > 1 && windows.is_power_of_two());
    let far = number(|(_, windows)| !windows.is_power_of_two());
    let growth = input.rows() as f64 / ranks.len().max(1) as f64;
    let clustered = near > far && sample.windows.len() > 1;
    let near = near * if clustered { growth } else { 1.0 };
    once * growth.sqrt() + near + far
}

/// The codes as lanes.
fn cut<T: KeyLane>(codes: &[u64]) -> [T; SAMPLE_ROWS_MAX] {
    let mut lanes = [T::cut(0); SAMPLE_ROWS_MAX];
    let pairs = lanes.iter_mut().zip(codes);
    pairs.for_each(|(lane, code)| *lane = T::cut(*code));
    lanes
}

/// Whether integers lie so close that codes would take no fewer bytes.
fn is_narrow(input: &Input<'_>, keys: &[u64], codes: &DataType) -> bool {
    let Some(range) = range_of(keys) else {
        return true;
    };
    let code_bytes = Physical::of(codes).map_or(0, Physical::lane_bytes);
    matches!(input.physical, Physical::Integer { .. }) && width_of(range) <= code_bytes
}

/// Whether integers lie so close that codes of `distinct` numbers would take no fewer bits.
fn is_narrow_in_bits(input: &Input<'_>, keys: &[u64], distinct: u64) -> bool {
    let bits = |largest: u64| u64::BITS - largest.leading_zeros();
    let narrow = |range| bits(range) <= bits(distinct.saturating_sub(1));
    matches!(input.physical, Physical::Integer { .. }) && range_of(keys).is_none_or(narrow)
}

/// How far apart the smallest and the largest key are.
fn range_of(keys: &[u64]) -> Option<u64> {
    let (first, last) = keys.iter().min().zip(keys.iter().max())?;
    Some(last - first)
}
