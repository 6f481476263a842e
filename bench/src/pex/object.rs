//! Reads of 4 KB out of a packed file of 200 MB.

use std::time::Instant;

use tersecades_columnar::error::{Error, Result};
use tersecades_store::partition::{PackOptions, Packed, PackedBytes, concat, find_layout, pack};

use super::unit::Unit;
use crate::data::Random;
use crate::report::{Bar, Report};

/// Bytes of the object.
const OBJECT: usize = 200_000_000;
const READS: usize = 3_000;
const READ: usize = 4 << 10;

/// Layout, level, bytes of a partition.
const CASES: [(&str, i32, usize); 5] = [
    ("zlib", 6, 16 << 10),
    ("zlib", 6, 32 << 10),
    ("zstd", 3, 4 << 10),
    ("zstd", 3, 16 << 10),
    ("lz4", 1, 16 << 10),
];

/// Prints the median and the 99th percentile of reads at random places.
///
/// # Errors
/// What the layouts and the file system say; wrong bytes.
pub(super) fn run(units: &[Unit], report: &mut Report) -> Result<()> {
    let raw: Vec<u8> = units
        .iter()
        .flat_map(|unit| unit.bytes.iter().copied())
        .collect();
    let copies = OBJECT.div_ceil(raw.len());
    report.head(&[
        "layout",
        "level",
        "partition",
        "ratio",
        "4 KB p50 us",
        "p99 us",
    ]);
    for (name, level, partition) in CASES {
        let layout = find_layout(name)?;
        let options = PackOptions {
            level: Some(level),
            partition: Some(partition),
            threads: 2,
            ..PackOptions::of(layout)
        };
        let one: std::sync::Arc<[u8]> = pack(&raw, &options)?.into();
        let parts: Result<Vec<PackedBytes>> = (0..copies)
            .map(|_| PackedBytes::from_bytes(one.clone()))
            .collect();
        let path = std::env::temp_dir().join(format!("pex-{}.tcz", std::process::id()));
        let (_, summary) = concat(&parts?, std::fs::File::create(&path)?)?;
        let file = std::fs::File::open(&path)?;
        std::fs::remove_file(&path)?;
        let [median, tail] = reads(&Packed::new(file)?, &raw)?;
        let ratio = summary.file_len as f64 / summary.raw_len as f64;
        let cells = [
            name.to_owned(),
            level.to_string(),
            format!("{} KiB", partition >> 10),
            format!("{ratio:.3}"),
            format!("{median:.1}"),
            format!("{tail:.1}"),
        ];
        report.row(&cells, median, "us");
        if name == "zlib" {
            let name = format!("4 KB of 200 MB, {} KiB partitions", partition >> 10);
            report.judge(name, median, "us", Bar::AtMost(50.0));
        }
    }
    Ok(())
}

fn reads(packed: &Packed<std::fs::File>, raw: &[u8]) -> Result<[f64; 2]> {
    let mut random = Random::new(7);
    let mut buffer = [0; READ];
    let mut micros = Vec::with_capacity(READS);
    for _ in 0..READS {
        let at = random.below(packed.len() - READ as u64);
        let start = Instant::now();
        packed.read_at(at, &mut buffer)?;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
        let at = at as usize % raw.len();
        let first = READ.min(raw.len() - at);
        if buffer[..first] != raw[at..at + first] || buffer[first..] != raw[..READ - first] {
            return Err(Error::internal("wrong bytes"));
        }
    }
    micros.sort_unstable_by(f64::total_cmp);
    Ok([micros[READS / 2], micros[READS * 99 / 100]])
}
