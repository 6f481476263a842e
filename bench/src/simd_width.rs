//! Compression, decompression and sums of D1 and D3 under every level of kernels.
//!
//! ```text
//! this program ─▶ itself, once a level, TERSECADES_KERNELS=LEVEL, with a set in memory
//!     "SCHEME OPERATION THREADS" ─▶ does it once ─▶ "took SECONDS BYTES"
//! ```
//! A process picks its kernels once, so each level has a process; they are asked in turns.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, UInt32Array};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::kernels::{LEVEL_VARIABLE, levels};
use tersecades_columnar::{Error, Result};

use crate::Options;
use crate::integer::work::{Way, bytes, decode_then, encode, sum, useful};
use crate::integer::{SETS, Set};
use crate::measure::summarise;
use crate::report::{Done, Report};

/// The sets of the figure.
const ASKED: [&str; 2] = ["D1", "D3"];
const SCHEMES: [&str; 4] = [
    "bit_pack",
    "frame_of_reference",
    "delta(bit_pack)",
    "run_length",
];
const OPERATIONS: [&str; 3] = ["encode", "decode", "sum"];
const THREADS: [usize; 2] = [1, 2];

/// Rows of a set, a quarter of the paper's: every level has a set of its own.
const ROWS: usize = 25_000_000;

/// What `--queries` has before the name of a set where this program answers itself.
const ANSWER: &str = "answer";
/// What an answer begins with.
const TOOK: &str = "took ";
/// The answer where a scheme does not suit a set.
const USELESS: &str = "useless";

/// Prints the figure, or answers the process that does.
///
/// # Errors
/// What encoding and starting say; `Internal` when a process gives no answer.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(ROWS);
    match options.queries.as_slice() {
        [answer, name] if answer == ANSWER => Answering::of(set(name)?, rows).run(),
        _ => {
            let each = |name: &str| measure(set(name)?, rows, options.repetitions.min(5), report);
            ASKED.into_iter().try_for_each(each)
        }
    }
}

fn set(name: &str) -> Result<&'static Set> {
    let found = SETS.iter().find(|set| set.name == name);
    found.ok_or_else(|| Error::invalid(format!("no set is called {name}")))
}

fn measure(set: &Set, rows: usize, repetitions: usize, report: &mut Report) -> Result<()> {
    let asked: Result<Vec<Asked>> = levels()
        .iter()
        .map(|level| Asked::start(level.name, set, rows))
        .collect();
    let mut asked = asked?;
    for scheme in SCHEMES {
        for (operation, threads) in OPERATIONS.iter().flat_map(|it| THREADS.map(|of| (it, of))) {
            let question = format!("{scheme} {operation} {threads}");
            let Some((seconds, bytes)) = take_turns(&mut asked, &question, repetitions)? else {
                break;
            };
            let plain = if *operation == "encode" { 4 * rows } else { 0 };
            let done = Done {
                amount: rows as f64 / 1e9,
                unit: "G values/s",
                bytes: plain as f64 + bytes,
                threads,
            };
            let x = format!("{}, {scheme}, {operation}, {threads} thread(s)", set.name);
            for (process, seconds) in asked.iter().zip(seconds) {
                let at = (process.level, x.as_str().into());
                report.timed("damon_widths", at, &summarise(seconds), done);
            }
        }
    }
    Ok(())
}

/// The seconds of each process after a warm-up, and the encoded bytes; `None` where the scheme
/// does not suit the set.
fn take_turns(
    asked: &mut [Asked],
    question: &str,
    repetitions: usize,
) -> Result<Option<(Vec<Vec<f64>>, f64)>> {
    let mut taken = vec![Vec::new(); asked.len()];
    let mut encoded = 0.0;
    for repetition in 0..=repetitions {
        for (process, taken) in asked.iter_mut().zip(&mut taken) {
            let Some((seconds, bytes)) = process.ask(question)? else {
                return Ok(None);
            };
            encoded = bytes;
            if repetition > 0 {
                taken.push(seconds);
            }
        }
    }
    Ok(Some((taken, encoded)))
}

/// This program under one level of kernels.
struct Asked {
    level: &'static str,
    process: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Asked {
    fn start(level: &'static str, set: &Set, rows: usize) -> Result<Self> {
        let queries = format!("{ANSWER},{}", set.name);
        let mut process = Command::new(std::env::current_exe()?)
            .args(["widths", "--rows", &rows.to_string(), "--queries", &queries])
            .env(LEVEL_VARIABLE, level)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let answers = process.stdout.take();
        let answers = answers.ok_or_else(|| Error::internal("answers come by a pipe"))?;
        Ok(Asked {
            level,
            process,
            answers: BufReader::new(answers).lines(),
        })
    }

    /// Seconds and encoded bytes; `None` where the scheme does not suit the set.
    fn ask(&mut self, question: &str) -> Result<Option<(f64, f64)>> {
        if let Some(input) = &mut self.process.stdin {
            writeln!(input, "{question}")?;
        }
        for line in self.answers.by_ref() {
            let line = line?;
            if line == USELESS {
                return Ok(None);
            }
            let numbers = line.strip_prefix(TOOK).and_then(|it| it.split_once(' '));
            if let Some((seconds, bytes)) = numbers {
                return Ok(seconds.parse().ok().zip(bytes.parse().ok()));
            }
        }
        let message = format!("the process of {} gives no answer", self.level);
        Err(Error::internal(message))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // Without a question to come it ends.
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}

/// What the asked process holds.
struct Answering {
    values: ArrayRef,
    /// The scheme asked for last, and the set under it.
    kept: Option<(String, Vec<Chunk>)>,
}

impl Answering {
    fn of(set: &Set, rows: usize) -> Self {
        Answering {
            values: Arc::new(UInt32Array::from(set.values(rows))),
            kept: None,
        }
    }

    fn run(mut self) -> Result<()> {
        for question in std::io::stdin().lines() {
            let answer = self.answer(&question?)?;
            println!("{answer}");
        }
        Ok(())
    }

    fn answer(&mut self, question: &str) -> Result<String> {
        let words: Vec<&str> = question.split(' ').collect();
        let [scheme, operation, threads] = words[..] else {
            return Err(Error::invalid(format!("not a question: {question}")));
        };
        let threads = threads.parse().unwrap_or(1);
        let kept = match self.kept.take() {
            Some((kept, chunks)) if kept == scheme => chunks,
            _ => encode(&self.values, scheme.parse()?, 1)?,
        };
        let (_, chunks) = self.kept.insert((scheme.to_owned(), kept));
        if !useful(chunks, scheme) {
            return Ok(USELESS.to_owned());
        }
        let start = Instant::now();
        let mut made = Vec::new();
        match operation {
            "encode" => made = encode(&self.values, scheme.parse()?, threads)?,
            "decode" => decode_then(chunks, threads, |keys| {
                black_box(keys);
            }),
            _ => sum(chunks, threads, Way::Direct),
        }
        let seconds = start.elapsed().as_secs_f64();
        drop(made);
        Ok(format!("{TOOK}{seconds} {}", bytes(chunks)))
    }
}
