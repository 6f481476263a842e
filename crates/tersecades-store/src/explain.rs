//! The cost model beside what is measured, for a store as it is.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::goal::Tier;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;
use tersecades_columnar::values::Values;

use crate::codec_policy::CodecPolicy;
use crate::cost_model::{TreeShape, runs_opened};
use crate::encode::{Encoder, decode};
use crate::run::Run;
use crate::scan::Scan;
use crate::version::Snapshot;

/// Groups that are read, in turns: more than the caches next to a core hold, as other reads are.
const READ_GROUPS: usize = 32;

/// Of the groups that are read, one in this many is coded under each policy.
const CODED_SHARE: usize = 4;

/// What one policy makes of the store's rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicyCost {
    /// The policy.
    pub policy: CodecPolicy,
    /// Encoded bytes of a row.
    pub bytes_per_row: f64,
    /// Nanoseconds to encode a row.
    pub encode_ns: f64,
    /// Nanoseconds to decode a row.
    pub decode_ns: f64,
    /// By the model: nanoseconds to code a row on its way through all levels.
    pub write_ns: f64,
}

/// The model beside measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Each policy on a sample of the store's rows.
    pub policies: Vec<PolicyCost>,
    /// Levels that the rows need.
    pub levels: f64,
    /// Times that a row is written to a run.
    pub write_amplification: f64,
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
    /// Some groups are decoded and encoded under each policy, and some keys read.
    pub fn explain(&self) -> Result<Option<Explained>> {
        let (schema, options) = (self.schema(), self.options());
        let groups = self.some_groups();
        let Some(key) = schema
            .sort_columns()
            .first()
            .copied()
            .filter(|_| !groups.is_empty())
        else {
            return Ok(None);
        };
        let name = schema.fields().field(key).name();
        let keys = keys_of(name, &groups)?;
        let group_ns = self.group_ns(name, &groups, &keys)?;
        let plan_ns = self.plan_ns(name, &keys)?;
        let coded = groups.iter().step_by(CODED_SHARE);
        let stored = schema.stored();
        let rows = coded.map(|(run, group)| decode(&run.read_group(*group, &stored)?));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let shape = TreeShape {
            rows: self.sequence() as f64,
            buffer_rows: options.buffer_rows as f64,
            level_ratio: options.level_ratio as f64,
            layout: options.layout,
        };
        let policies = CodecPolicy::all().map(|policy| self.measure(policy, &rows, &shape));
        let opened = runs_opened(self.version.runs.len() as f64, options.bloom_bits as f64);
        Ok(Some(Explained {
            policies: policies.collect::<Result<_>>()?,
            levels: shape.levels(),
            write_amplification: shape.write_amplification(),
            point_model_us: (plan_ns + opened * group_ns) / 1e3,
            point_measured_us: self.points_ns(name, &keys)? / 1e3,
            points: groups.len(),
        }))
    }

    /// Groups spread over all runs.
    fn some_groups(&self) -> Vec<(Arc<Run>, usize)> {
        let runs = self.version.runs.iter();
        let groups = runs.flat_map(|run| (0..run.groups().len()).map(move |group| (run, group)));
        let groups: Vec<_> = groups.collect();
        let step = groups.len().div_ceil(READ_GROUPS).max(1);
        let sampled = groups.into_iter().step_by(step);
        sampled
            .map(|(run, group)| (Arc::clone(run), group))
            .collect()
    }

    /// Encodes and decodes `sample` under `policy`.
    fn measure(
        &self,
        policy: CodecPolicy,
        sample: &[RecordBatch],
        shape: &TreeShape,
    ) -> Result<PolicyCost> {
        let mut encoder = Encoder::new(&self.schema().stored(), policy, Tier::Cold)?;
        let rows: usize = sample.iter().map(RecordBatch::num_rows).sum();
        let each = |started: Instant| started.elapsed().as_nanos() as f64 / rows as f64;
        let started = Instant::now();
        let encoded = sample.iter().map(|rows| encoder.encode(rows));
        let encoded = encoded.collect::<Result<Vec<_>>>()?;
        let encode_ns = each(started);
        let started = Instant::now();
        for batch in &encoded {
            decode(batch)?;
        }
        let decode_ns = each(started);
        let bytes: usize = encoded.iter().map(|batch| batch.byte_size()).sum();
        Ok(PolicyCost {
            policy,
            bytes_per_row: bytes as f64 / rows as f64,
            encode_ns,
            decode_ns,
            write_ns: shape.write_ns(encode_ns, decode_ns),
        })
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
        let column = run.fields().index_of(name)?;
        value_in_the_middle(run, *group, column)
    });
    keys.collect()
}

fn value_in_the_middle(run: &Run, group: usize, column: usize) -> Result<Value> {
    let chunk = run.read_chunk(group, column)?;
    let mut middle = Selection::default();
    middle.set_rows(chunk.rows()).push(chunk.rows() as u32 / 2);
    let mut values = Values::default();
    chunk.gather(&middle, &mut values, &mut Work::default());
    Ok(values.value(0))
}
