//! One stream of bits per block, each read alone: two sections.
//!
//! ```text
//! section n:     where each block's stream starts, in 64-bit words, and the end; u32, blocks + 1
//! section n + 1: the streams
//! ```

use std::ops::Range;

use crate::block::block_count;
use crate::chunk::{Body, Chunk};
use crate::codec::EncodeWork;
use crate::error::{Error, Result};

const WORD_BYTES: usize = 8;

/// The streams of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct Streams<'a> {
    starts: &'a [u32],
    bytes: &'a [u8],
}

impl<'a> Streams<'a> {
    /// The streams in section `first` and the one behind it.
    pub(crate) fn of(chunk: &'a Chunk, first: usize) -> Self {
        Streams {
            starts: chunk.body.section(first),
            bytes: chunk.body.section(first + 1),
        }
    }

    /// The bytes of `block`.
    pub(crate) fn of_block(&self, block: usize) -> &'a [u8] {
        let at = |start: u32| start as usize * WORD_BYTES;
        &self.bytes[at(self.starts[block])..at(self.starts[block + 1])]
    }

    /// Collects the streams of `blocks` in the bytes of `work`.
    pub(crate) fn collect(&self, blocks: Range<usize>, work: &mut EncodeWork) {
        begin(work);
        for block in blocks {
            work.bytes.extend_from_slice(self.of_block(block));
            end_block(work);
        }
    }

    /// Checks that every block has a stream.
    ///
    /// # Errors
    /// `Corrupt` with the block.
    pub(crate) fn validate(&self, rows: usize) -> Result<()> {
        let words = self.bytes.len() / WORD_BYTES;
        let last = self.starts.last().map(|last| *last as usize);
        let whole = self.bytes.len().is_multiple_of(WORD_BYTES);
        if self.starts.len() != block_count(rows) + 1 || last != Some(words) || !whole {
            return Err(Error::corrupt("streams do not fit the number of blocks"));
        }
        if self.starts[0] != 0 {
            return Err(Error::corrupt("bytes in front of the first stream"));
        }
        match self.starts.windows(2).position(|pair| pair[0] >= pair[1]) {
            None => Ok(()),
            Some(block) => Err(Error::corrupt("a block has no stream").block(block as u32)),
        }
    }
}

/// Starts collecting streams in the bytes of `work`.
pub(crate) fn begin(work: &mut EncodeWork) {
    work.bytes.clear();
    work.ends.clear();
    work.ends.push(0);
}

/// Marks the end of a block's stream, which is one or more whole words.
pub(crate) fn end_block(work: &mut EncodeWork) {
    work.ends.push((work.bytes.len() / WORD_BYTES) as u32);
}

/// Writes the collected streams as two sections.
pub(crate) fn write(body: &mut Body, first: usize, work: &EncodeWork) {
    body.add_section::<u32>(first, work.ends.len())
        .copy_from_slice(&work.ends);
    body.add_section::<u8>(first + 1, work.bytes.len())
        .copy_from_slice(&work.bytes);
}
