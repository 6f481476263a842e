//! A bitmap that counts the ones before a place, and finds its neighbours.

use std::ops::Range;

const WORD: usize = 64;
/// Words of a block; a block's rank is stored.
const BLOCK: usize = 8;
/// Words that are looked through before the ranks are asked.
const NEAR: usize = 8;

/// A bitmap with ranks.
#[derive(Debug, Clone)]
pub(super) struct RankSelect {
    length: usize,
    words: Vec<u64>,
    /// Ones in front of each block, and of the end.
    ranks: Vec<u32>,
}

impl RankSelect {
    /// `length` zeros.
    pub(super) fn zeros(length: usize) -> Self {
        RankSelect {
            length,
            words: vec![0; length / WORD + 1],
            ranks: Vec::new(),
        }
    }

    /// Sets a bit; ranks are as of the last [`RankSelect::count`].
    pub(super) fn set(&mut self, at: usize) {
        self.words[at / WORD] |= 1 << (at % WORD);
    }

    /// Sets bits.
    pub(super) fn set_range(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / WORD + 1) * WORD);
            let ones = u64::MAX >> (WORD - (end - at));
            self.words[at / WORD] |= ones << (at % WORD);
            at = end;
        }
    }

    /// Clears every word that a range touches.
    pub(super) fn clear_words(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.words[range.start / WORD..=(range.end - 1) / WORD].fill(0);
        }
    }

    /// Counts the ones.
    pub(super) fn count(&mut self) {
        let mut sum = 0;
        self.ranks = vec![0];
        for block in self.words.chunks(BLOCK) {
            sum += block.iter().map(|word| word.count_ones()).sum::<u32>();
            self.ranks.push(sum);
        }
    }

    /// How many bytes it takes.
    pub(super) fn byte_size(&self) -> usize {
        8 * self.words.len() + 4 * self.ranks.len()
    }

    /// The bit at `at`.
    pub(super) fn get(&self, at: usize) -> bool {
        self.words[at / WORD] >> (at % WORD) & 1 == 1
    }

    /// How many ones are in front of `at`.
    ///
    /// # Cost
    /// At most eight words.
    pub(super) fn rank(&self, at: usize) -> usize {
        let word = at / WORD;
        let block = word / BLOCK;
        let whole: u32 = self.words[block * BLOCK..word]
            .iter()
            .map(|it| it.count_ones())
            .sum();
        let part = (self.words[word] & !(u64::MAX << (at % WORD))).count_ones();
        (self.ranks[block] + whole + part) as usize
    }

    /// Where the one with `number` ones in front of it is; the length if there is none.
    ///
    /// # Cost
    /// A binary search over blocks, then at most eight words.
    pub(super) fn select(&self, number: usize) -> usize {
        let block = self.ranks.partition_point(|rank| *rank as usize <= number);
        let Some(block) = block
            .checked_sub(1)
            .filter(|it| it * BLOCK < self.words.len())
        else {
            return self.length;
        };
        let mut left = number - self.ranks[block] as usize;
        for (word, bits) in self.words.iter().enumerate().skip(block * BLOCK) {
            let ones = bits.count_ones() as usize;
            if left < ones {
                let rest = (0..left).fold(*bits, |bits, _| bits & (bits - 1));
                return word * WORD + rest.trailing_zeros() as usize;
            }
            left -= ones;
        }
        self.length
    }

    /// Where the last one at or before `at` is; 0 if there is none.
    pub(super) fn last_one(&self, at: usize) -> usize {
        let word = at / WORD;
        let first = self.words[word] & (u64::MAX >> (WORD - 1 - at % WORD));
        if first != 0 {
            return word * WORD + first.ilog2() as usize;
        }
        for before in (word.saturating_sub(NEAR)..word).rev() {
            if self.words[before] != 0 {
                return before * WORD + self.words[before].ilog2() as usize;
            }
        }
        match self.rank(at) {
            0 => 0,
            ones => self.select(ones - 1),
        }
    }

    /// Where the first one at or behind `at` is; `end` if there is none before it.
    pub(super) fn next_one(&self, at: usize, end: usize) -> usize {
        next(at, end, |word| self.words[word])
    }

    /// Where the first zero at or behind `at` is; `end` if there is none before it.
    pub(super) fn next_zero(&self, at: usize, end: usize) -> usize {
        next(at, end, |word| !self.words[word])
    }

    /// Where the first one of either bitmap is, as [`RankSelect::next_one`].
    pub(super) fn next_one_of_either(&self, other: &Self, at: usize, end: usize) -> usize {
        next(at, end, |word| self.words[word] | other.words[word])
    }
}

/// Where the first one of a row of words is.
fn next(at: usize, end: usize, word_at: impl Fn(usize) -> u64) -> usize {
    if at >= end {
        return end;
    }
    let mut word = at / WORD;
    let mut bits = word_at(word) & u64::MAX << (at % WORD);
    while bits == 0 {
        word += 1;
        if word * WORD >= end {
            return end;
        }
        bits = word_at(word);
    }
    end.min(word * WORD + bits.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_that_of_counting() {
        for (length, period) in [(0, 1), (1, 1), (64, 64), (700, 3), (5_000, 700), (5_000, 1)] {
            let mut bits = RankSelect::zeros(length);
            let ones: Vec<usize> = (0..length).filter(|it| it % period == period / 2).collect();
            ones.iter().for_each(|one| bits.set(*one));
            bits.count();
            for at in 0..length {
                let before = ones.partition_point(|one| *one < at);
                assert_eq!(bits.rank(at), before, "{length} {period} {at}");
                let next = ones.get(before).copied().unwrap_or(length);
                assert_eq!(bits.next_one(at, length), next);
                assert_eq!(bits.next_one(at, at + 1), next.min(at + 1));
                let either = bits.next_one_of_either(&bits, at, length);
                assert_eq!(either, next);
                let last = ones.iter().rev().find(|one| **one <= at);
                assert_eq!(bits.last_one(at), last.copied().unwrap_or(0));
                let zero = (at..length).find(|it| it % period != period / 2);
                assert_eq!(bits.next_zero(at, length), zero.unwrap_or(length));
            }
            assert_eq!(bits.rank(length), ones.len());
            for (number, one) in ones.iter().enumerate() {
                assert_eq!(bits.select(number), *one);
            }
            assert_eq!(bits.select(ones.len()), length);
        }
    }

    #[test]
    fn ranges_are_their_bits() {
        for (start, end) in [(0, 0), (0, 64), (3, 5), (60, 200), (1, 300), (64, 128)] {
            let mut bits = RankSelect::zeros(300);
            bits.set_range(start..end);
            assert!((0..300).all(|at| bits.get(at) == (start..end).contains(&at)));
            bits.clear_words(start..end);
            assert_eq!(bits.next_one(0, 300), 300);
        }
    }
}
