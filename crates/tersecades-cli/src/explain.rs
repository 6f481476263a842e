//! `inspect --explain`: every candidate of each column, tried, and what the choice lost.

use tersecades::Result;
use tersecades::columnar::explain::{Explainer, Explanation, Trial};
use tersecades::columnar::goal::Goal;

use crate::figure::grouped;
use crate::json::Object;
use crate::reading::LimitedRows;
use crate::table::Table;

/// What was found of each column of a file.
pub(crate) struct FileExplanation {
    columns: Vec<(String, Explanation)>,
    rows: u64,
}

impl FileExplanation {
    /// Tries everything on `rows`.
    ///
    /// # Errors
    /// What reading and encoding say.
    pub(crate) fn of(mut rows: LimitedRows, goal: &Goal) -> Result<Self> {
        let schema = rows.schema();
        let mut explainers = Vec::new();
        for field in schema.fields() {
            let explainer = Explainer::new(field.data_type(), goal.clone());
            explainers.push(explainer.map_err(|error| error.column(field.name().as_str()))?);
        }
        while let Some(arrived) = rows.next()? {
            for (explainer, array) in explainers.iter_mut().zip(arrived.columns()) {
                explainer.add(array)?;
            }
        }
        let names = schema.fields().iter().map(|field| field.name().clone());
        Ok(FileExplanation {
            columns: names
                .zip(explainers.iter().map(Explainer::explain))
                .collect(),
            rows: rows.count(),
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
