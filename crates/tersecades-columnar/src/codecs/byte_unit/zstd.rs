//! `zstd`: values as they came, in Zstandard frames; a scheme's number is the level.
//!
//! Source: RFC 8878, Zstandard Compression.

use zstd::bulk;

use crate::error::{Error, Result};

use super::Compressor;

/// Level where a scheme names none, the library's own.
const LEVEL: f64 = 3.0;

/// Zstandard frames.
#[derive(Debug)]
pub struct Zstd;

impl Compressor for Zstd {
    const ID: u8 = 20;
    const NAME: &'static str = "zstd";
    const SUMMARY: &'static str = "values as they came in units of 16 blocks, as Zstandard frames";
    const SOURCE: &'static str = "RFC 8878";
    const HAS_LEVELS: bool = true;

    type Encoder = bulk::Compressor<'static>;
    type Decoder = bulk::Decompressor<'static>;

    fn encoder(level: Option<f64>) -> Result<Self::Encoder> {
        let level = level.unwrap_or(LEVEL);
        let range = zstd::compression_level_range();
        let known = range.contains(&(level as i32)) && level.fract() == 0.0;
        if !known {
            let hint = format!("{} to {}", range.start(), range.end());
            return Err(Error::invalid(format!("{level} is not a level of zstd")).hint(hint));
        }
        bulk::Compressor::new(level as i32).map_err(|error| Error::internal(error.to_string()))
    }

    fn decoder() -> Option<Self::Decoder> {
        bulk::Decompressor::new().ok()
    }

    fn compress(encoder: &mut Self::Encoder, from: &[u8], to: &mut Vec<u8>) -> Result<()> {
        let start = to.len();
        to.resize(start + zstd::zstd_safe::compress_bound(from.len()), 0);
        let length = encoder
            .compress_to_buffer(from, &mut to[start..])
            .map_err(|error| Error::internal(error.to_string()))?;
        to.truncate(start + length);
        Ok(())
    }

    fn decompress(decoder: &mut Self::Decoder, from: &[u8], to: &mut [u8]) -> Option<()> {
        let length = decoder.decompress_to_buffer(from, to).ok()?;
        (length == to.len()).then_some(())
    }
}
