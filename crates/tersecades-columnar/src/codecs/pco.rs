//! `pco`: numbers by the pco library, which finds bases, multiples and differences by itself.
//!
//! ```text
//! section 0: units of 16 blocks, one after the other: header, metadata and one page of pco each
//! section 1: where each unit ends, u32
//! ```
//! Smaller than any codec that is executed on, and no primitive works on it encoded: values are
//! decoded unit by unit. The library keeps the bits of floats, NaN payloads included. It allocates
//! while encoding and decoding.
//! Example: the times of a probe every 10 s are the differences 10, which take nearly no bits.
//!
//! Source: M. Loncaric, N. Jeppesen, B. Zinberg, "Pcodec: Better Compression for Numerical
//! Sequences", arXiv:2502.06112, 2025; format version 4.

use std::ops::Range;

use bytemuck::Pod;
use pco::ChunkConfig;
use pco::data_types::Number;
use pco::metadata::DeltaEncoding;
use pco::wrapped::{FileCompressor, FileDecompressor};

use crate::block::UNIT_ROWS;
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork};
use crate::error::{Error, Result};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::lane::{KeyLane, with_lanes};
use crate::types::Physical;
use crate::values::Values;

use super::units::{self, Units};

/// Major version of the library's format, the first byte of a unit.
const VERSION: u8 = 4;

/// The byte of a unit whose low bits are the library's mode.
const MODE_BYTE: usize = 2;
const MODE_MASK: u8 = 0x0F;

/// The mode that brings its own dictionary: it may claim memory before its bytes are there, and
/// the encoder never takes it.
const DICTIONARY_MODE: u8 = 4;

/// Binary logarithm of the longest way back that is read; a unit has no longer one.
const LOOKBACK_LOG_MAX: u32 = UNIT_ROWS.ilog2() + 1;

/// Levels of the library, and the one taken where a scheme names none.
const LEVELS: std::ops::RangeInclusive<f64> = 0.0..=12.0;
const LEVEL: f64 = 8.0;

/// Level of samples: the choice of bins is coarser, the sizes are close.
const SAMPLE_LEVEL: usize = 4;

/// Numbers by the pco library.
#[derive(Debug)]
pub struct Pco;

/// Runs `$body` with `$number` bound to the number type of `$physical` and `$lane` to its lane.
macro_rules! with_number {
    ($physical:expr, $number:ident, $lane:ident => $body:expr, else $other:expr) => {
        with_number!(@ $physical, $number, $lane, $body, $other,
            Physical::Integer { bytes: 1, signed: false } => u8, u8;
            Physical::Integer { bytes: 2, signed: false } => u16, u16;
            Physical::Integer { bytes: 4, signed: false } => u32, u32;
            Physical::Integer { bytes: 8, signed: false } => u64, u64;
            Physical::Integer { bytes: 1, signed: true } => i8, u8;
            Physical::Integer { bytes: 2, signed: true } => i16, u16;
            Physical::Integer { bytes: 4, signed: true } => i32, u32;
            Physical::Integer { bytes: 8, signed: true } => i64, u64;
            Physical::Float { bytes: 4 } => f32, u32;
            Physical::Float { bytes: 8 } => f64, u64;
        )
    };
    (@ $physical:expr, $number:ident, $lane:ident, $body:expr, $other:expr,
        $($shape:pat => $n:ty, $l:ty;)*) => {
        match $physical {
            $($shape => {
                type $number = $n;
                type $lane = $l;
                $body
            })*
            _ => $other,
        }
    };
}

fn config(level: usize) -> ChunkConfig {
    ChunkConfig::default()
        .with_compression_level(level)
        .with_enable_8_bit(true)
}

/// The level that a scheme asks for.
fn level_of(parameter: Option<f64>) -> Result<usize> {
    let level = parameter.unwrap_or(LEVEL);
    match LEVELS.contains(&level) && level.fract() == 0.0 {
        true => Ok(level as usize),
        false => Err(Error::invalid(format!("{level} is not a level of pco")).hint("0 to 12")),
    }
}

