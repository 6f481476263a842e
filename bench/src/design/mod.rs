//! The paper's designs as configurations of the engine, on C2cProbeCount and T2tProbeCount.
//!
//! ```text
//! design = codecs of the stream × parts of the engine it does without × what of it is kept
//! arriving   Arrow batches in memory → encoded → window kept → filter → group → results
//! retained   the kept window → filter → group → results
//! ```
//! Designs take turns. Every design must give the same answer.

mod sweep;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use serde_json::Value;
use tersecades_columnar::batch::Layout;
use tersecades_columnar::goal::Tier;
use tersecades_columnar::{Error, Result};
use tersecades_engine::aggregate::count;
use tersecades_engine::expression::col;
use tersecades_engine::plan::LookupTable;
use tersecades_engine::runtime::ablation::Ablation;
use tersecades_engine::runtime::{Keep, Retained};
use tersecades_engine::source::generator::{Pingmesh, PingmeshOptions};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Window, hop};

use crate::Options;
use crate::measure::{Timing, summarise};
use crate::range::{answer, retained_as};
use crate::report::{Done, Point, Report};

/// Rows unless the command line says otherwise: more than the caches hold, plain.
const ROWS: usize = 20_000_000;
const ROWS_PER_SECOND: u64 = 200_000;
const LATENESS: Duration = Duration::from_secs(10);

/// The columns of the paper's Table 1, with the addresses that its second query joins.
const TEXTS: [&str; 2] = ["src_cluster", "dst_cluster"];
const NUMBERS: [&str; 3] = ["timestamp", "rtt_us", "error_code"];
const ADDRESSES: [&str; 2] = ["src_ip", "dst_ip"];

/// A configuration of the engine.
struct Design {
    name: &'static str,
    /// The codec of every column; by choice where there is none.
    codec: Option<&'static str>,
    layout: Layout,
    without: Ablation,
    /// Whether only what the query can observe is kept.
    lossy: bool,
}

const ALL: Ablation = Ablation {
    direct: false,
    reuse: false,
    own_table: false,
};
const DECODED: Ablation = Ablation {
    direct: true,
    ..ALL
};

/// A design of columns encoded by choice.
const CHOSEN: Design = Design {
    name: "LosslessOptimized",
    codec: None,
    layout: Layout::Column,
    without: ALL,
    lossy: false,
};

/// The designs of figures 8 and 9 and of table 3.
const DESIGNS: &[Design] = &[
    Design {
        name: "NonOptimized",
        layout: Layout::Row,
        without: Ablation {
            direct: true,
            reuse: true,
            own_table: true,
        },
        ..CHOSEN
    },
    PLAIN,
    Design {
        name: "Lossless",
        without: DECODED,
        ..CHOSEN
    },
    CHOSEN,
    Design {
        name: "Lossy",
        without: DECODED,
        lossy: true,
        ..CHOSEN
    },
    LOSSY,
    Design {
        name: "FrameRef",
        codec: Some("frame_of_reference"),
        without: DECODED,
        ..CHOSEN
    },
    Design {
        name: "LZ77",
        codec: Some("lz4"),
        without: DECODED,
        ..CHOSEN
    },
];

const PLAIN: Design = Design {
    name: "NoCompression",
    codec: Some("plain"),
    ..CHOSEN
};

const LOSSY: Design = Design {
    name: "LossyOptimized",
    lossy: true,
    ..CHOSEN
};

/// What one design took.
struct Taken<'a> {
    design: &'a Design,
    kept: Retained,
    arriving: Vec<f64>,
    retained: Vec<f64>,
    /// [`OPERATORS`] over the retained window.
    parts: [Vec<f64>; 3],
}

/// A query of the paper.
type Query<'a> = &'a dyn Fn(Stream) -> Stream;

/// Prints the figures.
///
/// # Errors
/// What the engine says; `Internal` when answers differ.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let (batches, switches) = probes(options.scaled(ROWS), ROWS_PER_SECOND)?;
    let minute = hop(Duration::from_secs(60), Duration::from_secs(10));
    let c2c = |stream: Stream| pairs(stream, minute);
    let columns = [&NUMBERS[..], &TEXTS[..]].concat();
    let input = Input::new(&batches, &columns)?;
    let asked = |design: &&Design| {
        options.queries.is_empty() || options.queries.iter().any(|name| name == design.name)
    };
    let designs: Vec<&Design> = DESIGNS.iter().filter(asked).collect();
    let taken = measure(&input, &designs, &c2c, options.repetitions.min(5))?;
    for taken in &taken {
        print(report, input.rows, taken);
    }
    if !options.queries.is_empty() {
        return Ok(());
    }
    let t2t = |stream: Stream| switch_pairs(stream, &switches, minute);
    let columns = [&columns[..], &ADDRESSES[..]].concat();
    let input = Input::new(&batches, &columns)?;
    let taken = measure(
        &input,
        &[&PLAIN, &CHOSEN, &LOSSY],
        &t2t,
        options.repetitions.min(5),
    )?;
    for taken in &taken {
        for (x, seconds) in [("arriving", &taken.arriving), ("retained", &taken.retained)] {
            rate(
                report,
                "table2",
                (taken.design.name, x.into()),
                input.rows,
                seconds,
                &taken.kept,
            );
        }
        parts(report, "table2_operators", taken);
    }
    sweep::run(options, report)
}

