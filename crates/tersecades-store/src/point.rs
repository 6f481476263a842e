//! Reading rows by their key, again and again: only the chunks that may hold the key are opened,
//! what was opened stays, and of a chunk only the block that holds the key is looked at.
//!
//! ```text
//! key ─▶ ends of runs ─▶ filter ─▶ ends of groups ─▶ zones ─▶ block, compared encoded ─▶ values
//! ```

mod kept;
mod place;
mod term;

use std::ops::Range;
use std::sync::Arc;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;
use tersecades_columnar::values::Values;

use crate::run;
use crate::scan::{ColumnRange, KeyRange};
use crate::schema::{DELETED, StoreSchema};
use crate::version::Snapshot;
use crate::workload::Workload;

use kept::KeptChunks;
use place::{Place, RunPlace};
use term::Term;

/// Bytes of opened chunks that a reader keeps unless told otherwise.
const KEPT_BYTES: usize = 64 << 20;

/// Reads rows of one snapshot by their key.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use tersecades_store::{Store, StoreOptions, StoreSchema};
/// let folder = tempfile::tempdir()?;
/// let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
/// let rows = RecordBatch::try_from_iter([("k", numbers.clone()), ("v", numbers)])?;
/// let schema = StoreSchema::new(&rows.schema())?.key(&["k"])?;
/// let store = Store::create(folder.path(), schema, StoreOptions::default())?;
/// store.writer()?.append(&rows)?;
/// store.flush()?;
/// let mut reader = store.snapshot().point_reader(&["v"])?;
/// assert_eq!(reader.find(&[7.into()])?, [[7.into()]]);
/// assert!(reader.find(&[1_000.into()])?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PointReader {
    schema: StoreSchema,
    /// Columns of the sort order.
    terms: Vec<Term>,
    /// How many of them are the key.
    key_columns: usize,
    /// Columns after the terms: those that come out, the time, and what marks deleted rows.
    slots: Slots,
    runs: Vec<RunPlace>,
    memory: Vec<(Arc<Batch>, Vec<Option<usize>>)>,
    /// Rows whose time passes are gone.
    gone: Option<Predicate>,
    kept: KeptChunks,
    scratch: Scratch,
    workload: Arc<Workload>,
}

/// Where columns stand among those that are read.
struct Slots {
    wanted: Range<usize>,
    time: usize,
    deleted: usize,
}

/// Memory that is reused.
#[derive(Default)]
struct Scratch {
    selected: Selection,
    passed: Selection,
    values: Values,
    work: Work,
    key: Vec<u8>,
}

impl Snapshot {
    /// A reader of `columns` by the key, and the time where there is one.
    ///
    /// # Errors
    /// `InvalidArgument` for a store without an order and for unknown columns.
    pub fn point_reader(&self, columns: &[&str]) -> Result<PointReader> {
        let schema = self.schema();
        let fields = schema.fields();
        let sorted = schema.sort_columns();
        if sorted.is_empty() {
            return Err(Error::invalid("the store has neither a key nor a time")
                .hint("scan it; a key is named when a store is made"));
        }
        self.version.check(|_| true)?;
        let name = |column: &usize| fields.field(*column).name().clone();
        let mut names: Vec<String> = sorted.iter().map(name).collect();
        for column in columns {
            names.push(name(&schema.position(column)?));
        }
        let wanted = sorted.len()..names.len();
        let floor = self.version.floor();
        let gone = floor.limit().map(|(time, limit)| {
            let field = fields.field(schema.position(time)?);
            let (low, high) = (i64::MIN.into(), (limit - 1).into());
            Predicate::between(field.data_type(), &low, &high)
        });
        // Without a floor nobody reads the slot of the time.
        names.push(floor.limit().map_or_else(String::new, |it| it.0.to_owned()));
        names.push(DELETED.to_owned());
        let positions = |fields: &arrow_schema::SchemaRef| -> Vec<Option<usize>> {
            names.iter().map(|it| fields.index_of(it).ok()).collect()
        };
        let terms = sorted
            .iter()
            .map(|it| Term::new(fields.field(*it).data_type()));
        let mut chunks = 0;
        let runs = self.version.runs.iter();
        let runs = runs.map(|run| RunPlace::new(run, positions(run.fields()), &mut chunks));
        let runs = runs.collect();
        Ok(PointReader {
            schema: schema.clone(),
            terms: terms.collect::<Result<_>>()?,
            key_columns: schema.key_columns().len(),
            slots: Slots {
                time: wanted.end,
                deleted: wanted.end + 1,
                wanted,
            },
            runs,
            memory: self
                .memory
                .iter()
                .map(|batch| (Arc::clone(batch), positions(batch.schema())))
                .collect(),
            gone: gone.transpose()?,
            kept: KeptChunks::new(chunks, KEPT_BYTES),
            scratch: Scratch::default(),
            workload: Arc::clone(&self.workload),
        })
    }
}

