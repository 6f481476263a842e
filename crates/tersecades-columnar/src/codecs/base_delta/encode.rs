//! Choosing bases, width and patches of each block that is not as expected (see `speculate`), in
//! two passes over the block while it is in the first-level cache: ends of groups, then narrowing.
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
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS, block_count, block_rows};
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

use super::speculate::Speculation;
use super::{BASES, DELTAS, MAXIMA, OFFSETS, PATCHES, WIDTHS};

/// A patch costs its bytes, and as much again for the time a scan spends on it.
const PATCH_TIME_BYTES: usize = 2;

/// What a patch of a column of such lanes costs.
pub(super) fn patch_cost(lane_bytes: usize) -> usize {
    2 + lane_bytes + PATCH_TIME_BYTES
}

/// Room kept for the patches of a block, so that the bytes of a chunk rarely have to move.
const PATCH_RESERVE_BYTES: usize = 64;

/// Above one patch in this many rows a width is not considered.
pub(super) const PATCH_SHARE_MIN: usize = 8;

/// Rows of a block that one kernel call takes. Between calls a few cache lines of the next block
/// are asked for, so that memory works while the block at hand is computed on.
const PART_ROWS: usize = 256;
const PART_GROUPS: usize = PART_ROWS / GROUP_ROWS;
const PARTS: usize = BLOCK_ROWS / PART_ROWS;

pub(super) const WORDS: usize = BLOCK_ROWS / WORD_ROWS;
pub(super) const GROUP_WORDS: usize = GROUP_ROWS / WORD_ROWS;

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
        plan.width * self.values.len() + plan.patches * patch_cost(size_of::<T>())
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

/// What a reader is told of a block before its deltas, and which rows it finds among the patches.
#[derive(Default)]
pub(super) struct Frame {
    pub(super) width: usize,
    pub(super) bases: [u64; GROUPS],
    pub(super) maxima: [u64; GROUPS],
    pub(super) patches: usize,
    pub(super) outside: [u64; WORDS],
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
    let start = out.body.add_section::<u8>(DELTAS, 0).len() + out.body.bytes.bytes().len();
    out.body.sections[DELTAS] = (start, 0);
    patches::begin(work);
    let flip = T::cut(input.physical.flip());
    let mut writer = Writer {
        lanes,
        flip,
        speculation: Speculation::new(),
        ends: (u64::MAX, 0),
    };
    let mut frame = Frame::default();
    for block in 0..blocks {
        patches::begin_block(work);
        let valid = input.validity.map(|validity| {
            let words = block * WORDS..((block + 1) * WORDS).min(validity.words().len());
            &validity.words()[words]
        });
        if valid.is_some() || !writer.write_guessed(block, &mut frame, out)? {
            frame = writer.write_planned(block, valid, out)?;
        }
        writer.speculation.learn(&frame);
        write_frame(block, &frame, out);
        writer.collect_patches(block, &frame, work);
    }
    patches::begin_block(work);
    let end = out.body.bytes.bytes().len();
    out.body.sections[DELTAS] = (start, end - start);
    let lines = (end - start) / CACHE_LINE_BYTES;
    section_mut::<u32>(out, OFFSETS)[blocks] = line_number(lines)?;
    patches::write(&mut out.body, PATCHES, size_of::<T>(), work);
    let (low, high) = writer.ends;
    out.stats = Stats::from_ends(low, high);
    Ok(())
}

/// Writes what comes before the deltas of a block.
fn write_frame(block: usize, frame: &Frame, out: &mut Chunk) {
    let groups = block * GROUPS..(block + 1) * GROUPS;
    section_mut::<u64>(out, BASES)[groups.clone()].copy_from_slice(&frame.bases);
    section_mut::<u64>(out, MAXIMA)[groups].copy_from_slice(&frame.maxima);
    section_mut::<u8>(out, WIDTHS)[block] = frame.width as u8;
}

/// The lanes of a chunk on their way into blocks.
struct Writer<'a, T> {
    lanes: &'a [T],
    flip: T,
    speculation: Speculation,
    /// Smallest and largest key so far.
    ends: (u64, u64),
}

