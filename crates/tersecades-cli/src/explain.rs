//! `inspect --explain`: every candidate of each column, tried, and what the choice lost.

use tersecades::Result;
use tersecades::columnar::batch::BatchEncoder;
use tersecades::columnar::choose;
use tersecades::columnar::chunk::Chunk;
use tersecades::columnar::encoder::ColumnEncoder;
use tersecades::columnar::explain::{Explainer, Explanation, Price, Trial};
use tersecades::columnar::goal::{Goal, Uses};
use tersecades::engine::runtime::EncodeOptions;
use tersecades::prelude::RecordBatch;

use crate::figure::grouped;
use crate::json::Object;
use crate::reading::LimitedRows;
use crate::table::Table;

/// What was found of each column of a file.
pub(crate) struct FileExplanation {
    columns: Vec<(String, Explanation)>,
    rows: u64,
    /// Rows that could not be read.
    pub(crate) rejected_rows: u64,
}

/// What became of a column whose scheme the user gives, to stand where the choice would.
struct Given {
    column: usize,
    chunk: Chunk,
    /// Of all rows.
    bytes: f64,
    ns: f64,
}

impl Given {
    fn add(&mut self, encoder: &mut BatchEncoder, rows: &RecordBatch, goal: &Goal) -> Result<()> {
        let Some(encoder) = encoder.columns_mut().get_mut(self.column) else {
            return Ok(());
        };
        encoder.encode(rows.column(self.column), &mut self.chunk)?;
        self.bytes += self.chunk.bytes_per_row() * rows.num_rows() as f64;
        self.ns += choose::price(&self.chunk, goal) * rows.num_rows() as f64;
        Ok(())
    }

    fn write(&self, encoder: &ColumnEncoder, rows: u64, goal: &Goal, out: &mut Explanation) {
        let table = encoder.dictionary();
        let table = table.map_or(0.0, |table| table.byte_size() as f64);
        let rows = rows.max(1) as f64;
        out.codec = self.chunk.codec_label();
        out.chosen = Price {
            bytes: (self.bytes + table) / rows,
            ns: (self.ns + goal.read_ns(table)) / rows,
        };
    }
}

impl FileExplanation {
    /// Tries everything on `rows`; columns whose scheme `options` give are explained by that
    /// instead of a choice.
    ///
    /// # Errors
    /// What reading and encoding say.
    pub(crate) fn of(mut rows: LimitedRows, options: &EncodeOptions) -> Result<Self> {
        let goal = options.goal(Uses::default());
        let schema = rows.schema();
        let mut encoder = BatchEncoder::new(&schema)?;
        options.apply(&mut encoder, &schema, |_| Uses::default())?;
        let (mut explainers, mut given) = (Vec::new(), Vec::new());
        for (column, field) in schema.fields().iter().enumerate() {
            let explainer = Explainer::new(field.data_type(), goal.clone());
            explainers.push(explainer.map_err(|error| error.column(field.name().as_str()))?);
            if options.schemes.iter().any(|(name, _)| name == field.name()) {
                given.push(Given {
                    column,
                    chunk: Chunk::default(),
                    bytes: 0.0,
                    ns: 0.0,
                });
            }
        }
        while let Some(arrived) = rows.next()? {
            for (explainer, array) in explainers.iter_mut().zip(arrived.columns()) {
                explainer.add(array)?;
            }
            for given in &mut given {
                given.add(&mut encoder, &arrived, &goal)?;
            }
        }
        let names = schema.fields().iter().map(|field| field.name().clone());
        let explained = explainers.iter().map(Explainer::explain);
        let mut columns: Vec<(String, Explanation)> = names.zip(explained).collect();
        for given in &given {
            let encoder = &encoder.columns_mut()[given.column];
            given.write(encoder, rows.count(), &goal, &mut columns[given.column].1);
        }
        Ok(FileExplanation {
            columns,
            rows: rows.count(),
            rejected_rows: rows.rejected(),
        })
    }

    /// What the choices cost more than the best single scheme of each column.
    fn regret(&self) -> f64 {
        let chosen: f64 = self.columns.iter().map(|(_, it)| it.chosen.ns).sum();
        let best = self.columns.iter().filter_map(|(_, it)| it.trials.first());
        chosen / best.map(|trial| trial.real.ns).sum::<f64>() - 1.0
    }

    /// As aligned text.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{} rows; bytes per row, nanoseconds per row and read by the cost table\n",
            grouped(self.rows)
        );
        for (name, column) in &self.columns {
            let columns = [
                "scheme", ">est. B", ">est. ns", ">real B", ">real ns", ">loss",
            ];
            let mut table = Table::new(&columns);
            for trial in &column.trials {
                table.push(line(trial, column));
            }
            text.push_str(&format!(
                "\n{name}: {}, {:.3} B, {:.3} ns, regret {:.1} %\n{}",
                column.codec,
                column.chosen.bytes,
                column.chosen.ns,
                100.0 * column.regret(),
                table.to_text("  "),
            ));
        }
        text.push_str(&format!("\nregret in all {:.1} %\n", 100.0 * self.regret()));
        text
    }

    /// As one JSON object.
    pub(crate) fn to_json(&self, path: &str) -> String {
        let columns = self.columns.iter().map(|(name, column)| {
            Object::default()
                .text("name", name)
                .text("codec", &column.codec)
                .number("bytes_per_row", column.chosen.bytes)
                .number("cost_ns", column.chosen.ns)
                .number("regret", column.regret())
                .list("candidates", column.trials.iter().map(object))
        });
        let object = Object::default()
            .text("path", path)
            .whole("rows", self.rows)
            .number("regret", self.regret())
            .list("columns", columns);
        format!("{}\n", object.finish())
    }
}

fn line(trial: &Trial, column: &Explanation) -> [String; 6] {
    let (bytes, ns) = trial.estimate.map_or_else(
        || ("-".to_owned(), "-".to_owned()),
        |estimate| {
            (
                format!("{:.3}", estimate.bytes),
                format!("{:.3}", estimate.ns),
            )
        },
    );
    let loss = column
        .trials
        .first()
        .map_or(0.0, |best| trial.real.ns / best.real.ns - 1.0);
    [
        trial.scheme.clone(),
        bytes,
        ns,
        format!("{:.3}", trial.real.bytes),
        format!("{:.3}", trial.real.ns),
        format!("{:.1} %", 100.0 * loss),
    ]
}

fn object(trial: &Trial) -> Object {
    let estimate = trial.estimate;
    let estimated =
        |of: fn(tersecades::columnar::explain::Price) -> f64| estimate.map_or(f64::NAN, of);
    Object::default()
        .text("scheme", &trial.scheme)
        .number("estimated_bytes_per_row", estimated(|price| price.bytes))
        .number("estimated_cost_ns", estimated(|price| price.ns))
        .number("bytes_per_row", trial.real.bytes)
        .number("cost_ns", trial.real.ns)
}