impl PointReader {
    /// The same, keeping at most `bytes` of opened chunks.
    #[must_use]
    pub fn keeping(mut self, bytes: usize) -> Self {
        self.kept.set_limit(bytes);
        self
    }

    /// Chunks that had to be read from files so far.
    pub fn opened(&self) -> u64 {
        self.kept.opened()
    }

    /// The rows whose key is `key`: a value for each column of the key and, where wanted, the
    /// time; oldest first. A row is the values of the columns that the reader was made for.
    ///
    /// # Errors
    /// `InvalidArgument` for too few or too many values; `Corrupt` where a chunk that may hold the
    /// key is damaged.
    ///
    /// # Cost
    /// A look at the ends of each run; two blocks of each run that may hold the key.
    pub fn find(&mut self, key: &[Value]) -> Result<Vec<Vec<Value>>> {
        let least = self.key_columns.max(1);
        if !(least..=self.terms.len()).contains(&key.len()) {
            return Err(Error::invalid(format!("a key has {least} values here"))
                .hint("one for each column of the key, and the time where there is one"));
        }
        self.workload.found();
        let mut found = Vec::new();
        for (term, value) in self.terms.iter_mut().zip(key) {
            if !term.aim(value)? {
                return Ok(found);
            }
        }
        let aim = self.aim(key)?;
        match self.schema.is_primary() {
            true => self.find_newest(key.len(), &aim, &mut found)?,
            false => self.find_all(key.len(), &aim, &mut found)?,
        }
        Ok(found)
    }

    /// Every row with the key, oldest first.
    fn find_all(&mut self, terms: usize, aim: &Aim, found: &mut Vec<Vec<Value>>) -> Result<()> {
        for index in 0..self.runs.len() {
            for group in self.runs[index].groups(&self.terms[..terms], aim) {
                self.look(At::Run(index, group), terms, found)?;
            }
        }
        for index in 0..self.memory.len() {
            self.look(At::Memory(index), terms, found)?;
        }
        Ok(())
    }

