//! A plain LZ77 coder in the style of Xpress, the yardstick of the paper this project started from.
//!
//! ```text
//! 32 flags, u32, highest bit first: 0 = a literal byte, 1 = a match
//! match: u16, distance - 1 in the high 13 bits, length - 3 in the low 3
//!   7 there: a nibble follows, shared by two matches, length - 10
//!   15 there: a byte follows, length - 25; 255 there: a u32 follows, length - 3
//! ```
//! Source: MS-XCA, Xpress Compression Algorithm, section 2.3 (plain LZ77); greedy, one candidate.

/// Shortest match.
const LENGTH_MIN: usize = 3;

/// Farthest distance.
const WINDOW: usize = 1 << 13;

const HASH_BITS: u32 = 13;

/// What three bits, a nibble and a byte hold before something longer follows.
const SHORT: usize = 7;
const NIBBLE: usize = 15;
const BYTE: usize = 255;

/// Output with flags that are filled in later and nibbles that share a byte.
struct Writer<'a> {
    to: &'a mut Vec<u8>,
    flags_at: usize,
    flags: u32,
    free: u32,
    nibble_at: Option<usize>,
}

impl<'a> Writer<'a> {
    fn new(to: &'a mut Vec<u8>) -> Self {
        to.clear();
        to.extend([0; 4]);
        Writer {
            to,
            flags_at: 0,
            flags: 0,
            free: 32,
            nibble_at: None,
        }
    }

    fn flag(&mut self, matched: bool) {
        if self.free == 0 {
            self.flush();
            self.flags_at = self.to.len();
            self.to.extend([0; 4]);
            (self.flags, self.free) = (0, 32);
        }
        self.free -= 1;
        self.flags |= u32::from(matched) << self.free;
    }

    fn flush(&mut self) {
        let at = self.flags_at;
        self.to[at..at + 4].copy_from_slice(&self.flags.to_le_bytes());
    }

    fn nibble(&mut self, value: usize) {
        match self.nibble_at.take() {
            Some(at) => self.to[at] |= (value << 4) as u8,
            None => {
                self.nibble_at = Some(self.to.len());
                self.to.push(value as u8);
            }
        }
    }

    fn matched(&mut self, distance: usize, length: usize) {
        let rest = length - LENGTH_MIN;
        let pair = (distance - 1) << 3 | rest.min(SHORT);
        self.to.extend((pair as u16).to_le_bytes());
        let Some(more) = rest.checked_sub(SHORT) else {
            return;
        };
        self.nibble(more.min(NIBBLE));
        let Some(more) = more.checked_sub(NIBBLE) else {
            return;
        };
        self.to.push(more.min(BYTE) as u8);
        if more >= BYTE {
            self.to.extend((rest as u32).to_le_bytes());
        }
    }
}

fn word(from: &[u8], at: usize) -> Option<usize> {
    let bytes = from.get(at..at + LENGTH_MIN)?;
    let key = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    Some((key.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize)
}

/// Bytes that agree from `a` and from the later `b` on.
fn agreement(from: &[u8], a: usize, b: usize) -> usize {
    let (head, tail) = (&from[a..], &from[b..]);
    let (heads, tails) = (head.as_chunks::<8>().0, tail.as_chunks::<8>().0);
    let mut length = 0;
    for (x, y) in heads.iter().zip(tails) {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return length + (differ.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let rest = head[length..].iter().zip(&tail[length..]);
    length + rest.take_while(|(x, y)| x == y).count()
}

/// Compresses `from` into `to`, which is emptied first; `heads` is memory that is reused.
pub(super) fn compress(from: &[u8], heads: &mut Vec<u32>, to: &mut Vec<u8>) {
    heads.clear();
    heads.resize(1 << HASH_BITS, u32::MAX);
    let mut writer = Writer::new(to);
    let mut at = 0;
    while at < from.len() {
        let earlier = word(from, at).map(|slot| std::mem::replace(&mut heads[slot], at as u32));
        let earlier = earlier.map(|head| head as usize);
        let near = earlier.filter(|head| *head < at && at - head <= WINDOW);
        let found = near.map(|head| (at - head, agreement(from, head, at)));
        match found.filter(|(_, length)| *length >= LENGTH_MIN) {
            Some((distance, length)) => {
                writer.flag(true);
                writer.matched(distance, length);
                at += length;
            }
            None => {
                writer.flag(false);
                writer.to.push(from[at]);
                at += 1;
            }
        }
    }
    writer.flush();
}

/// What is left of the input, and a nibble that waits.
struct Reader<'a> {
    from: &'a [u8],
    nibble: Option<u8>,
}

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.from.split_first_chunk::<N>()?;
        self.from = rest;
        Some(*bytes)
    }

    fn nibble(&mut self) -> Option<usize> {
        if let Some(high) = self.nibble.take() {
            return Some(usize::from(high));
        }
        let [both] = self.bytes()?;
        self.nibble = Some(both >> 4);
        Some(usize::from(both & 15))
    }

    fn length(&mut self, short: usize) -> Option<usize> {
        if short < SHORT {
            return Some(short + LENGTH_MIN);
        }
        let nibble = self.nibble()?;
        if nibble < NIBBLE {
            return Some(nibble + SHORT + LENGTH_MIN);
        }
        let [byte] = self.bytes()?;
        if usize::from(byte) < BYTE {
            return Some(usize::from(byte) + NIBBLE + SHORT + LENGTH_MIN);
        }
        let rest = u32::from_le_bytes(self.bytes()?);
        (rest as usize).checked_add(LENGTH_MIN)
    }
}

