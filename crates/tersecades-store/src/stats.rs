//! How large a store is, level by level and column by column.

use std::collections::BTreeMap;

use tersecades_columnar::error::{Error, Result};

use crate::codec_policy::CodecPolicy;
use crate::placement::Placement;
use crate::run::RunId;
use crate::version::Snapshot;

/// One level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelStats {
    /// The level.
    pub level: u32,
    /// Where its runs lie.
    pub tier: Placement,
    /// What it is encoded with.
    pub codec: CodecPolicy,
    /// Runs.
    pub runs: usize,
    /// Groups of chunks.
    pub groups: usize,
    /// Rows.
    pub rows: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Bytes of fences, zone maps and filters that stay in memory, and of the files of hot runs.
    pub resident_bytes: usize,
}

/// One column, in all runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnStats {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: String,
    /// Encoded bytes.
    pub bytes: u64,
    /// Nulls.
    pub nulls: u64,
    /// Codecs and the number of chunks of each.
    pub codecs: BTreeMap<String, usize>,
}

/// A store in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreStats {
    /// Levels, newest first.
    pub levels: Vec<LevelStats>,
    /// Columns, in the runs that can be opened.
    pub columns: Vec<ColumnStats>,
    /// Why other runs, which levels count, cannot be opened.
    pub damaged: Vec<Error>,
    /// Rows in memory and in the log.
    pub memory_rows: u64,
    /// Encoded bytes in memory.
    pub memory_bytes: usize,
    /// Rows ever acknowledged.
    pub sequence: u64,
    /// Rows with an earlier time are gone.
    pub floor: Option<i64>,
}

impl Snapshot {
    /// The store in numbers; codecs are looked up chunk by chunk where `with_codecs`.
    ///
    /// # Errors
    /// What reading chunks says.
    pub fn stats(&self, with_codecs: bool) -> Result<StoreStats> {
        let options = self.options();
        let mut levels: BTreeMap<u32, LevelStats> = BTreeMap::new();
        let mut add = |id: &RunId, groups: usize, resident_bytes: usize| {
            let level = id.level;
            let stats = levels.entry(level).or_insert_with(|| LevelStats {
                level,
                tier: options.tier(level as usize),
                codec: options.codec(level as usize),
                runs: 0,
                groups: 0,
                rows: 0,
                bytes: 0,
                resident_bytes: 0,
            });
            stats.runs += 1;
            stats.groups += groups;
            stats.rows += id.rows;
            stats.bytes += id.length;
            stats.resident_bytes += resident_bytes;
        };
        for run in &self.version.runs {
            add(run.id(), run.groups().len(), run.resident_bytes());
        }
        let damaged = self.version.damaged.iter();
        let damaged = damaged.map(|(id, error)| {
            add(id, 0, 0);
            error.clone()
        });
        let damaged = damaged.collect();
        Ok(StoreStats {
            levels: levels.into_values().collect(),
            columns: self.column_stats(with_codecs)?,
            damaged,
            memory_rows: self.memory.iter().map(|batch| batch.rows() as u64).sum(),
            memory_bytes: self.memory.iter().map(|batch| batch.byte_size()).sum(),
            sequence: self.sequence(),
            floor: self.version.catalog.floor,
        })
    }

    fn column_stats(&self, with_codecs: bool) -> Result<Vec<ColumnStats>> {
        let stored = self.schema().stored();
        let mut columns = Vec::with_capacity(stored.fields().len());
        for field in stored.fields() {
            let mut stats = ColumnStats {
                name: field.name().clone(),
                data_type: field.data_type().to_string(),
                bytes: 0,
                nulls: 0,
                codecs: BTreeMap::new(),
            };
            for run in &self.version.runs {
                let Ok(column) = run.fields().index_of(field.name()) else {
                    stats.nulls += run.id().rows;
                    continue;
                };
                for (index, group) in run.groups().iter().enumerate() {
                    stats.bytes += u64::from(group.chunks[column].length);
                    stats.nulls += u64::from(group.chunks[column].nulls);
                    if with_codecs {
                        let label = run.read_chunk(index, column)?.codec_label();
                        *stats.codecs.entry(label).or_default() += 1;
                    }
                }
            }
            columns.push(stats);
        }
        Ok(columns)
    }
}
