//! From a lane width known at run time to code compiled for that width.

use bytemuck::Pod;

use crate::chunk::Body;
use crate::codec::EncodeWork;
use crate::input::Lanes;
use crate::kernels::Lane;

/// A lane that sections can hold and keys can be cut to.
pub(crate) trait KeyLane: Lane + Pod {
    /// The low bits of `bits`; the caller knows that the rest is zero or does not matter.
    fn cut(bits: u64) -> Self;

    /// The lane as a key.
    fn key(self) -> u64;

    /// The encoder's reused memory for lanes of this width.
    fn scratch(work: &mut EncodeWork) -> &mut Vec<Self>;

    /// `lanes` with their width told at run time.
    fn lanes(lanes: &[Self]) -> Lanes<'_>;
}

macro_rules! key_lane {
    ($($lane:ty, $scratch:ident, $lanes:ident);*) => {$(
        impl KeyLane for $lane {
            #[inline(always)]
            fn cut(bits: u64) -> Self {
                bits as $lane
            }

            #[inline(always)]
            fn key(self) -> u64 {
                u64::from(self)
            }

            fn scratch(work: &mut EncodeWork) -> &mut Vec<Self> {
                &mut work.$scratch
            }

            fn lanes(lanes: &[Self]) -> Lanes<'_> {
                Lanes::$lanes(lanes)
            }
        }
    )*};
}
key_lane!(u8, bytes, U8; u16, shorts, U16; u32, ends, U32; u64, keys, U64);

/// Runs `$body` with `$lanes` bound to the slice inside integer-like [`Lanes`], else `$other`.
macro_rules! with_lanes {
    ($input:expr, $lanes:ident => $body:expr, else $other:expr) => {
        match $input {
            $crate::input::Lanes::U8($lanes) => $body,
            $crate::input::Lanes::U16($lanes) => $body,
            $crate::input::Lanes::U32($lanes) => $body,
            $crate::input::Lanes::U64($lanes) => $body,
            _ => $other,
        }
    };
}
pub(crate) use with_lanes;

/// Section `index` as lanes of `bytes` bytes.
pub(crate) fn lanes_section(body: &Body, index: usize, bytes: usize) -> Lanes<'_> {
    match bytes {
        1 => Lanes::U8(body.section(index)),
        2 => Lanes::U16(body.section(index)),
        4 => Lanes::U32(body.section(index)),
        _ => Lanes::U64(body.section(index)),
    }
}

/// Adds section `index` with the low `bytes` bytes of every item of `bits`.
pub(crate) fn add_lanes_section(body: &mut Body, index: usize, bytes: usize, bits: &[u64]) {
    fn fill<T: KeyLane>(body: &mut Body, index: usize, bits: &[u64]) {
        let lanes = body.add_section::<T>(index, bits.len());
        lanes
            .iter_mut()
            .zip(bits)
            .for_each(|(lane, bits)| *lane = T::cut(*bits));
    }
    match bytes {
        1 => fill::<u8>(body, index, bits),
        2 => fill::<u16>(body, index, bits),
        4 => fill::<u32>(body, index, bits),
        _ => fill::<u64>(body, index, bits),
    }
}
