//! The four lane types and the ten legal pairs of a value type and its delta type.
//!
//! Both traits are closed: a kernel exists for exactly these types, so a caller that is generic
//! over [`Lane`] or [`Narrow`] reaches its kernel without a match and a pair that would need a
//! wider delta does not compile.

use super::{GROUP_LANES, Kernels, LaneKernels, PackKernels, PairKernels};
use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, BitXor};

mod sealed {
    /// Implemented by the lane types of this file alone.
    pub trait Sealed {}
}

/// An unsigned lane of a block.
pub trait Lane:
    sealed::Sealed
    + Copy
    + Ord
    + Default
    + Debug
    + Send
    + Sync
    + Into<u64>
    + Into<u128>
    + From<u8>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + 'static
{
    /// Bits of a lane.
    const BITS: u32;
    /// The largest lane.
    const MAX: Self;

    /// `self + other` modulo 2^[`Self::BITS`].
    #[must_use]
    fn wrapping_add(self, other: Self) -> Self;

    /// `self - other` modulo 2^[`Self::BITS`].
    #[must_use]
    fn wrapping_sub(self, other: Self) -> Self;

    /// `lanes` itself where a lane is a byte.
    fn bytes(lanes: &[Self]) -> Option<&[u8]>;

    /// `group` itself where a lane has 64 bits.
    fn words(group: &[Self; GROUP_LANES]) -> Option<&[u64; GROUP_LANES]>;

    /// `group` itself where a lane is a byte.
    fn bytes_mut(group: &mut [Self; GROUP_LANES]) -> Option<&mut [u8; GROUP_LANES]>;

    /// `group` itself where a lane has 16 bits.
    fn shorts_mut(group: &mut [Self; GROUP_LANES]) -> Option<&mut [u16; GROUP_LANES]>;

    /// The lowest 32 bits.
    fn low_half(self) -> u32;

    /// The lowest [`Self::BITS`] bits of `bits`.
    fn truncate(bits: u64) -> Self;

    /// The lane over and over in 64 bits.
    #[inline(always)]
    fn repeated(self) -> u64 {
        Into::<u64>::into(self).wrapping_mul(u64::MAX / Into::<u64>::into(Self::MAX))
    }

    /// The kernels of this type in `kernels`.
    fn of(kernels: &Kernels) -> &LaneKernels<Self>;

    /// The kernels over packed blocks of this type in `kernels`.
    fn packs(kernels: &Kernels) -> &PackKernels<Self>;
}

/// A value type whose deltas can be held in `D`.
pub trait Narrow<D: Lane>: Lane + From<D> {
    /// `self`, or `D::MAX` where that is smaller.
    fn saturate(self) -> D;

    /// The kernels of this pair in `kernels`.
    fn pair(kernels: &Kernels) -> &PairKernels<Self, D>;
}

macro_rules! lane {
    ($lane:ident, $packs:ident, $bytes:expr, $words:expr, $bytes_mut:expr, $shorts_mut:expr) => {
        impl sealed::Sealed for $lane {}

        impl Lane for $lane {
            const BITS: u32 = $lane::BITS;
            const MAX: Self = $lane::MAX;

            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn bytes(lanes: &[Self]) -> Option<&[u8]> {
                $bytes(lanes)
            }

            #[inline(always)]
            fn words(group: &[Self; GROUP_LANES]) -> Option<&[u64; GROUP_LANES]> {
                $words(group)
            }

            #[inline(always)]
            fn bytes_mut(group: &mut [Self; GROUP_LANES]) -> Option<&mut [u8; GROUP_LANES]> {
                $bytes_mut(group)
            }

            #[inline(always)]
            fn shorts_mut(group: &mut [Self; GROUP_LANES]) -> Option<&mut [u16; GROUP_LANES]> {
                $shorts_mut(group)
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the cut is the purpose")]
            #[allow(clippy::unnecessary_cast, reason = "one of the four is a u32")]
            fn low_half(self) -> u32 {
                self as u32
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the cut is the purpose")]
            #[allow(clippy::unnecessary_cast, reason = "one of the four is a u64")]
            fn truncate(bits: u64) -> Self {
                bits as $lane
            }

            fn of(kernels: &Kernels) -> &LaneKernels<Self> {
                &kernels.$lane
            }

            fn packs(kernels: &Kernels) -> &PackKernels<Self> {
                &kernels.$packs
            }
        }
    };
}

lane!(u8, packed_u8, Some, |_| None, Some, |_| None);
lane!(u16, packed_u16, |_| None, |_| None, |_| None, Some);
lane!(u32, packed_u32, |_| None, |_| None, |_| None, |_| None);
lane!(u64, packed_u64, |_| None, Some, |_| None, |_| None);

macro_rules! narrow {
    ($wide:ident, $narrow:ident, $field:ident) => {
        impl Narrow<$narrow> for $wide {
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the minimum fits")]
            fn saturate(self) -> $narrow {
                self.min($wide::from($narrow::MAX)) as $narrow
            }

            fn pair(kernels: &Kernels) -> &PairKernels<Self, $narrow> {
                &kernels.$field
            }
        }
    };
}

narrow!(u8, u8, u8_u8);
narrow!(u16, u8, u16_u8);
narrow!(u16, u16, u16_u16);
narrow!(u32, u8, u32_u8);
narrow!(u32, u16, u32_u16);
narrow!(u32, u32, u32_u32);
narrow!(u64, u8, u64_u8);
narrow!(u64, u16, u64_u16);
narrow!(u64, u32, u64_u32);
narrow!(u64, u64, u64_u64);
