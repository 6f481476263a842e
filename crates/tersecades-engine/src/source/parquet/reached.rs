//! Row groups of which few rows may be among the first of an order, as far as the query has come:
//! those rows alone are read, after the column that says which they are.
//!
//! ```text
//! top_k 10 by price desc    group 7   ends of price in the footer    none may be ──▶ left out
//!                                     price of all rows              few may be ──▶ all columns
//!                                                                    else       ──▶ group.rs
//! ```
//! Where no filter stands before the operator, no more rows of a group may be than it keeps, also
//! while no bound is known.
//! They come in one batch, so that rows are never left out of what is read later.

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchReader};
use arrow_buffer::BooleanBuffer;
use arrow_select::concat::{concat, concat_batches};
use arrow_select::filter::filter;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::file::reader::ChunkReader;
use tersecades_columnar::error::{Error, Result};

use super::group::{Group, Wanted, coded, leaf_of, reader_of};
use super::prune::ends;
use crate::operator::row::bound::{Bound, Reached};
use crate::source::passing::Failing;

/// Rows are few where there is at most one in so many.
const FEW_SHARE: usize = 16;

/// The rows of a row group that are read.
pub(super) enum GroupRows {
    /// All but those that fail tests.
    All(Box<Group>),
    /// Those that may be among the first ones, if they are not given yet, and how many there are
    /// of others.
    Few(Option<RecordBatch>, u64),
}

impl GroupRows {
    /// Those of row group number `group` of the file that `input` opens.
    ///
    /// # Errors
    /// As [`Group::open`].
    pub(super) fn open<R>(
        input: impl Fn() -> Result<R>,
        wanted: &Wanted,
        group: usize,
    ) -> Result<Self>
    where
        R: ChunkReader + 'static,
    {
        match few_rows(&input, wanted, group)? {
            Some(few) => Ok(few),
            None => Ok(GroupRows::All(Box::new(Group::open(
                input()?,
                wanted,
                group,
            )?))),
        }
    }

    /// The next batch, or `None` at the end of the group.
    ///
    /// # Errors
    /// As [`Group::next`].
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            GroupRows::All(group) => group.next(),
            GroupRows::Few(rows, _) => Ok(rows.take()),
        }
    }

    /// Rows that were left out since this was asked last.
    pub(super) fn take_left_out(&mut self) -> u64 {
        match self {
            GroupRows::All(group) => group.take_left_out(),
            GroupRows::Few(_, left_out) => std::mem::take(left_out),
        }
    }
}

/// The few rows of a group that may be among the first ones; `None` where they are not few, or it
/// is not known.
fn few_rows<R>(
    input: impl Fn() -> Result<R>,
    wanted: &Wanted,
    group: usize,
) -> Result<Option<GroupRows>>
where
    R: ChunkReader + 'static,
{
    let passing = &wanted.passing;
    let Some((column, reached)) = &passing.reached else {
        return Ok(None);
    };
    let Some((position, _)) = wanted.metadata.schema().fields().find(column) else {
        return Ok(None);
    };
    let bound = reached.get();
    if passing.failing != Failing::Nothing || bound.is_none() && !reached.goes_by_part() {
        return Ok(None);
    }
    let rows = wanted.metadata.metadata().row_group(group).num_rows();
    let rows = usize::try_from(rows).unwrap_or(0);
    let bound = bound.as_deref();
    if bound.is_some_and(|bound| is_behind(wanted, (group, position), bound)) {
        return Ok(Some(GroupRows::Few(None, rows as u64)));
    }
    let most = (rows / FEW_SHARE).min(wanted.batch_rows);
    if wanted.positions.len() < 2 || most == 0 {
        return Ok(None);
    }
    let place = (group, position);
    let few = |found: &(Vec<usize>, usize)| found.0.len() <= most;
    let mut found = match bound {
        Some(bound) => rows_before(input()?, wanted, place, (bound, most))?,
        None => None,
    };
    if found.is_none() && reached.goes_by_part() {
        found = rows_of_part(input()?, wanted, place, reached)?.filter(few);
    }
    // What is wrong with a column of another length is said where all are read.
    let found = found.and_then(|(found, read)| (read == rows).then_some(found));
    reached.note(found.is_some());
    let Some(found) = found else {
        return Ok(None);
    };
    let left_out = (rows - found.len()) as u64;
    if found.is_empty() {
        return Ok(Some(GroupRows::Few(None, left_out)));
    }
    let given = read(input()?, wanted, group, (&found, rows))?;
    Ok(Some(GroupRows::Few(Some(given), left_out)))
}

