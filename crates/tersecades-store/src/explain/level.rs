//! What rows of one level cost under each codec policy, by the model, and as they lie there.

use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::goal::Tier;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;
use tersecades_columnar::wire;

use crate::codec_policy::CodecPolicy;
use crate::cost_model::runs_opened;
use crate::encode::{Encoder, decode};
use crate::placement::Placement;
use crate::run::Run;
use crate::scan::Scan;
use crate::version::Snapshot;

use super::{keys_of, mean, medians_ns, value_of};

/// Groups of a level that are read, and coded under each policy.
const LEVEL_GROUPS: usize = 8;

/// What a level costs under one policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AccessCost {
    /// The policy.
    pub policy: CodecPolicy,
    /// Encoded bytes of a row.
    pub bytes_per_row: f64,
    /// Microseconds to read the rows of a key.
    pub point_us: f64,
    /// Microseconds to read the rows between the first and the last key of a group.
    pub range_us: f64,
    /// Nanoseconds to code a row that comes into the level: it is encoded and, but in the first
    /// level, decoded before.
    pub write_ns: f64,
}

/// One level.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelCost {
    /// The level.
    pub level: u32,
    /// Where its runs lie.
    pub tier: Placement,
    /// Runs.
    pub runs: usize,
    /// Rows.
    pub rows: u64,
    /// By the model, each policy.
    pub model: Vec<AccessCost>,
    /// By the clock, and the bytes of its files, under the policy of the level.
    pub measured: AccessCost,
}

/// A sample of a level.
struct Sample {
    groups: Vec<(Arc<Run>, usize)>,
    /// The rows of the groups.
    rows: Vec<RecordBatch>,
    /// A key of each group.
    keys: Vec<Value>,
    /// A scan of each of those keys.
    points: Vec<Scan>,
    /// A scan from the first to the last key of each group.
    ranges: Vec<Scan>,
    /// Position of the column of the keys.
    column: usize,
    /// What a row of the level costs to decode, as it lies there.
    decode_ns: f64,
    /// What a byte of the level costs to read and to check.
    byte_ns: f64,
}

/// How a level is looked for keys.
struct Paths {
    /// To find the groups that may hold a key, and those that may hold some of a range.
    plan_ns: (f64, f64),
    /// Groups that are read for a key, and for a range.
    groups: (f64, f64),
}

impl Snapshot {
    /// Every level that has runs, sampled, of which `name` is the first column of the order.
    ///
    /// # Errors
    /// What reading says.
    pub(super) fn level_costs(&self, name: &str) -> Result<Vec<LevelCost>> {
        let mut levels: Vec<u32> = self.version.runs.iter().map(|run| run.id().level).collect();
        levels.sort_unstable();
        levels.dedup();
        let mut costs = Vec::with_capacity(levels.len());
        let mut above: Option<f64> = None;
        for level in levels {
            let sample = self.sample(level, name)?;
            // Where nothing is left above, it was as the level is.
            let source_ns = match level {
                0 => 0.0,
                _ => above.unwrap_or(sample.decode_ns),
            };
            costs.push(self.level_cost(level, &sample, source_ns)?);
            above = Some(sample.decode_ns);
        }
        Ok(costs)
    }

    fn sample(&self, level: u32, name: &str) -> Result<Sample> {
        let groups = self.some_groups(Some(level), LEVEL_GROUPS);
        let fields = self.schema().stored();
        let keys = keys_of(name, &groups)?;
        let scan = || self.key_scan(level);
        let points = keys.iter().map(|key| scan().equal(name, key.clone()));
        let ranges = groups.iter().map(|(run, group)| {
            let value = |row| value_of(run, *group, name, row);
            let last = run.group(*group).rows - 1;
            Ok(scan().between(name, value(0)?, value(last)?))
        });
        let batches = groups
            .iter()
            .map(|(run, group)| run.read_group(*group, &fields));
        let batches = batches.collect::<Result<Vec<Batch>>>()?;
        let rows = batches.iter().map(decode).collect::<Result<Vec<_>>>()?;
        let read_ns = medians_ns(groups.len(), |at| {
            let (run, group) = &groups[at];
            let mut chunks = run.group(*group).chunks.iter();
            chunks.try_for_each(|entry| run.read_unit(entry).map(drop))
        })?;
        let bytes: u64 = groups.iter().map(|(run, at)| run.group(*at).bytes()).sum();
        let decode_ns = medians_ns(batches.len(), |at| decode(&batches[at]).map(drop))?;
        let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
        Ok(Sample {
            points: points.collect(),
            ranges: ranges.collect::<Result<_>>()?,
            keys,
            column: fields.index_of(name)?,
            decode_ns: decode_ns.iter().sum::<f64>() / count as f64,
            byte_ns: read_ns.iter().sum::<f64>() / bytes as f64,
            rows,
            groups,
        })
    }

    fn level_cost(&self, level: u32, sample: &Sample, source_ns: f64) -> Result<LevelCost> {
        let runs = self.version.runs.iter().map(|run| run.id());
        let runs: Vec<_> = runs.filter(|run| run.level == level).collect();
        let paths = self.paths(sample, runs.len())?;
        let policies = CodecPolicy::all().map(|it| self.model(it, sample, &paths, source_ns));
        let rows = runs.iter().map(|run| run.rows).sum();
        let bytes: u64 = runs.iter().map(|run| run.length).sum();
        let policy = self.options().codec(level as usize);
        Ok(LevelCost {
            level,
            tier: self.options().tier(level as usize),
            runs: runs.len(),
            rows,
            model: policies.collect::<Result<_>>()?,
            measured: AccessCost {
                policy,
                bytes_per_row: bytes as f64 / f64::max(rows as f64, 1.0),
                point_us: self.read_us(&sample.points)?,
                range_us: self.read_us(&sample.ranges)?,
                write_ns: self.write_ns(policy, level, sample)?,
            },
        })
    }

