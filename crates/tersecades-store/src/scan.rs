//! Reading a snapshot: groups that cannot match are skipped, the others come out encoded.
//!
//! ```text
//! filter ─▶ fences ─▶ zone maps ─▶ columns of the ranges, compared encoded ─▶ the other columns
//! ```

mod filter;
mod found;
mod key_range;

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::Tier;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::types::Value;

use crate::codec_policy::CodecPolicy;
use crate::encode::{Encoder, conform};
use crate::memory::decode_all;
use crate::merge::{Merge, MergeOptions, Piece, TEXT_BYTES};
use crate::retention::Floor;
use crate::run::{self, Run, RunId};
use crate::schema::{DELETED, StoreSchema};
use crate::sort_key::{SortKey, first_stats};
use crate::source::{SORTED_BYTES, Source};
use crate::version::Snapshot;

use filter::{Filter, Looks};
pub(crate) use key_range::KeyRange;

pub use found::Found;

/// Values of a column, both ends included.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnRange {
    /// The column.
    pub column: String,
    /// Least value.
    pub low: Value,
    /// Largest value.
    pub high: Value,
}

/// Which rows and columns are wanted; all by default.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Columns, in this order; `None` for all.
    pub columns: Option<Vec<String>>,
    /// Rows are wanted that lie in each of these.
    pub ranges: Vec<ColumnRange>,
    /// Groups of runs are left out that have no value of a column which passes; rows of the others
    /// need not pass.
    pub passing: Vec<(String, Arc<Predicate>)>,
    /// Only rows of the runs of this level.
    pub level: Option<u32>,
}

impl Scan {
    /// Only these columns.
    #[must_use]
    pub fn columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Only columns of `schema` that `names` has, at least one; all of them for `None`.
    #[must_use]
    pub fn some_columns(self, schema: &StoreSchema, names: Option<&[String]>) -> Self {
        let Some(wanted) = names else {
            return self;
        };
        let known = || schema.fields().fields().iter().map(|field| field.name());
        let mut columns: Vec<&String> = known().filter(|name| wanted.contains(name)).collect();
        if columns.is_empty() {
            // Rows are counted by any column.
            columns.extend(known().take(1));
        }
        self.columns(columns)
    }

    /// Only rows whose `column` lies between `low` and `high`, both included.
    #[must_use]
    pub fn between(mut self, column: &str, low: impl Into<Value>, high: impl Into<Value>) -> Self {
        self.ranges.push(ColumnRange {
            column: column.to_owned(),
            low: low.into(),
            high: high.into(),
        });
        self
    }

    /// Without groups of runs that have no value of `column` which passes `predicate`; the others
    /// come with all of their rows.
    #[must_use]
    pub fn passing(mut self, column: &str, predicate: Arc<Predicate>) -> Self {
        self.passing.push((column.to_owned(), predicate));
        self
    }

    /// Only rows of the runs of this level; not those in memory.
    #[must_use]
    pub fn of_level(mut self, level: u32) -> Self {
        self.level = Some(level);
        self
    }

    /// Only rows whose `column` is `value`.
    #[must_use]
    pub fn equal(self, column: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.between(column, value.clone(), value)
    }
}

/// One thing to read.
enum Part {
    Group(Arc<Run>, usize),
    Memory(Arc<Batch>),
}

impl Part {
    fn rows(&self) -> u64 {
        match self {
            Part::Group(run, index) => u64::from(run.group(*index).rows),
            Part::Memory(batch) => batch.rows() as u64,
        }
    }
}

enum Plan {
    /// Each part by itself.
    Parts(std::vec::IntoIter<Part>),
    /// Rows of the same key from everywhere, of which one counts.
    Merge(Box<Merge>, Box<Encoder>),
}

/// What a scan finds, read as it is asked for.
pub struct Scanned {
    plan: Plan,
    filter: Filter,
    /// Columns that come out, then those that are only compared.
    fields: SchemaRef,
    columns: usize,
    lateness: i64,
    /// The column in whose order parts come.
    time: Option<String>,
    /// Earliest time of the part that was read last.
    oldest: i64,
    looks: Looks,
}

impl Snapshot {
    /// The rows that `scan` wants.
    ///
    /// Where there is a time column and no primary key, parts come in the order of their earliest
    /// rows.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns and values of another type; reading may fail later.
    ///
    /// # Examples
    /// See [`Store`](crate::Store).
    pub fn scan(&self, scan: &Scan) -> Result<Scanned> {
        self.workload.scanned();
        self.scan_of(scan, true)
    }

    /// How much older than the newest row before it a row may be, where groups of rows are read in
    /// the order of their earliest times; of runs that cannot be opened nothing is read.
    ///
    /// # Errors
    /// As [`Snapshot::scan`], but for such runs.
    pub fn lateness(&self) -> Result<i64> {
        let scanned = self.scan_of(&Scan::default(), false)?;
        Ok(scanned.lateness)
    }

