//! A closed window as a record batch, sorted by key.
//!
//! Sorting uses the cheapest form of the key that sorts right: positions in a bitmap when the keys
//! are few texts, one number when the key fits 64 bits, else column by column.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::dictionary::Ranks;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::Fold;
use tersecades_columnar::types::{Physical, Value};
use tersecades_columnar::values::Values;

use super::keys::{KeyLayout, KeyRef};
use super::pane::Pane;
use super::plan::AggregatePlan;

/// Most positions of the bitmap that sorts few texts.
const BITMAP_POSITIONS_MAX: usize = 1 << 18;

/// Scratch memory for sorting groups.
#[derive(Debug, Default)]
pub struct Sorter {
    order: Vec<u32>,
    numbers: Vec<(u64, u32)>,
    positions: Vec<u32>,
}

impl Sorter {
    /// Group ids of `pane` in key order.
    pub fn sort(&mut self, keys: &KeyLayout, pane: &Pane) -> &[u32] {
        self.order.clear();
        self.order.extend(0..pane.len() as u32);
        let ranks: Vec<Option<Ranks>> = keys
            .columns
            .iter()
            .map(|column| {
                column
                    .dictionary()
                    .get()
                    .map(|dictionary| dictionary.ranks())
            })
            .collect();
        let texts = keys.columns.iter().all(|column| column.is_text());
        if keys.words == 1 && texts && !keys.columns.is_empty() {
            self.sort_texts(keys, pane, &ranks);
        } else if !keys.columns.is_empty() {
            self.order.sort_by_cached_key(|id| {
                let key = pane.groups.key(*id as usize);
                let parts = ranks.iter().enumerate().map(|(index, ranks)| {
                    keys.ordered(key, index, ranks.as_ref().map(|ranks| &*ranks.rank_of))
                });
                parts.collect::<Vec<i128>>()
            });
        }
        &self.order
    }

    /// One or two text columns: ranks make one number.
    fn sort_texts(&mut self, keys: &KeyLayout, pane: &Pane, ranks: &[Option<Ranks>]) {
        let rank = |index: usize, key: &[u64]| {
            let Some(column) = keys.columns.get(index) else {
                return 0;
            };
            let table = ranks[index].as_ref().map(|ranks| &*ranks.rank_of);
            let code = column.part(key) as usize;
            // Null, whose code is in no table, sorts behind every text.
            let count = table.map_or(0, <[u32]>::len);
            table
                .and_then(|table| table.get(code))
                .map_or(count, |rank| *rank as usize)
        };
        let extent = |index: usize| {
            ranks
                .get(index)
                .and_then(Option::as_ref)
                .map_or(1, |ranks| ranks.rank_of.len() + 1)
        };
        let (width, positions) = (extent(1), extent(0).saturating_mul(extent(1)));
        self.numbers.clear();
        for id in 0..pane.len() {
            let key = pane.groups.key(id);
            let position = rank(0, key) * width + rank(1, key);
            self.numbers.push((position as u64, id as u32));
        }
        if positions > BITMAP_POSITIONS_MAX || pane.len() * 64 < positions {
            self.numbers.sort_unstable();
            self.order.clear();
            self.order.extend(self.numbers.iter().map(|(_, id)| *id));
            return;
        }
        self.positions.clear();
        self.positions.resize(positions, u32::MAX);
        self.numbers
            .iter()
            .for_each(|(at, id)| self.positions[*at as usize] = *id);
        self.order.clear();
        self.order
            .extend(self.positions.iter().copied().filter(|id| *id != u32::MAX));
    }
}

