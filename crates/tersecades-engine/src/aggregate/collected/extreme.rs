//! The value of one column where another is least or greatest.
//!
//! The rows are found first, and values are fetched of those alone. Where there is one group, the
//! end of the other column is folded and searched for as it lies encoded.

use std::any::Any;

use arrow_schema::DataType;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, Value};
use tersecades_columnar::values::{Values, float_of_bits};

use super::{CollectWork, Collection, Collects, Rows, Second, collected, taken};
use crate::operator::window_aggregate::plan::Argument;
use crate::runtime::state::{StateReader, StateWriter};

/// The first row where the other column is least.
pub const LEAST: Collects = Collects {
    name: "least",
    second: Second::Order,
    by_parameter: false,
    start: |_, _| Box::new(Extreme::new(false, false)),
};

/// The first row where the other column is greatest.
pub const GREATEST: Collects = Collects {
    name: "greatest",
    second: Second::Order,
    by_parameter: false,
    start: |_, _| Box::new(Extreme::new(true, false)),
};

/// The last row where the other column is least.
pub const LEAST_LAST: Collects = Collects {
    name: "least_last",
    second: Second::Order,
    by_parameter: false,
    start: |_, _| Box::new(Extreme::new(false, true)),
};

/// The last row where the other column is greatest.
pub const GREATEST_LAST: Collects = Collects {
    name: "greatest_last",
    second: Second::Order,
    by_parameter: false,
    start: |_, _| Box::new(Extreme::new(true, true)),
};

/// The first row of the earliest.
pub const EARLIEST: Collects = Collects {
    name: "earliest",
    second: Second::Time,
    by_parameter: false,
    start: |_, _| Box::new(Extreme::new(false, false)),
};

/// The last row of the latest.
pub const LATEST: Collects = Collects {
    name: "latest",
    second: Second::Time,
    by_parameter: false,
    start: |_, _| Box::new(Extreme::new(true, true)),
};

/// Fewer rows for each group than this have all values decoded.
const GROUP_ROWS_MIN: usize = 4;

/// The best row of one group so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Best {
    /// The ordering column's key.
    by: i128,
    /// Rows of the stream before this one.
    position: u64,
    /// Key, raw bits, code or digits of the value; `None` when it is null.
    value: Option<i128>,
}

/// What the ends of a column say.
enum Found {
    /// The best value and its row.
    Row(i128, usize),
    /// No row is better than the one that is known.
    NoneBetter,
    /// Nothing.
    Unknown,
}

/// The best rows, by group id.
#[derive(Debug, Clone)]
pub struct Extreme {
    greatest: bool,
    /// Whether the last of several best rows counts, or the first.
    last: bool,
    best: Vec<Option<Best>>,
}

impl Extreme {
    fn new(greatest: bool, last: bool) -> Self {
        Extreme {
            greatest,
            last,
            best: Vec::new(),
        }
    }

    /// Adds rows; those whose ordering value is null are left out.
    fn offer_rows(&mut self, rows: Rows<'_>, values: &Values, by: Option<&Values>) {
        for_each_row(rows, by, |index, row, by| {
            let best = Best {
                by,
                position: rows.rows_before + row as u64,
                value: value_at(values, index),
            };
            let id = rows.id(index) as usize;
            if self.is_better(id, &best) {
                self.best[id] = Some(best);
            }
        });
    }

    /// Whether `new` is better than what group `id` has.
    fn is_better(&self, id: usize, new: &Best) -> bool {
        self.best[id].is_none_or(|old| match old.by == new.by {
            true => (new.position > old.position) == self.last,
            false => (new.by > old.by) == self.greatest,
        })
    }

    /// Adds rows to groups that are few: finds the best of each, then fetches their values.
    fn pick_rows(
        &mut self,
        rows: Rows<'_>,
        by: Option<&Values>,
        (scratch, work): (&mut CollectWork, &mut Work),
    ) -> Result<()> {
        let mut changed = std::mem::take(&mut scratch.changed);
        changed.clear();
        changed.resize(self.best.len(), false);
        for_each_row(rows, by, |index, row, by| {
            let best = Best {
                by,
                position: rows.rows_before + row as u64,
                value: None,
            };
            let id = rows.id(index) as usize;
            if self.is_better(id, &best) {
                self.best[id] = Some(best);
                changed[id] = true;
            }
        });
        let mut groups = std::mem::take(&mut scratch.groups);
        groups.clear();
        groups.extend((0..).zip(&changed).filter(|(_, is)| **is).map(|(id, _)| id));
        let position = |best: &[Option<Best>], id: u32| best[id as usize].map_or(0, |b| b.position);
        groups.sort_unstable_by_key(|id| position(&self.best, *id));
        let found = groups
            .iter()
            .map(|id| position(&self.best, *id) - rows.rows_before);
        let list = scratch.picked.set_rows(rows.within.rows());
        list.extend(found.map(|row| row as u32));
        rows.gather_picked(scratch, work)?;
        for (index, id) in groups.iter().enumerate() {
            if let Some(best) = &mut self.best[*id as usize] {
                best.value = value_at(&scratch.values, index);
            }
        }
        (scratch.changed, scratch.groups) = (changed, groups);
        Ok(())
    }