/// Whether the ends of the column at `position` say that no row comes before `bound`.
fn is_behind(wanted: &Wanted, (group, position): (usize, usize), bound: &Bound) -> bool {
    let metadata = &wanted.metadata;
    let leaf = leaf_of(metadata.parquet_schema(), position);
    let chunk = leaf.map(|leaf| metadata.metadata().row_group(group).column(leaf));
    let Some(statistics) = chunk.and_then(|chunk| chunk.statistics()) else {
        return false;
    };
    let has_nulls = statistics.null_count_opt() != Some(0);
    let ends = ends(metadata.schema().field(position), statistics);
    ends.is_some_and(|(low, high)| bound.is_before_all(low, high, has_nulls))
}

/// The rows of a group whose value in the column at `position` may come before `bound`, and how
/// many values there are; `None` where there are more rows than `most`, or values do not compare.
fn rows_before<R>(
    input: R,
    wanted: &Wanted,
    (group, position): (usize, usize),
    (bound, most): (&Bound, usize),
) -> Result<Option<(Vec<usize>, usize)>>
where
    R: ChunkReader + 'static,
{
    let (mut found, mut first) = (Vec::new(), 0);
    let chosen = (None, wanted.batch_rows);
    for batch in reader_of(input, wanted, (group, &[position]), chosen)? {
        let batch = batch?;
        let Some(before) = bound.before(batch.column(0))? else {
            return Ok(None);
        };
        found.extend(before.set_indices().map(|row| first + row));
        if found.len() > most {
            return Ok(None);
        }
        first += batch.num_rows();
    }
    Ok(Some((found, first)))
}

/// The rows of a group that may be among its first ones, and how many rows it has; `None` where
/// values do not compare.
fn rows_of_part<R>(
    input: R,
    wanted: &Wanted,
    (group, position): (usize, usize),
    reached: &Reached,
) -> Result<Option<(Vec<usize>, usize)>>
where
    R: ChunkReader + 'static,
{
    let (mut rows, mut first): (Vec<usize>, _) = (Vec::new(), 0);
    let mut bound: Option<Bound> = None;
    // Values of `rows`.
    let mut values: Option<ArrayRef> = None;
    for batch in reader_of(
        input,
        wanted,
        (group, &[position]),
        (None, wanted.batch_rows),
    )? {
        let batch = batch?;
        let column = batch.column(0);
        let more = match &bound {
            Some(bound) => bound.before(column)?,
            None => Some(BooleanBuffer::new_set(column.len())),
        };
        let Some(more) = more else {
            return Ok(None);
        };
        rows.extend(more.set_indices().map(|row| first + row));
        first += column.len();
        let more = filter(column, &BooleanArray::new(more, None))?;
        let all = match values.take() {
            Some(values) => concat(&[&*values, &*more])?,
            None => more,
        };
        if let Some(tighter) = reached.of_part(&all)? {
            let Some(kept) = tighter.before(&all)? else {
                return Ok(None);
            };
            rows = kept.set_indices().map(|at| rows[at]).collect();
            values = Some(filter(&all, &BooleanArray::new(kept, None))?);
            bound = Some(tighter);
        } else {
            values = Some(all);
        }
    }
    Ok(bound.map(|_| (rows, first)))
}

/// All columns of the `chosen` rows of a group of `rows`.
fn read<R>(
    input: R,
    wanted: &Wanted,
    group: usize,
    (chosen, rows): (&[usize], usize),
) -> Result<RecordBatch>
where
    R: ChunkReader + 'static,
{
    let ranges = chosen.iter().map(|row| *row..*row + 1);
    let selection = RowSelection::from_consecutive_ranges(ranges, rows);
    let positions = (group, wanted.positions.as_slice());
    let reader = reader_of(input, wanted, positions, (Some(selection), chosen.len()))?;
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.collect::<std::result::Result<_, _>>()?;
    let read = concat_batches(&schema, &batches)?;
    if read.num_rows() != chosen.len() {
        return Err(Error::corrupt(
            "the columns of a row group differ in length",
        ));
    }
    let columns = read
        .columns()
        .iter()
        .map(|column| coded(ArrayRef::clone(column)));
    let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
    Ok(RecordBatch::try_new(wanted.schema.clone(), columns)?)
}
