//! C2cProbeCount over a retained window: every value kept, and what the query can observe kept.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use tersecades_columnar::{Error, Result};
use tersecades_engine::aggregate::count;
use tersecades_engine::expression::col;
use tersecades_engine::runtime::{Keep, Retained};
use tersecades_engine::source::generated::GeneratorTable;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;

use crate::Options;
use crate::measure::summarise;
use crate::range::{retained, retained_as};
use crate::report::{Bar, Report};

/// Rows unless the command line says otherwise: more than a cache holds, however they are kept.
const ROWS: usize = 20_000_000;

/// Probes of a second: twenty seconds of them are the rows above.
const ROWS_PER_SECOND: &str = "200000";

/// The columns of the paper's Table 1 that its query reads.
const READ: [&str; 5] = [
    "timestamp",
    "src_cluster",
    "dst_cluster",
    "rtt_us",
    "error_code",
];

fn c2c(probes: Stream) -> Stream {
    probes
        .filter(col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100)))
        .window(hop(Duration::from_secs(60), Duration::from_secs(10)))
        .group_by(["src_cluster", "dst_cluster"])
        .aggregate([count().alias("probes")])
}

/// Measures both.
///
/// # Errors
/// What the engine says; `Internal` when the answers differ.
pub(super) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(ROWS) as u64;
    let parameters = vec![("rate".to_owned(), ROWS_PER_SECOND.to_owned())];
    let probes = Stream::from_table(GeneratorTable::new("pingmesh", rows, 7, parameters)?)
        .event_time(col("timestamp"), Duration::from_secs(10));
    let read = READ.map(|name| (name, col(name)));
    let probes = probes.project(read).as_source()?;
    let probes = probes.event_time(col("timestamp"), Duration::from_secs(10));
    let keep = Keep::Bytes(usize::MAX);
    let exact = retained(probes.clone())?;
    let wanted = [("c2c", c2c(probes.clone()))];
    let lossy = retained_as(probes.keep_for(keep, wanted)?)?;
    let raw = raw_bytes(&exact);
    for (name, kept, paper) in [("lossless", &exact, "3.1"), ("lossy", &lossy, "5.3")] {
        let ratio = raw / kept.byte_size() as f64;
        report.add(
            format!("pingmesh, {name}: ratio (paper {paper})"),
            ratio,
            "x",
        );
        for (index, field) in kept.schema().fields().iter().enumerate() {
            let batches = kept.batches();
            let bytes: usize = batches.iter().map(|it| it.column(index).byte_size()).sum();
            let each = bytes as f64 / kept.rows() as f64;
            report.add(format!("pingmesh, {name}: {}", field.name()), each, "B/row");
        }
    }
    let mut seconds = [Vec::new(), Vec::new()];
    for repetition in 0..=options.repetitions {
        let mut answers = Vec::new();
        for (kept, seconds) in [&exact, &lossy].into_iter().zip(&mut seconds) {
            let start = Instant::now();
            let answer: Result<Vec<RecordBatch>> =
                c2c(Stream::from_retained(kept)).run()?.collect();
            if repetition > 0 {
                seconds.push(start.elapsed().as_secs_f64());
            }
            answers.push(answer?);
        }
        if answers[0] != answers[1] {
            return Err(Error::internal("the answers differ"));
        }
    }
    let [exact_s, lossy_s] = seconds.map(|seconds| summarise(seconds).median_s);
    report.add(
        "C2cProbeCount, lossless",
        rows as f64 / exact_s / 1e6,
        "M rows/s",
    );
    report.add(
        "C2cProbeCount, lossy",
        rows as f64 / lossy_s / 1e6,
        "M rows/s",
    );
    let bar = Bar::AtLeast(1.3);
    report.judge(
        "C2cProbeCount: lossy / lossless",
        exact_s / lossy_s,
        "x",
        bar,
    );
    Ok(())
}

/// Bytes of the columns in Arrow, text as codes.
fn raw_bytes(kept: &Retained) -> f64 {
    let batches = kept.batches();
    let bytes = |batch: &tersecades_columnar::batch::Batch| -> usize {
        let lane = |chunk: &tersecades_columnar::chunk::Chunk| match chunk.codes() {
            Some(_) => 4,
            None => chunk.physical().lane_bytes(),
        };
        batch
            .columns()
            .iter()
            .map(|chunk| chunk.rows() * lane(chunk))
            .sum()
    };
    batches.iter().map(|batch| bytes(batch)).sum::<usize>() as f64
}
