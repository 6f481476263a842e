//! Pricing a dictionary of numbers from a sample.
//!
//! How many distinct numbers the chunk has is guessed from those the sample has once (`f1`) and
//! more than once: `sqrt(rows / sampled) f1 + others`, which errs least in the worst case.
//!
//! Source: Charikar, Chaudhuri, Motwani and Narasayya, "Towards Estimation Error Guarantees for
//! Distinct Values" (PODS 2000), the guaranteed-error estimator.

use arrow_schema::DataType;

use crate::choose::{Estimate, SAMPLE_ROWS_MAX, Sample};
use crate::input::{Input, Lanes};
use crate::lane::KeyLane;
use crate::narrow::width_of;
use crate::types::Physical;

use super::{code_type, place};

/// Expected bytes per row; infinite where the numbers are too many, or as narrow as codes.
pub(super) fn estimate(sample: &Sample<'_>) -> Estimate {
    let input = sample.input;
    let (mut room, mut table_room) = ([0; SAMPLE_ROWS_MAX], [0; SAMPLE_ROWS_MAX]);
    let keys = sample.keys(&mut room);
    let table = &mut table_room[..keys.len()];
    table.copy_from_slice(keys);
    table.sort_unstable_by_key(|key| place(input.physical, *key));
    let (count, once) = keep_distinct(table);
    let table = &table[..count];
    let growth = (input.rows() as f64 / keys.len().max(1) as f64).sqrt();
    let distinct = growth * once as f64 + (count - once) as f64;
    let data_type = code_type(distinct as usize);
    if count * 2 > keys.len() || is_narrow(input, table, &data_type) {
        return f64::INFINITY.into();
    }
    let spread = distinct / count as f64;
    let place = |key: u64| place(input.physical, key);
    for key in &mut *keys {
        let rank = table.partition_point(|other| place(*other) < place(*key));
        *key = (rank as f64 * spread) as u64;
    }
    let price = |lanes: Lanes<'_>| sample.inner(&data_type, lanes);
    let rows = keys.len();
    let mut estimate = match data_type {
        DataType::UInt8 => price(Lanes::U8(&cut(keys)[..rows])),
        DataType::UInt16 => price(Lanes::U16(&cut(keys)[..rows])),
        _ => price(Lanes::U32(&cut(keys)[..rows])),
    };
    let table_bytes = distinct * input.physical.lane_bytes() as f64;
    estimate.bytes_per_row += table_bytes / input.rows() as f64;
    estimate
}

/// Moves the distinct keys of a sorted list to its front; how many there are, and how many of them
/// occur once.
fn keep_distinct(sorted: &mut [u64]) -> (usize, usize) {
    let (mut count, mut once, mut start) = (0, 0, 0);
    while start < sorted.len() {
        let key = sorted[start];
        let repeats = sorted[start..].iter().take_while(|k| **k == key).count();
        sorted[count] = key;
        (count, once) = (count + 1, once + usize::from(repeats == 1));
        start += repeats;
    }
    (count, once)
}

/// The codes as lanes.
fn cut<T: KeyLane>(codes: &[u64]) -> [T; SAMPLE_ROWS_MAX] {
    let mut lanes = [T::cut(0); SAMPLE_ROWS_MAX];
    let pairs = lanes.iter_mut().zip(codes);
    pairs.for_each(|(lane, code)| *lane = T::cut(*code));
    lanes
}

/// Whether integers lie so close that codes would be no narrower.
fn is_narrow(input: &Input<'_>, table: &[u64], codes: &DataType) -> bool {
    let (Some(first), Some(last)) = (table.first(), table.last()) else {
        return true;
    };
    let code_bytes = Physical::of(codes).map_or(0, Physical::lane_bytes);
    matches!(input.physical, Physical::Integer { .. }) && width_of(last - first) <= code_bytes
}
