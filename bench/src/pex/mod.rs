//! Random reads of compressed units: the experiments of "Random Read Speedup in Compression Enabled
//! Storage Systems" (figures 3 to 14), and reads of a large packed file.
//!
//! The units are those of `storage34` below `--data` or `TERSECADES_DATA`. `[0,b]` decodes from the
//! start of the unit, `PEX` from the start of a partition, `R` follows copies back to literals.
//! Where the paper leaves Huffman coding out, phrases are decoded as tokens.

mod grid;
mod method;
mod object;
mod unit;

use tersecades_columnar::error::Result;
use tersecades_store::partition::find_layout;

use crate::Options;
use crate::report::{Bar, Report};
use grid::{Grid, LARGE, OFFSETS, SMALL, Subject, mean};
use method::Way;
use unit::Unit;

/// A partition that holds a whole unit.
const WHOLE: usize = 256_000;
/// Partitions of figures 10 to 12.
const PARTITIONS: [usize; 5] = [8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10];
/// The unit of figure 3: text.
const SAMPLE: usize = 20;
/// The paper's level, "FASTEST".
const FASTEST: i32 = 1;

/// Prints every figure as a table.
///
/// # Errors
/// What a layout says; wrong bytes.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let Some(archive) = unit::archive(options) else {
        report.note("skipped: needs storage34 below --data FOLDER or TERSECADES_DATA");
        return Ok(());
    };
    let units = unit::units(&archive)?;
    let bench = Bench {
        units: &units,
        repetitions: options.repetitions.min(7),
    };
    bench.recursive(report)?;
    bench.crossover(report)?;
    bench.ratios(report)?;
    bench.partitions(report)?;
    object::run(&units, report)
}

struct Bench<'a> {
    units: &'a [Unit],
    repetitions: usize,
}

