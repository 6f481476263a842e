//! HyperLogLog: about how many different values each group has, in at most 4 KiB a group.
//!
//! A value's hash chooses one of 4,096 registers by its first 12 bits; the register keeps the
//! longest run of zeros that the other bits began with. Up to 512 different hashes are kept as
//! they are, in no more memory than registers take, and counted exactly. Which of the two forms a
//! group has depends on its values alone, as does every register, so merges in any order agree.
//!
//! Source: Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog" (AofA 2007); the estimate from the
//! registers is Ertl's, "New cardinality estimation algorithms for HyperLogLog sketches" (2017),
//! which needs no table of corrections.

use std::any::Any;

use tersecades_columnar::codec::Work;
use tersecades_columnar::dictionary::Reader;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use super::{CollectWork, Collection, Collects, Rows, Second, collected, taken};
use crate::runtime::state::{StateReader, StateWriter};

/// What aggregates ask for.
pub const HYPER_LOG_LOG: Collects = Collects {
    name: "hyper_log_log",
    second: Second::No,
    by_parameter: false,
    start: |_, _| Box::new(HyperLogLog::default()),
};

/// Bits of a hash that choose the register.
const REGISTER_BITS: u32 = 12;

/// Registers of a group.
const REGISTERS: usize = 1 << REGISTER_BITS;

/// Longest run of zeros, plus one, that the other bits can begin with.
const RUN_MAX: usize = 64 - REGISTER_BITS as usize + 1;

/// Most different hashes that are kept as they are.
const HASHES_MAX: usize = 512;

/// One group.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sketch {
    /// All hashes, ascending.
    Few(Vec<u64>),
    /// A register for each part of the hashes.
    Many(Box<[u8]>),
}

/// Sketches by group id.
#[derive(Debug, Clone, Default)]
pub struct HyperLogLog {
    sketches: Vec<Sketch>,
}

impl Sketch {
    fn add(&mut self, hash: u64) {
        match self {
            Sketch::Few(hashes) => {
                let Err(place) = hashes.binary_search(&hash) else {
                    return;
                };
                hashes.insert(place, hash);
                if hashes.len() > HASHES_MAX {
                    let mut registers = vec![0; REGISTERS].into_boxed_slice();
                    hashes.iter().for_each(|hash| raise(&mut registers, *hash));
                    *self = Sketch::Many(registers);
                }
            }
            Sketch::Many(registers) => raise(registers, hash),
        }
    }

    fn merge(&mut self, other: &Sketch) {
        match (&mut *self, other) {
            (_, Sketch::Few(hashes)) => hashes.iter().for_each(|hash| self.add(*hash)),
            (Sketch::Few(hashes), Sketch::Many(registers)) => {
                let mut registers = registers.clone();
                hashes.iter().for_each(|hash| raise(&mut registers, *hash));
                *self = Sketch::Many(registers);
            }
            (Sketch::Many(own), Sketch::Many(theirs)) => {
                for (own, theirs) in own.iter_mut().zip(theirs) {
                    *own = (*own).max(*theirs);
                }
            }
        }
    }

    fn estimate(&self) -> u64 {
        match self {
            Sketch::Few(hashes) => hashes.len() as u64,
            Sketch::Many(registers) => estimate(registers).round() as u64,
        }
    }
}

/// Takes note of a hash.
fn raise(registers: &mut [u8], hash: u64) {
    let register = (hash >> (64 - REGISTER_BITS)) as usize;
    let run = (hash << REGISTER_BITS).leading_zeros() as usize + 1;
    let run = run.min(RUN_MAX) as u8;
    registers[register] = registers[register].max(run);
}

/// Ertl's improved raw estimate (his algorithm 6).
fn estimate(registers: &[u8]) -> f64 {
    let mut with_run = [0u32; RUN_MAX + 1];
    for run in registers {
        with_run[usize::from(*run).min(RUN_MAX)] += 1;
    }
    let share = |run: usize| f64::from(with_run[run]) / REGISTERS as f64;
    let mut sum = REGISTERS as f64 * tau(1.0 - share(RUN_MAX));
    for run in (1..RUN_MAX).rev() {
        sum = 0.5 * (sum + f64::from(with_run[run]));
    }
    sum += REGISTERS as f64 * sigma(share(0));
    let registers = REGISTERS as f64;
    registers * registers / (2.0 * std::f64::consts::LN_2 * sum)
}

/// What registers that saw nothing add.
fn sigma(share: f64) -> f64 {
    if share == 1.0 {
        return f64::INFINITY;
    }
    let (mut x, mut y, mut sum) = (share, 1.0, share);
    loop {
        x *= x;
        let before = sum;
        sum += x * y;
        y += y;
        if sum == before {
            return sum;
        }
    }
}

/// What registers that can rise no more add.
fn tau(share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let (mut x, mut y, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        x = x.sqrt();
        let before = sum;
        y *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * y;
        if sum == before {
            return sum / 3.0;
        }
    }
}

/// A hash that is the same in every process: bytes in words, each mixed in.
fn hash_words(words: impl Iterator<Item = u64>) -> u64 {
    let mut state = 0x9E37_79B9_7F4A_7C15;
    for word in words {
        state = finalize(state ^ word);
    }
    finalize(state)
}

/// Each bit of the result depends on each bit of `state`.
///
/// Source: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn finalize(mut state: u64) -> u64 {
    state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

