//! `rank`: the order-preserving form of the selected rows.

use crate::chunk::Chunk;
use crate::codec::{Codec, Work};
use crate::error::{Error, Result};
use crate::selection::{Selection, Shape};
use crate::types::{Physical, float_key};
use crate::values::{Values, float_of_bits};

use super::for_each_unit;

/// The default of [`Codec::rank`]: decode to where ranks go where keys are ranks, else unit by unit
/// and turn values into ranks.
pub fn rank_in_place(
    codec: &dyn Codec,
    chunk: &Chunk,
    within: &Selection,
    out: &mut Vec<u64>,
    work: &mut Work,
) {
    let integers = matches!(chunk.physical(), Physical::Integer { .. });
    if !integers || within.shape() != Shape::All {
        return rank_decoded(codec, chunk, within, out, work);
    }
    work.tally.decoded += chunk.rows() as u64;
    work.values.reset(chunk.physical());
    std::mem::swap(&mut work.values.keys, out);
    codec.decode(chunk, 0..chunk.rows(), &mut work.values);
    std::mem::swap(&mut work.values.keys, out);
}

/// Decodes unit by unit and turns values into ranks: what [`Codec::rank`] is measured against.
pub fn rank_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    within: &Selection,
    out: &mut Vec<u64>,
    work: &mut Work,
) {
    for_each_unit(codec, chunk, within, work, |values| push_ranks(values, out));
}

/// Appends the ranks of `values`.
fn push_ranks(values: &Values, out: &mut Vec<u64>) {
    match (values.physical, &values.dictionary) {
        (Physical::Text, Some(dictionary)) => {
            let ranks = dictionary.ranks();
            let rank = |code: &u64| u64::from(ranks.rank_of[*code as usize]);
            out.extend(values.keys.iter().map(rank));
        }
        _ => {
            let keys = values.keys.iter();
            out.extend(keys.map(|key| rank_of(values.physical, *key)));
        }
    }
}

/// The rank of the number whose key or raw bits are `key`.
#[inline]
pub(crate) fn rank_of(physical: Physical, key: u64) -> u64 {
    match physical {
        Physical::Float { bytes } => float_key(float_of_bits(key, bytes)),
        _ => key,
    }
}

impl Chunk {
    /// Appends to `out` a rank for each row of `within` that is not null, in row order.
    ///
    /// Ranks sort as the values do: keys of integers, [`float_key`]s, and for text the position
    /// among the texts of the chunk's dictionary as it is, so that ranks of text compare inside
    /// one chunk only.
    ///
    /// # Errors
    /// `Unsupported` for decimals, which do not fit 64 bits.
    pub fn rank(&self, within: &Selection, out: &mut Vec<u64>, work: &mut Work) -> Result<()> {
        if self.physical == Physical::Wide {
            let message = format!("values of {} have no 64-bit rank", self.data_type);
            return Err(Error::unsupported(message));
        }
        self.for_valid(within, work, |within, work| {
            if within.shape() != Shape::None {
                self.codec.rank(self, within, out, work);
            }
        });
        Ok(())
    }
}
