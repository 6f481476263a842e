//! The history of measurements: JSON lines, each with the facts of its run.
//!
//! ```text
//! run facts (time, commit, machine, read bandwidth before and after) + lines of a report
//!     ─▶ one JSON object each, appended
//! ```
//! A run on a machine that others use at the same time is not worth keeping: [`Run::noise`] says
//! so, and nothing is appended.

mod load;
pub(crate) mod machine;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::limits::{Bandwidth, bandwidth, known_bandwidth};
use load::Load;

/// Largest spread of the read bandwidth of one thread and of two, which meet whatever else runs.
const SPREAD_MAX: [f64; 2] = [0.15, 0.3];
/// Largest change of the bandwidth of one thread over the run.
const DRIFT_MAX: f64 = 0.15;
/// Largest spread of what a line measures.
pub(crate) const POINT_SPREAD_MAX: f64 = 0.5;
/// Most processors that anything else may keep busy, on average over the run.
const OTHERS_MAX: f64 = 0.15;

/// Where and when a run took place.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Seconds since 1970.
    pub(crate) at: u64,
    /// The commit, with a `+` when files differ from it.
    pub(crate) commit: String,
    /// Processor, cores, kernels, caches and memory.
    pub(crate) machine: String,
    /// Bytes a second read by one thread and by two, in 1e9.
    pub(crate) read_gb_s: [f64; 2],
    /// Spread of that, over the median.
    pub(crate) read_spread: [f64; 2],
    /// Bandwidth at the end of the run, over that at its start.
    pub(crate) read_drift: f64,
    /// Processors that other programs kept busy meanwhile, where the system tells.
    pub(crate) others: Option<f64>,
}

/// A run that is to be recorded, watched from its start on.
#[derive(Debug)]
pub(crate) struct Watch {
    history: PathBuf,
    start: Option<Load>,
    before: Bandwidth,
}

impl Watch {
    /// Of a run of `programs`, whose work is not that of others.
    pub(crate) fn begin(history: &Path, programs: Vec<u32>) -> Self {
        Watch {
            history: history.to_owned(),
            start: Load::of(programs),
            before: known_bandwidth(),
        }
    }

    /// Appends those of `lines`, each a JSON object, that belong to a figure.
    ///
    /// # Errors
    /// As [`append`].
    pub(crate) fn end(self, lines: &[String]) -> Result<(), String> {
        let run = Run::of(self.start, self.before, bandwidth());
        append(&self.history, &run, lines)
    }
}

/// Watches a run of the script that called this program: says how fast memory is read, waits until
/// the script has handed over its lines, and appends them.
///
/// # Errors
/// As [`Watch::end`].
pub(crate) fn watch_caller(history: &Path) -> Result<(), String> {
    let programs = vec![std::process::id(), std::os::unix::process::parent_id()];
    let watch = Watch::begin(history, programs);
    let read_gb_s = watch.before.bytes_per_s.map(|rate| rate / 1e9);
    println!("{}", json!({ "read_gb_s": read_gb_s }));
    let lines = std::io::stdin().lines().collect::<Result<Vec<_>, _>>();
    match lines.map_err(|error| error.to_string())? {
        // The script has failed.
        none if none.is_empty() => Ok(()),
        lines => watch.end(&lines),
    }
}

impl Run {
    /// The facts of this run, which began at `start` and read memory so at its start and so at its
    /// end.
    fn of(start: Option<Load>, before: Bandwidth, after: Bandwidth) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Run {
            at: since.map_or(0, |since| since.as_secs()),
            commit: commit(),
            machine: machine::description(),
            read_gb_s: before.bytes_per_s.map(|rate| rate / 1e9),
            read_spread: [0, 1].map(|at| before.spread[at].max(after.spread[at])),
            read_drift: after.bytes_per_s[0] / before.bytes_per_s[0],
            others: start.and_then(Load::others_since),
        }
    }

    /// Why the run is not worth keeping, if it is not.
    pub(crate) fn noise(&self) -> Option<String> {
        let drift = (self.read_drift - 1.0).abs();
        let [one, two] = self.read_spread;
        let found = [
            (
                "spread of the read bandwidth of one thread",
                one,
                SPREAD_MAX[0],
            ),
            (
                "spread of the read bandwidth of two threads",
                two,
                SPREAD_MAX[1],
            ),
            (
                "change of the read bandwidth over the run",
                drift,
                DRIFT_MAX,
            ),
            (
                "share of a processor that other programs took",
                self.others.unwrap_or(0.0),
                OTHERS_MAX,
            ),
        ];
        let (what, share, most) = found
            .into_iter()
            .find(|(_, share, most)| share.is_nan() || share > most)?;
        let (share, most) = (share * 100.0, most * 100.0);
        Some(format!(
            "the machine is too noisy: the {what} is {share:.0} % (at most {most:.0} %); run again \
             when nothing else runs"
        ))
    }

    fn to_json(&self) -> Value {
        json!({
            "at": self.at, "commit": self.commit, "machine": self.machine,
            "read_gb_s": self.read_gb_s, "read_spread": self.read_spread,
            "read_drift": self.read_drift, "others": self.others,
        })
    }

    /// The facts in a line of the history; `None` when they are not all there.
    pub(crate) fn from_json(facts: &Value) -> Option<Self> {
        let pair = |name: &str| Some([facts[name][0].as_f64()?, facts[name][1].as_f64()?]);
        let text = |name: &str| facts[name].as_str().map(str::to_owned);
        Some(Run {
            at: facts["at"].as_u64()?,
            commit: text("commit")?,
            machine: text("machine")?,
            read_gb_s: pair("read_gb_s")?,
            read_spread: pair("read_spread")?,
            read_drift: facts["read_drift"].as_f64()?,
            others: facts["others"].as_f64(),
        })
    }
}

