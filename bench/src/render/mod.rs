//! The history as a page: a table for each figure, and a picture beside it.
//!
//! ```text
//! history.jsonl ─▶ newest quiet run of each figure ─▶ docs/benchmarks.md, docs/plots/NAME.svg
//! ```

mod figure;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use tersecades_plot::{Axis, BarPlot, LinePlot};

use crate::record::{POINT_SPREAD_MAX, Run};
use figure::{Figure, Kind, axes, figures};

/// A line of the history that belongs to a figure.
struct Point {
    series: String,
    x: Value,
    value: f64,
    unit: String,
    spread: Option<f64>,
    share: Option<f64>,
    note: Option<String>,
}

/// The newest run of one figure.
struct Plate {
    run: Run,
    points: Vec<Point>,
}

/// Reads the history and writes page and pictures into the folder `docs`.
///
/// # Errors
/// What reading and writing say; the line of the history that makes no sense; a noisy run.
pub(crate) fn run(history: &Path, docs: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(history);
    let text = text.map_err(|error| format!("{}: {error}", history.display()))?;
    let plates = read(&text).map_err(|error| format!("{}: {error}", history.display()))?;
    let plots = docs.join("plots");
    let said = |error: std::io::Error| format!("{}: {error}", docs.display());
    std::fs::create_dir_all(&plots).map_err(said)?;
    let mut page = HEAD.to_owned();
    let unknown = |name: &&String| figures().all(|figure| figure.name != **name);
    for name in plates.keys().filter(unknown) {
        println!("no section for the figure {name} of the history");
    }
    for figure in figures() {
        let Some(plate) = plates.get(figure.name) else {
            continue;
        };
        section(&mut page, figure, plate);
        if let Some(svg) = picture(figure, plate) {
            std::fs::write(plots.join(format!("{}.svg", figure.name)), svg).map_err(said)?;
        }
    }
    std::fs::write(docs.join("benchmarks.md"), page).map_err(said)
}

const HEAD: &str = "# Benchmarks

Written by `make bench-render` from `bench/history.jsonl`, which `make bench-record` appends to.

A number is the median of repetitions that take turns; `±` is the middle half of the repetitions
(of the rounds, where programs take turns) over the median, and is missing beside a single one. A
number that spreads by more than 50 % is not recorded. `% of read` is the bytes a second that the
work has to read and to write (`limits`, `add`, `encode`), over what plain reading reached in the
same run with as many threads; what statistics answer is not read. A run whose read bandwidth
spreads by more than 15 % (one thread) or 30 % (two), or drifts by more than 15 %, or during which
other programs take more than 15 % of a processor, is not recorded. TC is the paper
*TerseCades* (USENIX ATC 2018), DaMoN *Integer Compression in NVRAM-centric Data Stores*;
`docs/papers.md` compares.
";

/// The points of each figure, of its newest run alone.
fn read(history: &str) -> Result<BTreeMap<String, Plate>, String> {
    let mut plates: BTreeMap<String, Plate> = BTreeMap::new();
    for (index, line) in history.lines().enumerate() {
        let wrong = |what: String| format!("line {}: {what}", index + 1);
        let line: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let run =
            Run::from_json(&line["run"]).ok_or_else(|| wrong("no facts of a run".to_owned()))?;
        if let Some(noise) = run.noise() {
            return Err(wrong(noise));
        }
        let (Some(figure), Some(point)) = (line["figure"].as_str(), point(&line)) else {
            continue;
        };
        let plate = plates.entry(figure.to_owned()).or_insert_with(|| Plate {
            run: run.clone(),
            points: Vec::new(),
        });
        if plate.run.at != run.at {
            plate.points.clear();
            plate.run = run;
        }
        plate.points.push(point);
    }
    Ok(plates)
}

/// The point of a line, unless it spreads too much.
fn point(line: &Value) -> Option<Point> {
    let spread = &line["spread"];
    if spread.as_f64().is_some_and(|it| it > POINT_SPREAD_MAX) {
        return None;
    }
    Some(Point {
        series: line["series"].as_str()?.to_owned(),
        x: line["x"].clone(),
        value: line["value"].as_f64()?,
        unit: line["unit"].as_str()?.to_owned(),
        spread: spread.as_f64(),
        share: line["share"].as_f64(),
        note: line["note"].as_str().map(str::to_owned),
    })
}

impl Plate {
    /// Names of the series, as they come.
    fn series(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for point in &self.points {
            if !names.contains(&point.series.as_str()) {
                names.push(&point.series);
            }
        }
        names
    }

    /// Places of the horizontal axis, as they come.
    fn places(&self) -> Vec<&Value> {
        let mut places: Vec<&Value> = Vec::new();
        for point in &self.points {
            if !places.contains(&&point.x) {
                places.push(&point.x);
            }
        }
        places
    }

    fn at(&self, series: &str, place: &Value) -> Option<&Point> {
        let mut points = self.points.iter();
        points.find(|point| point.series == series && point.x == *place)
    }

