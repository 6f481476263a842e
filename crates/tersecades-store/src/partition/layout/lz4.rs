//! Layout `lz4`: one LZ4 frame of independent blocks, a block a partition.
//!
//! ```text
//! 04 22 4d 18 60 70 73 | length, block | length, block | 00 00 00 00 | skippable frames
//! ```
//! The top bit of a length says that the block is kept as it is. There is no entropy coding, so the
//! phrases of a block are found at the speed of walking its tokens.
//!
//! # Source
//! LZ4 frame format 1.6.4, LZ4 block format.

use std::ops::RangeInclusive;

use lz4_flex::block;
use tersecades_columnar::error::{Error, Result};

use super::super::phrase::{PhraseMap, lz4};
use super::{Framing, Layout, PartitionDecoder, PartitionEncoder, check_level, skippable, take};

/// The layout `lz4`.
#[derive(Debug)]
pub struct Lz4;

/// The bit of a block's length that says that it is kept as it is.
const KEPT: u32 = 1 << 31;

impl Layout for Lz4 {
    fn id(&self) -> u8 {
        3
    }

    fn name(&self) -> &'static str {
        "lz4"
    }

    fn summary(&self) -> &'static str {
        "LZ4 blocks; fastest to read, also a few bytes at a time, and largest"
    }

    fn partition_default(&self) -> usize {
        16 << 10
    }

    fn levels(&self) -> RangeInclusive<i32> {
        1..=1
    }

    fn level_default(&self) -> i32 {
        1
    }

    fn recursive_read_max(&self) -> usize {
        192
    }

    fn framing(&self) -> &'static dyn Framing {
        &Lz4Frame
    }

    fn encoder(&self, level: i32, _dictionary: &[u8]) -> Result<Box<dyn PartitionEncoder>> {
        check_level(self, level)?;
        Ok(Box::new(Blocks))
    }

    fn decoder(&self, _dictionary: &[u8]) -> Result<Box<dyn PartitionDecoder>> {
        Ok(Box::new(Blocks))
    }

    fn phrases(&self, stored: &[u8], raw_len: usize) -> Result<Option<PhraseMap>> {
        let map = match open_block(stored)? {
            Block::Kept(raw) => PhraseMap::of_literals(raw, raw_len),
            Block::Packed(block) => lz4::phrases(block, raw_len),
        };
        map.map(Some)
    }
}

/// A block without its length.
enum Block<'a> {
    Kept(&'a [u8]),
    Packed(&'a [u8]),
}

fn open_block(mut stored: &[u8]) -> Result<Block<'_>> {
    let damaged = || Error::corrupt("the length of an LZ4 block does not fit its partition");
    let length = take(&mut stored, 4).ok_or_else(damaged)?;
    let length = length.iter().rev();
    let length = length.fold(0, |word, byte| word << 8 | u32::from(*byte));
    if (length & !KEPT) as usize != stored.len() {
        return Err(damaged());
    }
    Ok(if length & KEPT == 0 {
        Block::Packed(stored)
    } else {
        Block::Kept(stored)
    })
}

struct Blocks;

impl PartitionEncoder for Blocks {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let packed = block::compress(raw);
        let kept = packed.len() >= raw.len();
        let bytes = if kept { raw } else { &packed };
        let length = bytes.len() as u32 | if kept { KEPT } else { 0 };
        stored.extend_from_slice(&length.to_le_bytes());
        stored.extend_from_slice(bytes);
        Ok(())
    }
}

impl PartitionDecoder for Blocks {
    fn decode(&mut self, stored: &[u8], front: &mut [u8]) -> Result<()> {
        let damaged = |why: String| Error::corrupt(format!("a partition is no LZ4 block: {why}"));
        let count = match open_block(stored)? {
            Block::Kept(raw) if raw.len() == front.len() => {
                front.copy_from_slice(raw);
                raw.len()
            }
            Block::Kept(_) => return Err(damaged("it has another length".to_owned())),
            Block::Packed(packed) => {
                block::decompress_into(packed, front).map_err(|error| damaged(error.to_string()))?
            }
        };
        match count == front.len() {
            true => Ok(()),
            false => Err(damaged("it ends early".to_owned())),
        }
    }
}

/// The frame around the blocks.
#[derive(Debug)]
struct Lz4Frame;

/// Version 1, independent blocks of at most 4 MiB, no checksums; the last byte checks two before.
const HEAD: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73];

impl Framing for Lz4Frame {
    fn head(&self) -> &'static [u8] {
        &HEAD
    }

    fn end(&self, _raw_checksum: u32, _raw_len: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; 4]);
    }

    fn sums_raw(&self) -> bool {
        false
    }

    fn hidden_max(&self) -> usize {
        skippable::PAYLOAD_MAX
    }

    fn hide(&self, payload: &[u8], out: &mut Vec<u8>) {
        skippable::hide(payload, out);
    }

    fn hidden_suffix(&self) -> usize {
        0
    }

    fn reveal<'a>(&self, frames: &mut &'a [u8]) -> Option<&'a [u8]> {
        skippable::reveal(frames)
    }
}
