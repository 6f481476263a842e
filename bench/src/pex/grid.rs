//! Timed reads of several lengths at several offsets of every unit.

use std::hint::black_box;
use std::time::Instant;

use tersecades_columnar::error::{Error, Result};
use tersecades_store::partition::layout::Layout;

use super::method::{Method, Way};
use super::unit::Unit;

/// Where the paper's reads start.
pub(super) const OFFSETS: [usize; 6] = [
    32 << 10,
    64 << 10,
    100 << 10,
    140 << 10,
    180 << 10,
    215 << 10,
];
/// Its "large amounts".
pub(super) const LARGE: [usize; 4] = [4 << 10, 8 << 10, 16 << 10, 32 << 10];
/// Its "small amounts".
pub(super) const SMALL: [usize; 10] = [8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10];

/// What is measured: how units are compressed, and how they are read.
#[derive(Clone, Copy)]
pub(super) struct Subject {
    pub(super) layout: &'static dyn Layout,
    pub(super) level: i32,
    pub(super) partition: usize,
    pub(super) way: Way,
}

/// Microseconds of every read, and sizes.
pub(super) struct Grid {
    lengths: usize,
    /// By unit, then offset, then length.
    micros: Vec<f64>,
    /// Stored, token and map bytes of each unit, over its raw bytes.
    ratios: Vec<[f64; 3]>,
}

impl Grid {
    /// Reads `lengths` at all offsets of all units, and checks every byte.
    ///
    /// # Errors
    /// What the layout says; wrong bytes.
    pub(super) fn measure(
        subject: Subject,
        units: &[Unit],
        lengths: &[usize],
        repetitions: usize,
    ) -> Result<Grid> {
        let mut grid = Grid {
            lengths: lengths.len(),
            micros: Vec::new(),
            ratios: Vec::new(),
        };
        let mut buffer = vec![0; lengths.iter().copied().max().unwrap_or(0)];
        for unit in units {
            let Subject {
                layout,
                level,
                partition,
                way,
            } = subject;
            let mut method = Method::new(layout, level, partition, way, &unit.bytes)?;
            let sizes = [method.stored_len(), method.token_len(), method.map_len()];
            grid.ratios
                .push(sizes.map(|size| size as f64 / unit.bytes.len() as f64));
            for offset in OFFSETS {
                for length in lengths {
                    let out = &mut buffer[..*length];
                    let micros = time(&mut method, offset, out, repetitions)?;
                    if *out != unit.bytes[offset..offset + length] {
                        return Err(Error::internal(format!("{}: wrong bytes", unit.name)));
                    }
                    grid.micros.push(micros);
                }
            }
        }
        Ok(grid)
    }

    /// The mean over everything.
    pub(super) fn mean(&self) -> f64 {
        mean(self.micros.iter().copied())
    }

    /// The mean of each unit.
    pub(super) fn by_unit(&self) -> Vec<f64> {
        let of_unit = self.micros.chunks(OFFSETS.len() * self.lengths);
        of_unit.map(|it| mean(it.iter().copied())).collect()
    }

    /// The mean at each offset.
    pub(super) fn by_offset(&self) -> Vec<f64> {
        let at = |offset: usize| {
            let of_offset = self
                .micros
                .chunks(self.lengths)
                .skip(offset)
                .step_by(OFFSETS.len());
            mean(of_offset.flatten().copied())
        };
        (0..OFFSETS.len()).map(at).collect()
    }

    /// The mean of each length.
    pub(super) fn by_length(&self) -> Vec<f64> {
        let of = |length: usize| {
            mean(
                self.micros
                    .iter()
                    .skip(length)
                    .step_by(self.lengths)
                    .copied(),
            )
        };
        (0..self.lengths).map(of).collect()
    }

    /// The reads of one unit, by offset and length.
    pub(super) fn unit(&self, unit: usize) -> &[f64] {
        let width = OFFSETS.len() * self.lengths;
        &self.micros[unit * width..(unit + 1) * width]
    }

    /// Stored over raw bytes of each unit.
    pub(super) fn stored(&self) -> Vec<f64> {
        self.ratios.iter().map(|it| it[0]).collect()
    }

    /// Bytes of tokens without entropy code over raw bytes of each unit.
    pub(super) fn tokens(&self) -> Vec<f64> {
        self.ratios.iter().map(|it| it[1]).collect()
    }

    /// Bytes of phrase maps over raw bytes of each unit.
    pub(super) fn maps(&self) -> Vec<f64> {
        self.ratios.iter().map(|it| it[2]).collect()
    }
}

/// The median of several reads, in microseconds.
fn time(method: &mut Method, offset: usize, out: &mut [u8], repetitions: usize) -> Result<f64> {
    let mut micros = Vec::with_capacity(repetitions);
    for _ in 0..repetitions {
        let start = Instant::now();
        method.read(offset, out)?;
        black_box(&out);
        micros.push(start.elapsed().as_secs_f64() * 1e6);
    }
    micros.sort_unstable_by(f64::total_cmp);
    Ok(micros[micros.len() / 2])
}

/// The mean of numbers.
pub(super) fn mean(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = numbers
        .into_iter()
        .fold((0.0, 0), |(sum, count), number| (sum + number, count + 1));
    sum / f64::from(count.max(1))
}
