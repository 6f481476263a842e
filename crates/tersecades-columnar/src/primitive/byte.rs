//! `decode_bytes`: the keys of a block of one-byte integers, as bytes.

use crate::block::{BLOCK_ROWS, block_rows};
use crate::chunk::Chunk;
use crate::codec::{Codec, Work};

/// The default of [`Codec::decode_bytes`]: from bases and bytes above them, or by decoding.
pub fn bytes_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    block: usize,
    out: &mut [u8; BLOCK_ROWS],
    work: &mut Work,
) {
    let bands = codec.bands(chunk);
    let bands = bands.filter(|bands| bands.patches.is_none_or(|patches| patches.is_empty()));
    if let Some(bands) = bands {
        let bases = bands.bases_of(block);
        let group = BLOCK_ROWS / bases.len();
        let deltas = bands.deltas.filter(|deltas| deltas.widths[block] > 0);
        let deltas: Option<&[u8]> = deltas.map(|deltas| deltas.block(block));
        for (index, (out, base)) in out.chunks_mut(group).zip(bases).enumerate() {
            let Some(deltas) = deltas else {
                out.fill(*base as u8);
                continue;
            };
            let deltas = deltas.get(index * group..).unwrap_or(&[]);
            for (byte, delta) in out.iter_mut().zip(deltas) {
                *byte = delta.wrapping_add(*base as u8);
            }
        }
        return;
    }
    let mut values = std::mem::take(&mut work.values);
    values.reset(chunk.physical());
    codec.decode(chunk, block_rows(block, chunk.rows()), &mut values);
    for (byte, key) in out.iter_mut().zip(&values.keys) {
        *byte = *key as u8;
    }
    work.values = values;
}
