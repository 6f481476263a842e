//! The tokens of a deflate stream.
//!
//! It reads what a partition of layout `zlib` is made of: blocks that are kept, have fixed codes or
//! codes of their own, and end where all bytes are there. Decoding is left to a library; this reads
//! phrases without copying any.
//!
//! # Source
//! RFC 1951.

use tersecades_columnar::error::{Error, Result};

use super::{PhraseMap, PhraseMapBuilder};

/// Bits of the longest code.
const CODE_MAX: usize = 15;
/// Bits that are looked up at once; longer codes are walked.
const LOOKUP: usize = 10;
/// Codes for literals and lengths, and for distances.
const LITERALS: usize = 288;
const DISTANCES: usize = 30;

const END_OF_BLOCK: u16 = 256;

/// The order in which lengths of code-length codes come.
const CODE_LENGTH_ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// Least length and number of further bits for each code from 257 on.
const LENGTHS: [(u16, u8); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];

/// The phrases of a stream of `raw_len` bytes.
///
/// # Errors
/// Damaged streams, and such that stand for another number of bytes.
pub(in super::super) fn phrases(stored: &[u8], raw_len: usize) -> Result<PhraseMap> {
    let mut bits = Bits {
        rest: stored,
        held: 0,
        count: 0,
    };
    let mut builder = PhraseMapBuilder::new(raw_len);
    while !(builder.is_full() && bits.at_end()) {
        let last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => kept_block(&mut bits, &mut builder)?,
            1 => {
                let (literals, distances) = fixed_codes()?;
                coded_block(&mut bits, &literals, &distances, &mut builder)?;
            }
            2 => {
                let (literals, distances) = own_codes(&mut bits)?;
                coded_block(&mut bits, &literals, &distances, &mut builder)?;
            }
            _ => return Err(damaged("a block of unknown kind")),
        }
        if last {
            break;
        }
    }
    builder.finish()
}

fn damaged(what: &str) -> Error {
    Error::corrupt(format!("a deflate stream has {what}"))
}

/// Bits from the lowest of each byte up.
struct Bits<'a> {
    rest: &'a [u8],
    held: u64,
    count: usize,
}

impl Bits<'_> {
    /// Holds as many bits as there are, or at least 48.
    fn refill(&mut self) {
        if let Some((word, _)) = self.rest.split_first_chunk::<8>() {
            let bytes = (63 - self.count) / 8;
            self.held |= u64::from_le_bytes(*word) << self.count;
            self.rest = &self.rest[bytes..];
            self.count += 8 * bytes;
            return;
        }
        while self.count <= 56 {
            let Some((byte, behind)) = self.rest.split_first() else {
                return;
            };
            self.held |= u64::from(*byte) << self.count;
            self.rest = behind;
            self.count += 8;
        }
    }

    /// Whether nothing is left.
    fn at_end(&self) -> bool {
        self.count == 0 && self.rest.is_empty()
    }

    fn drop(&mut self, count: usize) -> Result<()> {
        self.count = self
            .count
            .checked_sub(count)
            .ok_or_else(|| damaged("an early end"))?;
        self.held >>= count;
        Ok(())
    }

    /// The next bits, at most 16.
    fn take(&mut self, count: usize) -> Result<usize> {
        if self.count < count {
            self.refill();
        }
        let bits = self.held & ((1 << count) - 1);
        self.drop(count)?;
        Ok(bits as usize)
    }

    /// Drops what is left of a byte and gives the bytes behind it.
    fn bytes(&mut self, count: usize) -> Result<Vec<u8>> {
        self.drop(self.count % 8)?;
        let mut bytes = Vec::new();
        while bytes.len() < count && self.count > 0 {
            bytes.push(self.take(8)? as u8);
        }
        // A word that was read may have left bits above those that count.
        if self.count == 0 {
            self.held = 0;
        }
        let left = count - bytes.len();
        let (front, behind) = self
            .rest
            .split_at_checked(left)
            .ok_or_else(|| damaged("an early end"))?;
        bytes.extend_from_slice(front);
        self.rest = behind;
        Ok(bytes)
    }
}

fn kept_block(bits: &mut Bits<'_>, builder: &mut PhraseMapBuilder) -> Result<()> {
    let head = bits.bytes(4)?;
    let length = u16::from_le_bytes([head[0], head[1]]);
    if length != !u16::from_le_bytes([head[2], head[3]]) {
        return Err(damaged("a kept block whose length contradicts itself"));
    }
    if length > 0 {
        builder.literals(&bits.bytes(usize::from(length))?)?;
    }
    Ok(())
}

