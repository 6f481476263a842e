//! Benchmarks: `tersecades-bench [NAME…] [--rows N] [--data FOLDER] [--record HISTORY.jsonl]`.
//!
//! Without a name every bench of [`BENCHES`] runs; `micro` runs those that need no data file.
//! Each prints ratios taken in one run, because times alone say more about the machine; what is
//! recorded, `render` turns into tables and pictures.

mod add;
mod bitpack;
mod break_even;
mod bytes;
mod cardinality;
mod choice;
mod chunk;
mod column;
mod cost;
mod data;
mod design;
mod encode;
mod execution;
mod integer;
mod layout;
mod level;
mod limits;
mod lossy;
mod lsm;
mod measure;
mod parquet;
mod pex;
mod query;
mod range;
mod record;
mod render;
mod report;
mod scan;
mod search;
mod selectivity;
mod sum;
mod waist;

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

use report::Report;
use tersecades_columnar::Result;
use tersecades_columnar::goal::Tier;

// It keeps what results were made of; the system's allocator gives it back to the kernel, and a hop
// query of many result rows then takes 1.3 times as long.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the command line says.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    names: Vec<String>,
    /// Rows of the large arrays; by default as many as fill a gibibyte.
    rows: Option<usize>,
    /// An Arrow IPC file of Pingmesh rows, or the folder of the reference input.
    data: Option<PathBuf>,
    output: Option<PathBuf>,
    /// The history that lines are appended to.
    record: Option<PathBuf>,
    /// Where tables go as Markdown.
    markdown: Option<PathBuf>,
    /// Where `choice` writes its rows as Parquet.
    export: Option<PathBuf>,
    /// Queries or schemes to run; all when empty.
    queries: Vec<String>,
    /// Threads that queries run on, besides one.
    threads: usize,
    /// The tier that `layout` encodes for.
    tier: Tier,
    /// Timed repetitions of what reads a gibibyte.
    repetitions: usize,
}

impl Options {
    /// The asked number of rows, or `rows`.
    fn scaled(&self, rows: usize) -> usize {
        self.rows.unwrap_or(rows)
    }

    /// The file of `--data`; in a folder, that of the reference input.
    fn data_file(&self) -> Option<PathBuf> {
        let data = self.data.as_ref()?;
        Some(if data.is_dir() {
            data.join("pingmesh_10m.arrow")
        } else {
            data.clone()
        })
    }
}

/// A bench: its name, whether it is part of `micro`, and what it runs.
type Bench = (&'static str, bool, fn(&Options, &mut Report) -> Result<()>);

/// Every bench, in the order they run.
const BENCHES: &[Bench] = &[
    ("limits", true, limits::run),
    ("bandwidth", false, limits::run_bandwidth),
    ("search", true, search::run),
    ("sum", true, sum::run),
    ("add", true, add::run),
    ("encode", true, encode::run),
    ("kernels", true, level::run),
    ("bitpack", true, bitpack::run),
    ("costs", true, cost::run),
    ("pays", true, break_even::run),
    ("selectivity", true, selectivity::run),
    ("cardinality", true, cardinality::run),
    ("designs", true, design::run),
    ("execution", false, execution::run),
    ("waist", false, waist::run),
    ("choice", false, choice::run),
    ("bytes", false, bytes::run),
    ("pex", false, pex::run),
    ("lsm", false, lsm::run),
    ("layout", false, layout::run),
    ("lossy", false, lossy::run),
    ("scans", false, scan::run),
    ("queries", false, query::run),
    ("continuous", false, query::continuous::run),
    ("parquet", false, parquet::run),
];

/// Every bench that needs no data file.
const MICRO: &str = "micro";
/// The history as tables and pictures, instead of a bench.
const RENDER: &str = "render";
/// The history, and the folder of what is rendered, unless the command line says otherwise.
const HISTORY: &str = "bench/history.jsonl";
const DOCS: &str = "docs";

const USAGE: &str = "usage: tersecades-bench [micro | NAME…] [--rows N] [--repetitions N] \
                     [--data FOLDER|FILE.arrow] [--queries NAME,…] [--threads N] \
                     [--tier hot|cold] [-o FILE.jsonl] [--record HISTORY.jsonl] \
                     [--markdown FILE.md] [--export FOLDER]\n       \
                     tersecades-bench render [--record HISTORY.jsonl] [--export FOLDER]";

fn parse(mut arguments: impl Iterator<Item = String>) -> std::result::Result<Options, String> {
    let mut options = Options {
        names: Vec::new(),
        rows: None,
        data: None,
        output: None,
        record: None,
        markdown: None,
        export: None,
        queries: Vec::new(),
        threads: 1,
        tier: Tier::default(),
        repetitions: 11,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let value = arguments.next();
            value.ok_or_else(|| format!("{argument} needs a value"))
        };
        let number = |text: String| {
            let number = text.replace('_', "").parse::<usize>();
            number.map_err(|_| format!("{text} is not a number"))
        };
        match argument.as_str() {
            "--rows" => options.rows = Some(number(value()?)?),
            "--repetitions" => options.repetitions = number(value()?)?.max(1),
            "--threads" => options.threads = number(value()?)?.max(1),
            "--queries" => options
                .queries
                .extend(value()?.split(',').map(str::to_owned)),
            "--tier" => options.tier = value()?.parse().map_err(|error| format!("{error}"))?,
            "--data" => options.data = Some(value()?.into()),
            "--markdown" => options.markdown = Some(value()?.into()),
            "--export" => options.export = Some(value()?.into()),
            "--record" => options.record = Some(value()?.into()),
            "-o" => options.output = Some(value()?.into()),
            name if [MICRO, RENDER].contains(&name)
                || BENCHES.iter().any(|bench| bench.0 == name) =>
            {
                options.names.push(argument);
            }
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(options)
}

fn wanted(options: &Options, bench: &Bench) -> bool {
    let named = |name: &String| name == bench.0 || (name == MICRO && bench.1);
    options.names.is_empty() || options.names.iter().any(named)
}

/// One way to write a report.
type Writer = fn(&Report, &mut BufWriter<File>) -> std::io::Result<()>;

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let outcome = match options.names.iter().any(|name| name == RENDER) {
        true => {
            let path = |asked: &Option<PathBuf>, usual: &str| {
                asked.clone().unwrap_or_else(|| usual.into())
            };
            let docs = path(&options.export, DOCS);
            render::run(&path(&options.record, HISTORY), &docs)
        }
        false => measure(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the benches that are asked for and writes what they found.
fn measure(options: &Options) -> std::result::Result<(), String> {
    let mut report = Report::default();
    let before = limits::bandwidth();
    report.relate(before);
    for bench in BENCHES.iter().filter(|bench| wanted(options, bench)) {
        report.begin(bench.0);
        (bench.2)(options, &mut report).map_err(|error| format!("{}: {error}", bench.0))?;
    }
    let json = (options.output.as_ref(), Report::write_json as Writer);
    let markdown = (options.markdown.as_ref(), Report::write_markdown as Writer);
    for (path, write) in [json, markdown] {
        let Some(path) = path else { continue };
        let written = File::create(path).and_then(|file| write(&report, &mut BufWriter::new(file)));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    match &options.record {
        Some(path) => {
            let run = record::Run::of(before, limits::bandwidth());
            record::append(path, &run, report.lines())
        }
        None => Ok(()),
    }
}
