//! One record as the cells of a row.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

use arrow_schema::Schema;
use tersecades_columnar::error::Result;

use super::scan::{Leaf, Scan, Visit, walk};
use crate::source::csv::field::{Cell, FieldKind};
use crate::source::csv::timestamp::TimePattern;
use crate::source::csv::{CsvOptions, excerpt};
use crate::source::text::{BadRow, RowResult};

/// Which keys there are and how those that are wanted are read.
pub(super) struct RowPlan {
    columns: Vec<Column>,
    /// Known keys in the order of the first rows, with the column of those that are wanted.
    order: Vec<(String, Option<usize>)>,
    /// Places in `order`.
    places: BTreeMap<String, usize>,
}

struct Column {
    name: String,
    kind: FieldKind,
}

impl RowPlan {
    /// How rows of `whole` are read, of which the columns at `positions` are wanted.
    ///
    /// # Errors
    /// `Unsupported` for types that text cannot become.
    pub(super) fn new(whole: &Schema, positions: &[usize], options: &CsvOptions) -> Result<Self> {
        let mut columns = Vec::with_capacity(positions.len());
        for field in positions.iter().map(|position| whole.field(*position)) {
            let formats = options.timestamp_formats.iter();
            let pattern = formats
                .filter(|(name, _)| name == field.name())
                .map(|(_, it)| it);
            let pattern = pattern.map(|it| TimePattern::new(it)).next().transpose()?;
            let kind = FieldKind::new(field.data_type(), pattern)
                .map_err(|error| error.column(field.name()))?;
            let name = field.name().clone();
            columns.push(Column { name, kind });
        }
        let wanted = |index: usize| positions.iter().position(|position| *position == index);
        let names = whole.fields().iter().map(|field| field.name());
        let order: Vec<(String, Option<usize>)> = names
            .enumerate()
            .map(|(index, name)| (name.clone(), wanted(index)))
            .collect();
        let places = order
            .iter()
            .enumerate()
            .map(|(place, (name, _))| (name.clone(), place));
        Ok(RowPlan {
            columns,
            places: places.collect(),
            order,
        })
    }

    /// Whether columns lie in the object `path`.
    fn is_object(&self, path: &str) -> bool {
        let start = format!("{path}.");
        let from = (Bound::Included(start.as_str()), Bound::Unbounded);
        let first = self.places.range::<str, _>(from).next();
        first.is_some_and(|(name, _)| name.starts_with(&start))
    }

    /// Parses `text` into `cells` and returns the texts they came from.
    pub(super) fn parse<'a>(
        &self,
        text: &'a [u8],
        path: &mut String,
        cells: &mut Vec<Cell>,
    ) -> RowResult<Vec<Cow<'a, str>>> {
        let whole_row = |reason: String| BadRow {
            column: None,
            reason: format!("the row {reason}"),
            hint: "each row is a JSON object; skip bad rows, give the types of more keys, or raise \
                   the number of inference rows",
        };
        let text = std::str::from_utf8(text).map_err(|_| whole_row("is not UTF-8".to_owned()))?;
        let mut row = Row {
            plan: self,
            leaves: vec![None; self.columns.len()],
            next: 0,
        };
        walk(text, path, &mut row).map_err(whole_row)?;
        cells.clear();
        let mut texts = Vec::with_capacity(self.columns.len());
        for (column, leaf) in self.columns.iter().zip(row.leaves) {
            let (cell, text) = column.parse(leaf.unwrap_or(Leaf::Null))?;
            cells.push(cell);
            texts.push(text);
        }
        Ok(texts)
    }
}

impl Column {
    fn parse<'a>(&self, leaf: Leaf<'a>) -> RowResult<(Cell, Cow<'a, str>)> {
        let is_text = matches!(self.kind, FieldKind::Text);
        let bad = |reason, hint| BadRow {
            column: Some(self.name.clone()),
            reason,
            hint,
        };
        let text = match leaf {
            Leaf::Null => return Ok((Cell::Null, Cow::Borrowed(""))),
            Leaf::Json(json) if !is_text => {
                return Err(bad(
                    format!("`{}` is an array or object", excerpt(json)),
                    "give the column the type utf8, or raise the number of inference rows",
                ));
            }
            Leaf::Bare(text) | Leaf::Json(text) => Cow::Borrowed(text),
            Leaf::Text(text) => text,
        };
        match self.kind.parse(&text) {
            Ok(cell) => Ok((cell, text)),
            Err(misfit) => Err(bad(
                format!("`{}` {}", excerpt(&text), misfit.reason),
                misfit.hint,
            )),
        }
    }
}

/// The values of a row as they are found.
struct Row<'p, 'a> {
    plan: &'p RowPlan,
    leaves: Vec<Option<Leaf<'a>>>,
    /// Place of the key that would come next if all rows were alike.
    next: usize,
}

impl Row<'_, '_> {
    fn place(&self, path: &str) -> Option<usize> {
        match self.plan.order.get(self.next) {
            Some((name, _)) if name == path => Some(self.next),
            _ => self.plan.places.get(path).copied(),
        }
    }
}

impl<'a> Visit<'a> for Row<'_, 'a> {
    fn is_whole(&self, path: &str) -> bool {
        self.place(path).is_some()
    }

    fn leaf(&mut self, path: &str, leaf: Leaf<'a>) -> Scan<()> {
        let Some(place) = self.place(path) else {
            // A key that holds an object elsewhere may hold nothing here.
            return match leaf == Leaf::Null && self.plan.is_object(path) {
                true => Ok(()),
                false => Err(format!("has the key `{}`, unknown so far", excerpt(path))),
            };
        };
        self.next = place + 1;
        let column = self.plan.order.get(place).and_then(|(_, column)| *column);
        let Some(found) = column.and_then(|column| self.leaves.get_mut(column)) else {
            return Ok(());
        };
        match found.replace(leaf) {
            None => Ok(()),
            Some(_) => Err(format!("has the key `{}` twice", excerpt(path))),
        }
    }

    fn object(&mut self, _path: &str) -> Scan<()> {
        Ok(())
    }
}
