//! Decoding phrases from the start, which is LZ77 without an entropy code.

use super::PhraseMap;

impl PhraseMap {
    /// Fills `front` with the first bytes of the partition; false where it has fewer.
    ///
    /// # Cost
    /// Each phrase up to the last byte once.
    pub fn decode(&self, front: &mut [u8]) -> bool {
        if front.len() > self.raw_len {
            return false;
        }
        let (mut at, mut literal, mut copy) = (0, 0, 0);
        while at < front.len() {
            let end = if self.is_literal.get(at) {
                let end = self.is_literal.next_zero(at + 1, front.len());
                front[at..end].copy_from_slice(self.literals_from(literal, end - at));
                literal += end - at;
                end
            } else {
                let end = self.copy_end(at).min(front.len());
                let distance = usize::from(self.distances[copy]) + 1;
                copy_back(front, at, end, distance);
                copy += 1;
                end
            };
            at = end;
        }
        true
    }
}

/// Copies what lies `distance` before; what overlaps itself repeats.
pub(super) fn copy_back(bytes: &mut [u8], start: usize, end: usize, distance: usize) {
    let mut at = start;
    while at < end {
        let count = distance.min(end - at);
        bytes.copy_within(at - distance..at - distance + count, at);
        at += count;
    }
}