    /// The row that counts of those with the primary key.
    fn find_newest(&mut self, terms: usize, aim: &Aim, found: &mut Vec<Vec<Value>>) -> Result<()> {
        for index in (0..self.memory.len()).rev() {
            if self.look(At::Memory(index), terms, found)? {
                return Ok(());
            }
        }
        for index in (0..self.runs.len()).rev() {
            for group in self.runs[index].groups(&self.terms[..terms], aim).rev() {
                if self.look(At::Run(index, group), terms, found)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How runs are asked for `key`.
    fn aim(&mut self, key: &[Value]) -> Result<Aim> {
        if self.terms.first().is_none_or(|term| term.point.is_none()) {
            let columns = self.schema.sort_columns();
            let ranges = columns.iter().zip(key).map(|(column, value)| ColumnRange {
                column: self.schema.fields().field(*column).name().clone(),
                low: value.clone(),
                high: value.clone(),
            });
            let range = KeyRange::new(&self.schema, &ranges.collect::<Vec<_>>())?;
            return Ok(Aim::Range(range));
        }
        if !self.runs.iter().any(RunPlace::has_filter) {
            return Ok(Aim::Point(None));
        }
        self.scratch.key.clear();
        let mut key = self.terms[..self.key_columns].iter();
        let known = key.all(|term| term.write_sort_bytes(&mut self.scratch.key));
        let hash = (known && self.key_columns > 0).then(|| run::hash(&self.scratch.key));
        Ok(Aim::Point(hash))
    }

    /// Adds what a place has of the wanted rows; whether it has any, deleted ones included.
    fn look(&mut self, at: At, terms: usize, found: &mut Vec<Vec<Value>>) -> Result<bool> {
        let (place, rows) = match at {
            At::Run(run, group) => {
                let place = &self.runs[run];
                if !place.may_hold(group, &self.terms[..terms]) {
                    return Ok(false);
                }
                (Place::Group(place, group), place.rows(group))
            }
            At::Memory(index) => {
                let (batch, columns) = &self.memory[index];
                (Place::Batch(batch, columns), batch.rows())
            }
        };
        let kept = &mut self.kept;
        let scratch = &mut self.scratch;
        if !select(&place, rows, &self.terms[..terms], kept, scratch)? {
            return Ok(false);
        }
        let time = match &self.gone {
            Some(_) => place.column(self.slots.time, kept)?,
            None => None,
        };
        if let (Some(gone), Some(times)) = (&self.gone, time) {
            times.compare(
                gone,
                &scratch.selected,
                &mut scratch.passed,
                &mut scratch.work,
            );
            scratch.selected.subtract(&scratch.passed);
        }
        let is_primary = self.schema.is_primary();
        if is_primary {
            let last = scratch.selected.last().unwrap_or(0) as u32;
            scratch.selected.set_rows(rows).push(last);
        }
        let first = found.len();
        let columns = self.slots.wanted.len();
        let row = || Vec::with_capacity(columns);
        found.resize_with(first + scratch.selected.count(), row);
        if is_primary && is_deleted(&place, self.slots.deleted, kept, scratch)? {
            found.truncate(first);
            return Ok(true);
        }
        for slot in self.slots.wanted.clone() {
            let chunk = place.column(slot, kept)?;
            if let Some(chunk) = &chunk {
                chunk.gather(&scratch.selected, &mut scratch.values, &mut scratch.work);
            }
            for (index, row) in found[first..].iter_mut().enumerate() {
                row.push(match chunk {
                    Some(_) => scratch.values.value(index),
                    None => Value::Null,
                });
            }
        }
        Ok(true)
    }
}

/// Selects the rows of `place` that `terms` want; whether there are any.
fn select(
    place: &Place<'_>,
    rows: usize,
    terms: &[Term],
    kept: &mut KeptChunks,
    scratch: &mut Scratch,
) -> Result<bool> {
    let mut found = 0..rows;
    let mut searched = 0;
    place.opened(kept).for_each(Chunk::prefetch_head);
    if place.is_sorted() {
        // Rows with the same values in the columns before ascend in this one.
        for (slot, term) in terms.iter().enumerate() {
            let chunk = place.column(slot, kept)?;
            let (Some(key), Some(chunk)) = (term.point, &chunk) else {
                break;
            };
            if chunk.nulls() > 0 {
                break;
            }
            found = chunk.search(key, found, &mut scratch.work);
            if found.is_empty() {
                return Ok(false);
            }
            searched += 1;
            if searched == 1 {
                place.opened(kept).for_each(Chunk::prefetch_inside);
            }
        }
    }
    scratch.selected.set_range(found, rows);
    for (slot, term) in terms.iter().enumerate().skip(searched) {
        let Some(chunk) = place.column(slot, kept)? else {
            return Ok(false);
        };
        if !term.may_be_in(chunk.stats(), chunk.nulls(), chunk.rows()) {
            return Ok(false);
        }
        let (selected, passed) = (&mut scratch.selected, &mut scratch.passed);
        chunk.compare(&term.predicate, selected, passed, &mut scratch.work);
        std::mem::swap(selected, passed);
        selected.settle();
        if selected.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the selected row marks its key as deleted.
fn is_deleted(
    place: &Place<'_>,
    slot: usize,
    kept: &mut KeptChunks,
    scratch: &mut Scratch,
) -> Result<bool> {
    let Some(chunk) = place.column(slot, kept)? else {
        return Ok(false);
    };
    chunk.gather(&scratch.selected, &mut scratch.values, &mut scratch.work);
    Ok(scratch.values.value(0) == Value::Integer(1))
}

/// How runs are asked for a key.
enum Aim {
    /// An integer comes first; filters know the key by this hash.
    Point(Option<u64>),
    /// By the bytes of the fences.
    Range(KeyRange),
}

/// Something to look at.
#[derive(Clone, Copy)]
enum At {
    /// A run and its group.
    Run(usize, usize),
    Memory(usize),
}
