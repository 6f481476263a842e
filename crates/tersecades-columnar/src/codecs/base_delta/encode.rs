//! Choosing bases, width and patches of each block, in two passes over the block while it is in
//! the first-level cache: ends of each group, then narrowing.
//!
//! ```text
//! ends of the 8 groups (one kernel)          widest group decides the exact width
//! for each narrower width, widest first:     only when the exact width is above one byte
//!     group fits?            base = its smallest key
//!     outliers above?        base = its smallest key
//!     outliers below?        base = its largest key - widest delta
//!     both?                  base = start of the window that holds most of a sample
//!     count what is outside  (one kernel)
//! cheapest of width x rows + patches x patch cost wins
//! ```

use crate::aligned::CACHE_LINE_BYTES;
use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS, block_count};
use crate::chunk::Chunk;
use crate::codec::EncodeWork;
use crate::error::Result;
use crate::input::Input;
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::narrow::{
    fill_holes, line_number, narrow, prefetch_eighth, section_mut, widest, width_of,
};
use crate::patch as patches;
use crate::stats::Stats;

use super::{BASES, DELTAS, MAXIMA, OFFSETS, PATCHES, WIDTHS};

/// A patch costs its bytes, and as much again for the time a scan spends on it.
const PATCH_TIME_BYTES: usize = 6;

/// Room kept for the patches of a block, so that the bytes of a chunk rarely have to move.
const PATCH_RESERVE_BYTES: usize = 64;

/// Above one patch in this many rows a width is not considered.
const PATCH_SHARE_MIN: usize = 8;

/// Rows of a block that one kernel call takes. Between calls a few cache lines of the next block
/// are asked for, so that memory works while the block at hand is computed on.
const PART_ROWS: usize = 256;
const PART_GROUPS: usize = PART_ROWS / GROUP_ROWS;
const PARTS: usize = BLOCK_ROWS / PART_ROWS;

const WORDS: usize = BLOCK_ROWS / WORD_ROWS;
const GROUP_WORDS: usize = GROUP_ROWS / WORD_ROWS;

/// Rows looked at to place a base between outliers at both ends.
const SAMPLE_ROWS: usize = 32;

/// A block on its way in: lanes with nulls filled, validity, ends of groups.
struct Draft<'a, T> {
    values: &'a [T],
    flip: T,
    valid: Option<&'a [u64]>,
    /// The values after the block.
    next: &'a [T],
    min: [T; GROUPS],
    max: [T; GROUPS],
}

/// What was decided for a block.
#[derive(Clone, Copy)]
struct Plan<T> {
    width: usize,
    bases: [T; GROUPS],
    outside: [u64; WORDS],
    patches: usize,
}

