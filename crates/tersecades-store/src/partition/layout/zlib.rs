//! Layout `zlib`: one deflate stream with a full flush behind each partition, framed as gzip.
//!
//! ```text
//! 1f 8b 08 00 00 00 00 00 00 ff | partition | partition | 03 00 | CRC-32 | length
//!   | members without content whose extra field `TC` holds index and footer
//! ```
//! A full flush ends on a byte and forgets what came before, so each partition is a deflate stream
//! that lacks its end; with the two bytes `03 00` behind it, an empty last block, a decoder of
//! whole streams takes it. gzip rather than zlib frames the stream, because gzip files may have
//! several members and extra fields: `gunzip` reads the container without a word about its tail.
//!
//! # Source
//! RFC 1951 (deflate), RFC 1952 (gzip); the extra field as BGZF has it.

use std::ops::RangeInclusive;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use libdeflater::Decompressor;
use tersecades_columnar::error::{Error, Result};

use super::super::phrase::{PhraseMap, deflate};
use super::{Framing, Layout, PartitionDecoder, PartitionEncoder, check_level, take};

/// The layout `zlib`.
#[derive(Debug)]
pub struct Zlib;

impl Layout for Zlib {
    fn id(&self) -> u8 {
        1
    }

    fn name(&self) -> &'static str {
        "zlib"
    }

    fn summary(&self) -> &'static str {
        "deflate with a full flush behind each partition; any gunzip reads the whole"
    }

    fn partition_default(&self) -> usize {
        16 << 10
    }

    fn levels(&self) -> RangeInclusive<i32> {
        0..=9
    }

    fn level_default(&self) -> i32 {
        6
    }

    fn front_len(&self, end: usize, raw_len: usize) -> usize {
        match end < raw_len / 2 {
            true => end,
            false => raw_len,
        }
    }

    fn recursive_read_max(&self) -> usize {
        768
    }

    fn framing(&self) -> &'static dyn Framing {
        &Gzip
    }

    fn encoder(&self, level: i32, _dictionary: &[u8]) -> Result<Box<dyn PartitionEncoder>> {
        check_level(self, level)?;
        let level = Compression::new(level as u32);
        Ok(Box::new(Deflate(Compress::new(level, false))))
    }

    fn decoder(&self, _dictionary: &[u8]) -> Result<Box<dyn PartitionDecoder>> {
        Ok(Box::new(Inflate {
            stream: Decompress::new(false),
            whole: Decompressor::new(),
            ended: Vec::new(),
        }))
    }

    fn phrases(&self, stored: &[u8], raw_len: usize) -> Result<Option<PhraseMap>> {
        deflate::phrases(stored, raw_len).map(Some)
    }
}

struct Deflate(Compress);

impl PartitionEncoder for Deflate {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        self.0.reset();
        stored.reserve(raw.len() / 2 + 64);
        loop {
            let rest = &raw[self.0.total_in() as usize..];
            let done = self.0.compress_vec(rest, stored, FlushCompress::Full);
            done.map_err(|error| Error::internal(format!("zlib: {error}")))?;
            // Room left behind the flush says that the flush is complete.
            if self.0.total_in() == raw.len() as u64 && stored.len() < stored.capacity() {
                return Ok(());
            }
            stored.reserve(raw.len() / 4 + 64);
        }
    }
}

/// A decoder of streams, which stops where it is told to, and one of whole streams, which takes
/// about half the time for each byte.
struct Inflate {
    stream: Decompress,
    whole: Decompressor,
    /// A partition with its end.
    ended: Vec<u8>,
}

impl PartitionDecoder for Inflate {
    fn decode(&mut self, stored: &[u8], front: &mut [u8]) -> Result<()> {
        let damaged =
            |why: &str| Error::corrupt(format!("a partition is no deflate stream: {why}"));
        let stream = &mut self.stream;
        stream.reset(false);
        loop {
            let done = stream.total_out() as usize;
            if done == front.len() {
                return Ok(());
            }
            let rest = &stored[stream.total_in() as usize..];
            let status = stream.decompress(rest, &mut front[done..], FlushDecompress::None);
            let status = status.map_err(|error| damaged(&error.to_string()))?;
            let stuck = stream.total_out() as usize == done;
            if status == Status::StreamEnd || stuck {
                let short = (stream.total_out() as usize) < front.len();
                return if short {
                    Err(damaged("it ends early"))
                } else {
                    Ok(())
                };
            }
        }
    }

    fn decode_whole(&mut self, stored: &[u8], raw: &mut [u8]) -> Result<()> {
        self.ended.clear();
        self.ended.extend_from_slice(stored);
        self.ended.extend_from_slice(&LAST_BLOCK);
        match self.whole.deflate_decompress(&self.ended, raw) {
            Ok(count) if count == raw.len() => Ok(()),
            // The decoder of streams says what is wrong.
            _ => self.decode(stored, raw),
        }
    }
}

/// gzip: members, of which empty ones carry what is hidden.
#[derive(Debug)]
struct Gzip;

/// No time, no name, no word about the system: equal bytes make equal containers.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// The flag that an extra field follows.
const EXTRA: u8 = 4;
/// The extra field's two letters.
const SUBFIELD: [u8; 2] = *b"TC";
/// An empty last block.
const LAST_BLOCK: [u8; 2] = [3, 0];
/// An empty last block, its checksum and its length.
const EMPTY: [u8; 10] = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

impl Framing for Gzip {
    fn head(&self) -> &'static [u8] {
        &HEAD
    }

    fn end(&self, raw_checksum: u32, raw_len: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&LAST_BLOCK);
        out.extend_from_slice(&raw_checksum.to_le_bytes());
        out.extend_from_slice(&(raw_len as u32).to_le_bytes());
    }

    fn sums_raw(&self) -> bool {
        true
    }

    fn hidden_max(&self) -> usize {
        usize::from(u16::MAX) - 4
    }

    fn hide(&self, payload: &[u8], out: &mut Vec<u8>) {
        let length = payload.len() as u16;
        out.extend_from_slice(&HEAD[..3]);
        out.push(EXTRA);
        out.extend_from_slice(&HEAD[4..]);
        out.extend_from_slice(&(length + 4).to_le_bytes());
        out.extend_from_slice(&SUBFIELD);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(payload);
        out.extend_from_slice(&EMPTY);
    }

    fn hidden_suffix(&self) -> usize {
        EMPTY.len()
    }

    fn reveal<'a>(&self, frames: &mut &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = *frames;
        let head = take(&mut rest, HEAD.len())?;
        if head[..3] != HEAD[..3] || head[3] != EXTRA || head[4..] != HEAD[4..] {
            return None;
        }
        let extra = take(&mut rest, 2)?;
        let extra_len = usize::from(u16::from_le_bytes([extra[0], extra[1]]));
        let field = take(&mut rest, 4)?;
        let length = usize::from(u16::from_le_bytes([field[2], field[3]]));
        if field[..2] != SUBFIELD || extra_len != length + 4 {
            return None;
        }
        let payload = take(&mut rest, length)?;
        if take(&mut rest, EMPTY.len())? != EMPTY {
            return None;
        }
        *frames = rest;
        Some(payload)
    }
}
