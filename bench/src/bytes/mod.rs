//! General-purpose compressors against the codecs that are executed on: ratio, and speed of both
//! ways in units that fit the caches.
//!
//! Columns of integers as the Pingmesh generator makes them, and the distributions D1 to D4 of
//! "Integer Compression in NVRAM-centric Data Stores" (DaMoN'19). With `--data FILE`, each line of
//! the file is a row of a column of text.

mod contender;
mod lz77;
mod text;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use tersecades_columnar::Result;
use tersecades_columnar::error::Error;
use tersecades_engine::source::generator::{Pingmesh, PingmeshOptions};

use crate::Options;
use crate::data::Random;
use crate::measure::summarise;
use crate::report::Report;
use contender::{Contender, Unit, contenders};

/// Bytes of a unit.
const UNITS: [usize; 2] = [64 << 10, 1 << 20];

/// Columns of the Pingmesh generator that are numbers of different kinds.
const PINGMESH: [&str; 4] = ["timestamp", "src_ip", "rtt_us", "error_code"];

/// Prints ratios and speeds.
///
/// # Errors
/// What a compressor or the generator says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    if let Some(path) = options.data.as_deref().filter(|path| path.is_file()) {
        return text::run(path, options, report);
    }
    let rows = options.scaled(1 << 20);
    let mut contenders = contenders()?;
    let columns = [pingmesh(rows)?, distributions(rows)].concat();
    for (name, array) in &columns {
        for unit_bytes in UNITS {
            let place = format!("{name}, {} KiB", unit_bytes >> 10);
            for contender in &mut contenders {
                let name = format!("{place}, {}", contender.name());
                measure(
                    &name,
                    array,
                    unit_bytes,
                    options,
                    contender.as_mut(),
                    report,
                )?;
            }
        }
    }
    Ok(())
}

fn pingmesh(rows: usize) -> Result<Vec<(String, ArrayRef)>> {
    let mut stream = Pingmesh::new(PingmeshOptions::default())?;
    let batch = stream.next_batch(rows)?;
    let batch = batch.ok_or_else(|| Error::internal("the generator made no row"))?;
    let columns = PINGMESH.iter().filter_map(|name| {
        let column = batch.column_by_name(name)?;
        Some(((*name).to_owned(), Arc::clone(column)))
    });
    Ok(columns.collect())
}

/// About normal: twelve uniform numbers less their mean (Irwin-Hall).
fn normal(random: &mut Random, mean: f64, deviation: f64) -> u32 {
    let sum: f64 = (0..12)
        .map(|_| random.below(1 << 20) as f64 / (1 << 20) as f64)
        .sum();
    (mean + deviation * (sum - 6.0)).max(0.0) as u32
}

fn distributions(rows: usize) -> Vec<(String, ArrayRef)> {
    let mut random = Random::new(17);
    let mut column = |name: &str, sorted: bool, draw: &dyn Fn(&mut Random) -> u32| {
        let mut values: Vec<u32> = (0..rows).map(|_| draw(&mut random)).collect();
        if sorted {
            values.sort_unstable();
        }
        (
            name.to_owned(),
            Arc::new(UInt32Array::from(values)) as ArrayRef,
        )
    };
    // The range of D3 gives the gaps of 100 M values below a million.
    let range = (rows as u64 / 100).max(1);
    vec![
        column("D1", false, &|random| normal(random, 32.0, 20.0)),
        column("D2", false, &|random| {
            normal(random, f64::from(1 << 25), 20.0)
        }),
        column("D3", true, &|random| random.below(range) as u32),
        column("D4", false, &|random| match random.below(10) {
            0 => normal(random, f64::from(1 << 25), 20.0),
            _ => normal(random, 32.0, 20.0),
        }),
    ]
}

/// The lanes of a column of numbers.
fn lane_bytes(array: &ArrayRef) -> Vec<u8> {
    let data = array.to_data();
    let width = data.data_type().primitive_width().unwrap_or(1);
    data.buffers().first().map_or(Vec::new(), |buffer| {
        let start = data.offset() * width;
        buffer.as_slice()[start..start + data.len() * width].to_vec()
    })
}

/// Compresses and decompresses every unit, as often as asked; reports medians over the repetitions.
fn measure(
    name: &str,
    array: &ArrayRef,
    unit_bytes: usize,
    options: &Options,
    contender: &mut dyn Contender,
    report: &mut Report,
) -> Result<()> {
    let bytes = lane_bytes(array);
    let width = bytes.len() / array.len().max(1);
    let unit_rows = unit_bytes / width.max(1);
    let units: Vec<ArrayRef> = (0..array.len())
        .step_by(unit_rows)
        .map(|start| array.slice(start, unit_rows.min(array.len() - start)))
        .collect();
    let (mut packing, mut unpacking, mut packed) = (Vec::new(), Vec::new(), 0);
    for _ in 0..options.repetitions {
        let (mut compressing, mut decompressing) = (0.0, 0.0);
        packed = 0;
        for (array, bytes) in units.iter().zip(bytes.chunks(unit_rows * width)) {
            let unit = Unit { array, bytes };
            let start = std::time::Instant::now();
            packed += contender.compress(&unit)?;
            compressing += start.elapsed().as_secs_f64();
            let start = std::time::Instant::now();
            contender.decompress(&unit)?;
            decompressing += start.elapsed().as_secs_f64();
            if contender.bytes().is_some_and(|back| back != bytes) {
                return Err(Error::internal(format!("{name}: bytes came back changed")));
            }
        }
        packing.push(compressing);
        unpacking.push(decompressing);
    }
    let size = bytes.len() as f64;
    report.add(format!("{name}: ratio"), size / packed as f64, "x");
    let rate = |seconds| summarise(seconds).rate(size) / 1e6;
    report.add(format!("{name}: compressing"), rate(packing), "MB/s");
    report.add(format!("{name}: decompressing"), rate(unpacking), "MB/s");
    Ok(())
}

/// Bytes of all texts of `array`.
fn text_bytes(array: &ArrayRef) -> usize {
    let texts = array.as_string::<i32>();
    texts.value_data().len()
}
