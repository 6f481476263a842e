//! The level that runs anywhere: flags in bytes, packed eight at a time by a multiplication.

use super::bit_stream::BitStream;
use super::code_sum::CodeSums;
use super::compact::Compact;
use super::level::{LINE_BYTES, Level, ROWS_SLACK, Steps, Word, table};
use super::moment::Moments;
use super::order::Order;
use super::outlier::Outlying;
use super::range_sum::RangeSums;
use super::{GROUPS, Kernels, Lane, WORD_LANES};

/// The table of this level.
// SAFETY: `Portable` needs no feature beyond what the program is compiled for.
pub(super) static KERNELS: Kernels = unsafe { table::<Portable>("portable") };

/// No feature beyond what the program is compiled for.
pub(super) struct Portable;

impl Level for Portable {
    #[inline(always)]
    unsafe fn run<R>(body: impl FnOnce() -> R) -> R {
        body()
    }

    #[inline(always)]
    unsafe fn rows(word: u64, first_row: u32, out: *mut u32) {
        // SAFETY: the caller promised room for every set bit and the slack.
        unsafe { rows(word, first_row, out) }
    }

    #[inline(always)]
    unsafe fn sum_bytes(bytes: &[u8]) -> u64 {
        u64::from(bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>())
    }

    #[inline(always)]
    unsafe fn store_past(line: *const u8, out: *mut u8) {
        // SAFETY: the caller promised both to be a line long; a sum and its place are apart.
        unsafe { std::ptr::copy_nonoverlapping(line, out, LINE_BYTES) }
    }

    #[inline(always)]
    unsafe fn fence() {}

    #[inline(always)]
    unsafe fn overlap(
        bases: &[u64; GROUPS],
        maxima: &[u64; GROUPS],
        low: u64,
        high: u64,
    ) -> (u8, u8) {
        let (mut any, mut all) = ([0; GROUPS], [0; GROUPS]);
        for (group, (&base, &maximum)) in bases.iter().zip(maxima).enumerate() {
            any[group] = u8::from(maximum >= low) & u8::from(base <= high);
            all[group] = u8::from(base >= low) & u8::from(maximum <= high);
        }
        (pack(any), pack(all))
    }
}

impl<W: Lane> Order<W> for Portable {}

impl<W: Lane> Moments<W> for Portable {}

impl<W: Lane> Outlying<W> for Portable {}

impl<W: Lane> RangeSums<W> for Portable {}

impl BitStream for Portable {}

impl CodeSums for Portable {}

impl Compact for Portable {}

impl<W: Lane> Steps<W> for Portable {
    #[inline(always)]
    unsafe fn range(values: &Word<W>, low: u64, span: u64, out: &mut u64) {
        let (low, span) = (W::truncate(low), W::truncate(span));
        let mut flags = [0; WORD_LANES];
        for (flag, value) in flags.iter_mut().zip(values) {
            *flag = u8::from(value.wrapping_sub(low) <= span);
        }
        let (bytes, _) = flags.as_chunks::<8>();
        let packed: [u8; 8] = std::array::from_fn(|byte| pack(bytes[byte]));
        *out = u64::from_le_bytes(packed);
    }

    #[inline(always)]
    unsafe fn select(values: &Word<W>, keep: u64, fill: W, out: &mut Word<W>) {
        let mut flags = [0; WORD_LANES];
        let (bytes, _) = flags.as_chunks_mut::<8>();
        for (byte, bits) in bytes.iter_mut().zip(keep.to_le_bytes()) {
            *byte = unpack(bits);
        }
        for ((slot, &value), flag) in out.iter_mut().zip(values).zip(flags) {
            let ones = W::default().wrapping_sub(W::from(flag));
            *slot = ((value ^ fill) & ones) ^ fill;
        }
    }
}

/// Set bits that are written without a look at how many are left: a loop that ends where the bits
/// do is left at a turn that no processor foresees.
const ROWS_AT_ONCE: usize = 4;

/// Writes `first_row + position` of each set bit of `word`, lowest first.
///
/// # Safety
/// `out` is valid for writes of `word.count_ones()` + [`ROWS_SLACK`] values.
#[inline(always)]
pub(super) unsafe fn rows(mut word: u64, first_row: u32, mut out: *mut u32) {
    const { assert!(ROWS_AT_ONCE <= ROWS_SLACK) };
    loop {
        for slot in 0..ROWS_AT_ONCE {
            // SAFETY: at most `ROWS_AT_ONCE` slots past those of set bits, which is in the slack.
            unsafe {
                out.add(slot)
                    .write(first_row.wrapping_add(word.trailing_zeros()))
            };
            word &= word.wrapping_sub(1);
        }
        if word == 0 {
            return;
        }
        // SAFETY: all slots just written stand for set bits, and the slack is behind them.
        out = unsafe { out.add(ROWS_AT_ONCE) };
    }
}

/// Eight flags of 0 or 1 as the bits of a byte, the first lowest.
///
/// Flag `i` is bit `8 * i` of the word, and bit `56 - 7 * i` of the factor lifts it to bit
/// `56 + i`. All 64 products land on different bits, so nothing carries into the top byte.
#[inline(always)]
fn pack(flags: [u8; 8]) -> u8 {
    let gathered = u64::from_le_bytes(flags).wrapping_mul(0x0102_0408_1020_4080);
    gathered.to_be_bytes()[0]
}

/// The bits of a byte as flags of 0 or 1, the lowest first.
///
/// Byte `i` of the product keeps bit `i` alone; adding 127 carries any bit up to the top one.
#[inline(always)]
fn unpack(bits: u8) -> [u8; 8] {
    let own = (u64::from(bits) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    let top = own + 0x7f7f_7f7f_7f7f_7f7f;
    ((top >> 7) & 0x0101_0101_0101_0101).to_le_bytes()
}
