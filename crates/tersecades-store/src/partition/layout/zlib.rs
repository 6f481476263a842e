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
use libdeflater::{DecompressionError, Decompressor};
use tersecades_columnar::error::{Error, Result};

use super::super::phrase::{PhraseMap, deflate};
use super::{Framing, Layout, PartitionDecoder, PartitionEncoder, check_level, take};

/// The library's name for what zlib does at level 1; its own level 1 makes no code for the bytes at
/// hand, and a quarter more bytes.
const FASTEST: u32 = 2;

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

    fn stops_early(&self) -> bool {
        true
    }

    fn recursive_read_max(&self) -> usize {
        512
    }

    fn framing(&self) -> &'static dyn Framing {
        &Gzip
    }

    fn encoder(&self, level: i32, _dictionary: &[u8]) -> Result<Box<dyn PartitionEncoder>> {
        check_level(self, level)?;
        let level = if level == 1 { FASTEST } else { level as u32 };
        Ok(Box::new(Deflate(Compress::new(
            Compression::new(level),
            false,
        ))))
    }

    fn decoder(&self, _dictionary: &[u8]) -> Result<Box<dyn PartitionDecoder>> {
        Ok(Box::new(Inflate {
            whole: Decompressor::new(),
            stream: Decompress::new(false),
            ended: Vec::new(),
            room: Vec::new(),
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

/// A decoder of whole streams, and one of streams as they come, which takes about twice the time
/// for each byte and says what is wrong.
struct Inflate {
    whole: Decompressor,
    stream: Decompress,
    /// A partition with its end.
    ended: Vec<u8>,
    room: Vec<u8>,
}

/// Stands in the room behind the bytes that are wanted, until bytes of the stream take its place.
const MARK: [u8; 8] = *b"\xa5not yet";
/// How far behind its last byte the decoder of whole streams writes at most.
const OVERRUN: usize = 64;
/// The longest copy, which the decoder leaves out where it does not fit as a whole.
const COPY_MAX: usize = 258;

impl Inflate {
    /// Fills `front` by the decoder of whole streams, which fills the room it has from the front
    /// and then says that there is more; whether it came behind `front`.
    fn decode_front(&mut self, stored: &[u8], front: &mut [u8]) -> bool {
        self.ended.clear();
        self.ended.extend_from_slice(stored);
        self.ended.extend_from_slice(&LAST_BLOCK);
        let mark = front.len() + OVERRUN..front.len() + OVERRUN + MARK.len();
        let room_len = mark.end + COPY_MAX;
        if self.room.len() < room_len {
            self.room.resize(room_len, 0);
        }
        let room = &mut self.room[..room_len];
        room[mark.clone()].copy_from_slice(&MARK);
        let filled = match self.whole.deflate_decompress(&self.ended, room) {
            Ok(count) => count >= front.len(),
            Err(DecompressionError::InsufficientSpace) => room[mark] != MARK,
            Err(DecompressionError::BadData) => false,
        };
        if filled {
            front.copy_from_slice(&room[..front.len()]);
        }
        filled
    }

    /// Fills `front` by the decoder of streams.
    fn decode_stream(&mut self, stored: &[u8], front: &mut [u8]) -> Result<()> {
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
}

impl PartitionDecoder for Inflate {
    fn decode(&mut self, stored: &[u8], front: &mut [u8]) -> Result<()> {
        match self.decode_front(stored, front) {
            true => Ok(()),
            false => self.decode_stream(stored, front),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Text, bytes that do not compress, and one byte again and again.
    fn raw() -> Vec<u8> {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        let mut raw = Vec::new();
        raw.extend((0..3_000).map(|_| b"etaoin shrdlu\n"[usize::from(random()) % 14]));
        raw.extend((0..3_000).map(|_| random()));
        raw.extend([0xa5; 2_000]);
        raw
    }

    #[test]
    fn every_front_is_that_of_the_raw_bytes() {
        let raw = raw();
        let mut decoder = Zlib.decoder(&[]).unwrap();
        for level in [0, 1, 6] {
            let mut stored = Vec::new();
            let mut encoder = Zlib.encoder(level, &[]).unwrap();
            encoder.encode(&raw, &mut stored).unwrap();
            for end in 0..=raw.len() {
                let mut front = vec![0; end];
                decoder.decode(&stored, &mut front).unwrap();
                assert!(front == raw[..end], "level {level}, {end} bytes");
            }
            assert!(
                decoder
                    .decode(&stored, &mut vec![0; raw.len() + 1])
                    .is_err()
            );
            assert!(
                decoder
                    .decode(&stored[..9], &mut vec![0; raw.len()])
                    .is_err()
            );
        }
    }

    #[test]
    fn fronts_are_decoded_without_the_decoder_of_streams_where_blocks_are_coded() {
        let raw = &raw()[..3_000];
        let mut stored = Vec::new();
        Zlib.encoder(1, &[])
            .unwrap()
            .encode(raw, &mut stored)
            .unwrap();
        let mut inflate = Inflate {
            whole: Decompressor::new(),
            stream: Decompress::new(false),
            ended: Vec::new(),
            room: Vec::new(),
        };
        for end in 1..=raw.len() {
            assert!(inflate.decode_front(&stored, &mut vec![0; end]), "{end}");
        }
    }
}