/// Appends those of `lines`, each a JSON object, that belong to a figure to the history at `path`,
/// but for those that spread too much, which are named.
///
/// # Errors
/// [`Run::noise`], and what writing says.
fn append(path: &Path, run: &Run, lines: &[String]) -> Result<(), String> {
    if let Some(noise) = run.noise() {
        return Err(format!("nothing is recorded: {noise}"));
    }
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = OpenOptions::new().create(true).append(true).open(path);
    write(&mut BufWriter::new(file.map_err(said)?), run, lines).map_err(said)
}

fn write(out: &mut BufWriter<File>, run: &Run, lines: &[String]) -> std::io::Result<()> {
    for line in lines {
        let mut line: Value = serde_json::from_str(line)?;
        if line["figure"].is_null() {
            continue;
        }
        if let Some(spread) = line["spread"].as_f64().filter(|it| *it > POINT_SPREAD_MAX) {
            let [figure, series, x] = ["figure", "series", "x"].map(|name| &line[name]);
            println!(
                "  not recorded, ± {:.0} %: {figure}, {series}, {x}",
                spread * 100.0
            );
            continue;
        }
        line["run"] = run.to_json();
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// Files that what is measured may depend on: all but what recording and rendering write.
const MEASURED: [&str; 4] = [
    ":/",
    ":(top,exclude)bench/history.jsonl",
    ":(top,exclude)docs/benchmarks.md",
    ":(top,exclude)docs/plots",
];

fn commit() -> String {
    let said = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let Some(commit) = said(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let mut asked = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    asked.extend(MEASURED);
    let changed = said(&asked);
    match changed.is_none_or(|files| files.is_empty()) {
        true => commit,
        false => format!("{commit}+"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(read_spread: f64, read_drift: f64, others: f64) -> Run {
        Run {
            at: 1,
            commit: "abc".to_owned(),
            machine: "a machine".to_owned(),
            read_gb_s: [10.0, 20.0],
            read_spread: [read_spread, 0.2],
            read_drift,
            others: Some(others),
        }
    }

    #[test]
    fn a_noisy_run_is_not_kept() {
        let folder = std::env::temp_dir().join(format!("tersecades-record-{}", std::process::id()));
        let path = folder.join("history.jsonl");
        std::fs::create_dir_all(&folder).unwrap();
        let lines = [
            r#"{"bench":"add","figure":"add","value":1.5,"spread":null}"#.to_owned(),
            r#"{"bench":"add","figure":"add","value":2.5,"spread":0.6}"#.to_owned(),
        ];
        let noisy = [
            run(0.4, 1.0, 0.0),
            run(f64::NAN, 1.0, 0.0),
            run(0.01, 0.7, 0.0),
            run(0.01, 1.0, 0.5),
        ];
        for noisy in noisy {
            assert!(
                append(&path, &noisy, &lines)
                    .unwrap_err()
                    .contains("too noisy")
            );
        }
        assert!(!path.exists());
        append(&path, &run(0.02, 1.05, 0.05), &lines).unwrap();
        append(&path, &run(0.02, 0.95, 0.05), &lines).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|it| serde_json::from_str(it).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["value"], 1.5);
        assert_eq!(Run::from_json(&lines[1]["run"]).unwrap().commit, "abc");
    }
}