impl Bench<'_> {
    fn measure(
        &self,
        (layout, level): (&str, i32),
        partition: usize,
        way: Way,
        lengths: &[usize],
    ) -> Result<Grid> {
        let layout = find_layout(layout)?;
        let subject = Subject {
            layout,
            level,
            partition,
            way,
        };
        Grid::measure(subject, self.units, lengths, self.repetitions)
    }

    /// Figures 3 to 9: recursive extraction, all without Huffman coding.
    fn recursive(&self, report: &mut Report) -> Result<()> {
        let zlib = ("zlib", FASTEST);
        let large = self.measure(zlib, WHOLE, Way::Recursive, &LARGE)?;
        let large_start = self.measure(zlib, WHOLE, Way::Phrases, &LARGE)?;
        self.sample(&large, &large_start, report);
        let small = self.measure(zlib, WHOLE, Way::Recursive, &SMALL)?;
        let small_start = self.measure(zlib, WHOLE, Way::Phrases, &SMALL)?;
        let parts = self.measure(zlib, 32 << 10, Way::Phrases, &LARGE)?;
        let parts_recursive = self.measure(zlib, 32 << 10, Way::Recursive, &LARGE)?;
        let columns = [
            &small,
            &small_start,
            &large,
            &large_start,
            &parts,
            &parts_recursive,
        ];
        let names = [
            "R small",
            "[0,b] small",
            "R large",
            "[0,b] large",
            "32 KiB large",
            "32 KiB R large",
        ];
        report.note("figures 4, 6, 8, 9: us by unit, without Huffman");
        let unit_names: Vec<String> = self.units.iter().map(|unit| unit.name.clone()).collect();
        table(
            report,
            "unit",
            &names,
            &unit_names,
            columns.map(Grid::by_unit),
        );
        report.note("figures 5, 7, 8, 9: us by offset, without Huffman");
        let offsets = OFFSETS.map(|offset| format!("{} KiB", offset >> 10));
        table(
            report,
            "offset",
            &names,
            &offsets,
            columns.map(Grid::by_offset),
        );
        report.add("phrase maps, bytes over raw bytes", mean(small.maps()), "");
        let speedup = |slow: &Grid, fast: &Grid| slow.mean() / fast.mean();
        report.add("small: [0,b] / R", speedup(&small_start, &small), "x");
        report.add("large: [0,b] / R", speedup(&large_start, &large), "x");
        report.add(
            "large: [0,b] / 32 KiB R",
            speedup(&large_start, &parts_recursive),
            "x",
        );
        report.add("large: [0,b] / 32 KiB", speedup(&large_start, &parts), "x");
        Ok(())
    }

    /// Figure 3: one unit.
    fn sample(&self, recursive: &Grid, sequential: &Grid, report: &mut Report) {
        let name = self.units.get(SAMPLE).map_or("", |unit| unit.name.as_str());
        report.note(&format!(
            "figure 3: us of one unit, {name}, without Huffman"
        ));
        report.head(&["offset", "length", "R", "[0,b]"]);
        let reads = recursive.unit(SAMPLE).iter().zip(sequential.unit(SAMPLE));
        for (at, (recursive, sequential)) in reads.enumerate() {
            let offset = OFFSETS[at / LARGE.len()] >> 10;
            let cells = [
                format!("{offset} KiB"),
                LARGE[at % LARGE.len()].to_string(),
                format!("{recursive:.1}"),
                format!("{sequential:.1}"),
            ];
            report.row(&cells, *recursive, "us");
        }
    }

    /// Where recursive extraction stops to pay, in partitions of the default size.
    fn crossover(&self, report: &mut Report) -> Result<()> {
        report.note("crossover: us by length, 16 KiB partitions, levels as by default");
        let cases = [
            (("zlib", 6), Way::Recursive),
            (("zlib", 6), Way::Phrases),
            (("zlib", 6), Way::Decode),
            (("lz4", 1), Way::Recursive),
            (("lz4", 1), Way::Phrases),
            (("lz4", 1), Way::Decode),
        ];
        let names = [
            "zlib R",
            "zlib phrases",
            "zlib PEX",
            "lz4 R",
            "lz4 phrases",
            "lz4 decode",
        ];
        let mut columns: [Vec<f64>; 6] = Default::default();
        for (column, (layout, way)) in columns.iter_mut().zip(cases) {
            *column = self.measure(layout, 16 << 10, way, &SMALL)?.by_length();
        }
        table(
            report,
            "length",
            &names,
            &SMALL.map(|it| it.to_string()),
            columns,
        );
        Ok(())
    }

    /// Figures 10 and 14: what partitions cost in ratio, and Huffman coding saves.
    fn ratios(&self, report: &mut Report) -> Result<()> {
        report.note("figures 10, 14: compressed over raw bytes, mean over units");
        report.head(&[
            "level",
            "partition",
            "ratio",
            "points above one unit",
            "without Huffman",
        ]);
        for level in [FASTEST, 6] {
            let whole = self.measure(("zlib", level), WHOLE, Way::Phrases, &[])?;
            for partition in PARTITIONS.into_iter().chain([WHOLE]) {
                let parts = self.measure(("zlib", level), partition, Way::Phrases, &[])?;
                let ratio = mean(parts.stored());
                let points = 100.0 * (ratio - mean(whole.stored()));
                let cells = [
                    level.to_string(),
                    format!("{} KiB", partition >> 10),
                    format!("{ratio:.4}"),
                    format!("{points:.2}"),
                    format!("{:.4}", mean(parts.tokens())),
                ];
                report.row(&cells, points, "points");
                if (level, partition) == (FASTEST, 16 << 10) {
                    report.judge(
                        "cost of 16 KiB partitions",
                        points,
                        "points",
                        Bar::AtMost(2.5),
                    );
                }
            }
        }
        Ok(())
    }

    /// Figures 11 to 13: reads of partitions with and without Huffman coding.
    fn partitions(&self, report: &mut Report) -> Result<()> {
        let zlib = ("zlib", FASTEST);
        let start = self.measure(zlib, WHOLE, Way::Stream, &LARGE)?;
        let either = self.measure(zlib, WHOLE, Way::Decode, &LARGE)?;
        let mut columns = vec![start.by_unit()];
        let mut speedups = Vec::new();
        let mut narrower: Vec<Vec<f64>> = Vec::new();
        for partition in &PARTITIONS[..4] {
            let pex = self.measure(zlib, *partition, Way::Decode, &LARGE)?;
            let plain = self.measure(zlib, *partition, Way::Phrases, &LARGE)?;
            speedups.push((*partition, pex.by_length()[0], pex.mean(), plain.mean()));
            columns.push(pex.by_unit());
            narrower.push(pex.by_unit());
        }
        report.note("figure 11: us by unit, 4 to 32 KiB, level 1");
        let unit_names: Vec<String> = self.units.iter().map(|unit| unit.name.clone()).collect();
        let names = ["[0,b]", "8 KiB", "16 KiB", "32 KiB", "64 KiB"];
        if let Ok(columns) = columns.try_into() as std::result::Result<[Vec<f64>; 5], _> {
            table(report, "unit", &names, &unit_names, columns);
        }
        relative(report, &unit_names, &narrower);
        report.note("figures 12, 13: 4 to 32 KiB, level 1");
        report.head(&[
            "partition",
            "4 KiB us",
            "mean us",
            "[0,b] / PEX",
            "without Huffman us",
        ]);
        for (partition, four, pex, plain) in speedups {
            let factor = start.mean() / pex;
            let cells = [
                format!("{} KiB", partition >> 10),
                format!("{four:.1}"),
                format!("{pex:.1}"),
                format!("{factor:.1}"),
                format!("{plain:.1}"),
            ];
            report.row(&cells, pex, "us");
            if partition == 16 << 10 {
                report.judge(
                    "4 KiB of a 250 KB unit, 16 KiB",
                    four,
                    "us",
                    Bar::AtMost(25.0),
                );
                report.judge("4 to 32 KiB: [0,b] / PEX", factor, "x", Bar::AtLeast(9.0));
                let factor = either.mean() / pex;
                let name = "the same where the decoder of whole streams reads units too";
                report.add(name, factor, "x");
            }
        }
        Ok(())
    }
}

