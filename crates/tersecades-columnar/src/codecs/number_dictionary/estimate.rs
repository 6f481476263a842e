//! Pricing a dictionary of numbers from a sample.
//!
//! How many distinct numbers the chunk has is guessed from those the sample has once (`f1`) and
//! more than once: `sqrt(rows / sampled) f1 + others`, which errs least in the worst case.
//!
//! Source: Charikar, Chaudhuri, Motwani and Narasayya, "Towards Estimation Error Guarantees for
//! Distinct Values" (PODS 2000), the guaranteed-error estimator.

use arrow_schema::DataType;

use crate::choose::{Estimate, Sample};
use crate::input::{Input, Lanes};
use crate::narrow::width_of;
use crate::types::Physical;

use super::{code_type, place};

/// Expected bytes per row; infinite where the numbers are too many, or as narrow as codes.
pub(super) fn estimate(sample: &Sample<'_>) -> Estimate {
    let input = sample.input;
    let mut keys = Vec::with_capacity(sample.rows());
    let rows = sample.windows.iter().cloned().flatten();
    keys.extend(
        rows.filter(|row| input.is_valid(*row))
            .map(|row| input.key(row)),
    );
    let mut table = keys.clone();
    table.sort_unstable_by_key(|key| place(input.physical, *key));
    let once = table
        .chunk_by(|a, b| a == b)
        .filter(|same| same.len() == 1)
        .count();
    table.dedup();
    let growth = (input.rows() as f64 / keys.len().max(1) as f64).sqrt();
    let distinct = growth * once as f64 + (table.len() - once) as f64;
    let data_type = code_type(distinct as usize);
    if table.len() * 2 > keys.len() || is_narrow(input, &table, &data_type) {
        return f64::INFINITY.into();
    }
    let rank = |key: &u64| {
        let key = place(input.physical, *key);
        let rank = table.partition_point(|other| place(input.physical, *other) < key);
        (rank as f64 * distinct / table.len() as f64) as u32
    };
    let codes: Vec<u32> = keys.iter().map(rank).collect();
    let mut estimate = match data_type {
        DataType::UInt8 => {
            let codes: Vec<u8> = codes.iter().map(|code| *code as u8).collect();
            sample.inner(&data_type, Lanes::U8(&codes))
        }
        DataType::UInt16 => {
            let codes: Vec<u16> = codes.iter().map(|code| *code as u16).collect();
            sample.inner(&data_type, Lanes::U16(&codes))
        }
        _ => sample.inner(&data_type, Lanes::U32(&codes)),
    };
    let table_bytes = distinct * input.physical.lane_bytes() as f64;
    estimate.bytes_per_row += table_bytes / input.rows() as f64;
    estimate
}

/// Whether integers lie so close that codes would be no narrower.
fn is_narrow(input: &Input<'_>, table: &[u64], codes: &DataType) -> bool {
    let (Some(first), Some(last)) = (table.first(), table.last()) else {
        return true;
    };
    let code_bytes = Physical::of(codes).map_or(0, Physical::lane_bytes);
    matches!(input.physical, Physical::Integer { .. }) && width_of(last - first) <= code_bytes
}
