//! Whether choosing pays: what choices lose against exhaustive search, on real data.
//!
//! For each set of `--data` (or `TERSECADES_DATA`), at most `--rows` rows of it:
//!
//! ```text
//! regret   cost of what was chosen / cost of the best single scheme of each column − 1, hot, cold;
//!          all cascades of up to three codecs are tried
//! choosing processor time of a steady stream with choosing − without, as a share of the first
//! sizes    bytes per row, hot and cold; `--export FOLDER` writes the same rows as Parquet, which
//!          rivals/choice.py sizes in other formats
//! ```

pub(crate) mod set;

use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, UInt64Array};
use rustix::time::{ClockId, clock_gettime};
use tersecades_columnar::Result;
use tersecades_columnar::batch::{BATCH_ROWS, Batch, BatchEncoder};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::explain::{Explainer, Explanation};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::registry::fallback;
use tersecades_columnar::selection::Selection;
use tersecades_engine::sink::{self, SinkOptions};

use crate::Options;
use crate::data::Random;
use crate::measure::interleave;
use crate::report::{Bar, Report};
use set::Table;

/// Rows of a set unless the command line says otherwise.
const ROWS: usize = 1_000_000;

/// Codecs of the longest cascades among those that are tried.
const STAGES: usize = 3;

/// What choices may lose.
const REGRET: f64 = 0.05;

/// Sums over the columns of a set.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    chosen_ns: f64,
    best_ns: f64,
    bytes: f64,
}

impl Total {
    fn add(&mut self, rows: f64, found: &Explanation) {
        let best = found
            .trials
            .first()
            .map_or(found.chosen.ns, |trial| trial.real.ns);
        self.chosen_ns += rows * found.chosen.ns;
        self.best_ns += rows * best;
        self.bytes += rows * found.chosen.bytes;
    }

    fn regret(self) -> f64 {
        self.chosen_ns / self.best_ns - 1.0
    }
}

/// Prints what choosing costs and loses.
///
/// # Errors
/// What encoding says; files that cannot be read are named and passed over.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    incompressible(options, report)?;
    let Some(data) = options.data_folder() else {
        report.note("skipped: needs --data FOLDER or TERSECADES_DATA");
        return Ok(());
    };
    for (name, files) in set::sets(&data)? {
        let mut left = options.scaled(ROWS);
        let mut tables = Vec::new();
        for file in files {
            match set::read(&file, left) {
                Ok(table) => {
                    left -= table.batches.iter().map(|it| it.num_rows()).sum::<usize>();
                    tables.push(table);
                }
                Err(error) => report.note(&format!("{name}: passed over: {error}")),
            }
        }
        if let Some(folder) = &options.export {
            export(folder, &name, &tables)?;
        }
        judge_set(report, &name, &tables)?;
    }
    Ok(())
}

/// Writes each table as Parquet.
fn export(folder: &Path, set: &str, tables: &[Table]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for (index, table) in tables.iter().enumerate() {
        let Some(first) = table.batches.first() else {
            continue;
        };
        let path = folder.join(format!("{set}.{index:02}.parquet"));
        let mut sink = sink::create(&path, &first.schema(), &SinkOptions::default())?;
        table
            .batches
            .iter()
            .try_for_each(|batch| sink.write(batch))?;
        sink.finish()?;
    }
    Ok(())
}

fn judge_set(report: &mut Report, set: &str, tables: &[Table]) -> Result<()> {
    let batches = tables.iter().flat_map(|table| &table.batches);
    let rows: usize = batches.map(|batch| batch.num_rows()).sum();
    let per_row = 1.0 / rows.max(1) as f64;
    for tier in [Tier::Hot, Tier::Cold] {
        let mut total = Total::default();
        for table in tables {
            explain(report, table, tier, &mut total)?;
        }
        report.judge(
            format!("{set}, {tier}: regret"),
            total.regret(),
            "x",
            Bar::AtMost(REGRET),
        );
        report.add(
            format!("{set}, {tier}: size"),
            total.bytes * per_row,
            "B/row",
        );
    }
    let (mut chosen, mut pinned) = (0.0, 0.0);
    for table in tables {
        let (with, without) = choosing(table)?;
        chosen += with;
        pinned += without;
    }
    let share = (1.0 - pinned / chosen).max(0.0);
    report.judge(
        format!("{set}: choosing, share of encoding"),
        share,
        "x",
        Bar::AtMost(0.05),
    );
    Ok(())
}

