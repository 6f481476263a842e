//! Bytes per row and encoding time per column of a file of Pingmesh rows, in both tiers.
//!
//! The file is what `gen_pingmesh.py` writes as Arrow IPC: timestamp, two addresses, two cluster
//! names, round-trip time and error code.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use tersecades_columnar::batch::{BATCH_ROWS, Batch, BatchEncoder};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::{Error, Result};

use crate::Options;
use crate::query::NO_DATA;
use crate::report::{Bar, Point, Report};

/// The columns of the paper, which take [`PAPER_RAW_BYTES`] when plain.
const PAPER_COLUMNS: [&str; 5] = [
    "timestamp",
    "src_cluster",
    "dst_cluster",
    "rtt_us",
    "error_code",
];
const PAPER_RAW_BYTES: f64 = 24.0;

/// Bytes of a row that each tier aims at.
const AIMS: [(Tier, f64); 2] = [(Tier::Hot, 13.5), (Tier::Cold, 9.0)];

/// What a column took over all batches.
#[derive(Default)]
struct Column {
    name: String,
    bytes: usize,
    seconds: f64,
    codecs: Vec<(String, usize)>,
    losers: String,
}

/// Prints the layout of `--data`.
///
/// # Errors
/// What the reader and the encoder say.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let Some(path) = options.data_file() else {
        report.note(NO_DATA);
        return Ok(());
    };
    let batches = load(&path, options.rows)?;
    for (tier, aim) in AIMS {
        measure((tier, aim), &batches, report)?;
    }
    Ok(())
}

fn measure(tier: (Tier, f64), batches: &[RecordBatch], report: &mut Report) -> Result<()> {
    let Some(first) = batches.first() else {
        return Ok(());
    };
    let mut encoder = BatchEncoder::new(&first.schema())?;
    for column in encoder.columns_mut() {
        column.aim(Goal::of_tier(tier.0));
    }
    let fields = first.schema();
    let mut columns: Vec<Column> = fields.fields().iter().map(|_| Column::default()).collect();
    for (column, field) in columns.iter_mut().zip(fields.fields()) {
        column.name.clone_from(field.name());
    }
    let mut rows = 0;
    let mut target = Batch::empty(encoder.schema().clone());
    for _ in 0..2 {
        rows = 0;
        for column in &mut columns {
            (column.bytes, column.seconds) = (0, 0.0);
            column.codecs.clear();
        }
        for batch in batches {
            encode(&mut encoder, batch, &mut target, &mut columns)?;
            rows += batch.num_rows();
        }
    }
    print(report, tier, &columns, (rows, &target));
    Ok(())
}

/// Batches of the engine's default size.
fn load(path: &Path, rows: Option<usize>) -> Result<Vec<RecordBatch>> {
    let file = File::open(path)
        .map_err(|error| Error::new(tersecades_columnar::ErrorKind::Io, error.to_string()))?;
    let mut batches = Vec::new();
    let mut left = rows.unwrap_or(usize::MAX);
    for batch in FileReader::try_new(BufReader::new(file), None)? {
        let batch = batch?;
        for start in (0..batch.num_rows().min(left)).step_by(BATCH_ROWS) {
            let length = BATCH_ROWS.min(batch.num_rows().min(left) - start);
            batches.push(batch.slice(start, length));
        }
        left -= batch.num_rows().min(left);
    }
    Ok(batches)
}

fn encode(
    encoder: &mut BatchEncoder,
    batch: &RecordBatch,
    target: &mut Batch,
    columns: &mut [Column],
) -> Result<()> {
    encoder.encode_with(target, |index, encoder, chunk| {
        let start = Instant::now();
        encoder.encode(batch.column(index), chunk)?;
        let seconds = start.elapsed().as_secs_f64();
        if let Some(column) = columns.get_mut(index) {
            column.add(chunk, seconds);
        }
        Ok(())
    })
}

impl Column {
    fn add(&mut self, chunk: &Chunk, seconds: f64) {
        self.bytes += chunk.byte_size();
        self.seconds += seconds;
        let label = chunk.codec_label();
        match self.codecs.iter_mut().find(|(known, _)| *known == label) {
            Some((_, count)) => *count += 1,
            None => self.codecs.push((label, 1)),
        }
        let losers = chunk.candidates().iter().skip(1).map(|loser| {
            let (name, bytes) = (loser.codec.name(), loser.bytes_per_row);
            format!("{name} {bytes:.2} B {:.3} ns", loser.scan_ns)
        });
        self.losers = losers.collect::<Vec<_>>().join(", ");
    }

    fn bytes_per_row(&self, rows: usize) -> f64 {
        self.bytes as f64 / rows as f64
    }
}

fn print(
    report: &mut Report,
    (tier, aim): (Tier, f64),
    columns: &[Column],
    (rows, last): (usize, &Batch),
) {
    let tier = tier.to_string();
    let (mut encode_ns, mut all) = (0.0, 0.0);
    for column in columns {
        let chosen: Vec<String> = column
            .codecs
            .iter()
            .map(|(n, c)| format!("{n} x{c}"))
            .collect();
        let size = column.bytes_per_row(rows);
        let place = column.name.as_str().into();
        report.plain("layout_bytes", (&tier, place), size, "B/row");
        report.note(&format!("    as {}", chosen.join(", ")));
        let ns = column.seconds * 1e9 / rows as f64;
        report.add(format!("{}, {tier}: encode", column.name), ns, "ns/row");
        report.note(&format!("    passed over: {}", column.losers));
        encode_ns += ns;
        all += size;
    }
    let dictionaries = last.columns().iter().filter_map(Chunk::dictionary);
    let dictionaries: usize = dictionaries.map(|it| it.byte_size()).sum();
    let dictionaries = dictionaries as f64 / rows as f64;
    let place = "dictionaries".into();
    report.plain("layout_bytes", (&tier, place), dictionaries, "B/row");
    report.point(&Point {
        figure: "layout_bytes",
        series: &tier,
        x: "all columns".into(),
        value: all + dictionaries,
        unit: "B/row",
        spread: None,
        share: None,
        note: Some(format!("aim {aim}")),
    });
    report.add(format!("encode, all columns, {tier}"), encode_ns, "ns/row");
    let of_paper = columns
        .iter()
        .filter(|column| PAPER_COLUMNS.contains(&column.name.as_str()));
    let paper: f64 = of_paper.map(|column| column.bytes_per_row(rows)).sum();
    report.add(format!("the paper's five columns, {tier}"), paper, "B/row");
    let ratio = PAPER_RAW_BYTES / paper;
    let name = format!("24 B / the paper's five columns, {tier}");
    report.judge(name, ratio, "x", Bar::AtLeast(3.0));
}
