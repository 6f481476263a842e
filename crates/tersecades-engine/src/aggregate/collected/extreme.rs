//! The value of one column where another is least or greatest.

use std::any::Any;

use arrow_schema::DataType;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
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

    /// Adds rows; those whose ordering value is null are left out. Without `by` the order is that
    /// of arrival.
    fn offer_rows(&mut self, rows: Rows<'_>, values: &Values, by: Option<&Values>) {
        let mut index = 0;
        rows.within.for_each(|row| {
            if by.is_none_or(|by| by.is_valid(index)) {
                let value = || match values.physical {
                    Physical::Wide => values.wide[index],
                    _ => i128::from(values.keys[index]),
                };
                let best = Best {
                    by: by.map_or(0, |by| by.ordered(index)),
                    position: rows.rows_before + row as u64,
                    value: values.is_valid(index).then(value),
                };
                self.offer(rows.id(index) as usize, best);
            }
            index += 1;
        });
    }

    fn offer(&mut self, id: usize, new: Best) {
        let slot = &mut self.best[id];
        let better = slot.is_none_or(|old| match old.by == new.by {
            true => (new.position > old.position) == self.last,
            false => (new.by > old.by) == self.greatest,
        });
        if better {
            *slot = Some(new);
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

impl Collection for Extreme {
    fn grow(&mut self, groups: usize) {
        self.best.resize(groups, None);
    }

    fn clear(&mut self) {
        self.best.clear();
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let (scratch, work) = work;
        rows.gather(scratch, work)?;
        let ordered = rows.read.len() > 1;
        if ordered {
            rows.gather_second(scratch, work)?;
        }
        self.offer_rows(rows, &scratch.values, ordered.then_some(&scratch.by));
        Ok(())
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        let Ok(other) = collected::<Extreme>(other) else {
            return;
        };
        for (best, target) in taken(&other.best, targets) {
            if let Some(best) = best {
                self.offer(target, *best);
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
