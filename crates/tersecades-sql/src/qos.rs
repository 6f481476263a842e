//! What tolerances of lossy columns cost in the answers of queries.
//!
//! ```text
//! queries ─▶ exact answers
//! for each setting of the ladder: encode the columns so ─▶ bytes, answers ─▶ compare
//! ```

use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::registry;
use tersecades_columnar::scheme::Scheme;
use tersecades_engine::quality::{Difference, compare, key_columns, sizes};

use crate::answer::Results;
use crate::catalog::Relation;
use crate::session::Session;

/// What is to be measured.
#[derive(Debug, Clone, Default)]
pub struct Experiment {
    /// The table whose columns are encoded.
    pub table: String,
    /// Its lossy columns; empty for all columns of floats.
    pub columns: Vec<String>,
    /// The ladder: schemes such as `zfp(0.01)`, from strict to loose.
    pub ladder: Vec<String>,
    /// Names and texts of the queries.
    pub queries: Vec<(String, String)>,
    /// Columns that identify a row of a result, where they are not what is no number.
    pub keys: Vec<String>,
}

/// A setting of the ladder and what it does.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The scheme; `exact` for the baseline without one.
    pub scheme: String,
    /// How far a value may be off.
    pub error_bound: f64,
    /// Arrow bytes for each encoded byte of the lossy columns.
    pub column_ratio: f64,
    /// The same, of all columns of the table.
    pub table_ratio: f64,
    /// What differs in each query, in their order.
    pub differences: Vec<Difference>,
}

impl Setting {
    /// The largest loss of a query.
    pub fn loss(&self) -> f64 {
        self.differences
            .iter()
            .map(Difference::loss)
            .fold(0.0, f64::max)
    }

    /// The largest mean relative error of a result column.
    pub fn value_error(&self) -> f64 {
        self.differences
            .iter()
            .map(Difference::mean_error)
            .fold(0.0, f64::max)
    }
}

/// The scheme by which the lossy codec named `codec` stays within `tolerance`.
///
/// # Errors
/// `InvalidArgument` for codecs that are not known, and for those that lose nothing.
pub fn scheme_within(codec: &str, tolerance: f64) -> Result<String> {
    let each = registry::by_name(codec)?.error_bound(1.0);
    if each > 0.0 {
        return Ok(format!("{codec}({})", tolerance / each));
    }
    let lossy = registry::CODECS.iter().filter(|codec| codec.is_lossy());
    let names: Vec<&str> = lossy.map(|codec| codec.name()).collect();
    let error = Error::invalid(format!("`{codec}` loses nothing"));
    Err(error.hint(format!("the lossy codecs are {}", names.join(", "))))
}

/// The setting that saves most of those under a loss and under a mean relative error of results.
pub fn loosest(settings: &[Setting], loss_max: f64, error_max: f64) -> Option<&Setting> {
    let fine = |it: &&Setting| it.loss() <= loss_max && it.value_error() <= error_max;
    let ratio = |a: &&Setting, b: &&Setting| a.column_ratio.total_cmp(&b.column_ratio);
    settings.iter().filter(fine).max_by(ratio)
}

/// Compression ratio and loss in percent of each setting, by query.
pub fn loss_lines(
    settings: &[Setting],
    queries: &[(String, String)],
) -> Vec<(String, Vec<(f64, f64)>)> {
    let line = |(index, (name, _)): (usize, &(String, String))| {
        let points = settings.iter().filter_map(|setting| {
            let difference = setting.differences.get(index)?;
            Some((setting.column_ratio, difference.loss() * 100.0))
        });
        (name.clone(), points.collect())
    };
    queries.iter().enumerate().map(line).collect()
}

