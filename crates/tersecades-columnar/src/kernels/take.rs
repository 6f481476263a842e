//! Lanes looked up by codes.

use super::Lane;

/// What [`super::LaneKernels::take`] answers.
#[inline(always)]
pub(super) fn take<W: Lane>(table: &[W], codes: &[u32], out: &mut [W]) -> bool {
    assert_eq!(codes.len(), out.len(), "a lane for each code");
    let most = codes.iter().fold(0, |most, code| u32::max(most, *code));
    if most as usize >= table.len() {
        return codes.is_empty();
    }
    for (value, code) in out.iter_mut().zip(codes) {
        // SAFETY: `most` is inside the table, and no code is greater.
        *value = unsafe { *table.get_unchecked(*code as usize) };
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::kernels::tests::{Cut, LENGTHS, Random, faster_levels};
    use crate::kernels::{Kernels, LaneKernels, scalar};

    fn check<W: Cut>(of: fn(&Kernels) -> &LaneKernels<W>) {
        let mut random = Random(0x7a6e);
        for level in faster_levels() {
            for length in LENGTHS.into_iter().chain([1_025]) {
                let lanes = 1 + random.bits() as usize % 70_000;
                let table = random.lanes::<W>(lanes);
                let code = |_| random.bits() as u32 % table.len() as u32;
                let codes: Vec<u32> = (0..length).map(code).collect();
                let expected: Vec<W> = codes.iter().map(|code| table[*code as usize]).collect();
                for kernels in [&scalar::KERNELS, level] {
                    let mut out = vec![W::default(); length];
                    assert!((of(kernels).take)(&table, &codes, &mut out));
                    assert_eq!(out, expected, "{} {length}", kernels.name);
                }
                for outside in [table.len() as u32, 1 << 31, u32::MAX] {
                    let mut codes = codes.clone();
                    let Some(at) = (random.bits() as usize).checked_rem(length) else {
                        continue;
                    };
                    codes[at] = outside;
                    for kernels in [&scalar::KERNELS, level] {
                        let mut out = vec![W::default(); length];
                        assert!(!(of(kernels).take)(&table, &codes, &mut out));
                    }
                }
            }
        }
    }

    #[test]
    fn codes_find_their_lanes_and_none_outside() {
        check::<u8>(|kernels| &kernels.u8);
        check::<u16>(|kernels| &kernels.u16);
        check::<u32>(|kernels| &kernels.u32);
        check::<u64>(|kernels| &kernels.u64);
    }
}
