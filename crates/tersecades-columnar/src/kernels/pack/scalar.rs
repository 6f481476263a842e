//! The definition of every kernel over packed blocks: one lane at a time, by way of `get_packed`.

use super::{
    BLOCK_LANES, BLOCK_WORDS, BlockMask, Lane, PackKernels, WORD_LANES, assert_packed, get_packed,
    packed_lanes, row_lanes,
};
use crate::kernels::assert_block;

pub(in crate::kernels) const fn packs<W: Lane>() -> PackKernels<W> {
    PackKernels {
        pack,
        unpack,
        unpack_keys,
        range_mask,
        sum,
        squares,
        min_max,
    }
}

fn pack<W: Lane>(values: &[W], width: u32, out: &mut [W]) {
    assert_block(values.len(), None);
    assert_packed(out, width);
    out[..packed_lanes::<W>(width)].fill(W::default());
    for (lane, &value) in values.iter().enumerate() {
        let value: u64 = value.into();
        let (row, column) = (lane / row_lanes::<W>(), lane % row_lanes::<W>());
        for bit in 0..width {
            let place = row as u32 * width + bit;
            let slot = &mut out[(place / W::BITS) as usize * row_lanes::<W>() + column];
            *slot = *slot ^ W::truncate((value >> bit & 1) << (place % W::BITS));
        }
    }
}

/// The lanes of `mask`, or all of them.
fn lanes<W: Lane>(packed: &[W], width: u32, mask: Option<&BlockMask>) -> impl Iterator<Item = W> {
    assert_packed(packed, width);
    (0..BLOCK_LANES)
        .filter(move |lane| {
            mask.is_none_or(|mask| mask[lane / WORD_LANES] >> (lane % WORD_LANES) & 1 == 1)
        })
        .map(move |lane| get_packed(packed, width, lane))
}

fn unpack<W: Lane>(packed: &[W], width: u32, out: &mut [W; BLOCK_LANES]) {
    for (slot, value) in out.iter_mut().zip(lanes(packed, width, None)) {
        *slot = value;
    }
}

fn unpack_keys<W: Lane>(packed: &[W], width: u32, base: u64, out: &mut [u64; BLOCK_LANES]) {
    for (slot, value) in out.iter_mut().zip(lanes(packed, width, None)) {
        *slot = base.wrapping_add(value.into());
    }
}

fn range_mask<W: Lane>(packed: &[W], width: u32, low: W, span: W, out: &mut BlockMask) {
    *out = [0; BLOCK_WORDS];
    for (lane, value) in lanes(packed, width, None).enumerate() {
        let inside = value.wrapping_sub(low) <= span;
        out[lane / WORD_LANES] |= u64::from(inside) << (lane % WORD_LANES);
    }
}

fn sum<W: Lane>(packed: &[W], width: u32, mask: Option<&BlockMask>) -> u128 {
    lanes(packed, width, mask).map(Into::<u128>::into).sum()
}

fn squares<W: Lane>(packed: &[W], width: u32, mask: Option<&BlockMask>) -> u128 {
    let square = |value: W| Into::<u128>::into(value) * Into::<u128>::into(value);
    lanes(packed, width, mask).fold(0, |total: u128, value| total.wrapping_add(square(value)))
}

fn min_max<W: Lane>(packed: &[W], width: u32, mask: Option<&BlockMask>) -> (W, W) {
    lanes(packed, width, mask).fold((W::MAX, W::default()), |(min, max), value| {
        (min.min(value), max.max(value))
    })
}