impl<T: KeyLane> Writer<'_, T> {
    fn values(&self, block: usize) -> &[T] {
        let rows = block_rows(block, self.lanes.len());
        &self.lanes[rows]
    }

    fn add_end(&mut self, key: u64) {
        let (low, high) = self.ends;
        self.ends = (low.min(key), high.max(key));
    }

    /// Writes the deltas of a block that is like the one before and fills its frame; `false` where
    /// it is not.
    fn write_guessed(&mut self, block: usize, frame: &mut Frame, out: &mut Chunk) -> Result<bool> {
        let rows = block_rows(block, self.lanes.len());
        let width = self.speculation.try_width(size_of::<T>());
        let Some(width) = width.filter(|_| rows.len() == BLOCK_ROWS) else {
            return Ok(false);
        };
        let start = grow_deltas(block, rows.len() * width, out)?;
        let deltas = &mut out.body.bytes.bytes_mut()[start..][..BLOCK_ROWS * width];
        let values = &self.lanes[rows];
        let guessed = self.speculation.encode(values, self.flip, deltas, frame);
        let Some((low, high)) = guessed else {
            out.body.bytes.truncate(start);
            return Ok(false);
        };
        if low <= high {
            self.add_end(low);
            self.add_end(high);
        }
        Ok(true)
    }

    /// Plans a block and writes its deltas.
    fn write_planned(
        &mut self,
        block: usize,
        valid: Option<&[u64]>,
        out: &mut Chunk,
    ) -> Result<Frame> {
        let values = self.values(block);
        let mut draft = Draft {
            values,
            flip: self.flip,
            valid,
            next: self.lanes.get((block + 1) * BLOCK_ROWS..).unwrap_or(&[]),
            min: [T::MAX; GROUPS],
            max: [T::cut(0); GROUPS],
        };
        draft.find_ends();
        let (mut low, mut high) = (u64::MAX, 0);
        for group in 0..GROUPS {
            if draft.min[group] <= draft.max[group] {
                low = low.min(draft.min[group].key());
                high = high.max(draft.max[group].key());
            } else {
                (draft.min[group], draft.max[group]) = (T::cut(0), T::cut(0));
            }
        }
        let mut filled = [T::cut(0); BLOCK_ROWS];
        if let Some(valid) = valid {
            draft.values = fill_holes(values, draft.flip, &draft.min, valid, &mut filled);
        }
        let plan = draft.plan();
        if block == 0 {
            let per_block = BLOCK_ROWS * plan.width + PATCH_RESERVE_BYTES;
            let blocks = block_count(self.lanes.len());
            out.body.bytes.reserve((blocks + 1) * per_block);
        }
        let frame = write_block(block, &draft, &plan, out)?;
        if low <= high {
            self.add_end(low);
            self.add_end(high);
        }
        Ok(frame)
    }

    fn collect_patches(&mut self, block: usize, frame: &Frame, work: &mut EncodeWork) {
        if frame.patches == 0 {
            return;
        }
        let values = &self.lanes[block_rows(block, self.lanes.len())];
        for (index, word) in frame.outside.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let row = index * WORD_ROWS + rest.trailing_zeros() as usize;
                let key = (values[row] ^ self.flip).key();
                work.patch_rows.push(row as u16);
                work.patch_keys.push(key);
                self.add_end(key);
                rest &= rest - 1;
            }
        }
    }
}

/// Makes room for the deltas of a block; returns where it starts.
fn grow_deltas(block: usize, bytes: usize, out: &mut Chunk) -> Result<usize> {
    let deltas_start = out.body.sections[DELTAS].0;
    let start = out.body.bytes.grow(bytes);
    let lines = (start - deltas_start) / CACHE_LINE_BYTES;
    section_mut::<u32>(out, OFFSETS)[block] = line_number(lines)?;
    Ok(start)
}

fn write_block<T: KeyLane>(
    block: usize,
    draft: &Draft<'_, T>,
    plan: &Plan<T>,
    out: &mut Chunk,
) -> Result<Frame> {
    let limit = widest(plan.width);
    let bases = plan.bases.map(KeyLane::key);
    let maxima = std::array::from_fn(|group| {
        let top = bases[group].saturating_add(limit);
        draft.max[group].key().min(top).max(bases[group])
    });
    let bytes = draft.values.len() * plan.width;
    let start = grow_deltas(block, bytes, out)?;
    let deltas = &mut out.body.bytes.bytes_mut()[start..][..bytes];
    let next = |part| draft.prefetch_next(PARTS + part);
    narrow(
        draft.values,
        draft.flip,
        &plan.bases,
        plan.width,
        deltas,
        next,
    );
    Ok(Frame {
        width: plan.width,
        bases,
        maxima,
        patches: plan.patches,
        outside: plan.outside,
    })
}
