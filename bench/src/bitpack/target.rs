//! Loops compiled for the instruction sets that levels of kernels are compiled for.

/// A loop; to be compiled for an instruction set, it has to be inlined, always.
pub(super) trait Body {
    /// Runs it.
    fn run(self);
}

/// In a loop, keeps the compiler from taking several rounds together, for which it would have to
/// gather lanes that lie apart.
#[inline(always)]
pub(super) fn one_by_one() {
    // SAFETY: there is no instruction.
    unsafe { std::arch::asm!("", options(nomem, nostack, preserves_flags)) }
}

/// An instruction set that this processor has.
pub(super) trait Target: Copy {
    /// Runs `body` as compiled for the instruction set.
    fn run(self, body: impl Body);
}

/// What the whole program is compiled for.
#[derive(Clone, Copy)]
pub(super) struct Baseline;

impl Target for Baseline {
    #[inline(always)]
    fn run(self, body: impl Body) {
        body.run();
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::{Body, Target};

    /// What the level `avx2` is compiled for.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(());

    impl Avx2 {
        /// Where the processor has it.
        pub(in super::super) fn detect() -> Option<Self> {
            let found = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            found.then_some(Avx2(()))
        }
    }

    impl Target for Avx2 {
        #[inline(always)]
        fn run(self, body: impl Body) {
            // SAFETY: `detect`, which alone makes this, found every feature that is enabled.
            unsafe { avx2(body) }
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn avx2(body: impl Body) {
        body.run();
    }

    /// What the level `avx512` is compiled for.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512(());

    impl Avx512 {
        /// Where the processor has it.
        pub(in super::super) fn detect() -> Option<Self> {
            let found = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            Avx2::detect().filter(|_| found).map(|_| Avx512(()))
        }
    }

    impl Target for Avx512 {
        #[inline(always)]
        fn run(self, body: impl Body) {
            // SAFETY: `detect`, which alone makes this, found every feature that is enabled.
            unsafe { avx512(body) }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn avx512(body: impl Body) {
        body.run();
    }
}