/// The result of the window `[start, start + size)`.
///
/// # Errors
/// `LimitExceeded` when an exact result does not fit its type; the window and column are named.
pub fn emit(
    plan: &AggregatePlan,
    start: i64,
    pane: &Pane,
    sorter: &mut Sorter,
) -> Result<RecordBatch> {
    let order = sorter.sort(&plan.keys, pane);
    let rows = order.len();
    let end = start.saturating_add(plan.window.size);
    let fields = plan.schema.fields();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
    columns.push(constant_time(start, rows, fields[0].data_type())?);
    columns.push(constant_time(end, rows, fields[1].data_type())?);
    for (index, column) in plan.keys.columns.iter().enumerate() {
        let keys = order
            .iter()
            .map(|id| KeyRef(*id as usize * plan.keys.words));
        let values = plan.keys.values(index, keys, pane.groups.keys());
        columns.push(values.to_array(&column.data_type)?);
    }
    let first = 2 + plan.keys.columns.len();
    for (index, field) in (0..plan.readings.len()).zip(fields.iter().skip(first)) {
        let column = reading_column(plan, index, pane, order);
        columns.push(column.map_err(|error| error.column(field.name().as_str()))?);
    }
    let schema = Schema::new(
        fields
            .iter()
            .zip(&columns)
            .map(|(field, column)| {
                Field::new(
                    field.name(),
                    column.data_type().clone(),
                    field.is_nullable(),
                )
            })
            .collect::<Vec<_>>(),
    );
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::new(schema),
        columns,
        &options,
    )?)
}

fn constant_time(time: i64, rows: usize, data_type: &DataType) -> Result<ArrayRef> {
    let mut values = Values::default();
    let physical = Physical::of(data_type)?;
    values.reset(physical);
    values
        .keys
        .resize(rows, physical.key_of(i128::from(time)).unwrap_or_default());
    values.to_array(data_type)
}

fn reading_column(
    plan: &AggregatePlan,
    index: usize,
    pane: &Pane,
    order: &[u32],
) -> Result<ArrayRef> {
    let reading = &plan.readings[index];
    let mut column = ResultColumn::new(&reading.data_type)?;
    let argument = reading.argument.map(|argument| &plan.arguments[argument]);
    let texts = argument.and_then(|argument| argument.dictionary.get());
    column.values.dictionary = texts.map(Arc::clone);
    let count_type = DataType::Int64;
    for id in order.iter().map(|id| *id as usize) {
        let value = match reading.argument {
            None => {
                let fold = Fold {
                    count: pane.rows[id],
                    ..Fold::default()
                };
                reading.aggregate.finish(&fold, &count_type)?
            }
            Some(argument) => {
                let fold = pane.folds[argument].get(id);
                reading
                    .aggregate
                    .finish(&fold, &plan.arguments[argument].data_type)?
            }
        };
        column.push(value);
    }
    column.finish(&reading.data_type)
}

/// Collects results of one type.
struct ResultColumn {
    values: Values,
    nulls: Vec<usize>,
}

impl ResultColumn {
    fn new(data_type: &DataType) -> Result<Self> {
        let mut values = Values::default();
        values.reset(Physical::of(data_type)?);
        Ok(ResultColumn {
            values,
            nulls: Vec::new(),
        })
    }

    fn push(&mut self, value: Value) {
        let physical = self.values.physical;
        match (physical, value) {
            (Physical::Wide, Value::Decimal(digits, _)) => self.values.wide.push(digits),
            (Physical::Wide, _) => {
                self.nulls.push(self.values.wide.len());
                self.values.wide.push(0);
            }
            (Physical::Float { bytes: 4 }, Value::Float(float)) => {
                self.values.keys.push(u64::from((float as f32).to_bits()));
            }
            (Physical::Float { .. }, Value::Float(float)) => self.values.keys.push(float.to_bits()),
            (_, Value::Integer(integer)) if physical.key_of(integer).is_some() => {
                self.values
                    .keys
                    .push(physical.key_of(integer).unwrap_or_default());
            }
            _ => {
                self.nulls.push(self.values.keys.len());
                self.values.keys.push(0);
            }
        }
    }

    fn finish(mut self, data_type: &DataType) -> Result<ArrayRef> {
        if !self.nulls.is_empty() {
            self.values.validity.fill(self.values.len(), true);
            self.nulls
                .iter()
                .for_each(|row| self.values.validity.set(*row, false));
        }
        self.values.to_array(data_type)
    }
}
