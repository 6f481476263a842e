//! Random arrays: noise, walks, steps, constants, zeros, of all magnitudes and lengths.

use tersecades_columnar::codecs::zfp::Format;

/// Splitmix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From -1 to 1.
    fn unit(&mut self) -> f64 {
        self.next() as i64 as f64 / i64::MAX as f64
    }
}

/// One array to compress.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) format: Format,
    pub(crate) tolerance: f64,
    pub(crate) values: Vec<f64>,
}

/// Some hundred arrays, the same in every run.
pub(crate) fn arrays() -> Vec<Array> {
    let mut random = Random::new(11);
    (0..600).map(|index| array(index, &mut random)).collect()
}

fn array(index: usize, random: &mut Random) -> Array {
    let format = if index.is_multiple_of(2) {
        Format::DOUBLE
    } else {
        Format::SINGLE
    };
    // Magnitudes on which the reference library does not overflow.
    let reach = if format == Format::DOUBLE {
        900.0
    } else {
        90.0
    };
    let rows = 1 + random.next() as usize % 70;
    let exponent = match index / 2 % 3 {
        0 => (random.unit() * 10.0) as i32,
        1 => (random.unit() * 40.0) as i32,
        _ => (random.unit() * reach) as i32,
    };
    let scale = 2f64.powi(exponent);
    let mut walk = random.unit();
    let values = (0..rows).map(|row| {
        let value = match index / 6 % 6 {
            0 => random.unit(),
            1 => (row as f64 / 9.0).sin(),
            2 => {
                walk += random.unit() / 100.0;
                walk
            }
            3 => 0.7,
            4 if !random.next().is_multiple_of(3) => 0.0,
            4 => random.unit(),
            _ => random.unit() * 2f64.powi((random.next() % 30) as i32 - 30),
        };
        let value = value * scale;
        if format == Format::SINGLE {
            f64::from(value as f32)
        } else {
            value
        }
    });
    let values = values.collect();
    let tolerance = match index / 36 % 4 {
        0 => scale * 2f64.powi(-(random.next() as i32 & 31)),
        1 => scale * random.unit().abs() * 1e-3,
        2 => scale * 1e-9,
        _ => 0.0,
    };
    Array {
        format,
        tolerance,
        values,
    }
}

/// The arrays as lines of `name format tolerance values`.
pub(crate) fn lines() -> String {
    let mut lines = String::new();
    for (index, array) in arrays().iter().enumerate() {
        let kind = if array.format == Format::SINGLE {
            "single"
        } else {
            "double"
        };
        let tolerance = array.tolerance.to_bits();
        lines += &format!("random{index} {kind} {tolerance:016x} ");
        for value in &array.values {
            let bytes = match array.format {
                Format::SINGLE => (*value as f32).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            };
            lines.extend(bytes.iter().map(|byte| format!("{byte:02x}")));
        }
        lines.push('\n');
    }
    lines
}