    /// A scan of one level where rows of others do not take the place of its rows.
    fn key_scan(&self, level: u32) -> Scan {
        match self.schema().is_primary() {
            true => Scan::default(),
            false => Scan::default().of_level(level),
        }
    }

    fn paths(&self, sample: &Sample, runs: usize) -> Result<Paths> {
        let count = sample.points.len();
        let plan_ns = |scans: &[Scan]| medians_ns(count, |at| self.scan(&scans[at]).map(drop));
        let (point_ns, range_ns) = (plan_ns(&sample.points)?, plan_ns(&sample.ranges)?);
        let mut touched = 0.0;
        for range in &sample.ranges {
            // A merge reads a group of each run, and the one behind it.
            let parts = self.scan(range)?.parts_left();
            touched += parts.unwrap_or(2 * self.version.runs.len()) as f64;
        }
        let bits = self.options().bloom_bits as f64;
        Ok(Paths {
            plan_ns: (mean(&point_ns), mean(&range_ns)),
            groups: (runs_opened(runs as f64, bits), touched / count as f64),
        })
    }

    /// What the model says of `policy`.
    fn model(
        &self,
        policy: CodecPolicy,
        sample: &Sample,
        paths: &Paths,
        source_ns: f64,
    ) -> Result<AccessCost> {
        let mut encoder = Encoder::new(&self.schema().stored(), policy, Tier::Cold)?;
        let rows: usize = sample.rows.iter().map(RecordBatch::num_rows).sum();
        let encoded = sample.rows.iter().map(|rows| encoder.encode(rows));
        let encoded = encoded.collect::<Result<Vec<_>>>()?;
        let count = encoded.len();
        let encode_ns = medians_ns(count, |at| encoder.encode(&sample.rows[at]).map(drop))?;
        let units = encoded.iter().map(|batch| {
            let mut unit = Vec::new();
            wire::write_batch(batch, &mut unit).map(|()| unit)
        });
        let units = units.collect::<Result<Vec<_>>>()?;
        let open_ns = medians_ns(count, |at| wire::read_batch(&units[at]).map(drop))?;
        let decode_ns = medians_ns(count, |at| decode(&encoded[at]).map(drop))?;
        let find_ns = medians_ns(count, |at| find(&encoded[at], sample, at))?;
        let bytes: usize = encoded.iter().map(Batch::byte_size).sum();
        let read_ns = bytes as f64 / count as f64 * sample.byte_ns + mean(&open_ns);
        let whole_ns = read_ns + mean(&decode_ns);
        let encode_ns = encode_ns.iter().sum::<f64>() / rows as f64;
        Ok(AccessCost {
            policy,
            bytes_per_row: bytes as f64 / rows as f64,
            point_us: (paths.plan_ns.0 + paths.groups.0 * (read_ns + mean(&find_ns))) / 1e3,
            range_us: (paths.plan_ns.1 + paths.groups.1 * whole_ns) / 1e3,
            write_ns: encode_ns + source_ns,
        })
    }

    /// Microseconds to read what each of `scans` wants, their mean.
    fn read_us(&self, scans: &[Scan]) -> Result<f64> {
        let times = medians_ns(scans.len(), |at| {
            self.scan(&scans[at])?
                .try_for_each(|it| it?.to_arrow().map(drop))
        })?;
        Ok(mean(&times) / 1e3)
    }

    /// Nanoseconds to code a row of the level as a merge does that ends there.
    fn write_ns(&self, policy: CodecPolicy, level: u32, sample: &Sample) -> Result<f64> {
        let fields = self.schema().stored();
        let mut encoder = Encoder::new(&fields, policy, Tier::Cold)?;
        let per_row = |times: Vec<f64>, rows: usize| times.iter().sum::<f64>() / rows as f64;
        let Some(above) = level.checked_sub(1) else {
            let count = sample.rows.len();
            let times = medians_ns(count, |at| encoder.encode(&sample.rows[at]).map(drop))?;
            return Ok(per_row(
                times,
                sample.rows.iter().map(RecordBatch::num_rows).sum(),
            ));
        };
        let above = self.some_groups(Some(above), LEVEL_GROUPS);
        let source = match above.is_empty() {
            true => &sample.groups,
            false => &above,
        };
        let batches = source
            .iter()
            .map(|(run, group)| run.read_group(*group, &fields));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let recode = |at: usize| encoder.encode(&decode(&batches[at])?).map(drop);
        let times = medians_ns(batches.len(), recode)?;
        Ok(per_row(times, batches.iter().map(Batch::rows).sum()))
    }
}

/// Finds the key of a group in it, and decodes its rows.
fn find(batch: &Batch, sample: &Sample, at: usize) -> Result<()> {
    let (key, chunk) = (&sample.keys[at], batch.column(sample.column));
    let wanted = Predicate::between(chunk.data_type(), key, key)?;
    let all = Selection::all(batch.rows());
    let (mut found, mut work) = (Selection::default(), Work::default());
    chunk.compare(&wanted, &all, &mut found, &mut work);
    let mut columns = 0..batch.schema().fields().len();
    columns.try_for_each(|column| batch.column(column).to_arrow(&found, &mut work).map(drop))
}