/// Copies the numbers of `rows`, holes filled with the number before.
fn numbers<T: Number + Pod>(
    input: &Input<'_>,
    rows: impl Iterator<Item = usize>,
    out: &mut Vec<T>,
) -> Result<()> {
    out.clear();
    with_lanes!(input.lanes, lanes => {
        let lanes = bytemuck::try_cast_slice::<_, T>(lanes)
            .map_err(|_| Error::internal("lanes are not as wide as their type"))?;
        let mut last = None;
        for row in rows {
            let number = match last {
                Some(last) if !input.is_valid(row) => last,
                _ => lanes[row],
            };
            last = Some(number);
            out.push(number);
        }
    }, else return Err(Error::internal("pco takes lanes of at most eight bytes")));
    Ok(())
}

/// Appends header and metadata, then the page, of one unit; where the page starts.
fn compress<T: Number>(numbers: &[T], config: &ChunkConfig, to: &mut Vec<u8>) -> Result<usize> {
    let failed = |error: pco::errors::PcoError| Error::internal(error.to_string());
    let file = FileCompressor::default();
    file.write_header(&mut *to).map_err(failed)?;
    let mut chunk = file.chunk_compressor(numbers, config).map_err(failed)?;
    chunk.write_meta(&mut *to).map_err(failed)?;
    let page = to.len();
    chunk.write_page(0, to).map_err(failed)?;
    Ok(page)
}

/// Fills `to` with the numbers of one unit; `None` unless it holds exactly those.
fn decompress<T: Number>(unit: &[u8], to: &mut [T]) -> Option<()> {
    let mode = unit.get(MODE_BYTE)? & MODE_MASK;
    if unit.first() != Some(&VERSION) || mode == DICTIONARY_MODE {
        return None;
    }
    let (file, rest) = FileDecompressor::new(unit).ok()?;
    let (mut chunk, rest) = file.chunk_decompressor::<T, _>(rest).ok()?;
    let bounded = match &chunk.meta().delta_encoding {
        DeltaEncoding::NoOp | DeltaEncoding::Consecutive { .. } => true,
        DeltaEncoding::Lookback { config, .. } => config.window_n_log <= LOOKBACK_LOG_MAX,
        _ => false,
    };
    if !bounded {
        return None;
    }
    let mut page = chunk.page_decompressor(rest, to.len()).ok()?;
    let progress = page.read(to).ok()?;
    let whole = progress.finished && progress.n_processed == to.len();
    (whole && page.into_src().is_empty()).then_some(())
}

fn decode_units<T: Number + Pod, L: KeyLane>(chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
    let flip = chunk.physical.flip();
    let mut numbers = Vec::new();
    for (index, unit) in units::touched(rows.clone(), chunk.rows) {
        numbers.clear();
        numbers.resize(unit.len(), T::zeroed());
        // `validate` has decoded every unit, so this one decodes.
        let _ = decompress(Units::of(chunk).get(index), &mut numbers);
        let lanes = bytemuck::cast_slice::<T, L>(&numbers);
        let keys = lanes[units::covered(&unit, &rows)].iter();
        out.keys.extend(keys.map(|lane| lane.key() ^ flip));
    }
}

impl Codec for Pco {
    fn id(&self) -> u8 {
        12
    }

