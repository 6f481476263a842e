//! What a bench found, as an aligned table on the terminal and as JSON lines in a file.

use std::fs::File;
use std::io::{BufWriter, Write};

use serde_json::{Value, json};

use crate::limits::known_bandwidth;
use crate::measure::{Middle, Timing};

/// How fast a query went.
#[derive(Debug, Clone)]
pub(crate) struct QueryRate<'a> {
    /// Its name.
    pub(crate) query: &'a str,
    /// Worker threads.
    pub(crate) threads: usize,
    /// Rows of the stream.
    pub(crate) rows: usize,
    /// Rows of the stream per second.
    pub(crate) rows_per_s: f64,
    /// What stands for its answer.
    pub(crate) checksum: &'a str,
}

/// A number of a figure: one series at one place of the horizontal axis.
#[derive(Debug, Clone)]
pub(crate) struct Point<'a> {
    /// The figure, as in a list of `render/figure`.
    pub(crate) figure: &'static str,
    /// The line or the colour of the bar.
    pub(crate) series: &'a str,
    /// The place on the horizontal axis: a number or a name.
    pub(crate) x: Value,
    /// The number.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// Spread of the repetitions, over the median.
    pub(crate) spread: Option<f64>,
    /// Share of the read bandwidth of the run.
    pub(crate) share: Option<f64>,
    /// What else is to be said of it.
    pub(crate) note: Option<String>,
}

/// What was done in a measured time: so much of a unit, reading so many bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// In the unit below, before division by time.
    pub(crate) amount: f64,
    /// The unit of the amount each second.
    pub(crate) unit: &'static str,
    /// Bytes that have to be read for it; 0 where that is not known.
    pub(crate) bytes: f64,
    /// Threads that did it.
    pub(crate) threads: usize,
}

/// What a number has to reach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bar {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Bar {
    fn holds(self, value: f64) -> bool {
        match self {
            Bar::AtLeast(bar) => value >= bar,
            Bar::AtMost(bar) => value <= bar,
        }
    }
}

/// Prints each line as it comes and keeps it, as a JSON object, for the file.
#[derive(Debug, Default)]
pub(crate) struct Report {
    bench: &'static str,
    lines: Vec<String>,
    markdown: Vec<String>,
    columns: usize,
}

impl Report {
    /// Starts the section of `bench`.
    pub(crate) fn begin(&mut self, bench: &'static str) {
        self.bench = bench;
        println!("\n{bench}");
    }

    /// Every line so far, a JSON object each.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// A number of a figure.
    pub(crate) fn point(&mut self, point: &Point<'_>) {
        let Point {
            figure,
            series,
            x,
            value,
            unit,
            spread,
            share,
            note,
        } = point;
        let place = x.as_str().map_or_else(|| x.to_string(), str::to_owned);
        let notes = [("± ", spread, ""), ("", share, " of read bandwidth")];
        let notes = notes.map(|(before, number, after)| {
            let text = |it: &f64| format!("  {before}{:.0} %{after}", it * 100.0);
            number.as_ref().map_or(String::new(), text)
        });
        let name = format!("{series}, {place}");
        let said = note
            .as_ref()
            .map_or(String::new(), |note| format!("  {note}"));
        println!(
            "  {name:<58} {value:>11.3} {unit:<10}{}{said}",
            notes.concat()
        );
        let mut line = json!({
            "bench": self.bench, "figure": figure, "series": series, "x": x, "value": value,
            "unit": unit, "spread": spread, "share": share,
        });
        if let Some(note) = note {
            line["note"] = note.clone().into();
        }
        self.lines.push(line.to_string());
    }

    /// A number of a figure that stands for itself.
    pub(crate) fn plain(
        &mut self,
        figure: &'static str,
        (series, x): (&str, Value),
        value: f64,
        unit: &'static str,
    ) {
        self.point(&Point {
            figure,
            series,
            x,
            value,
            unit,
            spread: None,
            share: None,
            note: None,
        });
    }

    /// A rate of a figure.
    pub(crate) fn timed(
        &mut self,
        figure: &'static str,
        (series, x): (&str, Value),
        timing: &Timing,
        done: Done,
    ) {
        self.point(&Point {
            figure,
            series,
            x,
            value: timing.rate(done.amount),
            unit: done.unit,
            spread: timing.spread,
            share: share(timing, done),
            note: None,
        });
    }