/// Tries everything on every column of a table.
fn explain(report: &mut Report, table: &Table, tier: Tier, total: &mut Total) -> Result<()> {
    let Some(first) = table.batches.first() else {
        return Ok(());
    };
    for (index, field) in first.schema().fields().iter().enumerate() {
        let explainer = Explainer::new(field.data_type(), Goal::of_tier(tier))?;
        let mut explainer = explainer.of_stages(STAGES);
        let mut rows = 0;
        for batch in &table.batches {
            explainer.add(batch.column(index))?;
            rows += batch.num_rows();
        }
        let found = explainer.explain();
        total.add(rows as f64, &found);
        let best = found.trials.first();
        report.note(&format!(
            "{:<28.28} {:<18.18} {tier:<4} {:<34.34} {:>8.3} B {:>8.3} ns  best {:<30.30} \
             {:>8.3} B {:>8.3} ns  regret {:>6.1} %",
            table.name,
            field.name(),
            found.codec,
            found.chosen.bytes,
            found.chosen.ns,
            best.map_or("", |best| best.scheme.as_str()),
            best.map_or(0.0, |best| best.real.bytes),
            best.map_or(0.0, |best| best.real.ns),
            100.0 * found.regret(),
        ));
    }
    Ok(())
}

/// Processor time of passes over a table in a steady state, with choosing and without.
///
/// The two encoders take turns pass by pass, so that what disturbs one disturbs the other.
fn choosing(table: &Table) -> Result<(f64, f64)> {
    const CHUNKS: usize = 1_024;
    let Some(first) = table.batches.first() else {
        return Ok((0.0, 0.0));
    };
    let encoder = |interval: u32| -> Result<BatchEncoder> {
        let mut encoder = BatchEncoder::new(&first.schema())?;
        for column in encoder.columns_mut() {
            column.aim(Goal {
                look_interval: interval,
                ..Goal::default()
            });
        }
        Ok(encoder)
    };
    let mut encoders = [encoder(Goal::default().look_interval)?, encoder(u32::MAX)?];
    let mut target = Batch::empty(encoders[0].schema().clone());
    let mut seconds = [0.0; 2];
    let passes = CHUNKS.div_ceil(table.batches.len());
    for pass in 0..2 * passes {
        for turn in [pass % 2, 1 - pass % 2] {
            let start = processor_s();
            for batch in &table.batches {
                encoders[turn].encode(batch, &mut target)?;
            }
            if pass >= passes {
                seconds[turn] += processor_s() - start;
            }
        }
    }
    Ok((seconds[0], seconds[1]))
}

/// Seconds this thread has been running, so that other programs do not count.
fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Scans of random values as chosen, against the same kept plain.
fn incompressible(options: &Options, report: &mut Report) -> Result<()> {
    const CHUNKS: usize = 64;
    let mut random = Random::new(17);
    let mut words = || -> Vec<u64> { (0..BATCH_ROWS).map(|_| random.bits()).collect() };
    let float = |word: u64| f64::from_bits(word >> 12 | 0x3ff0_0000_0000_0000);
    let mut integers: Vec<ArrayRef> = Vec::new();
    let mut floats: Vec<ArrayRef> = Vec::new();
    for _ in 0..CHUNKS {
        integers.push(Arc::new(UInt64Array::from(words())));
        let words = words().into_iter().map(float);
        floats.push(Arc::new(Float64Array::from_iter_values(words)));
    }
    for (name, arrays, middle) in [
        ("u64", integers, (u64::MAX / 2).into()),
        ("f64", floats, 1.5.into()),
    ] {
        let data_type = arrays[0].data_type();
        let encode = |plain: bool| -> Result<Vec<Chunk>> {
            let mut encoder = ColumnEncoder::new(data_type)?;
            if plain {
                encoder.pin(fallback());
            }
            arrays
                .iter()
                .map(|array| encoder.encode_new(array))
                .collect()
        };
        let (chosen, plain) = (encode(false)?, encode(true)?);
        let less = Predicate::compare(data_type, Comparison::Less, &middle)?;
        let [chosen_s, plain_s] = interleave(
            options.repetitions,
            [&mut || scan(&chosen, &less), &mut || scan(&plain, &less)],
        );
        let label = chosen.first().map_or_else(String::new, Chunk::codec_label);
        report.note(&format!("random {name} is kept {label}"));
        let ratio = plain_s.median_s / chosen_s.median_s;
        report.judge(
            format!("random {name}: scan speed / plain"),
            ratio,
            "x",
            Bar::AtLeast(0.95),
        );
    }
    Ok(())
}

fn scan(chunks: &[Chunk], less: &Predicate) {
    let (mut out, mut work, mut fold) = (Selection::default(), Work::default(), Fold::default());
    let asked = Asked {
        sum: true,
        ..Asked::default()
    };
    for chunk in chunks {
        let all = Selection::all(chunk.rows());
        chunk.compare(less, &all, &mut out, &mut work);
        chunk.fold(asked, &all, &mut fold, &mut work);
    }
    std::hint::black_box((&out, &fold));
}
