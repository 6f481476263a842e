//! How far the rows of a join may be off when columns of its streams are.

use std::collections::BTreeSet;

use arrow_schema::Schema;

use super::expression::{any, names_of};
use super::{ResultBounds, rows_of};
use crate::expression::Expression;

/// What decides which rows of two streams a join pairs.
pub struct Pairing {
    /// Keys, times and conditions, which read the columns of both.
    pub by: Vec<Expression>,
    /// Whether a row of the right stream comes out also without one of the left, or with another
    /// one; and the other way round.
    pub optional: [bool; 2],
}

/// What the lossy columns of two streams, `inputs`, do to the rows that a join makes of them; in
/// `both` are their columns, the left ones first, by their names in the join.
///
/// The columns of a right row are what is found for the left one, as by a lookup: unknown where
/// it may be another row.
pub fn bounds_of_join(both: &Schema, inputs: [&Schema; 2], pairing: &Pairing) -> ResultBounds {
    let mut names = names_of(both);
    let read = |by: &Expression| any(by, &names).columns;
    let deciding: BTreeSet<String> = pairing.by.iter().flat_map(read).collect();
    let (lefts, rights) = both.fields().split_at(inputs[0].fields().len());
    let is_found = [pairing.optional[0], true];
    for (side, fields) in [lefts, rights].into_iter().enumerate() {
        let mut by = deciding.clone();
        if pairing.optional[side] {
            by.extend(rows_of(inputs[side]));
        }
        for field in fields.iter().filter(|_| is_found[side] && !by.is_empty()) {
            let own = names.remove(field.name()).unwrap_or_default();
            names.insert(field.name().clone(), own.found_by(&by));
        }
    }
    let mut rows = deciding;
    rows.extend(inputs.into_iter().flat_map(rows_of));
    ResultBounds {
        columns: names.into_iter().collect(),
        rows,
    }
}