impl<T: KeyLane> Draft<'_, T> {
    /// Finds the ends of each group.
    fn find_ends(&mut self) {
        let min_max = T::of(kernels()).min_max;
        for (part, values) in self.values.chunks(PART_ROWS).enumerate() {
            self.prefetch_next(part);
            let words = PART_ROWS / WORD_ROWS;
            let valid = self.valid.map(|valid| &valid[part * words..]);
            let (mut min, mut max) = ([T::MAX; GROUPS], [T::cut(0); GROUPS]);
            min_max(values, self.flip, valid, &mut min, &mut max);
            let groups = part * PART_GROUPS..(part + 1) * PART_GROUPS;
            self.min[groups.clone()].copy_from_slice(&min[..PART_GROUPS]);
            self.max[groups].copy_from_slice(&max[..PART_GROUPS]);
        }
    }

    /// Asks for the cache lines of one eighth of the next block.
    fn prefetch_next(&self, eighth: usize) {
        prefetch_eighth(self.next, eighth);
    }

    fn groups(&self) -> usize {
        self.values.len().div_ceil(GROUP_ROWS)
    }

    fn range(&self, group: usize) -> u64 {
        self.max[group].key().saturating_sub(self.min[group].key())
    }

    /// The plan without patches.
    fn exact(&self) -> Plan<T> {
        let range = (0..self.groups())
            .map(|group| self.range(group))
            .max()
            .unwrap_or(0);
        Plan {
            width: width_of(range),
            bases: self.min,
            outside: [0; WORDS],
            patches: 0,
        }
    }

    /// The cheapest plan.
    fn plan(&self) -> Plan<T> {
        let mut best = self.exact();
        for width in [4, 2, 1] {
            if width >= best.width.max(1) {
                continue;
            }
            let Some(plan) = self.plan_width(width) else {
                break;
            };
            if self.cost(&plan) < self.cost(&best) {
                best = plan;
            }
        }
        best
    }

    fn cost(&self, plan: &Plan<T>) -> usize {
        let patch_bytes = 2 + size_of::<T>() + PATCH_TIME_BYTES;
        plan.width * self.values.len() + plan.patches * patch_bytes
    }

    /// The plan with deltas of `width` bytes, unless it needs too many patches.
    fn plan_width(&self, width: usize) -> Option<Plan<T>> {
        let mut plan = Plan {
            width,
            bases: self.min,
            outside: [0; WORDS],
            patches: 0,
        };
        let limit = widest(width);
        for group in 0..self.groups() {
            if self.range(group) <= limit {
                continue;
            }
            let start = group * GROUP_ROWS;
            let values = &self.values[start..(start + GROUP_ROWS).min(self.values.len())];
            let valid = self.valid.map(|valid| &valid[group * GROUP_WORDS..]);
            let (base, outside) = self.place_base(group, values, valid, limit);
            plan.bases[group] = base;
            plan.outside[group * GROUP_WORDS..(group + 1) * GROUP_WORDS].copy_from_slice(&outside);
            plan.patches += outside
                .iter()
                .map(|word| word.count_ones() as usize)
                .sum::<usize>();
            if plan.patches * PATCH_SHARE_MIN > self.values.len() {
                return None;
            }
        }
        Some(plan)
    }

    /// The base of a group with outliers, and which rows stay outside.
    fn place_base(
        &self,
        group: usize,
        values: &[T],
        valid: Option<&[u64]>,
        limit: u64,
    ) -> (T, [u64; GROUP_WORDS]) {
        let few = values.len() / PATCH_SHARE_MIN;
        let try_base = |base: T| {
            let outside = self.outside(values, valid, base, limit);
            let count: usize = outside.iter().map(|word| word.count_ones() as usize).sum();
            (count, base, outside)
        };
        let low = try_base(self.min[group]);
        if low.0 <= few / 2 {
            return (low.1, low.2);
        }
        let high = try_base(T::cut(self.max[group].key() - limit));
        let best = if high.0 < low.0 { high } else { low };
        if best.0 <= few / 2 {
            return (best.1, best.2);
        }
        let middle = try_base(self.densest(group, values, limit));
        let best = if middle.0 < best.0 { middle } else { best };
        (best.1, best.2)
    }

    /// The start of the window of `limit` that holds most of a sample of the group.
    fn densest(&self, group: usize, values: &[T], limit: u64) -> T {
        let mut sample = [0u64; SAMPLE_ROWS];
        let step = values.len().div_ceil(SAMPLE_ROWS).max(1);
        let mut count = 0;
        for (slot, value) in sample.iter_mut().zip(values.iter().step_by(step)) {
            *slot = (*value ^ self.flip).key();
            count += 1;
        }
        let sample = &mut sample[..count];
        sample.sort_unstable();
        let mut best = (0, 0, 0);
        let mut end = 0;
        for start in 0..sample.len() {
            while end < sample.len() && sample[end] - sample[start] <= limit {
                end += 1;
            }
            if end - start > best.0 {
                best = (end - start, sample[start], sample[end - 1]);
            }
        }
        let slack = (limit - (best.2 - best.1)) / 2;
        T::cut(best.1.saturating_sub(slack).max(self.min[group].key()))
    }

    fn outside(
        &self,
        values: &[T],
        valid: Option<&[u64]>,
        base: T,
        limit: u64,
    ) -> [u64; GROUP_WORDS] {
        let mut inside = [0; GROUP_WORDS];
        // Past the largest key the test would wrap round to the smallest.
        let limit = limit.min(T::MAX.key() - base.key());
        // XOR with the sign bit equals subtracting half the range, so raw lanes can be tested.
        let low = base ^ self.flip;
        (T::of(kernels()).range_mask_flat)(values, low, T::cut(limit), &mut inside);
        let mut outside = inside;
        for (index, word) in outside.iter_mut().enumerate() {
            let rows = values
                .len()
                .saturating_sub(index * WORD_ROWS)
                .min(WORD_ROWS);
            let used = if rows == 0 {
                0
            } else {
                u64::MAX >> (WORD_ROWS - rows)
            };
            let valid = valid
                .and_then(|valid| valid.get(index))
                .copied()
                .unwrap_or(u64::MAX);
            *word = !*word & used & valid;
        }
        outside
    }
}

