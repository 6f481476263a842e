//! What a bench found, as an aligned table on the terminal and as JSON lines in a file.

use std::io::Write;

/// One number of a bench.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    bench: &'static str,
    name: String,
    value: f64,
    unit: &'static str,
    bar: Option<Bar>,
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

/// Prints each line as it comes and keeps it for the file.
#[derive(Debug, Default)]
pub(crate) struct Report {
    bench: &'static str,
    lines: Vec<Line>,
}

impl Report {
    /// Starts the section of `bench`.
    pub(crate) fn begin(&mut self, bench: &'static str) {
        self.bench = bench;
        println!("\n{bench}");
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
        self.lines.push(Line {
            bench: self.bench,
            name,
            value,
            unit,
            bar,
        });
    }

    /// Writes every line as a JSON object of its own.
    ///
    /// # Errors
    /// What the writer says.
    pub(crate) fn write_json(&self, out: &mut impl Write) -> std::io::Result<()> {
        for line in &self.lines {
            let (bench, unit) = (line.bench, line.unit);
            let name = line.name.replace('\\', "\\\\").replace('"', "\\\"");
            let value = json_number(line.value);
            write!(
                out,
                r#"{{"bench":"{bench}","name":"{name}","value":{value},"unit":"{unit}""#
            )?;
            if let Some(bar) = line.bar {
                let (key, limit) = match bar {
                    Bar::AtLeast(limit) => ("at_least", limit),
                    Bar::AtMost(limit) => ("at_most", limit),
                };
                write!(
                    out,
                    r#","{key}":{limit},"reached":{}"#,
                    bar.holds(line.value)
                )?;
            }
            writeln!(out, "}}")?;
        }
        Ok(())
    }
}

fn json_number(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value}"),
        false => "null".to_owned(),
    }
}