/// Figure 12: how many times as fast units in smaller partitions are read as in ones of 32 KiB.
fn relative(report: &mut Report, units: &[String], partitions: &[Vec<f64>]) {
    let [eight, sixteen, wide, ..] = partitions else {
        return;
    };
    let speeds = [eight, sixteen].map(|narrow| -> Vec<f64> {
        let pairs = wide.iter().zip(narrow);
        pairs.map(|(wide, narrow)| wide / narrow).collect()
    });
    report.note("figure 12: speed over that of 32 KiB partitions, by unit, 4 to 32 KiB, level 1");
    let [of_eight, of_sixteen] = speeds.each_ref().map(|it| mean(it.iter().copied()));
    table(report, "unit", &["8 KiB", "16 KiB"], units, speeds);
    report.add("8 KiB partitions / 32 KiB, mean of units", of_eight, "x");
    report.add("16 KiB partitions / 32 KiB, mean of units", of_sixteen, "x");
}

/// Columns of numbers beside their names.
fn table<const N: usize>(
    report: &mut Report,
    what: &'static str,
    names: &[&str; N],
    rows: &[String],
    columns: [Vec<f64>; N],
) {
    let head: Vec<&str> = [what].into_iter().chain(names.iter().copied()).collect();
    report.head(&head);
    for (at, row) in rows.iter().enumerate() {
        let numbers = columns
            .each_ref()
            .map(|column| column.get(at).copied().unwrap_or(f64::NAN));
        let cells = numbers.map(|number| format!("{number:.2}"));
        let cells: Vec<String> = [row.clone()].into_iter().chain(cells).collect();
        report.row(&cells, numbers[0], "us");
    }
}
