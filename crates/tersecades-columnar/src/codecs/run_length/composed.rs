//! Runs whose keys and lengths are chunks of their own.

use std::ops::Range;

use arrow_schema::DataType;

use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::EncodeWork;
use crate::error::{Error, Result};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::lane::KeyLane;
use crate::types::{Physical, integer_type};
use crate::values::Values;
use crate::wire::CHUNK_HEADER_BYTES;

use super::{ENDS, FIRST_ROWS, FIRST_RUNS, KEYS, for_each_start};

/// The type of the lengths.
const LENGTH_TYPE: DataType = DataType::UInt32;

/// What two chunks inside take beside their parts where they are stored.
const HEADS_BYTES: usize = 2 * CHUNK_HEADER_BYTES;

/// Memory that composed runs are decoded into.
///
/// # Cost
/// Allocates when first used by a composed chunk.
#[derive(Default)]
pub(super) struct Decoded {
    pub(super) values: Values,
    pub(super) ends: Vec<u32>,
}

impl Decoded {
    /// Decodes `runs`, of which the first starts at row `start`.
    pub(super) fn read(&mut self, keys: &Chunk, lengths: &Chunk, runs: Range<usize>, start: u32) {
        let Decoded { values, ends } = self;
        values.reset(lengths.physical);
        lengths.codec.decode(lengths, runs.clone(), values);
        ends.clear();
        let mut end = start;
        ends.extend(values.keys.iter().map(|length| {
            end += *length as u32;
            end
        }));
        values.reset(keys.physical);
        keys.codec.decode(keys, runs, values);
    }
}

/// Where the runs of composed chunks lie: first runs and their first rows, block by block.
pub(super) fn validate(chunk: &Chunk, keys: &Chunk, lengths: &Chunk) -> Result<()> {
    let corrupt = || Error::corrupt("composed runs do not fit the rows or one another");
    let key_type = Physical::of(&key_type(chunk.physical))?;
    let length_type = Physical::of(&LENGTH_TYPE)?;
    let fits = keys.physical == key_type && lengths.physical == length_type;
    if !fits || keys.rows != lengths.rows || keys.rows > chunk.rows {
        return Err(corrupt());
    }
    keys.codec.validate(keys)?;
    lengths.codec.validate(lengths)?;
    let (first_runs, first_rows) = (
        chunk.body.section::<u32>(FIRST_RUNS),
        chunk.body.section::<u32>(FIRST_ROWS),
    );
    let mut firsts = first_runs.iter().zip(first_rows);
    let (mut values, mut run, mut start, mut next) = (Values::default(), 0, 0u64, 0);
    for block in 0..block_count(lengths.rows) {
        values.reset(lengths.physical);
        let rows = block_rows(block, lengths.rows);
        lengths.codec.decode(lengths, rows, &mut values);
        for length in &values.keys {
            let end = start + length;
            if *length == 0 || end > chunk.rows as u64 {
                return Err(corrupt());
            }
            while next < end {
                let right = firsts.next().is_some_and(|(first_run, first_row)| {
                    *first_run == run && u64::from(*first_row) == start
                });
                if !right {
                    return Err(corrupt());
                }
                next += BLOCK_ROWS as u64;
            }
            (start, run) = (end, run + 1);
        }
    }
    let blocks = block_count(chunk.rows);
    let unused = chunk.body.sections[KEYS].1 + chunk.body.sections[ENDS].1;
    let whole = start == chunk.rows as u64 && [first_runs.len(), first_rows.len()] == [blocks; 2];
    match whole && unused == 0 {
        true => Ok(()),
        false => Err(corrupt()),
    }
}

/// The type of a composed chunk's keys: floats lie as their raw bits.
fn key_type(physical: Physical) -> DataType {
    integer_type(physical.lane_bytes(), physical.flip() != 0)
}

/// Encodes collected runs as two chunks inside.
fn compose(input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
    let (keys, ends) = (
        std::mem::take(&mut work.keys),
        std::mem::take(&mut work.ends),
    );
    let mut lengths = std::mem::take(&mut work.patch_starts);
    lengths.clear();
    let mut start = 0;
    lengths.extend(
        ends.iter()
            .map(|end| end - std::mem::replace(&mut start, *end)),
    );
    let key_type = key_type(input.physical);
    let flip = input.physical.flip();
    let encoded = match input.physical.lane_bytes() {
        1 => compose_keys::<u8>(&keys, flip, &key_type, out, work),
        2 => compose_keys::<u16>(&keys, flip, &key_type, out, work),
        4 => compose_keys::<u32>(&keys, flip, &key_type, out, work),
        _ => compose_keys::<u64>(&keys, flip, &key_type, out, work),
    };
    let encoded = encoded.and_then(|()| {
        let lanes = Lanes::U32(&lengths);
        out.body
            .encode_inner(1, &inner_input(&LENGTH_TYPE, lanes)?, work)
    });
    (work.keys, work.ends, work.patch_starts) = (keys, ends, lengths);
    encoded
}

fn compose_keys<T: KeyLane>(
    keys: &[u64],
    flip: u64,
    data_type: &DataType,
    out: &mut Chunk,
    work: &mut EncodeWork,
) -> Result<()> {
    let mut lanes = std::mem::take(T::scratch(work));
    lanes.clear();
    lanes.extend(keys.iter().map(|key| T::cut(key ^ flip)));
    let input = inner_input(data_type, T::lanes(&lanes))?;
    let encoded = out.body.encode_inner(0, &input, work);
    *T::scratch(work) = lanes;
    encoded
}

