//! The symbol table: what each code stands for, and text read through it.

use std::cmp::Ordering;

use crate::chunk::Chunk;
use crate::error::{Error, Result};

use super::{LENGTHS, SYMBOLS};

/// The code in front of a byte that stands for itself.
pub(super) const ESCAPE: u8 = 255;

/// Longest symbol.
const SYMBOL_BYTES: usize = 8;

/// Symbols by code; those without a symbol are empty.
pub(super) struct Table {
    symbols: [[u8; SYMBOL_BYTES]; 256],
    lengths: [u8; 256],
}

impl Table {
    /// The table of `chunk`.
    pub(super) fn of(chunk: &Chunk) -> Self {
        let mut table = Table {
            symbols: [[0; SYMBOL_BYTES]; 256],
            lengths: [0; 256],
        };
        let symbols = chunk.body.section::<u64>(SYMBOLS);
        let lengths = chunk.body.section::<u8>(LENGTHS);
        for (code, (symbol, length)) in symbols.iter().zip(lengths).enumerate() {
            table.symbols[code] = symbol.to_le_bytes();
            table.lengths[code] = *length;
        }
        table
    }

    /// Checks the table of `chunk`.
    ///
    /// # Errors
    /// `Corrupt` for symbols without a length, lengths out of range, or too many of them.
    pub(super) fn validate(chunk: &Chunk) -> Result<()> {
        let symbols = chunk.body.section::<u64>(SYMBOLS).len();
        let lengths = chunk.body.section::<u8>(LENGTHS);
        let sane = lengths.iter().all(|length| (1..=8).contains(length));
        match sane && symbols == lengths.len() && symbols <= usize::from(ESCAPE) {
            true => Ok(()),
            false => Err(Error::corrupt("the symbols of a chunk are damaged")),
        }
    }

    /// Whether every one of `codes` has a symbol and every escape a byte.
    pub(super) fn has_all(&self, codes: &[u8]) -> bool {
        let mut codes = codes.iter();
        while let Some(code) = codes.next() {
            let known = match *code {
                ESCAPE => codes.next().is_some(),
                code => self.lengths[usize::from(code)] > 0,
            };
            if !known {
                return false;
            }
        }
        true
    }

    /// Appends the text of `codes`.
    pub(super) fn append(&self, codes: &[u8], text: &mut Vec<u8>) {
        let mut codes = codes.iter();
        while let Some(code) = codes.next() {
            if *code == ESCAPE {
                text.extend(codes.next());
                continue;
            }
            // A store of fixed width, cut back, is faster than a copy of variable width.
            let code = usize::from(*code);
            let end = text.len() + usize::from(self.lengths[code]);
            text.extend_from_slice(&self.symbols[code]);
            text.truncate(end);
        }
    }

    /// How the text of `codes` compares with `constant`; read no further than they differ.
    pub(super) fn order(&self, codes: &[u8], constant: &[u8]) -> Ordering {
        let mut rest = constant;
        let mut codes = codes.iter();
        while let Some(code) = codes.next() {
            let symbol = match *code {
                ESCAPE => codes.as_slice().get(..1).unwrap_or_default(),
                code => {
                    let length = usize::from(self.lengths[usize::from(code)]);
                    &self.symbols[usize::from(code)][..length.min(SYMBOL_BYTES)]
                }
            };
            if *code == ESCAPE {
                codes.next();
            }
            let Some((same, behind)) = rest.split_at_checked(symbol.len()) else {
                // The text is longer than what is left: only a difference before its end matters.
                return symbol.cmp(rest);
            };
            match symbol.cmp(same) {
                Ordering::Equal => rest = behind,
                different => return different,
            }
        }
        match rest.is_empty() {
            true => Ordering::Equal,
            false => Ordering::Less,
        }
    }
}
