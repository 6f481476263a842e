//! The loops of the `fastlanes` crate, to be inlined where an instruction set is enabled: its own
//! functions never are.

use std::hint::black_box;

use fastlanes::{BitPacking, FastLanes, unpack};
use tersecades_columnar::kernels::{BLOCK_LANES, Lane};

use super::target::Body;

/// Every block unpacked into one place.
pub(super) struct Unpacking<'a, W, const WIDTH: usize, const LANES: usize> {
    pub(super) packed: &'a [[W; LANES]],
    pub(super) out: &'a mut [W; BLOCK_LANES],
}

impl<W: Unpack, const WIDTH: usize, const LANES: usize> Body for Unpacking<'_, W, WIDTH, LANES> {
    #[inline(always)]
    fn run(self) {
        for block in self.packed {
            W::unpack_inline::<WIDTH, LANES>(black_box(block), self.out);
            black_box(&self.out);
        }
    }
}

/// Lanes that the crate packs.
pub(super) trait Unpack: Lane + BitPacking {
    /// As [`BitPacking::unpack`].
    fn unpack_inline<const WIDTH: usize, const LANES: usize>(
        packed: &[Self; LANES],
        out: &mut [Self; BLOCK_LANES],
    );
}

macro_rules! unpack_inline {
    ($($lane:ident)*) => {$(
        impl Unpack for $lane {
            #[inline(always)]
            fn unpack_inline<const WIDTH: usize, const LANES: usize>(
                packed: &[Self; LANES],
                out: &mut [Self; BLOCK_LANES],
            ) {
                for lane in 0..Self::LANES {
                    unpack!($lane, WIDTH, packed, lane, |$index, $value| {
                        out[$index] = $value;
                    });
                }
            }
        }
    )*};
}
unpack_inline!(u8 u16 u32);
