//! What lossy encoding saves: the kinds of data of the paper, and the query of its Figure 8.
//!
//! ```text
//! sizes   Arrow bytes for each encoded byte, column by column: exact (hot, cold tier) and lossy;
//!         `--export FOLDER` writes the columns, which rivals/lossy.py sizes in other formats
//! quality sessions of counters in exact and lossy data, bound after bound
//! speed   C2cProbeCount over a retained window: exact, and kept for the query alone
//! ```
//! Real data comes from `--data FOLDER` or `TERSECADES_DATA`.

mod codec_speed;
mod kind;
mod quality;
mod speed;

use std::io::Write;
use std::path::Path;

use tersecades_columnar::Result;
use tersecades_columnar::goal::Tier;
use tersecades_columnar::scheme::Scheme;
use tersecades_engine::expression::col;
use tersecades_engine::quality::{Sizes, sizes};
use tersecades_engine::sink::{self, SinkOptions};

use crate::Options;
use crate::report::Report;
use kind::{Kind, kinds};

/// Prints sizes and speed.
///
/// # Errors
/// What reading and encoding say.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let data = options.data_folder();
    if data.is_none() {
        report.note("real data is left out: it needs --data FOLDER or TERSECADES_DATA");
    }
    let wanted =
        |name: &str| options.queries.is_empty() || options.queries.iter().any(|it| it == name);
    report.head(&[
        "kind",
        "column",
        "scheme",
        "exact hot",
        "exact cold",
        "lossy",
        "paper",
    ]);
    for kind in kinds(data.as_deref(), options.scaled(1_000_000) as u64)? {
        if wanted(kind.name) {
            measure(&kind, report)?;
            codec_speed::run(&kind, options.repetitions.min(5), report)?;
            if let Some(folder) = &options.export {
                export(folder, &kind)?;
            }
        }
    }
    if wanted("quality") {
        let rows = options.scaled(1_000_000) as u64;
        quality::run(data.as_deref(), rows, report)?;
    }
    match wanted("speed") {
        true => speed::run(options, report),
        false => Ok(()),
    }
}

fn measure(kind: &Kind, report: &mut Report) -> Result<()> {
    let exact = |tier| sizes(kind.stream.clone().tier(tier));
    let (hot, cold) = (exact(Tier::Hot)?, exact(Tier::Cold)?);
    let mut lossy = kind.stream.clone().tier(Tier::Cold);
    for (column, scheme) in &kind.schemes {
        lossy = lossy.encoding(column, scheme);
    }
    let lossy = sizes(lossy)?;
    for (column, scheme) in &kind.schemes {
        let of = |sizes: &Sizes| sizes.ratio(|name| name == column);
        let cells = [kind.name, column, scheme].map(str::to_owned);
        let place = format!("{} {column}, {scheme}", kind.name);
        for (series, sizes) in [
            ("exact, hot", &hot),
            ("exact, cold", &cold),
            ("lossy", &lossy),
        ] {
            report.plain(
                "lossy_ratio",
                (series, place.clone().into()),
                of(sizes),
                "x",
            );
        }
        line(report, cells, [of(&hot), of(&cold), of(&lossy)], "");
    }
    let metrics = |name: &str| kind.columns.iter().any(|column| column == name);
    let of = |sizes: &Sizes| sizes.ratio(metrics);
    let cells = [kind.name, "together", ""].map(str::to_owned);
    let place = format!("{}, all (paper {})", kind.name, kind.paper);
    for (series, sizes) in [
        ("exact, hot", &hot),
        ("exact, cold", &cold),
        ("lossy", &lossy),
    ] {
        report.plain(
            "lossy_ratio",
            (series, place.clone().into()),
            of(sizes),
            "x",
        );
    }
    line(report, cells, [of(&hot), of(&cold), of(&lossy)], kind.paper);
    Ok(())
}

fn line(report: &mut Report, names: [String; 3], ratios: [f64; 3], paper: &str) {
    let ratios_shown = ratios.map(|ratio| format!("{ratio:.2}x"));
    let cells = names.into_iter().chain(ratios_shown);
    let cells: Vec<String> = cells.chain([paper.to_owned()]).collect();
    report.row(&cells, ratios[2], "x");
}

/// Writes the lossy columns as Parquet, and a line of `columns.csv` for each.
fn export(folder: &Path, kind: &Kind) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{}.parquet", kind.name));
    let columns = kind.schemes.iter().map(|(name, _)| (name, col(name)));
    let mut run = kind.stream.clone().project(columns).run()?;
    let mut sink = sink::create(&path, &run.schema(), &SinkOptions::default())?;
    for batch in run.by_ref() {
        sink.write(&batch?)?;
    }
    sink.finish()?;
    let mut list = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("columns.csv"))?;
    for (column, scheme) in &kind.schemes {
        let bound = scheme.parse::<Scheme>()?.error_bound();
        writeln!(list, "{},{column},{bound}", kind.name)?;
    }
    Ok(())
}
