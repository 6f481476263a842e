//! Encoding a block in one pass, taking it to be like the one before.
//!
//! ```text
//! width: the last block's                         all groups fit: bases move to the smallest
//! base:  below the last block's bases,            few rows do not: these are patches
//!        or below the first value of each group   else:           the block is planned anew
//! ```
//! Values are read once, and their ends are found among the deltas. What is written is as any other
//! block: the reader cannot tell. A guess that fails is made the other way for the next block;
//! after several the guessing rests for a while.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS};
use crate::kernels::{Narrow, Reach, kernels};
use crate::lane::KeyLane;
use crate::narrow::{widest, width_of};

use super::encode::{Frame, GROUP_WORDS, WORDS, patch_cost};

/// Most blocks between two tries.
const REST_MAX: u32 = 32;

/// Patches may take up to this share of the bytes of the deltas.
const PATCH_SHARE: usize = 2;

/// What is expected of the next block.
pub(super) struct Speculation {
    /// Bytes of a delta; 0 as long as nothing is expected.
    width: usize,
    /// Base of the last group, and how far its block's values lay from their bases.
    base: u64,
    range: u64,
    /// Whether bases are placed by the first value of each group instead of the last base.
    by_first: bool,
    /// Blocks until the next try, and the pause after the next failure.
    rest: u32,
    pause: u32,
}

impl Speculation {
    /// Nothing expected yet.
    pub(super) fn new() -> Self {
        Speculation {
            width: 0,
            base: 0,
            range: 0,
            by_first: false,
            rest: 0,
            pause: 1,
        }
    }

    /// The width of the deltas to try a block with.
    pub(super) fn try_width(&mut self, lane_bytes: usize) -> Option<usize> {
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        (self.width > 0 && self.width < lane_bytes).then_some(self.width)
    }

    /// Learns from a block: its width, and where its groups without patches lie.
    pub(super) fn learn(&mut self, frame: &Frame) {
        self.width = frame.width;
        let span = |group: usize| frame.maxima[group] - frame.bases[group];
        if frame.patches == 0 {
            self.base = frame.bases[GROUPS - 1];
            self.range = (0..GROUPS).map(span).max().unwrap_or(0);
            return;
        }
        let clean = |group: &usize| {
            let words = group * GROUP_WORDS..(group + 1) * GROUP_WORDS;
            frame.outside[words].iter().all(|word| *word == 0)
        };
        if let Some(group) = (0..GROUPS).rev().find(clean) {
            self.base = frame.bases[group];
            self.range = (0..GROUPS).filter(clean).map(span).max().unwrap_or(0);
        }
    }

    /// Takes note of a try: after a failure the other guess is next, after several a pause.
    fn settle(&mut self, fits: bool) {
        if fits {
            self.pause = 1;
            return;
        }
        if self.by_first {
            self.rest = self.pause;
            self.pause = (2 * self.pause).min(REST_MAX);
        }
        self.by_first = !self.by_first;
    }

    /// The key that the deltas of a group starting with `first` count from.
    fn guess(&self, first: u64) -> u64 {
        let reach = widest(self.width);
        match self.by_first {
            true => first.saturating_sub(reach / 2 + 1),
            false => self
                .base
                .saturating_sub(reach.saturating_sub(self.range) / 2),
        }
    }

    /// Encodes a whole block without nulls into `deltas` and fills its frame, unless it is not as
    /// expected; answers the smallest and largest key but for those of patches.
    pub(super) fn encode<T: KeyLane>(
        &mut self,
        values: &[T],
        flip: T,
        deltas: &mut [u8],
        frame: &mut Frame,
    ) -> Option<(u64, u64)> {
        let guessed = match (self.width, size_of::<T>()) {
            (1, 2) => self.try_lanes::<u16, u8>(values, flip, deltas, frame),
            (1, 4) => self.try_lanes::<u32, u8>(values, flip, deltas, frame),
            (2, 4) => self.try_lanes::<u32, u16>(values, flip, deltas, frame),
            (1, 8) => self.try_lanes::<u64, u8>(values, flip, deltas, frame),
            (2, 8) => self.try_lanes::<u64, u16>(values, flip, deltas, frame),
            (4, 8) => self.try_lanes::<u64, u32>(values, flip, deltas, frame),
            _ => None,
        };
        self.settle(guessed.is_some());
        guessed
    }