    /// Adds rows to the one group there is, as the ordering column lies; false, and nothing done,
    /// where that has no ends in its encoded form.
    fn pick_end(
        &mut self,
        rows: Rows<'_>,
        (scratch, work): (&mut CollectWork, &mut Work),
    ) -> Result<bool> {
        let (by, row) = match rows.read.len() > 1 {
            false => (0, self.end_of(rows.within)),
            true => match self.find_end(rows, &mut scratch.picked, work) {
                Found::Row(by, row) => (by, Some(row)),
                Found::NoneBetter => return Ok(true),
                Found::Unknown => return Ok(false),
            },
        };
        let Some(row) = row else {
            return Ok(true);
        };
        let mut best = Best {
            by,
            position: rows.rows_before + row as u64,
            value: None,
        };
        if self.is_better(0, &best) {
            let list = scratch.picked.set_rows(rows.within.rows());
            list.push(row as u32);
            rows.gather_picked(scratch, work)?;
            best.value = value_at(&scratch.values, 0);
            self.best[0] = Some(best);
        }
        Ok(true)
    }

    /// The row of several best ones that counts.
    fn end_of(&self, rows: &Selection) -> Option<usize> {
        if self.last { rows.last() } else { rows.first() }
    }

    /// The best row by the ordering column; `picked` is scratch memory.
    fn find_end(&self, rows: Rows<'_>, picked: &mut Selection, work: &mut Work) -> Found {
        let column = rows.column(1);
        let (mut fold, asked) = (
            Fold::default(),
            Asked {
                ends: true,
                ..Asked::default()
            },
        );
        if matches!(column.physical(), Physical::Wide | Physical::Text) {
            return Found::Unknown;
        }
        column.fold(asked, rows.within, &mut fold, work);
        let by = if self.greatest { fold.max } else { fold.min };
        let known = self.best.first().copied().flatten();
        let worse = known.is_some_and(|known| known.by != by && (known.by > by) == self.greatest);
        if fold.count == 0 || worse {
            return Found::NoneBetter;
        }
        let end = Predicate::key_range(by as u64, by as u64);
        column.compare(&end, rows.within, picked, work);
        match self.end_of(picked) {
            Some(row) => Found::Row(by, row),
            None => Found::Unknown,
        }
    }

    /// The value of group `id`.
    pub fn value(&self, id: u32, argument: &Argument) -> Value {
        let best = self.best.get(id as usize).copied().flatten();
        let Some(value) = best.and_then(|best| best.value) else {
            return Value::Null;
        };
        match (argument.physical, &argument.data_type) {
            (Physical::Wide, DataType::Decimal128(_, scale)) => Value::Decimal(value, *scale),
            (Physical::Float { bytes }, _) => Value::Float(float_of_bits(value as u64, bytes)),
            // Texts are codes of the argument's dictionary.
            (physical, _) => Value::Integer(physical.value_of(value as u64)),
        }
    }
}

/// Calls `visit` with place and row of each row of `rows` whose ordering value is not null, and
/// that value; without `by` the order is that of arrival.
fn for_each_row(rows: Rows<'_>, by: Option<&Values>, mut visit: impl FnMut(usize, usize, i128)) {
    let mut index = 0;
    rows.within.for_each(|row| {
        if by.is_none_or(|by| by.is_valid(index)) {
            visit(index, row, by.map_or(0, |by| by.ordered(index)));
        }
        index += 1;
    });
}

/// Key, raw bits, code or digits of the value at `index`; `None` when it is null.
fn value_at(values: &Values, index: usize) -> Option<i128> {
    let value = || match values.physical {
        Physical::Wide => values.wide[index],
        _ => i128::from(values.keys[index]),
    };
    values.is_valid(index).then(value)
}

impl Collection for Extreme {
    fn grow(&mut self, groups: usize) {
        self.best.resize(groups, None);
    }

    fn clear(&mut self) {
        self.best.clear();
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let (scratch, work) = work;
        let ordered = rows.read.len() > 1;
        if rows.ids.is_empty() && self.pick_end(rows, (&mut *scratch, &mut *work))? {
            return Ok(());
        }
        if ordered {
            rows.gather_second(scratch, work)?;
        }
        let by = std::mem::take(&mut scratch.by);
        let order = ordered.then_some(&by);
        let few = self.best.len() * GROUP_ROWS_MIN <= rows.within.count();
        let added = match few {
            true => self.pick_rows(rows, order, (&mut *scratch, work)),
            false => {
                rows.gather(scratch, work)?;
                self.offer_rows(rows, &scratch.values, order);
                Ok(())
            }
        };
        scratch.by = by;
        added
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        let Ok(other) = collected::<Extreme>(other) else {
            return;
        };
        for (best, target) in taken(&other.best, targets) {
            if let Some(best) = best
                && self.is_better(target, best)
            {
                self.best[target] = Some(*best);
            }
        }
    }

    fn byte_size(&self) -> usize {
        self.best.capacity() * size_of::<Option<Best>>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        for best in &self.best {
            out.u64(u64::from(best.is_some()));
            if let Some(best) = best {
                out.i128(best.by);
                out.u64(best.position);
                out.u64(u64::from(best.value.is_some()));
                out.i128(best.value.unwrap_or(0));
            }
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        for _ in 0..groups {
            let known = from.u64()? != 0;
            self.best.push(match known {
                true => {
                    let (by, position) = (from.i128()?, from.u64()?);
                    let (present, value) = (from.u64()? != 0, from.i128()?);
                    Some(Best {
                        by,
                        position,
                        value: present.then_some(value),
                    })
                }
                false => None,
            });
        }
        Ok(())
    }
    fn copy(&self) -> Box<dyn Collection> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
