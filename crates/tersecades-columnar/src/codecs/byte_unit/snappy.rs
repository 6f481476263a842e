//! `snappy`: values as they came, in raw Snappy blocks.
//!
//! Source: Snappy format description,
//! <https://github.com/google/snappy/blob/main/format_description.txt>.

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use crate::error::{Error, Result};

use super::Compressor;

/// Raw Snappy blocks.
#[derive(Debug)]
pub struct Snappy;

impl Compressor for Snappy {
    const ID: u8 = 19;
    const NAME: &'static str = "snappy";
    const SUMMARY: &'static str = "values as they came in units of 16 blocks, as raw Snappy";
    const SOURCE: &'static str = "Snappy's format description";

    type Encoder = Encoder;
    type Decoder = Decoder;

    fn encoder(_level: Option<f64>) -> Result<Encoder> {
        Ok(Encoder::new())
    }

    fn decoder() -> Option<Decoder> {
        Some(Decoder::new())
    }

    fn compress(encoder: &mut Encoder, from: &[u8], to: &mut Vec<u8>) -> Result<()> {
        let start = to.len();
        to.resize(start + max_compress_len(from.len()), 0);
        let length = encoder
            .compress(from, &mut to[start..])
            .map_err(|error| Error::internal(error.to_string()))?;
        to.truncate(start + length);
        Ok(())
    }

    fn decompress(decoder: &mut Decoder, from: &[u8], to: &mut [u8]) -> Option<()> {
        if decompress_len(from).ok()? != to.len() {
            return None;
        }
        let length = decoder.decompress(from, to).ok()?;
        (length == to.len()).then_some(())
    }
}