    /// The rows that `scan` wants, of runs that can be opened; where `is_whole`, no other may have
    /// any.
    fn scan_of(&self, scan: &Scan, is_whole: bool) -> Result<Scanned> {
        let schema = self.schema();
        let names = match &scan.columns {
            Some(names) => names.clone(),
            None => schema
                .fields()
                .fields()
                .iter()
                .map(|f| f.name().clone())
                .collect(),
        };
        for name in names
            .iter()
            .chain(scan.ranges.iter().map(|range| &range.column))
            .chain(scan.passing.iter().map(|(column, _)| column))
        {
            schema.position(name)?;
        }
        if scan.level.is_some() && schema.is_primary() {
            return Err(Error::unsupported(
                "the rows of one level where others may take their place",
            )
            .hint("read all levels of a store with a primary key"));
        }
        let floor = self.version.floor();
        let filter = Filter::new(schema, scan, &floor)?;
        let mut read = names.clone();
        let compared = filter.columns(!schema.is_primary()).into_iter();
        read.extend(compared.filter(|name| !names.contains(name)));
        let keys = KeyRange::new(schema, &scan.ranges)?;
        self.version.check(|id| {
            let of_level = scan.level.is_none_or(|level| id.level == level);
            is_whole
                && of_level
                && keys.may_be_between(id.fences.as_ref())
                && self.may_match(&filter, id)
        })?;
        let mut lateness = 0;
        let time = schema.time_column();
        let time = time.map(|time| schema.fields().field(time).name().clone());
        let plan = match schema.is_primary() {
            true => self.plan_merge(&mut read, &keys, &filter, floor)?,
            false => {
                let mut parts = self.parts(&keys, &filter, scan.level);
                if let Some(time) = &time {
                    lateness = found::order_by_time(&mut parts, time);
                }
                Plan::Parts(parts.into_iter())
            }
        };
        Ok(Scanned {
            plan,
            filter,
            fields: run::project(&schema.stored(), &read)?,
            columns: names.len(),
            lateness,
            time: time.filter(|_| !schema.is_primary()),
            oldest: i64::MIN,
            looks: Looks::default(),
        })
    }

    /// Whether rows of a run may be wanted, by what is known of the first column of their keys.
    fn may_match(&self, filter: &Filter, id: &RunId) -> bool {
        let first = self.schema().sort_columns().first().copied();
        first
            .zip(id.fences.as_ref())
            .is_none_or(|(column, fences)| {
                let field = self.schema().fields().field(column);
                let stats = first_stats(field.data_type(), fences);
                filter.may_match_in(field.name(), stats)
            })
    }

    /// What may hold rows that match.
    fn parts(&self, keys: &KeyRange, filter: &Filter, level: Option<u32>) -> Vec<Part> {
        let mut parts = Vec::new();
        let of_level = |run: &&Arc<Run>| level.is_none_or(|level| run.id().level == level);
        let runs = self.version.runs.iter().filter(of_level);
        for run in runs.filter(|run| keys.may_be_in(run)) {
            let groups = keys.groups(run);
            let wanted = groups.filter(|index| filter.may_match(run, run.group(*index)));
            parts.extend(wanted.map(|index| Part::Group(Arc::clone(run), index)));
        }
        if level.is_none() {
            let wanted = self.memory.iter().filter(|it| filter.may_match_batch(it));
            parts.extend(wanted.cloned().map(Part::Memory));
        }
        parts
    }

    /// A merge of all rows with wanted keys; the columns it needs are added to `read`.
    ///
    /// Groups are left out by their keys alone: by another column, one could be left out that
    /// holds the row that counts.
    fn plan_merge(
        &self,
        read: &mut Vec<String>,
        keys: &KeyRange,
        filter: &Filter,
        floor: Floor,
    ) -> Result<Plan> {
        let schema = self.schema();
        let stored = schema.stored();
        let key_names: Vec<&str> = schema
            .key_columns()
            .iter()
            .map(|key| stored.field(*key).name().as_str())
            .collect();
        for name in key_names.iter().copied().chain([DELETED]) {
            if !read.iter().any(|known| known == name) {
                read.push(name.to_owned());
            }
        }
        let fields = run::project(&stored, read)?;
        let mut sources: Vec<Source> = Vec::new();
        for run in self.version.runs.iter().filter(|run| keys.may_be_in(run)) {
            let is_key = |column: &str| key_names.contains(&column);
            let groups = keys.groups(run);
            let wanted = |at: &usize| filter.may_match_by(is_key, run, run.group(*at));
            if let Some(first) = groups.clone().find(wanted) {
                let last = groups.rev().find(wanted).unwrap_or(first);
                sources.push(Source::Run(Arc::clone(run), first..last + 1));
            }
        }
        let rows = decode_all(&self.memory, &fields)?;
        sources.extend(Source::sorted(&SortKey::new(schema)?, &rows, SORTED_BYTES)?);
        let options = MergeOptions {
            chunk_rows: self.options().chunk_rows,
            text_bytes: TEXT_BYTES,
            series_rows: usize::MAX,
            splice_rows: 1,
            is_oldest: true,
            hashes_keys: false,
        };
        let encoder = Encoder::new(&fields, CodecPolicy::None, Tier::Hot)?;
        let merge = Merge::new(schema, fields, sources, floor, options)?;
        Ok(Plan::Merge(Box::new(merge), Box::new(encoder)))
    }
}