fn hash_text(text: &[u8]) -> u64 {
    let words = text.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    hash_words(words.chain([text.len() as u64]))
}

fn hash_value(values: &Values, index: usize, texts: Option<&Reader<'_>>) -> u64 {
    match (values.physical, texts) {
        (Physical::Text, Some(texts)) => hash_text(texts.get(values.keys[index] as u32)),
        _ => {
            let key = values.ordered(index) as u128;
            hash_words([key as u64, (key >> 64) as u64].into_iter())
        }
    }
}

impl HyperLogLog {
    /// About how many different values group `id` has.
    pub fn estimate(&self, id: u32) -> u64 {
        self.sketches.get(id as usize).map_or(0, Sketch::estimate)
    }
}

impl Collection for HyperLogLog {
    fn grow(&mut self, groups: usize) {
        self.sketches.resize(groups, Sketch::Few(Vec::new()));
    }

    fn clear(&mut self) {
        self.sketches.clear();
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let (scratch, work) = work;
        if rows.argument(0).physical != Physical::Text {
            return rows.for_each_value((scratch, work), |id, values, index, _| {
                self.sketches[id as usize].add(hash_value(values, index, None));
            });
        }
        let mut pairs = Vec::new();
        rows.for_each_value((scratch, work), |id, values, index, _| {
            pairs.push((id, values.keys[index] as u32));
        })?;
        pairs.sort_unstable();
        pairs.dedup();
        if let Some(dictionary) = rows.argument(0).dictionary.get() {
            let texts = dictionary.read();
            for (id, code) in pairs {
                self.sketches[id as usize].add(hash_text(texts.get(code)));
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        if let Ok(other) = collected::<HyperLogLog>(other) {
            for (sketch, target) in taken(&other.sketches, targets) {
                self.sketches[target].merge(sketch);
            }
        }
    }

    fn byte_size(&self) -> usize {
        let sketches = self.sketches.iter().map(|sketch| match sketch {
            Sketch::Few(hashes) => hashes.capacity() * size_of::<u64>(),
            Sketch::Many(registers) => registers.len(),
        });
        self.sketches.capacity() * size_of::<Sketch>() + sketches.sum::<usize>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        for sketch in &self.sketches {
            match sketch {
                Sketch::Few(hashes) => {
                    out.u64(hashes.len() as u64);
                    hashes.iter().for_each(|hash| out.u64(*hash));
                }
                Sketch::Many(registers) => {
                    out.u64(u64::MAX);
                    out.blob(registers);
                }
            }
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        for _ in 0..groups {
            let sketch = match from.u64()? {
                u64::MAX => Sketch::Many(from.blob()?.into()),
                hashes if hashes <= HASHES_MAX as u64 => {
                    let hashes: Result<Vec<u64>> = (0..hashes).map(|_| from.u64()).collect();
                    Sketch::Few(hashes?)
                }
                _ => return Err(Error::corrupt("a sketch holds too many hashes")),
            };
            let fits = match &sketch {
                Sketch::Few(hashes) => hashes.is_sorted_by(|a, b| a < b),
                Sketch::Many(registers) => registers.len() == REGISTERS,
            };
            if !fits {
                return Err(Error::corrupt("a sketch of another shape"));
            }
            self.sketches.push(sketch);
        }
        Ok(())
    }

    fn copy(&self) -> Box<dyn Collection> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(hashes: impl Iterator<Item = u64>) -> Sketch {
        let mut sketch = Sketch::Few(Vec::new());
        hashes.for_each(|value| sketch.add(hash_words([value].into_iter())));
        sketch
    }

    #[test]
    fn estimates_are_within_four_standard_errors_at_every_size() {
        for (count, salt) in [
            (0, 0),
            (1, 1),
            (512, 2),
            (513, 3),
            (5_000, 4),
            (20_000, 5),
            (300_000, 6),
            (2_000_000, 7),
        ] {
            let estimate = sketch((0..count).map(|value| value ^ salt << 40)).estimate();
            let off = estimate.abs_diff(count) as f64 / (count as f64).max(1.0);
            let limit = if count <= 512 { 0.0 } else { 4.0 * 0.01625 };
            assert!(
                off <= limit,
                "{count} different values counted as {estimate}"
            );
        }
    }

    #[test]
    fn the_mean_error_is_the_one_stated() {
        let runs = 60;
        let squares = (0..runs).map(|run| {
            let estimate = sketch((0..30_000).map(|value| value + (run << 32))).estimate();
            (estimate as f64 / 30_000.0 - 1.0).powi(2)
        });
        let error = (squares.sum::<f64>() / runs as f64).sqrt();
        assert!((0.010..0.023).contains(&error), "standard error {error}");
    }

    #[test]
    fn merges_in_any_order_and_split_give_the_same_sketch() {
        for total in [300u64, 700, 9_000] {
            let whole = sketch(0..total);
            for parts in [2u64, 3, 17] {
                let part = |at: u64| sketch((0..total).filter(move |value| value % parts == at));
                let mut forward = Sketch::Few(Vec::new());
                (0..parts).for_each(|at| forward.merge(&part(at)));
                let mut backward = part(parts - 1);
                (0..parts).rev().for_each(|at| backward.merge(&part(at)));
                assert_eq!((&forward, &backward), (&whole, &whole));
            }
        }
    }
}
