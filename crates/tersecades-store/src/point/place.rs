//! Where rows with a key may be: groups of runs, and batches in memory.

use std::ops::Range;
use std::sync::Arc;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::error::Result;
use tersecades_columnar::stats::Stats;

use crate::run::Run;

use super::Aim;
use super::kept::KeptChunks;
use super::term::Term;

/// A run, with what is looked at for every key.
pub(super) struct RunPlace {
    run: Arc<Run>,
    /// Where the columns that are read stand in the run.
    columns: Vec<Option<usize>>,
    /// Number of the chunk of the first column and group among those of all runs.
    first_chunk: usize,
    /// Smallest and largest value of the first column of the order, group by group; empty where
    /// they are not known.
    ends: Vec<(u64, u64)>,
    /// Smallest and largest value of each column that is read.
    zones: Vec<Stats>,
}

impl RunPlace {
    /// `run`, of which `columns` are read; the first is the first of its order. `chunks` counts
    /// those of all runs.
    pub(super) fn new(run: &Arc<Run>, columns: Vec<Option<usize>>, chunks: &mut usize) -> Self {
        let first_chunk = *chunks;
        *chunks += run.groups().len() * columns.len();
        let stats = |column: usize| run.groups().iter().map(move |group| group.chunks[column]);
        let ends = columns.first().copied().flatten().and_then(|column| {
            let ends = stats(column).map(|chunk| {
                let certain = chunk.stats.known && chunk.nulls == 0;
                certain.then_some((chunk.stats.min, chunk.stats.max))
            });
            ends.collect::<Option<Vec<_>>>()
        });
        let zone = |column: &Option<usize>| {
            let known = stats((*column)?).map(|chunk| chunk.stats.known.then_some(chunk.stats));
            let known = known.collect::<Option<Vec<_>>>()?;
            let (min, max) = known.iter().fold((u64::MAX, 0), |(min, max), stats| {
                (min.min(stats.min), max.max(stats.max))
            });
            Some(Stats::from_ends(min, max))
        };
        RunPlace {
            zones: columns
                .iter()
                .map(|it| zone(it).unwrap_or_default())
                .collect(),
            ends: ends.unwrap_or_default(),
            columns,
            first_chunk,
            run: Arc::clone(run),
        }
    }

    /// The column that is read as number `slot` in group `group`; `None` where it is null
    /// throughout.
    fn column<'k>(
        &self,
        group: usize,
        slot: usize,
        kept: &'k mut KeptChunks,
    ) -> Result<Option<&'k Chunk>> {
        let Some(column) = self.columns[slot] else {
            return Ok(None);
        };
        // A column may be read for its order and for its values: its chunk is one.
        let same = self.columns.iter().position(|it| *it == Some(column));
        let number = self.first_chunk + group * self.columns.len() + same.unwrap_or(slot);
        kept.get(number, || self.run.read_chunk(group, column))
            .map(Some)
    }

    /// Whether a filter tells which keys there are.
    pub(super) fn has_filter(&self) -> bool {
        self.run.has_filter()
    }

    /// Rows of a group.
    pub(super) fn rows(&self, group: usize) -> usize {
        self.run.group(group).rows as usize
    }

    /// The groups that may hold what `terms` want.
    pub(super) fn groups(&self, terms: &[Term], aim: &Aim) -> Range<usize> {
        let mut zones = self.zones.iter().zip(terms);
        if !zones.all(|(stats, term)| term.may_be_in(*stats, 0, usize::MAX)) {
            return 0..0;
        }
        let held = match aim {
            Aim::Point(hash) => hash.is_none_or(|hash| self.run.may_hold(hash)),
            Aim::Range(range) => range.may_be_in(&self.run),
        };
        if !held {
            return 0..0;
        }
        match (aim, terms.first().and_then(|term| term.point)) {
            (Aim::Range(range), _) => range.groups(&self.run),
            (Aim::Point(_), Some(key)) if !self.ends.is_empty() => {
                let start = self.ends.partition_point(|(_, max)| *max < key);
                let rest = &self.ends[start..];
                start..start + rest.partition_point(|(min, _)| *min <= key)
            }
            _ => 0..self.run.groups().len(),
        }
    }

    /// Whether group `group` may hold what `terms` want, by its statistics.
    pub(super) fn may_hold(&self, group: usize, terms: &[Term]) -> bool {
        let group = self.run.group(group);
        let mut columns = self.columns.iter().zip(terms);
        columns.all(|(column, term)| {
            column.is_some_and(|column| {
                let chunk = &group.chunks[column];
                term.may_be_in(chunk.stats, chunk.nulls as usize, group.rows as usize)
            })
        })
    }
}

/// Rows that lie together.
pub(super) enum Place<'a> {
    /// A group of a run.
    Group(&'a RunPlace, usize),
    /// A batch, and where the columns that are read stand in it.
    Batch(&'a Batch, &'a [Option<usize>]),
}

impl<'a> Place<'a> {
    /// Whether rows lie in the order of the store.
    pub(super) fn is_sorted(&self) -> bool {
        matches!(self, Place::Group(..))
    }

    /// The opened chunks that are read.
    pub(super) fn opened<'k>(&self, kept: &'k KeptChunks) -> impl Iterator<Item = &'k Chunk> {
        let numbers = match self {
            Place::Group(place, group) => {
                let first = place.first_chunk + group * place.columns.len();
                first..first + place.columns.len()
            }
            Place::Batch(..) => 0..0,
        };
        kept.of(numbers)
    }

    /// The column that is read as number `slot`; `None` where it is null throughout.
    ///
    /// # Errors
    /// What reading says.
    pub(super) fn column<'k>(
        &self,
        slot: usize,
        kept: &'k mut KeptChunks,
    ) -> Result<Option<&'k Chunk>>
    where
        'a: 'k,
    {
        match self {
            Place::Group(place, group) => place.column(*group, slot, kept),
            Place::Batch(batch, columns) => Ok(columns[slot].map(|column| batch.column(column))),
        }
    }
}
