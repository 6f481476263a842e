//! The cost model beside what is measured, for a store as it is.

mod level;

use std::sync::Arc;
use std::time::Instant;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;
use tersecades_columnar::values::Values;

use crate::cost_model::{TreeShape, runs_opened};
use crate::option::Layout;
use crate::run::Run;
use crate::scan::Scan;
use crate::version::Snapshot;

pub use level::{AccessCost, LevelCost};

/// Groups that are read, in turns: more than the caches next to a core hold, as other reads are.
const READ_GROUPS: usize = 32;

/// The model beside measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Each level that has runs, the newest first.
    pub levels: Vec<LevelCost>,
    /// Levels that the rows need, by the model.
    pub levels_model: f64,
    /// Times that a row is written to a run, by the model.
    pub written_model: f64,
    /// The same of the rows that are there, which the levels of their runs tell; `None` for leveled
    /// trees, which write rows of a level again.
    pub written_measured: Option<f64>,
    /// By the model, microseconds to read the rows of a key: finding the groups that may hold it,
    /// and a group of each run that filters leave, at what it cost to read a group of the sample
    /// and to find and decode a key in it.
    pub point_model_us: f64,
    /// The same by the clock.
    pub point_measured_us: f64,
    /// Keys that were read.
    pub points: usize,
}

impl Snapshot {
    /// Measures a sample of the store and puts the model beside it; `None` for a store without runs
    /// or an order.
    ///
    /// # Errors
    /// What reading says.
    ///
    /// # Cost
    /// Some groups of each level are decoded and encoded under each policy, and some keys and
    /// ranges read.
    pub fn explain(&self) -> Result<Option<Explained>> {
        self.version.check(|_| true)?;
        let (schema, options) = (self.schema(), self.options());
        let groups = self.some_groups(None, READ_GROUPS);
        let sorted = schema.sort_columns();
        let Some(key) = sorted.first().filter(|_| !groups.is_empty()) else {
            return Ok(None);
        };
        let name = schema.fields().field(*key).name();
        let keys = keys_of(name, &groups)?;
        let group_ns = self.group_ns(name, &groups, &keys)?;
        let plan_ns = self.plan_ns(name, &keys)?;
        let shape = TreeShape {
            rows: self.sequence() as f64,
            buffer_rows: options.buffer_rows as f64,
            level_ratio: options.level_ratio as f64,
            layout: options.layout,
        };
        let opened = runs_opened(self.version.runs.len() as f64, options.bloom_bits as f64);
        Ok(Some(Explained {
            levels: self.level_costs(name)?,
            levels_model: shape.levels(),
            written_model: shape.write_amplification(),
            written_measured: self.times_written(),
            point_model_us: (plan_ns + opened * group_ns) / 1e3,
            point_measured_us: self.points_ns(name, &keys)? / 1e3,
            points: groups.len(),
        }))
    }

    /// The mean of the times that the rows of runs were written.
    fn times_written(&self) -> Option<f64> {
        let runs = self.version.runs.iter().map(|run| run.id());
        let rows: u64 = runs.clone().map(|run| run.rows).sum();
        let times: u64 = runs.map(|run| run.rows * u64::from(run.level + 1)).sum();
        let is_tiered = self.options().layout == Layout::Tiered;
        is_tiered.then(|| times as f64 / rows.max(1) as f64)
    }

    /// At most `most` groups spread over the runs of `level`, or all.
    fn some_groups(&self, level: Option<u32>, most: usize) -> Vec<(Arc<Run>, usize)> {
        let of_level = |run: &&Arc<Run>| level.is_none_or(|level| run.id().level == level);
        let runs = self.version.runs.iter().filter(of_level);
        let groups = runs.flat_map(|run| (0..run.groups().len()).map(move |group| (run, group)));
        let groups: Vec<_> = groups.collect();
        let step = groups.len().div_ceil(most).max(1);
        let sampled = groups.into_iter().step_by(step);
        sampled
            .map(|(run, group)| (Arc::clone(run), group))
            .collect()
    }

