//! `costs`: what bytes and operations cost, as shipped, as cached, or measured on this machine.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use tersecades::columnar::cost_table::{Cost, CostTable, Operation};
use tersecades::columnar::goal::Tier;
use tersecades::columnar::registry::CODECS;
use tersecades::engine::cost;
use tersecades::{Error, Result};

use crate::console;
use crate::outcome::Outcome;
use crate::table::Table;

/// Names the table where no option does.
const VARIABLE: &str = "TERSECADES_COSTS";

/// How the first line of a measured table begins.
const ORIGIN: &str = "# measured by tersecades";

/// Show or measure what each operation costs under each codec
#[derive(Debug, Args)]
pub(crate) struct CostsArguments {
    /// Measure this machine, which takes less than two seconds, and keep the result
    #[arg(long)]
    measure: bool,

    /// The file of the table [default: costs.txt in the cache folder of the user]
    #[arg(long)]
    file: Option<PathBuf>,
}

/// Prints a cost table, measured before if that is asked for.
pub(crate) fn run(arguments: &CostsArguments) -> Outcome {
    let path = arguments.file.clone().map_or_else(cache_file, Ok)?;
    let table = if arguments.measure {
        let started = Instant::now();
        let table = cost::measure(cost::BUDGET)?;
        write(&path, &table)?;
        let (took, path) = (started.elapsed().as_secs_f64(), path.display());
        console::say(format_args!("measured in {took:.1} s, kept in {path}"));
        table
    } else if arguments.file.is_some() || path.exists() {
        console::say(format_args!("from {}", path.display()));
        read(&path)?
    } else {
        console::say("as shipped; `tersecades costs --measure` measures this machine");
        CostTable::default()
    };
    console::print(to_text(&table))
}

/// The table that `choice`, or else the environment, names: `default`, `measured` or a file.
///
/// # Errors
/// `Io` and `InvalidArgument` for files that hold none.
pub(crate) fn table(choice: Option<&str>) -> Result<CostTable> {
    let variable = std::env::var(VARIABLE).ok();
    match choice.or(variable.as_deref()) {
        None | Some("" | "default") => Ok(CostTable::default()),
        Some("measured") => {
            let path = cache_file()?;
            read(&path).map_err(|error| error.hint("run `tersecades costs --measure` first"))
        }
        Some(path) => read(Path::new(path)),
    }
}

fn cache_file() -> Result<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = folder("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| folder("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let cache = cache.ok_or_else(|| {
        Error::invalid("neither XDG_CACHE_HOME nor HOME is set").hint("name a file with --file")
    })?;
    Ok(cache.join("tersecades").join("costs.txt"))
}

fn read(path: &Path) -> Result<CostTable> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Error::from(error).file(&shown))?;
    let origin = text.lines().next().filter(|line| line.starts_with(ORIGIN));
    if origin.is_some_and(|line| line != origin_here()) {
        let there = origin.unwrap_or_default().trim_start_matches("# ");
        console::say(format_args!(
            "{shown}: {there}; `tersecades costs --measure` measures here"
        ));
    }
    text.parse().map_err(|error: Error| error.file(&shown))
}

fn write(path: &Path, table: &CostTable) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, format!("{}\n{table}", origin_here()))
}

/// The first line of a table that this program measures on this machine.
fn origin_here() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = known.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(':').nth(1)).map(str::trim);
    let machine = model.unwrap_or(std::env::consts::ARCH);
    format!("{ORIGIN} {} on {machine}", env!("CARGO_PKG_VERSION"))
}

fn to_text(table: &CostTable) -> String {
    let mut columns = vec!["codec".to_owned(), "tier".to_owned()];
    columns.extend(Operation::ALL.map(|operation| format!(">{}", operation.name())));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut lines = Table::new(&columns);
    for codec in CODECS {
        let cell = |operation| match table.measured(codec.id(), operation) {
            Some(cost) => cost_text(cost),
            None => format!("({})", cost_text(table.cost(*codec, operation))),
        };
        let mut cells = vec![codec.name().to_owned(), codec.tier().to_string()];
        cells.extend(Operation::ALL.map(cell));
        lines.push(cells);
    }
    format!(
        "nanoseconds per value + per encoded byte (in brackets: not measured)\n\n{}\n\
         a byte of memory {} ns, of storage {} ns\n",
        lines.to_text(""),
        table.byte_ns(Tier::Hot),
        table.byte_ns(Tier::Cold),
    )
}

fn cost_text(cost: Cost) -> String {
    format!("{:.3} + {:.3}", cost.value_ns, cost.stored_ns)
}
