//! `lz4`: values as they came, in LZ4 blocks.
//!
//! Source: LZ4 block format, <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>.

use crate::error::{Error, Result};

use super::Compressor;

/// LZ4 blocks.
#[derive(Debug)]
pub struct Lz4;

impl Compressor for Lz4 {
    const ID: u8 = 18;
    const NAME: &'static str = "lz4";
    const SUMMARY: &'static str = "values as they came in units of 16 blocks, as LZ4 blocks";
    const SOURCE: &'static str = "the LZ4 block format";

    type Encoder = ();
    type Decoder = ();

    fn encoder(_level: Option<f64>) -> Result<()> {
        Ok(())
    }

    fn decoder() -> Option<()> {
        Some(())
    }

    fn compress((): &mut (), from: &[u8], to: &mut Vec<u8>) -> Result<()> {
        let start = to.len();
        to.resize(
            start + lz4_flex::block::get_maximum_output_size(from.len()),
            0,
        );
        let length = lz4_flex::block::compress_into(from, &mut to[start..])
            .map_err(|error| Error::internal(error.to_string()))?;
        to.truncate(start + length);
        Ok(())
    }

    fn decompress((): &mut (), from: &[u8], to: &mut [u8]) -> Option<()> {
        let length = lz4_flex::block::decompress_into(from, to).ok()?;
        (length == to.len()).then_some(())
    }
}