    /// The mean nanoseconds to read one of `groups`, find the one of `keys` that is in it and
    /// decode its rows. Keys are read as often as there are rows of them, so larger groups count
    /// for more.
    fn group_ns(&self, name: &str, groups: &[(Arc<Run>, usize)], keys: &[Value]) -> Result<f64> {
        let fields = self.schema().stored();
        let column = fields.index_of(name)?;
        let data_type = fields.field(column).data_type();
        let (mut found, mut work) = (Selection::default(), Work::default());
        let mut group_rows = vec![0.0; groups.len()];
        let times = medians_ns(groups.len(), |at| {
            let ((run, index), key) = (&groups[at], &keys[at]);
            let batch = run.read_group(*index, &fields)?;
            let wanted = Predicate::between(data_type, key, key)?;
            let all = Selection::all(batch.rows());
            let chunk = batch.column(column);
            chunk.compare(&wanted, &all, &mut found, &mut work);
            for column in 0..fields.fields().len() {
                batch.column(column).to_arrow(&found, &mut work)?;
            }
            group_rows[at] = batch.rows() as f64;
            Ok(())
        })?;
        let weighed = times.iter().zip(&group_rows).map(|(ns, rows)| ns * rows);
        Ok(weighed.sum::<f64>() / f64::max(group_rows.iter().sum(), 1.0))
    }

    /// The mean nanoseconds to find the groups that may hold one of `keys`.
    fn plan_ns(&self, name: &str, keys: &[Value]) -> Result<f64> {
        let times = medians_ns(keys.len(), |at| {
            let wanted = Scan::default().equal(name, keys[at].clone());
            self.scan(&wanted).map(drop)
        })?;
        Ok(mean(&times))
    }

    /// The mean nanoseconds to read the rows of one of `keys`.
    fn points_ns(&self, name: &str, keys: &[Value]) -> Result<f64> {
        let times = medians_ns(keys.len(), |at| {
            let wanted = Scan::default().equal(name, keys[at].clone());
            self.scan(&wanted)?
                .try_for_each(|it| it?.to_arrow().map(drop))
        })?;
        Ok(mean(&times))
    }
}

/// Times that a read is measured; the first finds files and memory untouched.
const TIMES: usize = 5;

/// The median of the nanoseconds that `work` takes for each of `count` items, which take turns:
/// what one read has left the nearest caches before it is read again.
fn medians_ns(count: usize, mut work: impl FnMut(usize) -> Result<()>) -> Result<Vec<f64>> {
    (0..count).try_for_each(&mut work)?;
    let mut times = vec![[0.0; TIMES]; count];
    for turn in 0..TIMES {
        for (at, times) in times.iter_mut().enumerate() {
            let started = Instant::now();
            work(at)?;
            times[turn] = started.elapsed().as_nanos() as f64;
        }
    }
    let medians = times.iter_mut().map(|times| {
        times.sort_by(f64::total_cmp);
        times[TIMES / 2]
    });
    Ok(medians.collect())
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

/// A value of column `name` from the middle of each group.
fn keys_of(name: &str, groups: &[(Arc<Run>, usize)]) -> Result<Vec<Value>> {
    let keys = groups.iter().map(|(run, group)| {
        let middle = run.group(*group).rows / 2;
        value_of(run, *group, name, middle)
    });
    keys.collect()
}

/// The value of column `name` in a row of a group.
fn value_of(run: &Run, group: usize, name: &str, row: u32) -> Result<Value> {
    let chunk = run.read_chunk(group, run.fields().index_of(name)?)?;
    let mut one = Selection::default();
    one.set_rows(chunk.rows()).push(row);
    let mut values = Values::default();
    chunk.gather(&one, &mut values, &mut Work::default());
    Ok(values.value(0))
}
