//! Benchmarks: `tersecades-bench [NAME…] [--rows N] [--data FOLDER] [--record HISTORY.jsonl]`.
//!
//! Without a name every bench of [`BENCHES`] runs; `micro` runs those that need no data file.
//! Each prints ratios taken in one run, because times alone say more about the machine; what is
//! recorded, `render` turns into tables and pictures.

mod add;
mod aggregate;
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
mod generate;
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
mod simd_width;
mod single_lines;
mod split;
mod sum;
mod waist;

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

use record::Watch;
use report::Report;
use tersecades_columnar::Result;

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
    /// Timed repetitions of what reads a gibibyte.
    repetitions: usize,
}

impl Options {
    /// The asked number of rows, or `rows`.
    fn scaled(&self, rows: usize) -> usize {
        self.rows.unwrap_or(rows)
    }

    /// The folder of real data: that of `--data`, or of `TERSECADES_DATA`.
    fn data_folder(&self) -> Option<PathBuf> {
        let usual = || std::env::var_os("TERSECADES_DATA").map(PathBuf::from);
        self.data.clone().or_else(usual)
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

/// A bench.
struct Bench {
    name: &'static str,
    about: &'static str,
    /// Whether it is part of `micro`.
    micro: bool,
    run: fn(&Options, &mut Report) -> Result<()>,
}

/// Every bench, in the order they run.
const BENCHES: &[Bench] = &[
    Bench {
        name: "limits",
        about: "read, copy, add and count bandwidth of caches and memory",
        micro: true,
        run: limits::run,
    },
    Bench {
        name: "lines",
        about: "single cache lines of memory, by how many are passed over",
        micro: true,
        run: single_lines::run,
    },
    Bench {
        name: "search",
        about: "searching encoded values beside a byte loop (Fig. 7 of the TerseCades paper)",
        micro: true,
        run: search::run,
    },
    Bench {
        name: "sum",
        about: "summing encoded values beside plain ones",
        micro: true,
        run: sum::run,
    },
    Bench {
        name: "add",
        about: "adding two columns (Fig. 2 and 6)",
        micro: true,
        run: add::run,
    },
    Bench {
        name: "encode",
        about: "encoding beside copying",
        micro: true,
        run: encode::run,
    },
    Bench {
        name: "generate",
        about: "making the streams that demos and tests run on",
        micro: true,
        run: generate::run,
    },
    Bench {
        name: "kernels",
        about: "every kernel at every level of SIMD",
        micro: true,
        run: level::run,
    },
    Bench {
        name: "bitpack",
        about: "packing and comparing at each width (Fig. 5 to 12 of the DaMoN paper)",
        micro: true,
        run: bitpack::run,
    },
    Bench {
        name: "costs",
        about: "the cost table that codecs are chosen by",
        micro: true,
        run: cost::run,
    },
    Bench {
        name: "pays",
        about: "after how many reads compression pays, by kind of data",
        micro: true,
        run: break_even::run,
    },
    Bench {
        name: "selectivity",
        about: "filters that pass from nothing to everything",
        micro: true,
        run: selectivity::run,
    },
    Bench {
        name: "cardinality",
        about: "grouping by ten to ten million keys",
        micro: true,
        run: cardinality::run,
    },
    Bench {
        name: "designs",
        about: "the designs of the TerseCades paper (Fig. 8 to 10, Tables 2 and 3)",
        micro: true,
        run: design::run,
    },
    Bench {
        name: "execution",
        about: "operators on the integers of the DaMoN paper and on real columns",
        micro: false,
        run: execution::run,
    },
    Bench {
        name: "widths",
        about: "compression, decompression and sums by SIMD width (Fig. 9 of the DaMoN paper)",
        micro: false,
        run: simd_width::run,
    },
    Bench {
        name: "waist",
        about: "every codec by every primitive",
        micro: false,
        run: waist::run,
    },
    Bench {
        name: "aggregates",
        about: "aggregates that look at every value, by codec, all rows and by group",
        micro: false,
        run: aggregate::run,
    },
    Bench {
        name: "choice",
        about: "what the chooser gives away, set by set",
        micro: false,
        run: choice::run,
    },
    Bench {
        name: "bytes",
        about: "byte codecs beside each other",
        micro: false,
        run: bytes::run,
    },
    Bench {
        name: "pex",
        about: "reading in the middle of compressed blobs (figures of the PEX paper)",
        micro: false,
        run: pex::run,
    },
    Bench {
        name: "lsm",
        about: "the store: ratios, ingest, reads, merges (figures of the LSM paper)",
        micro: false,
        run: lsm::run,
    },
    Bench {
        name: "layout",
        about: "codec, bytes and time of every column of the reference stream",
        micro: false,
        run: layout::run,
    },
    Bench {
        name: "lossy",
        about: "bounded and proven loss: ratios, speed, answers",
        micro: false,
        run: lossy::run,
    },
    Bench {
        name: "scans",
        about: "scans of single columns, for comparison with a rival",
        micro: false,
        run: scan::run,
    },
    Bench {
        name: "queries",
        about: "the reference queries over encoded batches in memory",
        micro: false,
        run: query::run,
    },
    Bench {
        name: "apart",
        about: "the reference queries each by itself, in warm caches and in cold ones, beside aims",
        micro: false,
        run: query::apart::run,
    },
    Bench {
        name: "disorder",
        about: "what late rows cost (part of `queries`)",
        micro: false,
        run: query::disorder::run_alone,
    },
    Bench {
        name: "range",
        about: "what a range holds and many queries over it cost (part of `queries`)",
        micro: false,
        run: query::range::run_alone,
    },
    Bench {
        name: "standing",
        about: "several queries over one stream, together and apart",
        micro: false,
        run: query::standing::run_alone,
    },
    Bench {
        name: "continuous",
        about: "the reference queries over a stream as it flows",
        micro: false,
        run: query::flow::run,
    },
    Bench {
        name: "parquet",
        about: "the reference queries from Parquet files",
        micro: false,
        run: parquet::run,
    },
];

/// Every bench that needs no data file.
const MICRO: &str = "micro";
/// The history as tables and pictures, instead of a bench.
const RENDER: &str = "render";
/// The machine while a script of `bench/rivals` measures, instead of a bench.
const WATCH: &str = "watch";
/// The history, and the folder of what is rendered, unless the command line says otherwise.
const HISTORY: &str = "bench/history.jsonl";
const DOCS: &str = "docs";

const USAGE: &str = "usage: tersecades-bench [micro | NAME…] [--rows N] [--repetitions N] \
                     [--data FOLDER|FILE.arrow] [--queries NAME,…] [--threads N] \
                     [-o FILE.jsonl] [--record HISTORY.jsonl] [--markdown FILE.md] \
                     [--export FOLDER]\n       \
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
            "--data" => options.data = Some(value()?.into()),
            "--markdown" => options.markdown = Some(value()?.into()),
            "--export" => options.export = Some(value()?.into()),
            "--record" => options.record = Some(value()?.into()),
            "-o" => options.output = Some(value()?.into()),
            name if [MICRO, RENDER, WATCH].contains(&name)
                || BENCHES.iter().any(|bench| bench.name == name) =>
            {
                options.names.push(argument);
            }
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(options)
}

fn wanted(options: &Options, bench: &Bench) -> bool {
    let named = |name: &String| name == bench.name || (name == MICRO && bench.micro);
    options.names.is_empty() || options.names.iter().any(named)
}

/// One way to write a report.
type Writer = fn(&Report, &mut BufWriter<File>) -> std::io::Result<()>;

/// What there is, a line each.
fn list() -> String {
    let line = |bench: &Bench| format!("  {:12} {}", bench.name, bench.about);
    let mut lines: Vec<String> = BENCHES.iter().map(line).collect();
    lines.push(format!("  {MICRO:12} all that need no data file"));
    lines.push(format!("  {RENDER:12} the history as tables and pictures"));
    lines.push(format!(
        "  {WATCH:12} the machine, while the script that calls measures"
    ));
    format!("{USAGE}\n\n{}", lines.join("\n"))
}

fn main() -> ExitCode {
    if std::env::args()
        .skip(1)
        .any(|argument| ["-h", "--help"].contains(&argument.as_str()))
    {
        println!("{}", list());
        return ExitCode::SUCCESS;
    }
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let path = |asked: &Option<PathBuf>, usual: &str| {
        let usual = || usual.into();
        asked.clone().unwrap_or_else(usual)
    };
    let history = path(&options.record, HISTORY);
    let outcome = match options.names.first().map(String::as_str) {
        Some(RENDER) => render::run(&history, &path(&options.export, DOCS)),
        Some(WATCH) => record::watch_caller(&history),
        _ => measure(&options),
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
    let watch = |history: &PathBuf| Watch::begin(history, vec![std::process::id()]);
    let watch = options.record.as_ref().map(watch);
    for bench in BENCHES.iter().filter(|bench| wanted(options, bench)) {
        report.begin(bench.name);
        (bench.run)(options, &mut report).map_err(|error| format!("{}: {error}", bench.name))?;
    }
    let json = (options.output.as_ref(), Report::write_json as Writer);
    let markdown = (options.markdown.as_ref(), Report::write_markdown as Writer);
    for (path, write) in [json, markdown] {
        let Some(path) = path else { continue };
        let written = File::create(path).and_then(|file| write(&report, &mut BufWriter::new(file)));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    watch.map_or(Ok(()), |watch| watch.end(report.lines()))
}
