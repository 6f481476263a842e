//! What compresses units of bytes: each as two functions over one unit.

use arrow_array::ArrayRef;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::values::Values;

use super::lz77;
use crate::data::codec;

/// One unit of a column.
pub(super) struct Unit<'a> {
    /// The values.
    pub(super) array: &'a ArrayRef,
    /// Their lanes.
    pub(super) bytes: &'a [u8],
}

/// A way to compress, with its memory.
pub(super) trait Contender {
    /// Its name in the table.
    fn name(&self) -> &str;

    /// Compresses `unit` and keeps the result; its length.
    fn compress(&mut self, unit: &Unit<'_>) -> Result<usize>;

    /// Decompresses what was kept last.
    fn decompress(&mut self, unit: &Unit<'_>) -> Result<()>;

    /// The bytes decompressed last, where they lie as they came.
    fn bytes(&self) -> Option<&[u8]>;
}

type Step = Box<dyn FnMut(&[u8], &mut [u8]) -> std::io::Result<usize>>;

/// A compressor of bytes, as a library offers it.
struct Library {
    name: String,
    bound: fn(usize) -> usize,
    compress: Step,
    decompress: Step,
    packed: Vec<u8>,
    length: usize,
    back: Vec<u8>,
}

impl Contender for Library {
    fn name(&self) -> &str {
        &self.name
    }

    fn compress(&mut self, unit: &Unit<'_>) -> Result<usize> {
        self.packed.resize((self.bound)(unit.bytes.len()), 0);
        self.length = (self.compress)(unit.bytes, &mut self.packed)?;
        Ok(self.length)
    }

    fn decompress(&mut self, unit: &Unit<'_>) -> Result<()> {
        self.back.resize(unit.bytes.len(), 0);
        let length = (self.decompress)(&self.packed[..self.length], &mut self.back)?;
        match length == unit.bytes.len() {
            true => Ok(()),
            false => Err(Error::internal(format!("{} lost bytes", self.name))),
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.back)
    }
}

/// [`lz77`], whose output grows as it comes.
#[derive(Default)]
struct Xpress {
    heads: Vec<u32>,
    packed: Vec<u8>,
    back: Vec<u8>,
}

impl Contender for Xpress {
    fn name(&self) -> &str {
        "xpress-like"
    }

    fn compress(&mut self, unit: &Unit<'_>) -> Result<usize> {
        lz77::compress(unit.bytes, &mut self.heads, &mut self.packed);
        Ok(self.packed.len())
    }

    fn decompress(&mut self, unit: &Unit<'_>) -> Result<()> {
        lz77::decompress(&self.packed, unit.bytes.len(), &mut self.back)
            .ok_or_else(|| Error::internal("xpress lost bytes"))
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.back)
    }
}

/// A codec of this project; it decodes to keys.
struct Encoded {
    name: &'static str,
    encoder: Option<ColumnEncoder>,
    chunk: Chunk,
    values: Values,
}

impl Contender for Encoded {
    fn name(&self) -> &str {
        self.name
    }

    fn compress(&mut self, unit: &Unit<'_>) -> Result<usize> {
        let encoder = match &mut self.encoder {
            Some(encoder) if encoder.data_type() == unit.array.data_type() => encoder,
            other => {
                let mut encoder = ColumnEncoder::new(unit.array.data_type())?;
                encoder.pin(codec(self.name));
                other.insert(encoder)
            }
        };
        encoder.encode(unit.array, &mut self.chunk)?;
        Ok(self.chunk.byte_size())
    }

    fn decompress(&mut self, unit: &Unit<'_>) -> Result<()> {
        self.values.reset(self.chunk.physical());
        let codec = self.chunk.codec();
        codec.decode(&self.chunk, 0..self.chunk.rows(), &mut self.values);
        match self.values.len() == unit.array.len() {
            true => Ok(()),
            false => Err(Error::internal(format!("{} lost rows", self.name))),
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

fn library(
    name: impl Into<String>,
    bound: fn(usize) -> usize,
    both: (Step, Step),
) -> Box<dyn Contender> {
    Box::new(Library {
        name: name.into(),
        bound,
        compress: both.0,
        decompress: both.1,
        packed: Vec::new(),
        length: 0,
        back: Vec::new(),
    })
}

fn lz4(name: &str, mode: fn() -> lz4::block::CompressionMode) -> Box<dyn Contender> {
    use lz4::block::{compress_bound, compress_to_buffer, decompress_to_buffer};
    let compress =
        move |from: &[u8], to: &mut [u8]| compress_to_buffer(from, Some(mode()), false, to);
    let decompress = |from: &[u8], to: &mut [u8]| {
        let length = i32::try_from(to.len()).map_err(std::io::Error::other)?;
        decompress_to_buffer(from, Some(length), to)
    };
    let bound = |length| compress_bound(length).unwrap_or(2 * length + 64);
    library(name, bound, (Box::new(compress), Box::new(decompress)))
}

fn snappy() -> Box<dyn Contender> {
    let (mut encoder, mut decoder) = (snap::raw::Encoder::new(), snap::raw::Decoder::new());
    let compress = move |from: &[u8], to: &mut [u8]| Ok(encoder.compress(from, to)?);
    let decompress = move |from: &[u8], to: &mut [u8]| Ok(decoder.decompress(from, to)?);
    let bound = snap::raw::max_compress_len;
    library("snappy", bound, (Box::new(compress), Box::new(decompress)))
}

fn zstd(level: i32) -> Result<Box<dyn Contender>> {
    let mut encoder = zstd::bulk::Compressor::new(level)?;
    let mut decoder = zstd::bulk::Decompressor::new()?;
    let compress = move |from: &[u8], to: &mut [u8]| encoder.compress_to_buffer(from, to);
    let decompress = move |from: &[u8], to: &mut [u8]| decoder.decompress_to_buffer(from, to);
    let bound = zstd::zstd_safe::compress_bound;
    let both: (Step, Step) = (Box::new(compress), Box::new(decompress));
    Ok(library(format!("zstd {level}"), bound, both))
}

/// All of them, fastest idea first.
///
/// # Errors
/// Where a library has no memory.
pub(super) fn contenders() -> Result<Vec<Box<dyn Contender>>> {
    use lz4::block::CompressionMode::{DEFAULT, FAST, HIGHCOMPRESSION};
    let encoded = |name| -> Box<dyn Contender> {
        Box::new(Encoded {
            name,
            encoder: None,
            chunk: Chunk::default(),
            values: Values::default(),
        })
    };
    Ok(vec![
        encoded("base_delta"),
        Box::new(Xpress::default()),
        lz4("lz4 fast", || FAST(8)),
        lz4("lz4", || DEFAULT),
        lz4("lz4 high", || HIGHCOMPRESSION(9)),
        snappy(),
        zstd(3)?,
        encoded("pco"),
    ])
}