/// Generated probes and the table of switches.
fn probes(rows: usize, rows_per_second: u64) -> Result<(Vec<RecordBatch>, Arc<LookupTable>)> {
    let mut generator = Pingmesh::new(PingmeshOptions {
        rows: rows as u64,
        rows_per_second,
        ..PingmeshOptions::default()
    })?;
    let table = LookupTable::new("tor", generator.tor_table()?);
    let mut batches = Vec::new();
    while let Some(batch) = generator.next_batch(tersecades_columnar::batch::BATCH_ROWS)? {
        batches.push(batch);
    }
    Ok((batches, Arc::new(table)))
}

/// Arrow batches in memory of the columns that a query is given.
struct Input {
    stream: Stream,
    columns: Vec<String>,
    rows: usize,
}

impl Input {
    fn new(batches: &[RecordBatch], columns: &[&str]) -> Result<Self> {
        let project = |batch: &RecordBatch| -> Result<RecordBatch> {
            let positions: std::result::Result<Vec<usize>, _> = columns
                .iter()
                .map(|name| batch.schema().index_of(name))
                .collect();
            Ok(batch.project(&positions?)?)
        };
        let batches: Result<Vec<RecordBatch>> = batches.iter().map(project).collect();
        let batches = batches?;
        let first = batches
            .first()
            .ok_or_else(|| Error::invalid("there are no rows"))?;
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let stream = Stream::from_batches(first.schema(), batches.clone());
        Ok(Input {
            stream: stream.event_time(col("timestamp"), LATENESS),
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            rows,
        })
    }

    /// The same rows in batches of `rows`.
    fn in_batches(batches: &[RecordBatch], columns: &[&str], rows: usize) -> Result<Self> {
        let first = batches
            .first()
            .ok_or_else(|| Error::invalid("there are no rows"))?;
        let whole = concat_batches(&first.schema(), batches)?;
        let starts = (0..whole.num_rows()).step_by(rows.max(1));
        let parts: Vec<RecordBatch> = starts
            .map(|start| whole.slice(start, rows.min(whole.num_rows() - start)))
            .collect();
        Input::new(&parts, columns)
    }

    /// The stream as `design` has it.
    fn of(&self, design: &Design) -> Stream {
        let mut stream = self
            .stream
            .clone()
            .without(design.without)
            .layout(design.layout);
        if let Some(codec) = design.codec {
            stream = stream.tier(Tier::Cold);
            for column in &self.columns {
                let scheme = match TEXTS.contains(&column.as_str()) {
                    true => format!("dictionary({codec})"),
                    false => codec.to_owned(),
                };
                stream = stream.encoding(column, scheme);
            }
        }
        stream
    }

    /// The answer of `query` while the newest `keep` are kept, and what was kept at the end.
    fn arrive(&self, design: &Design, query: Query<'_>, keep: Keep) -> Result<Vec<RecordBatch>> {
        let none: [(&str, Stream); 0] = [];
        let stream = query(self.of(design));
        answer(match design.lossy {
            true => stream.keep_for(keep, none)?,
            false => stream.keep(keep),
        })
    }

    /// All rows, as `design` keeps them for `query`.
    fn keep(&self, design: &Design, query: Query<'_>) -> Result<Retained> {
        let (keep, stream) = (Keep::Bytes(usize::MAX), self.of(design));
        retained_as(match design.lossy {
            true => {
                let asked = query(stream.clone());
                stream.keep_for(keep, [("query", asked)])?
            }
            false => stream.keep(keep),
        })
    }
}

/// C2cProbeCount.
fn pairs(stream: Stream, window: Window) -> Stream {
    stream
        .filter(col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100)))
        .window(window)
        .group_by(TEXTS)
        .aggregate([count().alias("probes")])
}

/// T2tProbeCount.
fn switch_pairs(stream: Stream, switches: &Arc<LookupTable>, window: Window) -> Stream {
    stream
        .filter(col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100)))
        .lookup_join(switches, ("src_ip", "ip"), &[("tor_id", "src_tor")])
        .lookup_join(switches, ("dst_ip", "ip"), &[("tor_id", "dst_tor")])
        .window(window)
        .group_by(["src_tor", "dst_tor"])
        .aggregate([count().alias("probes")])
}

