//! `changes`: rows in which some columns differ from the row of the same keys before, with what
//! they were and for how long.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use crate::frame::Scope;
use crate::runtime::bound_time::bind_time;
use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::expression::RowExpressions;
use super::row::group::GroupKeys;
use super::row::kept::KeptRows;
use super::row::keys::RowKeys;
use super::row::shape::{batch_of, read_rows, take, write_rows};
use super::row::{RowInput, RowOperator, RowOperatorPlan};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "changes",
    summary: "rows in which a state differs from the row before, what it was, how long it lasted",
};

/// Which changes to hand on.
#[derive(Debug, Clone)]
pub struct Changes {
    /// The columns that make the state; null is a state too.
    pub columns: Vec<String>,
    /// Columns that say whose state it is.
    pub keys: Vec<String>,
}

impl RowOperatorPlan for Changes {
    fn describe(&self) -> String {
        format!(
            "changes of [{}] of [{}]",
            self.columns.join(", "),
            self.keys.join(", ")
        )
    }

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        if self.columns.is_empty() {
            return Err(Error::invalid("changes of no columns").hint("name what may change"));
        }
        let scope = Scope::of_schema(&input.schema);
        let (mut slots, mut states) = (Vec::new(), Vec::new());
        for name in &self.columns {
            let (data_type, slot) = scope.find(name)?;
            slots.push(slot);
            states.push(Field::new(
                format!("previous_{name}"),
                data_type.clone(),
                true,
            ));
        }
        // A stream without event time has no durations.
        let timed = bind_time(&input.event_time, &mut scope.clone()).is_ok();
        let time = match timed {
            true => {
                let time = input.event_time.clone().without_dates(&scope).expression;
                Some(RowExpressions::bind([&time], &input.schema)?)
            }
            false => None,
        };
        let mut fields = input.schema.fields().to_vec();
        fields.extend(states.iter().cloned().map(Arc::new));
        fields.extend(timed.then(|| Arc::new(Field::new("lasted", DataType::Int64, true))));
        for (index, field) in fields.iter().enumerate() {
            if fields[..index]
                .iter()
                .any(|known| known.name() == field.name())
            {
                let message = format!("there is a column `{}` already", field.name());
                return Err(Error::invalid(message).hint("rename it before"));
            }
        }
        let types = states.iter().map(|field| field.data_type().clone());
        Ok(Box::new(States {
            keys: RowKeys::unordered(types)?,
            kept: KeptRows::new(&Arc::new(Schema::new(states.clone())))?,
            state_schema: Arc::new(Schema::new(states)),
            schema: Arc::new(Schema::new(fields)),
            groups: GroupKeys::bind(&self.keys, &input.schema)?,
            slots,
            time,
            current: Vec::new(),
        }))
    }
}

/// The state of one group.
struct State {
    /// Its values, as comparable bytes.
    key: Box<[u8]>,
    /// The kept row in which it began, and when.
    row: u64,
    since: Option<i64>,
}

struct States {
    schema: SchemaRef,
    state_schema: SchemaRef,
    slots: Vec<usize>,
    keys: RowKeys,
    groups: GroupKeys,
    kept: KeptRows,
    time: Option<RowExpressions>,
    current: Vec<State>,
}

impl States {
    /// The event time of each row, where the stream has one.
    fn times(&mut self, rows: &RecordBatch) -> Result<Vec<Option<i64>>> {
        let Some(time) = &mut self.time else {
            return Ok(vec![None; rows.num_rows()]);
        };
        let mut ticks = Vec::with_capacity(rows.num_rows());
        for column in time.evaluate(rows)? {
            let column = cast(&column, &DataType::Int64)?;
            ticks.extend(column.as_primitive::<Int64Type>().iter());
        }
        Ok(ticks)
    }
}

impl RowOperator for States {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        let ids = self.groups.ids(&rows)?;
        let times = self.times(&rows)?;
        let states = self.slots.iter().map(|slot| Arc::clone(rows.column(*slot)));
        let states: Vec<ArrayRef> = states.collect();
        let keys = self.keys.of(&states)?;
        let first = self
            .kept
            .push(batch_of(&self.state_schema, states, rows.num_rows())?)?;
        let (mut changed, mut previous, mut past) = (Vec::new(), Vec::new(), Vec::new());
        let mut lasted: Vec<Option<i64>> = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            let (row, key) = (first + index as u64, keys.row(index).data());
            let began = State {
                key: key.into(),
                row,
                since: times[index],
            };
            let Some(state) = self.current.get_mut(*id as usize) else {
                self.current.push(began);
                continue;
            };
            if *state.key == *key {
                past.push(row);
                continue;
            }
            changed.push(index as u32);
            previous.push(state.row);
            let span = times[index].zip(state.since);
            lasted.push(span.and_then(|(now, since)| now.checked_sub(since)));
            past.push(state.row);
            *state = began;
        }
        if !changed.is_empty() {
            let count = changed.len();
            let mut columns = take(&rows, changed)?.columns().to_vec();
            columns.extend(self.kept.pick(&previous)?);
            if self.time.is_some() {
                columns.push(Arc::new(Int64Array::from(lasted)));
            }
            out.push(batch_of(&self.schema, columns, count)?);
        }
        past.into_iter().for_each(|row| self.kept.release(row));
        Ok(())
    }

    fn byte_size(&self) -> usize {
        let keys: usize = self.current.iter().map(|state| state.key.len()).sum();
        let states = self.current.len() * size_of::<State>() + keys;
        self.groups.byte_size() + self.kept.byte_size() + states
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.groups.snapshot(out);
        let mut rows = Vec::new();
        for state in &self.current {
            out.blob(&state.key);
            out.u64(u64::from(state.since.is_some()));
            out.i64(state.since.unwrap_or(0));
            rows.push(state.row);
        }
        let values = self.kept.pick(&rows)?;
        write_rows(&batch_of(&self.state_schema, values, rows.len())?, out)
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.groups.restore(from)?;
        for row in 0..self.groups.len() as u64 {
            let key = from.blob()?.into();
            let (known, since) = (from.u64()? != 0, from.i64()?);
            let since = known.then_some(since);
            self.current.push(State { key, row, since });
        }
        let rows = read_rows(&self.state_schema, from)?;
        if rows.num_rows() != self.current.len() {
            return Err(Error::corrupt("a snapshot holds another number of states"));
        }
        self.kept.push(rows).map(|_| ())
    }
}
