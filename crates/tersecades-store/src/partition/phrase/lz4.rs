//! The tokens of an LZ4 block.
//!
//! ```text
//! token: high four bits literals, low four bits copy length less 4; 15 goes on in further bytes
//! token | more of literal length | literals | distance, u16 | more of copy length
//! ```
//! The last token of a block ends behind its literals.
//!
//! # Source
//! LZ4 block format description.

use tersecades_columnar::error::{Error, Result};

use super::{PhraseMap, PhraseMapBuilder};

const COPY_MIN: usize = 4;

/// The phrases of a block of `raw_len` bytes.
///
/// # Errors
/// Damaged blocks, and such that stand for another number of bytes.
pub(in super::super) fn phrases(block: &[u8], raw_len: usize) -> Result<PhraseMap> {
    let mut builder = PhraseMapBuilder::new(raw_len);
    let mut rest = block;
    loop {
        let token = usize::from(next(&mut rest)?);
        let literals = length(token >> 4, &mut rest)?;
        let (bytes, behind) = rest.split_at_checked(literals).ok_or_else(cut_short)?;
        rest = behind;
        if !bytes.is_empty() {
            builder.literals(bytes)?;
        }
        if rest.is_empty() {
            return builder.finish();
        }
        let distance = u16::from_le_bytes([next(&mut rest)?, next(&mut rest)?]);
        let copied = length(token & 15, &mut rest)?;
        builder.copy(usize::from(distance), copied.saturating_add(COPY_MIN))?;
    }
}

fn cut_short() -> Error {
    Error::corrupt("an LZ4 block ends inside a token")
}

fn next(rest: &mut &[u8]) -> Result<u8> {
    let (byte, behind) = rest.split_first().ok_or_else(cut_short)?;
    *rest = behind;
    Ok(*byte)
}

fn length(nibble: usize, rest: &mut &[u8]) -> Result<usize> {
    let mut length = nibble;
    if nibble == 15 {
        loop {
            let more = next(rest)?;
            length = length.saturating_add(usize::from(more));
            if more != u8::MAX {
                break;
            }
        }
    }
    Ok(length)
}
