//! `leading`: leaves out rows that stand behind so many others of their key that no rank up to a
//! number falls to them.
//!
//! ```text
//! rows ──word of the order, group──▶ no later than the last place of its group? ──▶ kept, encoded
//!                                                  └─▶ the first places of each group, so far
//! ```
//! It stands before [`super::over`] where a filter wants its first ranks only: what comes out has
//! the same ranks there as among all rows. Some of it may be out of the first places all the same,
//! where words do not tell the rows apart.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::expression::Expression;
use crate::runtime::on_thread::together;
use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::group::GroupKeys;
use super::row::kept::KeptRows;
use super::row::keys::SortOrder;
use super::row::paged::Paged;
use super::row::shape::{OUTPUT_ROWS, batch_of, take};
use super::row::word::OrderWords;
use super::row::{RowInput, RowOperator, RowOperatorPlan, threads_for};
use super::sort::{SortKeys, describe_order};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "leading",
    summary: "leaves out rows behind the first of their key, where only those are asked for",
};

/// Most places of a key.
pub const COUNT_MAX: usize = 256;

/// Rows are sifted again when there are so many times those that were left.
const GROWTH: usize = 4;

/// How the places of rows that are equal in the order are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// Each is a place; the first to arrive is before the others: `row_number`.
    Apart,
    /// Each is a place, but all are the first of them: `rank`.
    Together,
    /// All are one place: `dense_rank`.
    Dense,
}

/// Which rows stay.
#[derive(Debug, Clone, PartialEq)]
pub struct Leading {
    /// Columns that are equal in rows of one key; null equals null.
    pub keys: Vec<String>,
    /// The order among them, the most significant expression first.
    pub by: Vec<(Expression, SortOrder)>,
    /// How many places of each key there are, at least one and at most [`COUNT_MAX`].
    pub count: usize,
    /// How equal rows are counted.
    pub ties: Ties,
}

impl RowOperatorPlan for Leading {
    fn describe(&self) -> String {
        let (count, keys, by) = (self.count, self.keys.join(", "), describe_order(&self.by));
        let ties = match self.ties {
            Ties::Apart => "",
            Ties::Together => " with ties",
            Ties::Dense => " different ones",
        };
        format!("leading {count}{ties} of [{keys}] by [{by}]")
    }

    fn keeps_windows(&self) -> bool {
        false
    }

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        let by = SortKeys::bind(&self.by, &input.schema)?;
        let orders = self.by.iter().map(|(_, order)| *order);
        let words = OrderWords::new(by.types().cloned().zip(orders));
        let ties = match self.ties {
            Ties::Apart if !words.is_whole() => Ties::Together,
            ties => ties,
        };
        Ok(Box::new(Sieve {
            schema: Arc::clone(&input.schema),
            groups: GroupKeys::bind(&self.keys, &input.schema)?,
            by,
            words,
            found: Vec::new(),
            places: Places::new(self.count, ties),
            held: Paged::default(),
            rows: KeptRows::new(&input.schema)?,
            arrived: 0,
            threads: 1,
            sifted_at: OUTPUT_ROWS * GROWTH,
        }))
    }
}

/// Where a row stands among those of its group: the word of its order, and when it came.
type Place = (u128, u64);

/// The first places of groups.
#[derive(Debug)]
struct Places {
    count: usize,
    ties: Ties,
    groups: Paged<Group>,
    /// The first places of each group in order, where there is more than one.
    first: Vec<Place>,
}

/// The last place of a group, and where its first ones are.
#[derive(Debug, Clone, Copy)]
struct Group {
    bound: Place,
    start: usize,
    len: u32,
    /// For so many is there room.
    room: u32,
}

impl Group {
    const EMPTY: Group = Group {
        bound: (u128::MAX, u64::MAX),
        start: 0,
        len: 0,
        room: 0,
    };
}

impl Places {
    fn new(count: usize, ties: Ties) -> Self {
        Places {
            count,
            ties,
            groups: Paged::default(),
            first: Vec::new(),
        }
    }

    /// Whether a row there is not out of the first places so far.
    fn has(&self, held: &Held) -> bool {
        held.place() <= self.groups[held.group as usize].bound
    }

    /// Takes a place, which puts out all behind the last; whether it is among the first so far.
    fn add(&mut self, held: &Held) -> bool {
        if !self.has(held) {
            return false;
        }
        let word = held.word;
        let tied = (word, u64::MAX);
        let group = &mut self.groups[held.group as usize];
        if self.count == 1 {
            group.bound = match self.ties {
                Ties::Apart => held.place(),
                Ties::Together | Ties::Dense => tied,
            };
            return true;
        }
        let place = match self.ties {
            Ties::Apart | Ties::Together => held.place(),
            Ties::Dense => tied,
        };
        let known = &self.first[group.start..][..group.len as usize];
        let at = known.partition_point(|known| *known < place);
        // As the first place behind the last, which is equal in the order, it puts out none.
        if at == self.count || known.get(at) == Some(&place) {
            return true;
        }
        if group.len == group.room && (group.len as usize) < self.count {
            let room = (known.len() * 2).clamp(2, self.count);
            let start = self.first.len();
            self.first
                .extend_from_within(group.start..group.start + group.len as usize);
            self.first.resize(start + room, (0, 0));
            (group.start, group.room) = (start, room as u32);
        }
        group.len = (group.len + 1).min(group.room);
        let first = &mut self.first[group.start..][..group.len as usize];
        first.copy_within(at..first.len() - 1, at + 1);
        first[at] = place;
        if let Some((word, arrival)) = first.get(self.count - 1) {
            group.bound = match self.ties {
                Ties::Apart => (*word, *arrival),
                Ties::Together | Ties::Dense => (*word, u64::MAX),
            };
        }
        true
    }

