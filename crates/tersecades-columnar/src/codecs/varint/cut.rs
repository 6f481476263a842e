//! Cutting a block into runs, and writing them.

use std::ops::Range;

use crate::block::BLOCK_ROWS;
use crate::input::Input;

/// Width in bytes of each code.
pub(super) const WIDTHS: [usize; 5] = [0, 1, 2, 4, 8];
/// Number of codes.
pub(super) const CODES: usize = WIDTHS.len();
/// Bits of a run's code, below its length.
const CODE_BITS: u32 = 3;
/// Bytes of a run's entry.
pub(super) const RUN_BYTES: u32 = 2;
/// Blocks of bytes start at multiples of this.
pub(super) const STEP_BYTES: usize = 8;

/// Rows and code of a run.
pub(super) fn read_run(run: u16) -> (usize, usize) {
    let code = run & ((1 << CODE_BITS) - 1);
    (usize::from(run >> CODE_BITS) + 1, usize::from(code))
}

/// The key of the smallest value of a code's width.
pub(super) fn base_of(code: usize, flip: u64) -> u64 {
    match (WIDTHS.get(code), flip) {
        (Some(0) | None, flip) => flip,
        (Some(_), 0) => 0,
        // Widths beyond the type's have no integers; their base means nothing.
        (Some(width), flip) => flip.wrapping_sub(1 << (8 * width - 1)),
    }
}

/// The largest integer of a code's width.
fn integer_max(code: usize) -> u64 {
    match WIDTHS.get(code) {
        Some(0) | None => 0,
        Some(width) => u64::MAX >> (64 - 8 * width),
    }
}

/// The narrowest code that holds `key`.
fn code_of(key: u64, flip: u64) -> u8 {
    let holds = |code: &usize| key.wrapping_sub(base_of(*code, flip)) <= integer_max(*code);
    (0..CODES).find(holds).unwrap_or(CODES - 1) as u8
}

/// Appends the cheapest runs of rows that need `codes` at least (at most a block of them);
/// returns the bytes of their integers.
///
/// # Cost
/// One pass with a cost for each code, one back along the choices (Viterbi's search).
pub(super) fn append_runs(codes: &[u8], runs: &mut Vec<u16>) -> usize {
    const NEVER: u32 = u32::MAX / 2;
    // At equal cost the wider code, which ends fewer runs.
    let cheapest = |costs: &[u32; CODES]| {
        let found = costs
            .iter()
            .enumerate()
            .rev()
            .min_by_key(|(_, cost)| **cost);
        found.map_or((0, NEVER), |(code, cost)| (code, *cost))
    };
    let mut costs = [NEVER; CODES];
    let (mut before, mut turned) = ([0u8; BLOCK_ROWS], [0u8; BLOCK_ROWS]);
    for (row, needed) in codes.iter().enumerate() {
        let (from, cost) = match row {
            0 => (0, 0),
            _ => cheapest(&costs),
        };
        before[row] = from as u8;
        for (code, width) in WIDTHS.iter().enumerate() {
            let turns = cost + RUN_BYTES < costs[code];
            turned[row] |= u8::from(turns) << code;
            let fits = code >= usize::from(*needed);
            let cost = costs[code].min(cost + RUN_BYTES) + *width as u32;
            costs[code] = if fits { cost } else { NEVER };
        }
    }
    let first = runs.len();
    let (mut code, mut bytes, mut rows) = (cheapest(&costs).0, 0, 0);
    for row in (0..codes.len()).rev() {
        rows += 1;
        if turned[row] >> code & 1 == 1 {
            runs.push((rows - 1) << CODE_BITS | code as u16);
            bytes += usize::from(rows) * WIDTHS[code];
            (code, rows) = (usize::from(before[row]), 0);
        }
    }
    runs[first..].reverse();
    bytes
}

/// The codes that the rows of a stretch need; the hole of a null holds anything.
pub(super) fn needed_codes(
    input: &Input<'_>,
    rows: Range<usize>,
    codes: &mut [u8; BLOCK_ROWS],
) -> usize {
    let flip = input.physical.flip();
    let count = rows.len();
    for (code, row) in codes.iter_mut().zip(rows) {
        *code = match input.is_valid(row) {
            true => code_of(input.key(row), flip),
            false => 0,
        };
    }
    count
}

/// Appends the integers of one block, wide ones first, padded.
pub(super) fn append_integers(input: &Input<'_>, start: usize, runs: &[u16], bytes: &mut Vec<u8>) {
    for code in (1..CODES).rev() {
        let base = base_of(code, input.physical.flip());
        let mut row = start;
        for (rows, run_code) in runs.iter().map(|run| read_run(*run)) {
            for row in (row..row + rows).filter(|_| run_code == code) {
                let integer = match input.is_valid(row) {
                    true => input.key(row).wrapping_sub(base),
                    false => 0,
                };
                bytes.extend_from_slice(&integer.to_le_bytes()[..WIDTHS[code]]);
            }
            row += rows;
        }
    }
    bytes.resize(bytes.len().next_multiple_of(STEP_BYTES), 0);
}

const _: () = assert!(BLOCK_ROWS <= 1 << (16 - CODE_BITS) && CODES <= 1 << CODE_BITS);

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of runs and integers, by trying every way to cut and every width.
    fn cheapest(codes: &[u8]) -> usize {
        let mut best = vec![0];
        for end in 1..=codes.len() {
            let cost = |start: usize| {
                let code = codes[start..end].iter().max().copied().unwrap_or(0);
                best[start] + 2 + (end - start) * WIDTHS[usize::from(code)]
            };
            best.push((0..end).map(cost).min().unwrap());
        }
        best[codes.len()]
    }

    #[test]
    fn runs_are_the_cheapest_there_are() {
        let noise = |i: u64| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        for seed in 0..40u64 {
            for modulus in [2, 3, 5, 60] {
                let code = |row: u64| match noise(seed * 1_000 + row) % modulus {
                    draw @ 0..5 => draw as u8,
                    _ => 1,
                };
                let codes: Vec<u8> = (0..1 + seed * 3).map(code).collect();
                let mut runs = Vec::new();
                let bytes = append_runs(&codes, &mut runs);
                assert_eq!(bytes + 2 * runs.len(), cheapest(&codes), "{codes:?}");
                let rows = runs.iter().map(|run| read_run(*run).0);
                assert_eq!(rows.sum::<usize>(), codes.len());
            }
        }
    }
}
