//! A small fuzzer: seeded, so that a failure is found again, and blind to coverage.
//!
//! Every round takes a valid input and makes one to four changes: cut, flip a bit, put in a number
//! at the edge of a width, overwrite, insert, remove, splice with another input.

use std::time::{Duration, Instant};

use crate::target::Target;

/// Longest input that is made from a seed, in multiples of the seed.
const GROWTH_LIMIT: usize = 4;

/// Numbers that lengths and counters go wrong at.
const EDGES: [u64; 10] = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    i64::MAX as u64,
    u64::MAX,
];

/// How long to go on.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Inputs to try.
    pub runs: u64,
    /// Time to spend.
    pub time: Duration,
}

impl Limits {
    /// From `TERSECADES_FUZZ_RUNS` (20,000 without it) and `TERSECADES_FUZZ_SECONDS` (10).
    pub fn from_environment() -> Self {
        let number = |name: &str, usual: u64| {
            let given = std::env::var(name).ok();
            given.and_then(|text| text.parse().ok()).unwrap_or(usual)
        };
        Limits {
            runs: number("TERSECADES_FUZZ_RUNS", 20_000),
            time: Duration::from_secs(number("TERSECADES_FUZZ_SECONDS", 10)),
        }
    }
}

/// Numbers without a pattern, the same for the same seed (Marsaglia's xorshift).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Below `limit`; 0 when that is 0.
    fn below(&mut self, limit: usize) -> usize {
        let next = (self.next() >> 16) as usize;
        next.checked_rem(limit).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[7]
    }
}

/// Runs `target` on its seeds and then on mutations of them; how many inputs that were.
///
/// # Panics
/// Where the target does. The round is printed first, and repeats with the same seeds.
pub fn run(target: &Target, limits: Limits) -> u64 {
    let seeds = (target.seeds)();
    seeds.iter().for_each(|seed| (target.run)(seed));
    let start = Instant::now();
    let mut input = Vec::new();
    let mut round = 0;
    while round < limits.runs && start.elapsed() < limits.time {
        let mut random = Random::new(round);
        mutate(&seeds, &mut random, &mut input);
        let guard = Guard(target.name, round);
        (target.run)(&input);
        drop(guard);
        round += 1;
    }
    round
}

/// Names target and round when a panic passes.
struct Guard(&'static str, u64);

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("target {} failed in round {}", self.0, self.1);
        }
    }
}

/// Makes `input` a seed with one to four changes.
pub fn mutate(seeds: &[Vec<u8>], random: &mut Random, input: &mut Vec<u8>) {
    input.clear();
    let Some(seed) = seeds.get(random.below(seeds.len())) else {
        return;
    };
    input.extend_from_slice(seed);
    for _ in 0..1 + random.below(4) {
        change(seeds, random, input);
    }
    input.truncate(seed.len() * GROWTH_LIMIT);
}

fn change(seeds: &[Vec<u8>], random: &mut Random, input: &mut Vec<u8>) {
    let at = random.below(input.len());
    let run = 1 + random.below(16.min(input.len()));
    let end = (at + run).min(input.len());
    match random.below(8) {
        0 => input.truncate(at),
        1 | 2 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        3 => {
            let bytes = EDGES[random.below(EDGES.len())].to_le_bytes();
            let width = [1, 2, 4, 8][random.below(4)].min(input.len() - at);
            input[at..at + width].copy_from_slice(&bytes[..width]);
        }
        4 => input[at..end].fill_with(|| random.byte()),
        5 => {
            let bytes: Vec<u8> = (0..run).map(|_| random.byte()).collect();
            input.splice(at..at, bytes);
        }
        6 => drop(input.drain(at..end)),
        _ => splice(seeds, random, input, at),
    }
}

/// Puts a piece of another seed, or of the same, over or into the input.
fn splice(seeds: &[Vec<u8>], random: &mut Random, input: &mut Vec<u8>, at: usize) {
    let Some(other) = seeds.get(random.below(seeds.len())) else {
        return;
    };
    let from = random.below(other.len());
    let length = random.below(256).min(other.len() - from);
    let covered = match random.below(2) {
        0 => (at + length).min(input.len()),
        _ => at,
    };
    input.splice(at..covered, other[from..from + length].iter().copied());
}