    /// A number of a figure with its spread.
    pub(crate) fn middle(
        &mut self,
        figure: &'static str,
        (series, x): (&str, Value),
        middle: Middle,
        unit: &'static str,
    ) {
        self.point(&Point {
            figure,
            series,
            x,
            value: middle.median,
            unit,
            spread: middle.spread,
            share: None,
            note: None,
        });
    }

    /// A measured number.
    pub(crate) fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.push(name.into(), value, unit, None);
    }

    /// A measured number with a bar.
    pub(crate) fn judge(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        bar: Bar,
    ) {
        self.push(name.into(), value, unit, Some(bar));
    }

    /// A measured query.
    pub(crate) fn query(&mut self, rate: &QueryRate<'_>) {
        let QueryRate {
            query,
            threads,
            rows,
            rows_per_s,
            checksum,
        } = rate;
        let name = format!("{query}, threads: {threads}");
        println!(
            "  {name:<58} {:>11.1} {:<10}   {checksum}",
            rows_per_s / 1e6,
            "M rows/s"
        );
        let engine = format!(r#""bench":"{}","engine":"tersecades""#, self.bench);
        let rate = format!(r#""rows":{rows},"rows_per_s":{}"#, json_number(*rows_per_s));
        self.lines.push(format!(
            r#"{{{engine},"query":"{query}","threads":{threads},{rate},"checksum":"{checksum}"}}"#
        ));
    }

    /// Starts a table with these columns.
    pub(crate) fn head(&mut self, columns: &[&str]) {
        self.columns = columns.len();
        self.table_line(columns.join(" | "));
        self.table_line(vec!["---"; columns.len()].join(" | "));
    }

    /// A row of the table; `value` is what the row is about.
    pub(crate) fn row(&mut self, cells: &[String], value: f64, unit: &'static str) {
        debug_assert_eq!(cells.len(), self.columns);
        self.table_line(cells.join(" | "));
        let name = cells.join(" ").replace(['\\', '"'], "");
        let (bench, value) = (self.bench, json_number(value));
        self.lines.push(format!(
            r#"{{"bench":"{bench}","name":"{name}","value":{value},"unit":"{unit}"}}"#
        ));
    }

    fn table_line(&mut self, cells: String) {
        println!("  | {cells} |");
        self.markdown.push(format!("| {cells} |"));
    }

    /// A remark on the terminal alone.
    pub(crate) fn note(&self, text: &str) {
        println!("  {text}");
    }

    fn push(&mut self, name: String, value: f64, unit: &'static str, bar: Option<Bar>) {
        let verdict = bar.map_or(String::new(), |bar| {
            let (sign, limit) = match bar {
                Bar::AtLeast(limit) => (">=", limit),
                Bar::AtMost(limit) => ("<=", limit),
            };
            let word = if bar.holds(value) {
                "reached"
            } else {
                "MISSED"
            };
            format!("   bar {sign} {limit}: {word}")
        });
        println!("  {name:<58} {value:>11.3} {unit:<10}{verdict}");
        let verdict = bar.map_or(String::new(), |bar| {
            let (key, limit) = match bar {
                Bar::AtLeast(limit) => ("at_least", limit),
                Bar::AtMost(limit) => ("at_most", limit),
            };
            format!(r#","{key}":{limit},"reached":{}"#, bar.holds(value))
        });
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        let (bench, value) = (self.bench, json_number(value));
        self.lines.push(format!(
            r#"{{"bench":"{bench}","name":"{name}","value":{value},"unit":"{unit}"{verdict}}}"#
        ));
    }

    /// Writes every table as Markdown.
    ///
    /// # Errors
    /// What the writer says.
    pub(crate) fn write_markdown(&self, out: &mut BufWriter<File>) -> std::io::Result<()> {
        let mut lines = self.markdown.iter();
        lines.try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Writes every line as a JSON object of its own.
    ///
    /// # Errors
    /// What the writer says.
    pub(crate) fn write_json(&self, out: &mut BufWriter<File>) -> std::io::Result<()> {
        self.lines
            .iter()
            .try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// What share of the read bandwidth the bytes of `done` took.
pub(crate) fn share(timing: &Timing, done: Done) -> Option<f64> {
    let of_bandwidth = || timing.rate(done.bytes) / known_bandwidth().of_threads(done.threads);
    (done.bytes > 0.0).then(of_bandwidth)
}

fn json_number(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value}"),
        false => "null".to_owned(),
    }
}