/// Both ways of every design, in turn.
fn measure<'a>(
    input: &Input,
    designs: &[&'a Design],
    query: Query<'_>,
    repetitions: usize,
) -> Result<Vec<Taken<'a>>> {
    let keep = Keep::Duration(Duration::from_secs(60));
    let mut all = Vec::new();
    for design in designs {
        all.push(Taken {
            design,
            kept: input.keep(design, query)?,
            arriving: Vec::new(),
            retained: Vec::new(),
            parts: [const { Vec::new() }; 3],
        });
    }
    let mut expected: Option<Vec<RecordBatch>> = None;
    for repetition in 0..=repetitions {
        for taken in &mut all {
            let start = Instant::now();
            let arrived = input.arrive(taken.design, query, keep)?;
            let arriving = start.elapsed().as_secs_f64();
            let over = query(Stream::from_retained(&taken.kept)).without(taken.design.without);
            let start = Instant::now();
            let found = answer(over.clone())?;
            let retained = start.elapsed().as_secs_f64();
            let name = taken.design.name;
            check(name, &mut expected, arrived)?;
            check(name, &mut expected, found)?;
            if repetition > 0 {
                taken.arriving.push(arriving);
                taken.retained.push(retained);
                let parts = operators(over)?;
                taken
                    .parts
                    .iter_mut()
                    .zip(parts)
                    .for_each(|(all, part)| all.push(part));
            }
        }
    }
    Ok(all)
}

fn check(
    name: &str,
    expected: &mut Option<Vec<RecordBatch>>,
    found: Vec<RecordBatch>,
) -> Result<()> {
    let schema = |batches: &[RecordBatch]| batches.first().map(RecordBatch::schema);
    let whole = |batches: &[RecordBatch]| match schema(batches) {
        Some(schema) => Ok(Some(concat_batches(&schema, batches)?)),
        None => Ok::<_, Error>(None),
    };
    match expected {
        Some(expected) if whole(expected)? != whole(&found)? => {
            Err(Error::internal(format!("the answer of {name} differs")))
        }
        Some(_) => Ok(()),
        None => {
            *expected = Some(found);
            Ok(())
        }
    }
}

/// What operators take, by how the lines of their figures begin; all that begin otherwise filter.
const OPERATORS: [(&str, &str); 3] = [
    ("filter", ""),
    ("join", "lookup_join"),
    ("group", "aggregate"),
];

/// Seconds in each of [`OPERATORS`].
fn operators(stream: Stream) -> Result<[f64; 3]> {
    let mut run = stream.measured().run()?;
    for batch in run.by_ref() {
        batch?;
    }
    let mut seconds = [0.0; 3];
    for line in run.describe() {
        let kind = OPERATORS
            .iter()
            .rposition(|(_, start)| line.starts_with(start));
        seconds[kind.unwrap_or(0)] += millis(&line).unwrap_or(0.0) / 1e3;
    }
    Ok(seconds)
}

/// The time in the line of a measured operator: `filter … [rows 9 to 1, 0.2 ms, …]`.
fn millis(line: &str) -> Option<f64> {
    let figures = line.rsplit_once('[')?.1;
    let time = figures
        .split(", ")
        .find_map(|part| part.trim_end_matches(']').strip_suffix(" ms"));
    time?.parse().ok()
}

fn print(report: &mut Report, rows: usize, taken: &Taken<'_>) {
    let name = taken.design.name;
    for (figure, seconds) in [
        ("designs_arriving", &taken.arriving),
        ("designs", &taken.retained),
    ] {
        rate(
            report,
            figure,
            ("throughput", name.into()),
            rows,
            seconds,
            &taken.kept,
        );
    }
    parts(report, "operators", taken);
    let raw = 24.0 * rows as f64;
    report.point(&Point {
        figure: "design_ratio",
        series: "ratio",
        x: name.into(),
        value: raw / taken.kept.byte_size() as f64,
        unit: "x",
        spread: None,
        share: None,
        note: None,
    });
}

/// The time in each operator that the query has.
fn parts(report: &mut Report, figure: &'static str, taken: &Taken<'_>) {
    for ((series, _), seconds) in OPERATORS.into_iter().zip(&taken.parts) {
        let timing = summarise(seconds.clone());
        if timing.median_s > 0.0 {
            report.point(&Point {
                figure,
                series,
                x: taken.design.name.into(),
                value: timing.median_s * 1e3,
                unit: "ms",
                spread: timing.spread,
                share: None,
                note: None,
            });
        }
    }
}

fn rate(
    report: &mut Report,
    figure: &'static str,
    at: (&str, Value),
    rows: usize,
    seconds: &[f64],
    kept: &Retained,
) {
    let timing: Timing = summarise(seconds.to_vec());
    let done = Done {
        amount: rows as f64 / 1e6,
        unit: "M rows/s",
        bytes: kept.byte_size() as f64,
        threads: 1,
    };
    report.timed(figure, at, &timing, done);
}