    /// The lanes are `V`: the cast only tells the compiler.
    fn try_lanes<V: KeyLane + Narrow<D>, D: KeyLane>(
        &self,
        values: &[impl KeyLane],
        flip: impl KeyLane,
        deltas: &mut [u8],
        frame: &mut Frame,
    ) -> Option<(u64, u64)> {
        let values: &[V] = bytemuck::cast_slice(values);
        let deltas: &mut [D] = bytemuck::cast_slice_mut(deltas);
        let flip = V::cut(flip.key());
        let top = V::MAX.key() - widest(self.width);
        let bases: [V; GROUPS] = std::array::from_fn(|group| {
            let first = (values[group * GROUP_ROWS] ^ flip).key();
            V::cut(self.guess(first).min(top))
        });
        let (min, max) = ([D::cut(0); GROUPS], [D::cut(0); GROUPS]);
        let mut reach = Reach { min, max };
        let try_narrow = V::pair(kernels()).try_narrow;
        let fits = try_narrow(values, flip, &bases, deltas, &mut reach);
        if frame.patches > 0 {
            (frame.patches, frame.outside) = (0, [0; WORDS]);
        }
        frame.width = self.width;
        frame.bases = bases.map(KeyLane::key);
        let ends = (u64::MAX, 0);
        let mut guessed = Guessed { frame, ends };
        for group in 0..GROUPS {
            if fits >> group & 1 == 1 {
                let guess = guessed.frame.bases[group];
                let (low, high) = (reach.min[group].key(), reach.max[group].key());
                guessed.frame.bases[group] += low;
                guessed.bound(group, guess + low, guess + high);
            } else {
                let rows = group * GROUP_ROWS..(group + 1) * GROUP_ROWS;
                let lanes = (&values[rows.clone()], &mut deltas[rows]);
                guessed.patch_group::<V, D>(group, flip, lanes)?;
            }
        }
        let spans = guessed.frame.maxima.iter().zip(&guessed.frame.bases);
        let range = spans.map(|(maximum, base)| maximum - base).max();
        // A narrower block is for the plan to find.
        (width_of(range.unwrap_or(0)) == self.width).then_some(guessed.ends)
    }
}

/// A block that comes out as expected.
struct Guessed<'a> {
    frame: &'a mut Frame,
    /// Smallest and largest key but for those of patches.
    ends: (u64, u64),
}

impl Guessed<'_> {
    /// Takes note that the keys of `group` that are not patched lie in `low..=high`.
    fn bound(&mut self, group: usize, low: u64, high: u64) {
        self.frame.maxima[group] = high;
        self.ends = (self.ends.0.min(low), self.ends.1.max(high));
    }

    /// Keeps apart the rows of a group that its base does not reach; `None` where they are many.
    fn patch_group<V: KeyLane + Narrow<D>, D: KeyLane>(
        &mut self,
        group: usize,
        flip: V,
        (values, deltas): (&[V], &mut [D]),
    ) -> Option<()> {
        let frame = &mut *self.frame;
        let base = V::cut(frame.bases[group]);
        let mut inside = [0; GROUP_WORDS];
        // XOR with the sign bit equals subtracting half the range, so raw lanes can be tested.
        let limit = V::cut(widest(frame.width));
        (V::of(kernels()).range_mask_flat)(values, base ^ flip, limit, &mut inside);
        let outside = inside.map(|word: u64| !word);
        frame.patches += outside
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum::<usize>();
        let bytes = frame.patches * patch_cost(size_of::<V>());
        if bytes * PATCH_SHARE > BLOCK_ROWS * frame.width {
            return None;
        }
        let words = group * GROUP_WORDS..(group + 1) * GROUP_WORDS;
        frame.outside[words].copy_from_slice(&outside);
        for (index, word) in outside.into_iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                let row = index * WORD_ROWS + rest.trailing_zeros() as usize;
                let is_above = values[row] ^ flip > base;
                deltas[row] = if is_above { D::MAX } else { D::cut(0) };
                rest &= rest - 1;
            }
        }
        let (mut min, mut max) = ([D::MAX; GROUPS], [D::cut(0); GROUPS]);
        (D::of(kernels()).min_max)(deltas, D::cut(0), Some(&inside), &mut min, &mut max);
        let base = frame.bases[group];
        match min[0] <= max[0] {
            true => self.bound(group, base + min[0].key(), base + max[0].key()),
            false => frame.maxima[group] = base,
        }
        Some(())
    }
}