    fn name(&self) -> &'static str {
        "pco"
    }

    fn summary(&self) -> &'static str {
        "numbers by the pco library, in units of 16 blocks"
    }

    fn source(&self) -> &'static str {
        "Pcodec (Loncaric, Jeppesen and Zinberg, arXiv:2502.06112)"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(
            input.physical,
            Physical::Integer { .. } | Physical::Float { .. }
        ) && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn tier(&self) -> Tier {
        Tier::Cold
    }

    fn takes_number(&self) -> bool {
        true
    }

    fn unit_rows(&self) -> usize {
        UNIT_ROWS
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let input = sample.input;
        let mut bytes = Vec::new();
        let page = with_number!(input.physical, T, _L => {
            let mut values = Vec::<T>::new();
            let rows = sample.windows.iter().cloned().flatten();
            numbers(input, rows, &mut values)
                .and_then(|()| match values.is_empty() {
                    true => Ok(0),
                    false => compress(&values, &config(SAMPLE_LEVEL), &mut bytes),
                })
        }, else Err(Error::internal("pco takes numbers")));
        let Ok(page) = page else {
            return f64::INFINITY.into();
        };
        let unit_rows = input.rows().clamp(1, UNIT_ROWS) as f64;
        let rest = (bytes.len() - page) as f64 / sample.rows() as f64;
        Estimate::from(rest + (page + size_of::<u32>()) as f64 / unit_rows)
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let config = config(level_of(work.parameter)?);
        let (bytes, ends) = (&mut work.bytes, &mut work.ends);
        bytes.clear();
        ends.clear();
        with_number!(input.physical, T, _L => {
            let mut values = Vec::<T>::with_capacity(UNIT_ROWS.min(input.rows()));
            for (_, rows) in units::touched(0..input.rows(), input.rows()) {
                numbers(input, rows, &mut values)?;
                compress(&values, &config, bytes)?;
                ends.push(units::end(bytes)?);
            }
        }, else return Err(Error::internal("pco takes numbers")));
        Units::write(&mut out.body, bytes, ends);
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[1, 4]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        let units = Units::of(chunk);
        units.validate(chunk.rows)?;
        with_number!(chunk.physical, T, _L => {
            let mut values = Vec::<T>::new();
            for (index, rows) in units::touched(0..chunk.rows, chunk.rows) {
                values.resize(rows.len(), T::default());
                decompress(units.get(index), &mut values)
                    .ok_or_else(|| Error::corrupt(format!("unit {index} is not of pco")))?;
            }
            Ok(())
        }, else Err(Error::corrupt("a pco chunk of a type it cannot hold")))
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        with_number!(chunk.physical, T, L => decode_units::<T, L>(chunk, rows, out), else {});
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(config: &ChunkConfig) -> (Vec<u8>, Vec<i64>) {
        let numbers: Vec<i64> = (0..2_000).map(|i| (i * i) % 1_013).collect();
        let mut bytes = Vec::new();
        compress(&numbers, config, &mut bytes).unwrap();
        (bytes, numbers)
    }

    #[test]
    fn units_hold_as_many_numbers_as_asked_for() {
        let (bytes, numbers) = unit(&config(8));
        let mut back = vec![0; numbers.len()];
        assert!(decompress(&bytes, &mut back).is_some());
        assert_eq!(back, numbers);
        assert!(decompress(&bytes, &mut back[1..]).is_none());
        assert!(decompress(&bytes, &mut vec![0i64; numbers.len() + 1]).is_none());
        assert!(decompress(&[bytes.as_slice(), &[0]].concat(), &mut back).is_none());
    }

    #[test]
    fn dictionaries_and_convolutions_of_the_library_are_refused() {
        let (bytes, numbers) = unit(&config(8).with_mode_spec(pco::ModeSpec::TryDict));
        assert_eq!(bytes[MODE_BYTE] & MODE_MASK, DICTIONARY_MODE);
        assert!(decompress(&bytes, &mut vec![0i64; numbers.len()]).is_none());
        let wave = |i: i32| (f64::from(i) * 0.05).sin() * 1e4;
        let narrow: Vec<i32> = (0..2_000).map(|i| wave(i) as i32).collect();
        let config = config(8).with_delta_spec(pco::DeltaSpec::TryConv1(6));
        let mut bytes = Vec::new();
        compress(&narrow, &config, &mut bytes).unwrap();
        assert!(decompress(&bytes, &mut vec![0i32; narrow.len()]).is_none());
    }

    #[test]
    fn damaged_units_are_refused_or_decoded() {
        for delta in [pco::DeltaSpec::Auto, pco::DeltaSpec::TryLookback] {
            let (bytes, numbers) = unit(&config(8).with_delta_spec(delta));
            let mut back = vec![0i64; numbers.len()];
            for at in 0..bytes.len().min(400) {
                for bit in 0..8 {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= 1 << bit;
                    let _ = decompress(&damaged, &mut back);
                }
                assert!(decompress(&bytes[..at], &mut back).is_none());
            }
        }
    }

    #[test]
    fn levels_are_whole_and_in_range() {
        assert_eq!(level_of(None).unwrap(), 8);
        assert_eq!(level_of(Some(0.0)).unwrap(), 0);
        assert!(
            [-1.0, 13.0, 2.5, f64::NAN].map(|level| level_of(Some(level)).is_err()) == [true; 4]
        );
    }
}