/// Encodes `lanes` into the sections of `out`, statistics included.
pub(super) fn encode<T: KeyLane>(
    lanes: &[T],
    input: &Input<'_>,
    out: &mut Chunk,
    work: &mut EncodeWork,
) -> Result<()> {
    let blocks = block_count(lanes.len());
    out.body.add_section::<u64>(BASES, blocks * GROUPS);
    out.body.add_section::<u64>(MAXIMA, blocks * GROUPS);
    out.body.add_section::<u8>(WIDTHS, blocks);
    out.body.add_section::<u32>(OFFSETS, blocks + 1);
    let deltas_start = out.body.add_section::<u8>(DELTAS, 0).len() + out.body.bytes.bytes().len();
    patches::begin(work);
    let (mut low, mut high) = (u64::MAX, 0);
    let mut filled = [T::cut(0); BLOCK_ROWS];
    for (block, values) in lanes.chunks(BLOCK_ROWS).enumerate() {
        patches::begin_block(work);
        let valid = input.validity.map(|validity| {
            let first = block * WORDS;
            &validity.words()[first..first + values.len().div_ceil(WORD_ROWS)]
        });
        let mut draft = Draft {
            values,
            flip: T::cut(input.physical.flip()),
            valid,
            next: lanes.get((block + 1) * BLOCK_ROWS..).unwrap_or(&[]),
            min: [T::MAX; GROUPS],
            max: [T::cut(0); GROUPS],
        };
        draft.find_ends();
        for group in 0..GROUPS {
            if draft.min[group] <= draft.max[group] {
                low = low.min(draft.min[group].key());
                high = high.max(draft.max[group].key());
            } else {
                (draft.min[group], draft.max[group]) = (T::cut(0), T::cut(0));
            }
        }
        if let Some(valid) = valid {
            draft.values = fill_holes(values, draft.flip, &draft.min, valid, &mut filled);
        }
        let plan = draft.plan();
        if block == 0 {
            let per_block = BLOCK_ROWS * plan.width + PATCH_RESERVE_BYTES;
            out.body.bytes.reserve((blocks + 1) * per_block);
        }
        write_block(block, &draft, &plan, out)?;
        collect_patches(&draft, &plan, work);
    }
    patches::begin_block(work);
    let end = out.body.bytes.bytes().len();
    out.body.sections[DELTAS] = (deltas_start, end - deltas_start);
    let lines = (end - deltas_start) / CACHE_LINE_BYTES;
    section_mut::<u32>(out, OFFSETS)[blocks] = line_number(lines)?;
    patches::write(&mut out.body, PATCHES, size_of::<T>(), work);
    out.stats = Stats::from_ends(low, high);
    Ok(())
}

fn write_block<T: KeyLane>(
    block: usize,
    draft: &Draft<'_, T>,
    plan: &Plan<T>,
    out: &mut Chunk,
) -> Result<()> {
    let limit = widest(plan.width);
    let (bases_at, maxima_at) = (out.body.sections[BASES].0, out.body.sections[MAXIMA].0);
    let deltas_start = out.body.sections[DELTAS].0;
    let bytes = out.body.bytes.bytes_mut();
    let bases: &mut [u64] = bytemuck::cast_slice_mut(&mut bytes[bases_at + block * 64..][..64]);
    bases
        .iter_mut()
        .zip(plan.bases)
        .for_each(|(to, base)| *to = base.key());
    let maxima: &mut [u64] = bytemuck::cast_slice_mut(&mut bytes[maxima_at + block * 64..][..64]);
    for (group, to) in maxima.iter_mut().enumerate() {
        let top = plan.bases[group].key().saturating_add(limit);
        *to = draft.max[group].key().min(top).max(plan.bases[group].key());
    }
    section_mut::<u8>(out, WIDTHS)[block] = plan.width as u8;
    let start = out.body.bytes.grow(draft.values.len() * plan.width);
    let lines = (start - deltas_start) / CACHE_LINE_BYTES;
    section_mut::<u32>(out, OFFSETS)[block] = line_number(lines)?;
    let deltas = &mut out.body.bytes.bytes_mut()[start..];
    let deltas = &mut deltas[..draft.values.len() * plan.width];
    let next = |part| draft.prefetch_next(PARTS + part);
    narrow(
        draft.values,
        draft.flip,
        &plan.bases,
        plan.width,
        deltas,
        next,
    );
    Ok(())
}

fn collect_patches<T: KeyLane>(draft: &Draft<'_, T>, plan: &Plan<T>, work: &mut EncodeWork) {
    if plan.patches == 0 {
        return;
    }
    for (index, word) in plan.outside.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            let row = index * WORD_ROWS + rest.trailing_zeros() as usize;
            work.patch_rows.push(row as u16);
            work.patch_keys.push((draft.values[row] ^ draft.flip).key());
            rest &= rest - 1;
        }
    }
}