impl Session {
    /// Runs the queries of `experiment` exactly and at each setting; the first setting that comes
    /// back is the exact one. `progress` is told how many runs of how many are done.
    ///
    /// # Errors
    /// `InvalidArgument` for tables, columns and schemes that do not fit; what the queries say.
    ///
    /// # Cost
    /// One run of each query, and one pass of encoding, for each setting.
    pub fn qos(
        &mut self,
        experiment: &Experiment,
        progress: impl FnMut(usize, usize),
    ) -> Result<Vec<Setting>> {
        let relation = self.catalog.find(&experiment.table)?;
        let settings = self.climb(experiment, &relation, progress);
        self.catalog.replace(&experiment.table, relation);
        settings
    }

    fn climb(
        &mut self,
        experiment: &Experiment,
        relation: &Arc<Relation>,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Vec<Setting>> {
        let columns = self.lossy_columns(experiment)?;
        let runs = experiment.queries.len() + 1;
        let total = runs * (experiment.ladder.len() + 1);
        let (mut done, mut exact, mut settings) = (0, Vec::new(), Vec::new());
        let schemes = experiment.ladder.iter().map(|scheme| Some(scheme.as_str()));
        for scheme in std::iter::once(None).chain(schemes) {
            self.catalog
                .replace(&experiment.table, Arc::clone(relation));
            let mut encoded = relation.stream.clone();
            for column in &columns {
                if let Some(scheme) = scheme {
                    self.encode(&experiment.table, column, scheme)?;
                    encoded = encoded.encoding(column, scheme);
                }
            }
            let sizes = sizes(encoded)?;
            done += 1;
            progress(done, total);
            let mut differences = Vec::new();
            for (index, (name, text)) in experiment.queries.iter().enumerate() {
                let results = self.batches_of(text).map_err(|error| named(&error, name))?;
                if scheme.is_none() {
                    exact.push(results.clone());
                }
                let keys = self.keys(experiment, &results, &relation.schema);
                differences.push(compare(&exact[index], &results, &keys)?);
                done += 1;
                progress(done, total);
            }
            settings.push(Setting {
                scheme: scheme.unwrap_or("exact").to_owned(),
                error_bound: bound(scheme)?,
                column_ratio: sizes.ratio(|name| columns.iter().any(|column| column == name)),
                table_ratio: sizes.ratio(|_| true),
                differences,
            });
        }
        Ok(settings)
    }

    fn keys(
        &self,
        experiment: &Experiment,
        results: &[RecordBatch],
        source: &arrow_schema::Schema,
    ) -> Vec<String> {
        match (experiment.keys.is_empty(), results.first()) {
            (true, Some(batch)) => key_columns(batch.schema_ref(), source),
            (true, None) => Vec::new(),
            (false, _) => experiment.keys.clone(),
        }
    }

    fn batches_of(&self, text: &str) -> Result<Vec<RecordBatch>> {
        Results::of(self.stream(text)?)?.collect()
    }

    fn lossy_columns(&self, experiment: &Experiment) -> Result<Vec<String>> {
        if experiment.queries.is_empty() || experiment.ladder.is_empty() {
            return Err(Error::invalid("there is nothing to compare")
                .hint("give a query and a scheme, such as zfp(0.01)"));
        }
        if !experiment.columns.is_empty() {
            return Ok(experiment.columns.clone());
        }
        let schema = &self.catalog.find(&experiment.table)?.schema;
        let floats = schema
            .fields()
            .iter()
            .filter(|it| it.data_type().is_floating());
        let columns: Vec<String> = floats.map(|field| field.name().clone()).collect();
        match columns.is_empty() {
            true => {
                let message = format!("`{}` has no column of floats", experiment.table);
                Err(Error::invalid(message).hint("only floats can be encoded with a loss"))
            }
            false => Ok(columns),
        }
    }
}

fn bound(scheme: Option<&str>) -> Result<f64> {
    match scheme {
        None => Ok(0.0),
        Some(scheme) => Ok(scheme.parse::<Scheme>()?.error_bound()),
    }
}

fn named(error: &Error, query: &str) -> Error {
    let placed = Error::new(
        error.kind(),
        format!("query `{query}`: {}", error.message()),
    );
    match error.hint_text() {
        Some(hint) => placed.hint(hint),
        None => placed,
    }
}
