//! A dictionary of what is common in a set of samples.
//!
//! It is plain content, which every Zstandard reader takes: segments that share the most frequent
//! sequences of eight bytes, the best at the end, where references to them are shortest. As in
//! COVER, each part of the samples gives its best segment, and sequences that are in the dictionary
//! count no more.
//!
//! # Source
//! K. Liao, M. Petri, A. Moffat, A. Wirth: "Effective Construction of Relative Lempel-Ziv
//! Dictionaries", WWW 2016 (COVER); Zstandard's `fastcover`.

use tersecades_columnar::error::Result;

use super::layout::Layout;

/// Bytes of the largest dictionary.
pub const DICTIONARY_MAX: usize = 1 << 20;

/// Bytes that are sampled for each byte of dictionary at most.
const SAMPLE_MAX: usize = 8 << 20;
const SAMPLE_PIECES: usize = 512;
/// Bytes of the pieces that are in turn learned from and tested on.
const PIECE: usize = SAMPLE_MAX / SAMPLE_PIECES;
const PIECES_TESTED: usize = 64;
/// Raw bytes for each byte of dictionary at least.
const RAW_PER_DICTIONARY: u64 = 50;
/// Bytes of the sequences that are counted.
const GRAM: usize = 8;
/// Bytes of a segment.
const SEGMENT: usize = 64;
const COUNTERS_LOG: u32 = 20;

/// Pieces from all over `bytes`, to train a dictionary with.
pub fn sample(bytes: &[u8]) -> Vec<u8> {
    if bytes.len() <= SAMPLE_MAX {
        return bytes.to_vec();
    }
    let stride = bytes.len() / SAMPLE_PIECES;
    let pieces = bytes.chunks(stride).take(SAMPLE_PIECES);
    pieces
        .flat_map(|it| &it[..PIECE.min(it.len())])
        .copied()
        .collect()
}

/// The places and length of the pieces that [`sample`] would take from `length` bytes.
pub fn sample_places(length: u64) -> impl Iterator<Item = (u64, usize)> {
    let whole = length <= SAMPLE_MAX as u64;
    let pieces = if whole { 1 } else { SAMPLE_PIECES as u64 };
    let piece = if whole { length as usize } else { PIECE };
    (0..pieces).map(move |at| (at * (length / pieces), piece))
}

/// The dictionary that a layout's partitions of such samples take, trained on half of them; empty
/// where the other half says that it saves less of `raw_len` bytes than it takes.
///
/// # Errors
/// Levels that the layout does not have.
pub fn choose(
    layout: &dyn Layout,
    level: i32,
    partition: usize,
    samples: &[u8],
    raw_len: u64,
) -> Result<Vec<u8>> {
    let half = |odd: usize| samples.chunks(PIECE).skip(odd).step_by(2);
    let learned: Vec<u8> = half(0).flatten().copied().collect();
    let share = usize::try_from(raw_len / RAW_PER_DICTIONARY).unwrap_or(usize::MAX);
    let dictionary = train(&learned, layout.dictionary_default().min(share));
    if dictionary.is_empty() {
        return Ok(dictionary);
    }
    let tested = || {
        half(1)
            .take(PIECES_TESTED)
            .flat_map(|piece| piece.chunks(partition))
    };
    let stored = |dictionary: &[u8]| -> Result<f64> {
        let mut encoder = layout.encoder(level, dictionary)?;
        let mut stored = Vec::new();
        tested().try_for_each(|raw| encoder.encode(raw, &mut stored))?;
        Ok(stored.len() as f64)
    };
    let tested_len: usize = tested().map(<[u8]>::len).sum();
    let saved = (stored(&[])? - stored(&dictionary)?) / tested_len.max(1) as f64;
    match saved * raw_len as f64 > dictionary.len() as f64 {
        true => Ok(dictionary),
        false => Ok(Vec::new()),
    }
}

/// A dictionary of at most `size` bytes for data like the samples; empty where it would not pay.
///
/// # Cost
/// Two passes over the samples, and 4 MiB of counters.
pub fn train(samples: &[u8], size: usize) -> Vec<u8> {
    let size = size.min(DICTIONARY_MAX).min(samples.len() / 8);
    if size < SEGMENT {
        return Vec::new();
    }
    let mut counters = vec![0u32; 1 << COUNTERS_LOG];
    let grams = || samples.windows(GRAM);
    grams().for_each(|gram| counters[slot(gram)] += 1);
    let parts = size / SEGMENT;
    let part = (samples.len() / parts).max(SEGMENT);
    let mut segments: Vec<(u64, &[u8])> = Vec::with_capacity(parts);
    for part in samples.chunks(part) {
        let Some((score, segment)) = best_segment(part, &counters) else {
            continue;
        };
        segment
            .windows(GRAM)
            .for_each(|gram| counters[slot(gram)] = 0);
        segments.push((score, segment));
    }
    segments.sort_by_key(|(score, _)| *score);
    let wanted = segments
        .iter()
        .rev()
        .take(parts)
        .filter(|(score, _)| *score > 0);
    let wanted: Vec<&[u8]> = wanted.map(|(_, segment)| *segment).collect();
    wanted.into_iter().rev().flatten().copied().collect()
}

/// The segment of a part whose sequences are the most frequent ones.
fn best_segment<'a>(part: &'a [u8], counters: &[u32]) -> Option<(u64, &'a [u8])> {
    let weight = |gram: &[u8]| u64::from(counters[slot(gram)].saturating_sub(1));
    let in_segment = SEGMENT - GRAM + 1;
    let weights: Vec<u64> = part.windows(GRAM).map(weight).collect();
    let mut sum: u64 = weights.get(..in_segment)?.iter().sum();
    let mut best = (sum, 0);
    for (at, (entering, leaving)) in weights[in_segment..].iter().zip(&weights).enumerate() {
        sum = sum + entering - leaving;
        if sum > best.0 {
            best = (sum, at + 1);
        }
    }
    Some((best.0, &part[best.1..best.1 + SEGMENT]))
}

fn slot(gram: &[u8]) -> usize {
    let mut word = [0; GRAM];
    word.copy_from_slice(gram);
    let hash = u64::from_le_bytes(word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> (u64::BITS - COUNTERS_LOG)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_hold_what_is_common_and_no_more_than_asked() {
        let line = |it: u32| {
            let place = it.wrapping_mul(2_654_435_761);
            format!(
                "{{\"id\":{place},\"kind\":\"PushEvent\",\"actor\":\"a{}\"}}\n",
                place % 997
            )
        };
        let samples: String = (0..20_000).map(line).collect();
        let dictionary = train(samples.as_bytes(), 16 << 10);
        assert!(
            (1 << 10..=16 << 10).contains(&dictionary.len()),
            "{}",
            dictionary.len()
        );
        let common = b"\"kind\":\"PushEvent\",\"actor\":";
        assert!(dictionary.windows(common.len()).any(|it| it == common));
        assert!(train(b"short", 1 << 10).is_empty());
    }

    #[test]
    fn samples_of_large_inputs_come_from_everywhere() {
        let bytes = vec![7; 3 * SAMPLE_MAX];
        assert!(sample(&bytes).len() <= SAMPLE_MAX);
        let places: Vec<_> = sample_places(bytes.len() as u64).collect();
        assert!(
            places
                .iter()
                .all(|(at, length)| *at as usize + length <= bytes.len())
        );
        assert_eq!(sample_places(10).collect::<Vec<_>>(), [(0, 10)]);
    }
}
