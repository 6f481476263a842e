//! Layout `zstd`: each partition a Zstandard frame, all with one trained dictionary.
//!
//! ```text
//! frame | frame | ... | skippable frames that hold dictionary, index and footer
//! ```
//! Small frames read fast and pack badly, because each starts without a past; a dictionary of what
//! is common gives it back. `zstd -d` reads containers without a dictionary as they are, others
//! with `-D` and the dictionary.
//!
//! # Source
//! RFC 8878.

use std::ops::RangeInclusive;

use tersecades_columnar::error::{Error, Result};
use zstd::bulk::{Compressor, Decompressor};

use super::{Framing, Layout, PartitionDecoder, PartitionEncoder, check_level, skippable};

/// The layout `zstd`.
#[derive(Debug)]
pub struct Zstd;

impl Layout for Zstd {
    fn id(&self) -> u8 {
        2
    }

    fn name(&self) -> &'static str {
        "zstd"
    }

    fn summary(&self) -> &'static str {
        "Zstandard frames with a common dictionary that stock tools lack; decoded faster than zlib"
    }

    fn partition_default(&self) -> usize {
        4 << 10
    }

    fn levels(&self) -> RangeInclusive<i32> {
        1..=22
    }

    fn level_default(&self) -> i32 {
        3
    }

    fn dictionary_default(&self) -> usize {
        110 << 10
    }

    fn framing(&self) -> &'static dyn Framing {
        &Frames
    }

    fn encoder(&self, level: i32, dictionary: &[u8]) -> Result<Box<dyn PartitionEncoder>> {
        check_level(self, level)?;
        let mut compressor = Compressor::with_dictionary(level, dictionary).map_err(internal)?;
        let parameters = [
            // The index has the lengths, and no dictionary has a number.
            zstd::zstd_safe::CParameter::ContentSizeFlag(true),
            zstd::zstd_safe::CParameter::ChecksumFlag(false),
            zstd::zstd_safe::CParameter::DictIdFlag(false),
        ];
        for parameter in parameters {
            compressor.set_parameter(parameter).map_err(internal)?;
        }
        Ok(Box::new(FrameEncoder(compressor)))
    }

    fn decoder(&self, dictionary: &[u8]) -> Result<Box<dyn PartitionDecoder>> {
        let decompressor = Decompressor::with_dictionary(dictionary).map_err(internal)?;
        Ok(Box::new(FrameDecoder(decompressor)))
    }
}

fn internal(error: std::io::Error) -> Error {
    Error::internal(format!("zstd: {error}"))
}

struct FrameEncoder(Compressor<'static>);

impl PartitionEncoder for FrameEncoder {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let frame = self.0.compress(raw).map_err(internal)?;
        stored.extend_from_slice(&frame);
        Ok(())
    }
}

struct FrameDecoder(Decompressor<'static>);

impl PartitionDecoder for FrameDecoder {
    fn decode(&mut self, stored: &[u8], front: &mut [u8]) -> Result<()> {
        let count = self.0.decompress_to_buffer(stored, front);
        match count {
            Ok(count) if count == front.len() => Ok(()),
            Ok(_) => Err(Error::corrupt("a partition ends early")),
            Err(error) => {
                let message = format!("a partition is no Zstandard frame: {error}");
                Err(Error::corrupt(message))
            }
        }
    }
}

/// Frames behind each other, without head and end.
#[derive(Debug)]
struct Frames;

impl Framing for Frames {
    fn head(&self) -> &'static [u8] {
        &[]
    }

    fn end(&self, _raw_checksum: u32, _raw_len: u64, _out: &mut Vec<u8>) {}

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