impl Scanned {
    /// Columns of what is found.
    ///
    /// # Errors
    /// Never for columns that [`Snapshot::scan`] found.
    pub fn schema(&self) -> Result<SchemaRef> {
        self.fields_in(0..self.columns)
    }

    /// Parts that are still to be read, unless rows are merged.
    pub(crate) fn parts_left(&self) -> Option<usize> {
        match &self.plan {
            Plan::Parts(parts) => Some(parts.len()),
            Plan::Merge(..) => None,
        }
    }

    /// The least time of what was found last and of what is still to be found.
    pub fn oldest_to_come(&self) -> i64 {
        self.oldest
    }

    /// Rows that may still be found, where that is known: those of parts that were not skipped.
    pub fn rows_hint(&self) -> Option<u64> {
        match &self.plan {
            Plan::Parts(parts) => Some(parts.as_slice().iter().map(Part::rows).sum()),
            Plan::Merge(..) => None,
        }
    }

    fn fields_in(&self, columns: Range<usize>) -> Result<SchemaRef> {
        let columns: Vec<usize> = columns.collect();
        Ok(Arc::new(self.fields.project(&columns)?))
    }

    /// The columns that come out of `batch`, which has all.
    fn cut(&self, batch: Batch) -> Result<Batch> {
        match batch.columns().len() == self.columns {
            true => Ok(batch),
            false => conform(batch, &self.schema()?),
        }
    }

    fn next_found(&mut self) -> Result<Option<Found>> {
        loop {
            let found = match &mut self.plan {
                Plan::Parts(parts) => match parts.next() {
                    None => return Ok(None),
                    Some(part) => {
                        if let Some(time) = &self.time {
                            self.oldest = found::earliest(&part, time);
                        }
                        self.read_part(&part)?
                    }
                },
                Plan::Merge(merge, encoder) => match merge.next()? {
                    None => return Ok(None),
                    Some(piece) => {
                        let batch = match piece {
                            Piece::Spliced(run, index) => run.read_group(index, &self.fields)?,
                            Piece::Rows(rows, _) => encoder.encode(&rows)?,
                        };
                        self.select(batch)?
                    }
                },
            };
            if found.as_ref().is_some_and(|found| found.rows() > 0) {
                return Ok(found);
            }
        }
    }

    fn read_part(&mut self, part: &Part) -> Result<Option<Found>> {
        match part {
            Part::Memory(batch) => self.select(conform(Batch::clone(batch), &self.fields)?),
            Part::Group(run, index) => {
                // What is compared first; the rest is read where rows are left.
                let looks = self.looks.may_pay();
                let names = self.filter.columns(looks);
                if names.is_empty() {
                    let batch = run.read_group(*index, &self.schema()?)?;
                    return Ok(Some(Found::all(batch)));
                }
                let compared = run.read_group(*index, &run::project(&self.fields, &names)?)?;
                let selection = self.filter.select(&compared)?;
                if looks {
                    let left_out = !self.filter.some_pass(&compared, &selection)?;
                    self.looks.took(left_out);
                    if left_out {
                        return Ok(None);
                    }
                }
                if selection.is_empty() {
                    return Ok(None);
                }
                let fields = self.schema()?;
                let rest = |field: &&Arc<arrow_schema::Field>| !names.contains(field.name());
                let rest: Vec<String> = fields
                    .fields()
                    .iter()
                    .filter(rest)
                    .map(|f| f.name().clone())
                    .collect();
                let others = run.read_group(*index, &run::project(&fields, &rest)?)?;
                let batch = found::join(&fields, compared, others)?;
                Ok(Some(Found::new(batch, selection)))
            }
        }
    }

    fn select(&mut self, batch: Batch) -> Result<Option<Found>> {
        let selection = self.filter.select(&batch)?;
        Ok(Some(Found::new(self.cut(batch)?, selection)))
    }
}

impl Iterator for Scanned {
    type Item = Result<Found>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_found().transpose()
    }
}