    fn byte_size(&self) -> usize {
        self.groups.byte_size() + self.first.capacity() * size_of::<Place>()
    }
}

/// A row that is kept.
#[derive(Debug, Clone, Copy)]
struct Held {
    word: u128,
    arrival: u64,
    group: u32,
}

impl Held {
    fn place(&self) -> Place {
        (self.word, self.arrival)
    }
}

struct Sieve {
    schema: SchemaRef,
    groups: GroupKeys,
    by: SortKeys,
    words: OrderWords,
    /// Words of the rows that are looked at.
    found: Vec<u128>,
    places: Places,
    /// Where each kept row stands.
    held: Paged<Held>,
    rows: KeptRows,
    /// Rows that came.
    arrived: u64,
    /// So many take in rows at once.
    threads: usize,
    /// So many kept rows are sifted again.
    sifted_at: usize,
}

impl Sieve {
    fn keep(&mut self, rows: RecordBatch) -> Result<()> {
        let mut groups = Vec::new();
        let (keys, by, words) = (&mut self.groups, &mut self.by, &self.words);
        let number = || -> Result<()> {
            groups = keys.ids(&rows)?;
            Ok(())
        };
        let (count, found) = (rows.num_rows(), &mut self.found);
        let place = || words.of(&by.columns(&rows)?, count, found);
        let threads = threads_for(count, self.threads);
        together(threads, [Box::new(number), Box::new(place)])?;
        self.places.groups.grow(self.groups.len(), Group::EMPTY);
        let (found, arrived) = (&self.found, self.arrived);
        let held = |row: &u32| Held {
            word: found[*row as usize],
            arrival: arrived + u64::from(*row),
            group: groups[*row as usize],
        };
        let all = 0..rows.num_rows() as u32;
        let mut likely: Vec<u32> = all.filter(|row| self.places.add(&held(row))).collect();
        // What later rows of the same batch have put out is not kept at all.
        likely.retain(|row| self.places.has(&held(row)));
        self.held.extend(likely.iter().map(held));
        self.arrived += rows.num_rows() as u64;
        self.rows.push(match likely.len() == rows.num_rows() {
            true => rows,
            false => take(&rows, likely)?,
        })?;
        match self.held.len() >= self.sifted_at {
            true => self.sift(),
            false => Ok(()),
        }
    }

    /// Numbers of the kept rows that are in the first places.
    fn staying(&self) -> Vec<u64> {
        let held = self.held.iter().enumerate();
        let stay = held.filter(|(_, held)| self.places.has(held));
        stay.map(|(number, _)| number as u64).collect()
    }

    /// Forgets kept rows that others have put out, where they are many.
    fn sift(&mut self) -> Result<()> {
        let staying = self.staying();
        if staying.len() <= self.held.len() / 2 {
            let mut kept = KeptRows::new(&self.schema)?;
            self.hand(&staying, |rows| kept.push(rows).map(|_| ()))?;
            self.rows = kept;
            let places = &self.places;
            self.held.retain(|held| places.has(held));
        }
        self.sifted_at = (self.held.len() * GROWTH).max(OUTPUT_ROWS * GROWTH);
        Ok(())
    }

    /// Hands the kept rows with these numbers to `taker`.
    fn hand(
        &mut self,
        numbers: &[u64],
        mut taker: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        for numbers in numbers.chunks(OUTPUT_ROWS) {
            let columns = self.rows.pick(numbers)?;
            taker(batch_of(&self.schema, columns, numbers.len())?)?;
        }
        Ok(())
    }
}

impl RowOperator for Sieve {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn work_on(&mut self, threads: usize) {
        self.threads = threads;
    }

    fn push(&mut self, rows: RecordBatch, _out: &mut Vec<RecordBatch>) -> Result<()> {
        self.keep(rows)
    }

    fn finish(&mut self, out: &mut Vec<RecordBatch>) -> Result<bool> {
        let staying = self.staying();
        self.hand(&staying, |rows| {
            out.push(rows);
            Ok(())
        })?;
        self.rows = KeptRows::new(&self.schema)?;
        self.held = Paged::default();
        self.groups.clear();
        self.places = Places::new(self.places.count, self.places.ties);
        Ok(false)
    }

    fn byte_size(&self) -> usize {
        self.rows.byte_size()
            + self.groups.byte_size()
            + self.places.byte_size()
            + self.held.byte_size()
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.rows.snapshot(out)
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let batches = self.rows.read(from)?;
        batches.into_iter().try_for_each(|batch| self.keep(batch))
    }
}