/// Decompresses `length` bytes of `from` into `to`, which is emptied first; `None` where `from`
/// does not hold as many.
pub(super) fn decompress(from: &[u8], length: usize, to: &mut Vec<u8>) -> Option<()> {
    to.clear();
    to.reserve(length);
    let mut reader = Reader { from, nibble: None };
    let (mut flags, mut left) = (0u32, 0);
    while to.len() < length {
        if left == 0 {
            (flags, left) = (u32::from_le_bytes(reader.bytes()?), 32);
        }
        left -= 1;
        if flags >> left & 1 == 0 {
            let [literal] = reader.bytes()?;
            to.push(literal);
            continue;
        }
        let pair = usize::from(u16::from_le_bytes(reader.bytes()?));
        let distance = (pair >> 3) + 1;
        let count = reader.length(pair & SHORT)?;
        let start = to.len().checked_sub(distance)?;
        if count > length - to.len() {
            return None;
        }
        copy(to, start, distance, count);
    }
    Some(())
}

/// Appends `count` bytes that start at `start`, `distance` back, in doubling steps.
fn copy(to: &mut Vec<u8>, start: usize, distance: usize, count: usize) {
    let mut left = count;
    let mut step = distance;
    while left > 0 {
        let part = step.min(left);
        to.extend_from_within(start..start + part);
        left -= part;
        step += part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Random;

    fn round_trip(bytes: &[u8]) -> usize {
        let (mut packed, mut back) = (Vec::new(), vec![1]);
        compress(bytes, &mut Vec::new(), &mut packed);
        decompress(&packed, bytes.len(), &mut back).unwrap();
        assert_eq!(back, bytes);
        packed.len()
    }

    #[test]
    fn bytes_come_back() {
        let mut random = Random::new(3);
        for length in [0, 1, 2, 3, 31, 32, 33, 34, 300, 5_000, 70_000] {
            let noise: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
            round_trip(&noise);
            let few: Vec<u8> = (0..length).map(|_| random.below(3) as u8).collect();
            round_trip(&few);
            round_trip(&vec![7; length]);
            let pieces: Vec<u8> = (0..length)
                .map(|at| noise[at % (at / 977 % 90 + 1)])
                .collect();
            round_trip(&pieces);
        }
        assert!(round_trip(&[9; 100_000]) < 32);
    }

    #[test]
    fn matches_of_every_length_come_back() {
        for length in (0..60)
            .chain(270..290)
            .chain([1_000, 65_535, 65_536, 70_000])
        {
            round_trip(&[&[1, 2, 3, 4][..], &vec![5; length], &[6; 40]].concat());
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_decoded() {
        let bytes: Vec<u8> = (0..2_000).map(|at| (at % 97) as u8).collect();
        let (mut packed, mut back) = (Vec::new(), Vec::new());
        compress(&bytes, &mut Vec::new(), &mut packed);
        for at in 0..packed.len() {
            assert!(decompress(&packed[..at], bytes.len(), &mut back).is_none());
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            let _ = decompress(&damaged, bytes.len(), &mut back);
        }
    }
}
