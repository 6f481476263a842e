//! Which rows a scan wants, decided on encoded columns.

use std::sync::Arc;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::predicate::{Coverage, Predicate};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::stats::Stats;

use crate::retention::Floor;
use crate::run::{Group, Run};
use crate::schema::StoreSchema;

use super::Scan;

struct Term {
    column: String,
    predicate: Arc<Predicate>,
    /// Whether rows that pass are left out.
    excludes: bool,
}

impl Term {
    /// Whether some of `rows` values, `nulls` of them null, may be wanted, by their `stats`.
    fn may_match(&self, stats: Stats, nulls: usize, rows: usize) -> bool {
        if !stats.known {
            return self.excludes || nulls < rows;
        }
        match self.predicate.coverage(stats.min, stats.max) {
            Coverage::None => self.excludes,
            Coverage::Some => true,
            Coverage::All => !self.excludes || nulls > 0,
        }
    }
}

/// Terms that all must hold.
pub(super) struct Filter {
    terms: Vec<Term>,
    /// Terms that decide about groups, not about rows.
    of_groups: Vec<Term>,
    work: Work,
}

impl Filter {
    /// Rows that `scan` wants and that are not below `floor`.
    pub(super) fn new(schema: &StoreSchema, scan: &Scan, floor: &Floor) -> Result<Self> {
        let mut terms = Vec::new();
        for range in &scan.ranges {
            let field = schema.fields().field(schema.position(&range.column)?);
            let predicate = Predicate::between(field.data_type(), &range.low, &range.high);
            let predicate = predicate.map_err(|error| error.column(field.name().as_str()))?;
            terms.push(Term {
                predicate: Arc::new(predicate),
                column: range.column.clone(),
                excludes: false,
            });
        }
        if let Some((column, limit)) = floor.limit() {
            let field = schema.fields().field(schema.position(column)?);
            let (low, high) = (i64::MIN.into(), (limit - 1).into());
            terms.push(Term {
                predicate: Arc::new(Predicate::between(field.data_type(), &low, &high)?),
                column: column.to_owned(),
                excludes: true,
            });
        }
        let of_groups = scan.passing.iter().map(|(column, predicate)| Term {
            column: column.clone(),
            predicate: Arc::clone(predicate),
            excludes: false,
        });
        Ok(Filter {
            terms,
            of_groups: of_groups.collect(),
            work: Work::default(),
        })
    }

    /// Columns that are compared, each once; with those that decide about groups if `of_groups`.
    pub(super) fn columns(&self, of_groups: bool) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        let of_groups = self.of_groups.iter().filter(|_| of_groups);
        for term in self.terms.iter().chain(of_groups) {
            if !columns.contains(&term.column) {
                columns.push(term.column.clone());
            }
        }
        columns
    }

    /// Whether some of the `wanted` rows of a group pass what decides about groups; `batch` has the
    /// columns.
    pub(super) fn some_pass(&mut self, batch: &Batch, wanted: &Selection) -> Result<bool> {
        let mut left = wanted.clone();
        for term in &self.of_groups {
            narrow(&mut left, term, batch, &mut self.work)?;
        }
        Ok(!left.is_empty())
    }

    /// Whether a group may hold wanted rows, by its statistics.
    pub(super) fn may_match(&self, run: &Run, group: &Group) -> bool {
        self.may_match_by(|_| true, run, group)
    }

    /// Whether a group may hold wanted rows, by the statistics of the columns that are `known`.
    pub(super) fn may_match_by(
        &self,
        known: impl Fn(&str) -> bool,
        run: &Run,
        group: &Group,
    ) -> bool {
        let terms = self.terms.iter().chain(&self.of_groups);
        terms.filter(|term| known(&term.column)).all(|term| {
            let Ok(column) = run.fields().index_of(&term.column) else {
                return term.excludes;
            };
            let chunk = &group.chunks[column];
            term.may_match(chunk.stats, chunk.nulls as usize, group.rows as usize)
        })
    }

    /// Whether rows may be wanted whose values of `column`, none of them null, are known by `stats`
    /// alone.
    pub(super) fn may_match_in(&self, column: &str, stats: Stats) -> bool {
        let terms = self.terms.iter().chain(&self.of_groups);
        let mut of_column = terms.filter(|term| term.column == column);
        of_column.all(|term| term.may_match(stats, 0, 1))
    }

    /// Whether a batch in memory may hold wanted rows, by its statistics.
    pub(super) fn may_match_batch(&self, batch: &Batch) -> bool {
        self.terms.iter().chain(&self.of_groups).all(|term| {
            let Ok(column) = batch.schema().index_of(&term.column) else {
                return term.excludes;
            };
            let chunk = batch.column(column);
            term.may_match(chunk.stats(), chunk.nulls(), chunk.rows())
        })
    }

    /// The wanted rows of `batch`, which has the columns that are compared.
    pub(super) fn select(&mut self, batch: &Batch) -> Result<Selection> {
        let mut wanted = Selection::all(batch.rows());
        for term in &self.terms {
            narrow(&mut wanted, term, batch, &mut self.work)?;
        }
        Ok(wanted)
    }
}

/// Leaves those of the `wanted` rows that `term` wants.
fn narrow(wanted: &mut Selection, term: &Term, batch: &Batch, work: &mut Work) -> Result<()> {
    let column = batch.schema().index_of(&term.column);
    let column = column.map_err(|_| Error::internal("a compared column was not read"))?;
    let mut passed = Selection::default();
    let chunk = batch.column(column);
    chunk.compare(&term.predicate, wanted, &mut passed, work);
    match term.excludes {
        true => wanted.subtract(&passed),
        false => std::mem::swap(wanted, &mut passed),
    }
    wanted.settle();
    Ok(())
}

/// Groups of which the columns that decide about them were looked at before the others.
#[derive(Debug, Default)]
pub(super) struct Looks {
    looks: u32,
    left_out: u32,
}

/// Looks after which one in so many must have left a group out.
const LOOKS_FREE: u32 = 8;
const LOOKS_EACH: u32 = 4;

impl Looks {
    /// Whether a look at the next group may save reading it.
    pub(super) fn may_pay(&self) -> bool {
        self.looks < LOOKS_FREE || self.left_out >= self.looks / LOOKS_EACH
    }

    /// Takes note of a look.
    pub(super) fn took(&mut self, left_out: bool) {
        self.looks += 1;
        self.left_out += u32::from(left_out);
    }
}