fn coded_block(
    bits: &mut Bits<'_>,
    literals: &Codes,
    distances: &Codes,
    builder: &mut PhraseMapBuilder,
) -> Result<()> {
    loop {
        // Enough for a length, a distance and the further bits of both: 15 + 5 + 15 + 13.
        bits.refill();
        let symbol = literals.next(bits)?;
        if symbol < END_OF_BLOCK {
            builder.literal(symbol as u8)?;
            continue;
        }
        if symbol == END_OF_BLOCK {
            return Ok(());
        }
        let length = LENGTHS.get(usize::from(symbol - END_OF_BLOCK - 1));
        let (least, further) = *length.ok_or_else(|| damaged("a length of no meaning"))?;
        let length = usize::from(least) + bits.take(usize::from(further))?;
        let symbol = usize::from(distances.next(bits)?);
        if symbol >= DISTANCES {
            return Err(damaged("a distance of no meaning"));
        }
        let distance = match symbol {
            0..=3 => symbol + 1,
            _ => {
                let further = symbol / 2 - 1;
                ((2 + symbol % 2) << further) + 1 + bits.take(further)?
            }
        };
        builder.copy(distance, length)?;
    }
}

fn fixed_codes() -> Result<(Codes, Codes)> {
    let mut lengths = [8; LITERALS];
    lengths[144..256].fill(9);
    lengths[256..280].fill(7);
    Ok((Codes::of(&lengths)?, Codes::of(&[5; 32])?))
}

fn own_codes(bits: &mut Bits<'_>) -> Result<(Codes, Codes)> {
    let literals = bits.take(5)? + 257;
    let distances = bits.take(5)? + 1;
    let listed = bits.take(4)? + 4;
    if literals > 286 || distances > DISTANCES {
        return Err(damaged("more codes than there are symbols"));
    }
    let mut of_lengths = [0; 19];
    for symbol in &CODE_LENGTH_ORDER[..listed] {
        of_lengths[*symbol] = bits.take(3)? as u8;
    }
    let of_lengths = Codes::of(&of_lengths)?;
    let mut lengths = Vec::with_capacity(literals + distances);
    while lengths.len() < literals + distances {
        let symbol = of_lengths.next(bits)?;
        let (length, times) = match symbol {
            0..=15 => (symbol as u8, 1),
            16 => {
                let before = lengths.last().copied();
                let before = before.ok_or_else(|| damaged("a repeated length without one"))?;
                (before, 3 + bits.take(2)?)
            }
            17 => (0, 3 + bits.take(3)?),
            _ => (0, 11 + bits.take(7)?),
        };
        lengths.resize(lengths.len() + times, length);
    }
    if lengths.len() > literals + distances {
        return Err(damaged("more lengths of codes than codes"));
    }
    let (literals, distances) = lengths.split_at(literals);
    if literals[usize::from(END_OF_BLOCK)] == 0 {
        return Err(damaged("a block without an end"));
    }
    Ok((Codes::of(literals)?, Codes::of(distances)?))
}

/// A canonical prefix code.
struct Codes {
    /// For each value of the next bits: symbol and length of the code they begin with.
    table: [(u16, u8); 1 << LOOKUP],
    /// How many codes of each length there are.
    counts: [u16; CODE_MAX + 1],
    /// Symbols by code.
    symbols: Vec<u16>,
}

impl Codes {
    /// The code with these lengths.
    ///
    /// # Errors
    /// Lengths that no code has; a code of one bit may be alone, but not among code lengths.
    fn of(lengths: &[u8]) -> Result<Codes> {
        let mut counts = [0u16; CODE_MAX + 1];
        lengths
            .iter()
            .for_each(|length| counts[usize::from(*length)] += 1);
        counts[0] = 0;
        let mut left = 1i32;
        for count in &counts[1..] {
            left = 2 * left - i32::from(*count);
            if left < 0 {
                return Err(damaged("more codes than their lengths allow"));
            }
        }
        let longest = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
        let alone = longest == 1 && lengths.len() != CODE_LENGTH_ORDER.len();
        if left > 0 && longest > 0 && !alone {
            return Err(damaged("codes that leave others without meaning"));
        }
        let mut table = [(0, 0); 1 << LOOKUP];
        let mut symbols = Vec::with_capacity(lengths.len());
        let mut code = 0usize;
        for length in 1..=CODE_MAX {
            let of_length = lengths.iter().enumerate();
            for (symbol, _) in of_length.filter(|it| usize::from(*it.1) == length) {
                symbols.push(symbol as u16);
                if length <= LOOKUP {
                    let start = code.reverse_bits() >> (usize::BITS as usize - length);
                    for at in (start..1 << LOOKUP).step_by(1 << length) {
                        table[at] = (symbol as u16, length as u8);
                    }
                }
                code += 1;
            }
            code <<= 1;
        }
        Ok(Codes {
            table,
            counts,
            symbols,
        })
    }

    /// The next symbol.
    fn next(&self, bits: &mut Bits<'_>) -> Result<u16> {
        if bits.count < CODE_MAX {
            bits.refill();
        }
        let (symbol, length) = self.table[bits.held as usize & ((1 << LOOKUP) - 1)];
        if length > 0 {
            bits.drop(usize::from(length))?;
            return Ok(symbol);
        }
        let (mut code, mut first, mut index) = (0usize, 0usize, 0usize);
        for length in 1..=CODE_MAX {
            code |= (bits.held >> (length - 1)) as usize & 1;
            let count = usize::from(self.counts[length]);
            if code < first + count {
                bits.drop(length)?;
                let symbol = self.symbols.get(index + code - first).copied();
                return symbol.ok_or_else(|| damaged("a code without a symbol"));
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err(damaged("a code without a symbol"))
    }
}