fn inner_input<'a>(data_type: &'a DataType, lanes: Lanes<'a>) -> Result<Input<'a>> {
    Ok(Input {
        data_type,
        physical: Physical::of(data_type)?,
        lanes,
        validity: None,
        array: None,
    })
}

/// Encodes collected runs as chunks inside where the scheme or the cold tier asks for it; whether
/// it did.
pub(super) fn encode(input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<bool> {
    if work.rest.first().is_some() {
        compose(input, out, work)?;
        return Ok(true);
    }
    if work.goal.tier != Tier::Cold || !work.may_nest() {
        return Ok(false);
    }
    compose(input, out, work)?;
    let flat = work.ends.len() * (4 + input.physical.lane_bytes());
    let composed: usize = out.inner().map(Chunk::byte_size).sum();
    let smaller = composed + HEADS_BYTES + 4 * block_count(input.rows()) < flat;
    if !smaller {
        out.body.retire();
    }
    Ok(smaller)
}

/// What keys and lengths take at `share` runs a row; `None` where they are not composed unasked.
pub(super) fn estimate(sample: &Sample<'_>, share: f64) -> Option<Estimate> {
    if sample.goal.tier != Tier::Cold {
        return None;
    }
    let (mut keys, mut lengths) = (Vec::new(), Vec::new());
    for window in sample.windows {
        let mut start = window.start;
        for_each_start(sample.input, window.clone(), |row, key| {
            keys.push(key);
            lengths.extend((row > start).then(|| (row - start) as u32));
            start = row;
        });
        lengths.push((window.end - start) as u32);
    }
    let (physical, data_type) = (sample.input.physical, key_type(sample.input.physical));
    let keys = match physical.lane_bytes() {
        1 => sample.inner(&data_type, Lanes::U8(&cut(&keys, physical))),
        2 => sample.inner(&data_type, Lanes::U16(&cut(&keys, physical))),
        4 => sample.inner(&data_type, Lanes::U32(&cut(&keys, physical))),
        _ => sample.inner(&data_type, Lanes::U64(&cut(&keys, physical))),
    };
    let lengths = sample.inner(&LENGTH_TYPE, Lanes::U32(&lengths));
    Some(Estimate {
        bytes_per_row: share * (keys.bytes_per_row + lengths.bytes_per_row)
            + 8.0 / BLOCK_ROWS as f64
            + HEADS_BYTES as f64 / sample.encoded_rows.max(1) as f64,
        inner_ns: share * (keys.inner_ns + lengths.inner_ns),
    })
}

/// Keys as lanes of their width.
fn cut<T: KeyLane>(keys: &[u64], physical: Physical) -> Vec<T> {
    let flip = physical.flip();
    keys.iter().map(|key| T::cut(key ^ flip)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array};

    use super::*;
    use crate::codec::Work;
    use crate::encoder::ColumnEncoder;
    use crate::goal::Goal;

    fn encode(array: &ArrayRef, scheme: &str, tier: Tier) -> Chunk {
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        encoder.pin(scheme.parse::<crate::scheme::Scheme>().unwrap());
        encoder.aim(Goal {
            tier,
            ..Goal::default()
        });
        encoder.encode_new(array).unwrap()
    }

    /// Runs of 1 to 3,000 rows, across and at the ends of blocks.
    fn runs() -> ArrayRef {
        let lengths = [1, 1_023, 1_024, 3_000, 1, 1, 70, 2_048, 5, 900];
        let runs = lengths.into_iter().cycle().enumerate().take(400);
        let values = runs.flat_map(|(run, rows)| std::iter::repeat_n(run as i64 % 7, rows));
        Arc::new(Int64Array::from_iter_values(values))
    }

    #[test]
    fn composed_runs_answer_as_flat_ones_do() {
        let array = runs();
        let flat = encode(&array, "run_length", Tier::Hot);
        let composed = encode(&array, "run_length(plain)", Tier::Hot);
        assert_eq!((flat.inner().count(), composed.inner().count()), (0, 2));
        composed.codec.validate(&composed).unwrap();
        let keys = |chunk: &Chunk, rows: Range<usize>| {
            let mut values = Values::default();
            chunk.codec.decode(chunk, rows, &mut values);
            values.keys
        };
        let rows = array.len();
        for part in [
            0..rows,
            0..0,
            1..2,
            1_000..1_030,
            2_047..2_049,
            rows - 1..rows,
            rows..rows,
        ] {
            assert_eq!(keys(&flat, part.clone()), keys(&composed, part));
        }
        for list in [
            vec![],
            vec![0],
            vec![1_023, 1_024, 5_047, 5_048],
            vec![rows as u32 - 1],
        ] {
            let (mut a, mut b, mut work) = (Values::default(), Values::default(), Work::default());
            flat.codec.gather(&flat, &list, &mut a, &mut work);
            composed.codec.gather(&composed, &list, &mut b, &mut work);
            assert_eq!(a.keys, b.keys);
        }
    }

    #[test]
    fn the_cold_tier_composes_where_that_is_smaller() {
        let array = runs();
        let cold = encode(&array, "run_length", Tier::Cold);
        assert_eq!(cold.inner().count(), 2);
        assert!(cold.byte_size() < encode(&array, "run_length", Tier::Hot).byte_size());
        let noise = |i: u64| f64::from_bits((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let few: ArrayRef = Arc::new(Float64Array::from_iter_values((0..3).map(noise)));
        assert_eq!(encode(&few, "run_length", Tier::Cold).inner().count(), 0);
    }
}
