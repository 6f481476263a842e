//! Columns that no codec takes, as lists, and that a stage hands on without reading them: frames
//! hold the numbers of their rows in their place.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::take::take;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::{Physical, logical_type};

use crate::expression::Expression;
use crate::plan::{AggregateCall, Step};
use crate::runtime::stage::{Stage, StagePlan};

/// The columns of a stage's input that frames hold no values of.
pub(super) struct Opaque {
    /// Where they are in the input.
    places: Vec<usize>,
    /// Which of the columns that come out they are: where, and of which column of the input.
    shown: Vec<(usize, usize)>,
}

impl Opaque {
    /// Those of `stage`, which runs `plan`.
    pub(super) fn of(plan: &StagePlan, stage: &Stage) -> Self {
        let fields = plan.input.fields().iter().enumerate();
        let is_opaque = |field: &Field| {
            Physical::of(&logical_type(field.data_type())).is_err()
                && is_handed_on(&plan.steps, field.name())
        };
        let places: Vec<usize> = fields
            .filter(|(_, field)| is_opaque(field))
            .map(|(at, _)| at)
            .collect();
        let slots = stage.slots().enumerate();
        let shown = slots.filter(|(_, slot)| places.contains(slot)).collect();
        Opaque { places, shown }
    }

    /// The columns that are encoded, of a stage with those of `input`.
    pub(super) fn encoded(&self, input: &SchemaRef) -> SchemaRef {
        if self.places.is_empty() {
            return Arc::clone(input);
        }
        let numbers = |name: &str| Arc::new(Field::new(name, DataType::UInt64, false));
        let field = |(at, field): (usize, &Arc<Field>)| match self.places.contains(&at) {
            true => numbers(field.name()),
            false => Arc::clone(field),
        };
        let fields: Fields = input.fields().iter().enumerate().map(field).collect();
        Arc::new(Schema::new(fields))
    }

    /// `rows` as they are encoded.
    ///
    /// # Errors
    /// None that rows of the input could cause.
    pub(super) fn hide(&self, rows: RecordBatch) -> Result<RecordBatch> {
        if self.places.is_empty() {
            return Ok(rows);
        }
        let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..rows.num_rows() as u64));
        let mut columns = rows.columns().to_vec();
        for at in &self.places {
            columns[*at] = Arc::clone(&numbers);
        }
        Ok(RecordBatch::try_new(
            self.encoded(rows.schema_ref()),
            columns,
        )?)
    }

    /// `result` with the values of `rows`, which it was made of.
    ///
    /// # Errors
    /// None that a result of such rows could cause.
    pub(super) fn show(&self, result: RecordBatch, rows: &RecordBatch) -> Result<RecordBatch> {
        if self.shown.is_empty() {
            return Ok(result);
        }
        let mut fields = result.schema_ref().fields().to_vec();
        let mut columns = result.columns().to_vec();
        for (at, place) in &self.shown {
            let numbers = columns[*at].as_primitive::<UInt64Type>();
            columns[*at] = take(rows.column(*place), numbers, None)?;
            let data_type = columns[*at].data_type().clone();
            fields[*at] = Arc::new(Field::new(fields[*at].name(), data_type, true));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(result.num_rows()));
        let schema = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

/// Whether `steps` give the column `name` other names at most.
fn is_handed_on(steps: &[Step], name: &str) -> bool {
    let mut names = vec![name];
    for step in steps {
        let reads = |expression: &Expression| {
            let read = expression.columns();
            read.iter().any(|column| names.contains(column))
        };
        let is_read = match step {
            Step::Filter(condition) => reads(condition),
            Step::LookupJoin { stream_key, .. } => names.contains(&stream_key.as_str()),
            Step::Project(columns) => {
                let computed = columns.iter().map(|(_, expression)| expression);
                let mut computed = computed.filter(|it| it.as_column().is_none());
                computed.any(reads)
            }
            Step::Aggregate {
                keys, aggregates, ..
            } => {
                let mut read = aggregates.iter().flat_map(AggregateCall::expressions);
                keys.iter().any(|key| names.contains(&key.as_str())) || read.any(reads)
            }
            Step::Rows(_) => false,
        };
        if is_read {
            return false;
        }
        match step {
            Step::Project(columns) => {
                let columns = columns.iter();
                let kept = columns.filter(|(_, from)| {
                    let from = from.as_column();
                    from.is_some_and(|from| names.contains(&from))
                });
                names = kept.map(|(name, _)| name.as_str()).collect();
            }
            Step::LookupJoin { columns, .. } => {
                names.retain(|name| columns.iter().all(|(_, output)| output != name));
            }
            Step::Filter(_) | Step::Aggregate { .. } | Step::Rows(_) => {}
        }
    }
    true
}
