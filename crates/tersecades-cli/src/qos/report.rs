//! The result of an experiment as a table and as JSON.

use tersecades::engine::quality::Difference;
use tersecades::sql::Setting;

use crate::json::Object;
use crate::table::Table;

/// What an experiment found.
pub(super) struct Report<'a> {
    pub(super) settings: &'a [Setting],
    /// Names and texts of the queries.
    pub(super) queries: &'a [(String, String)],
    /// The setting that saves most under the loss.
    pub(super) loosest: Option<&'a Setting>,
    pub(super) loss_max: f64,
}

impl Report<'_> {
    pub(super) fn to_text(&self) -> String {
        let columns = [
            "setting",
            ">columns",
            ">table",
            "query",
            ">rows",
            ">missing",
            ">extra",
            ">loss",
            ">mean error",
            ">worst error",
        ];
        let mut table = Table::new(&columns);
        for setting in self.settings {
            for ((name, _), difference) in self.queries.iter().zip(&setting.differences) {
                table.push([
                    setting.scheme.clone(),
                    format!("{:.2}x", setting.column_ratio),
                    format!("{:.2}x", setting.table_ratio),
                    name.clone(),
                    difference.rows.to_string(),
                    difference.missing.to_string(),
                    difference.extra.to_string(),
                    percent(difference.loss()),
                    percent(difference.mean_error()),
                    percent(difference.most_error()),
                ]);
            }
        }
        let within = percent(self.loss_max);
        let verdict = match self.loosest {
            Some(setting) => format!(
                "loosest setting within a loss of {within}: {}, {:.2}x smaller",
                setting.scheme, setting.column_ratio
            ),
            None => format!("no setting is within a loss of {within}"),
        };
        format!("{}\n{verdict}\n", table.to_text(""))
    }

    pub(super) fn to_json(&self) -> String {
        let settings = self.settings.iter().map(|setting| {
            let queries = self.queries.iter().zip(&setting.differences);
            Object::default()
                .text("scheme", &setting.scheme)
                .number("error_bound", setting.error_bound)
                .number("column_ratio", setting.column_ratio)
                .number("table_ratio", setting.table_ratio)
                .number("loss", setting.loss())
                .list("queries", queries.map(|((name, _), it)| query(name, it)))
        });
        let whole = Object::default()
            .list("settings", settings)
            .number("max_loss", self.loss_max);
        match self.loosest {
            Some(setting) => whole
                .text("loosest", &setting.scheme)
                .number("loosest_ratio", setting.column_ratio),
            None => whole,
        }
        .finish()
    }
}

fn query(name: &str, difference: &Difference) -> Object {
    let values = difference.values.iter().map(|error| {
        Object::default()
            .text("column", &error.column)
            .number("mean_relative_error", error.mean)
            .number("max_relative_error", error.most)
    });
    Object::default()
        .text("query", name)
        .whole("rows", difference.rows as u64)
        .whole("missing", difference.missing as u64)
        .whole("extra", difference.extra as u64)
        .number("loss", difference.loss())
        .list("values", values)
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.01 => format!("{percent:.0e} %"),
        percent if percent < 10.0 => format!("{percent:.2} %"),
        percent => format!("{percent:.0} %"),
    }
}