    fn unit(&self) -> &str {
        self.points.first().map_or("", |point| &point.unit)
    }
}

fn section(page: &mut String, figure: &Figure, plate: &Plate) {
    let Figure {
        name,
        title,
        about,
        command,
        ..
    } = figure;
    let Run {
        machine,
        commit,
        read_gb_s: [one, two],
        read_spread,
        ..
    } = &plate.run;
    let [narrow, wide] = read_spread.map(|spread| spread * 100.0);
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "\n## {title}\n\n{about}\n\n`{command}` · {machine} · commit {commit} · read {one:.1} GB/s \
         (1 thread, ± {narrow:.0} %), {two:.1} (2, ± {wide:.0} %)\n\n"
    );
    if !matches!(figure.kind, Kind::Table) {
        let _ = write!(page, "![{title}](plots/{name}.svg)\n\n");
    }
    table(page, figure, plate);
}

fn table(page: &mut String, figure: &Figure, plate: &Plate) {
    let series = plate.series();
    let heads: Vec<&str> = std::iter::once(figure.x)
        .chain(series.iter().copied())
        .collect();
    let _ = writeln!(
        page,
        "| {} |\n|{}",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for place in plate.places() {
        let mut cells = vec![text(place)];
        cells.extend(
            series
                .iter()
                .map(|name| plate.at(name, place).map_or("–".to_owned(), cell)),
        );
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

fn text(place: &Value) -> String {
    place
        .as_str()
        .map_or_else(|| place.to_string(), str::to_owned)
}

/// `12.3 GB/s ± 2 %, 87 % of read, decode`.
fn cell(point: &Point) -> String {
    let digits = match point.value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    let mut text = format!("{:.digits$} {}", point.value, point.unit);
    if let Some(spread) = point.spread {
        let _ = write!(text, " ± {:.0} %", spread * 100.0);
    }
    if let Some(share) = point.share {
        let _ = write!(text, ", {:.0} % of read", share * 100.0);
    }
    if let Some(note) = &point.note {
        let _ = write!(text, ", {note}");
    }
    text
}

fn picture(figure: &Figure, plate: &Plate) -> Option<String> {
    let title = figure.title.to_owned();
    match figure.kind {
        Kind::Table => None,
        Kind::Bars => {
            let places = plate.places();
            let heights = |name: &&str| {
                let of = |place: &&Value| plate.at(name, place).map(|point| point.value);
                ((*name).to_owned(), places.iter().map(of).collect())
            };
            let plot = BarPlot {
                title,
                y: Axis::linear(plate.unit()),
                series: plate.series().iter().map(heights).collect(),
                places: places.iter().map(|place| text(place)).collect(),
            };
            Some(plot.svg())
        }
        Kind::Lines(log) => {
            let line = |name: &&str| {
                let of = plate.points.iter().filter(|point| point.series == **name);
                let points = of.filter_map(|point| Some((point.x.as_f64()?, point.value)));
                ((*name).to_owned(), points.collect())
            };
            let [x, y] = axes(figure.x, plate.unit(), log);
            let lines = plate.series().iter().map(line).collect();
            Some(LinePlot { title, x, y, lines }.svg())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(spread: f64) -> String {
        let line = |at: u64, series: &str, value: f64, measured: &str| {
            format!(
                "{{\"figure\":\"add\",\"series\":\"{series}\",\"x\":1,\"value\":{value},\
                 \"unit\":\"G rows/s\",{measured},\"run\":{{\"at\":{at},\"commit\":\"c{at}\",\
                 \"machine\":\"m\",\"read_gb_s\":[9,18],\"read_spread\":[{spread},0.02],\
                 \"read_drift\":1}}}}\n"
            )
        };
        let (none, some) = (
            "\"spread\":null,\"share\":null,\"note\":null",
            "\"spread\":0.02,\"share\":0.5,\"note\":\"decode\"",
        );
        [
            line(1, "Long", 2.0, some),
            line(2, "Long", 3.0, none),
            line(2, "Char", 21.0, some),
        ]
        .concat()
    }

    #[test]
    fn the_newest_run_of_a_figure_is_shown() {
        let plates = read(&lines(0.01)).unwrap();
        let figure = figures().find(|figure| figure.name == "add").unwrap();
        let mut page = String::new();
        section(&mut page, figure, &plates["add"]);
        assert!(
            page.contains("| 1 | 3.00 G rows/s | 21.0 G rows/s ± 2 %, 50 % of read, decode |"),
            "{page}"
        );
        assert!(
            page.contains("commit c2") && !page.contains("2.00 G rows/s"),
            "{page}"
        );
        assert!(picture(figure, &plates["add"]).unwrap().contains("Char"));
    }

    #[test]
    fn a_noisy_run_is_not_published() {
        assert!(
            read(&lines(0.5))
                .err()
                .unwrap()
                .contains("line 1: the machine is too noisy")
        );
    }
}
