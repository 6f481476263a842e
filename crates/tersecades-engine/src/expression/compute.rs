//! Evaluation of bound expressions on decoded arrays, by Arrow's kernels.

use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, is_null, not, or_kleene};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, UInt64Array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::filter::filter;
use arrow_select::take::take;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::{Selection, Shape};
use tersecades_columnar::types::logical_type;
use tersecades_columnar::values::Values;

use super::node::Node;
use super::time::cast_time;
use super::{arithmetic, calendar, compare, in_turn};
use crate::frame::{Frame, Slot};

/// Values of every row, or one value that stands for all rows.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) array: ArrayRef,
    pub(super) scalar: bool,
}

impl Datum for Operand {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.scalar)
    }
}

impl Operand {
    /// Another array for the same rows.
    pub(super) fn with(&self, array: ArrayRef) -> Self {
        Operand {
            array,
            scalar: self.scalar,
        }
    }

    /// Where in the array the value of `row` is.
    pub(super) fn index(&self, row: usize) -> usize {
        if self.scalar { 0 } else { row }
    }

    /// One value per row.
    pub(super) fn spread(self, rows: usize) -> Result<ArrayRef> {
        if !self.scalar {
            return Ok(self.array);
        }
        Ok(take(
            self.array.as_ref(),
            &UInt64Array::from(vec![0; rows]),
            None,
        )?)
    }
}

/// The decoded columns an expression reads, all of the same rows.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    rows: usize,
    columns: Vec<(Slot, Option<ArrayRef>)>,
}

impl Inputs {
    /// Room for the columns of `node`.
    pub(super) fn of(node: &Node) -> Self {
        let mut inputs = Inputs::default();
        node.for_each_slot(&mut |slot| {
            if !inputs.columns.iter().any(|(known, _)| *known == slot) {
                inputs.columns.push((slot, None));
            }
        });
        inputs
    }

    /// No columns and one row: what constants are computed on.
    pub(super) fn of_constants() -> Self {
        Inputs {
            rows: 1,
            columns: Vec::new(),
        }
    }

    /// The values of one column, without a frame.
    pub(super) fn of_column(slot: Slot, array: ArrayRef) -> Self {
        Inputs {
            rows: array.len(),
            columns: vec![(slot, Some(array))],
        }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Decodes the rows of `within`.
    fn load(&mut self, frame: &Frame, within: &Selection, work: &mut Work) -> Result<()> {
        self.rows = within.count();
        for (slot, array) in &mut self.columns {
            let chunk = frame.column(*slot);
            *array = Some(if within.shape() == Shape::All {
                chunk.to_arrow(within, work)?
            } else {
                let mut values = Values::default();
                chunk.gather(within, &mut values, work);
                values.into_array(chunk.data_type())?
            });
        }
        Ok(())
    }

    /// The column in `slot`.
    ///
    /// # Errors
    /// `Internal` when it is not loaded.
    pub(super) fn column(&self, slot: Slot) -> Result<ArrayRef> {
        let found = self.columns.iter().find(|(known, _)| *known == slot);
        let array = found.and_then(|(_, array)| array.clone());
        array.ok_or_else(|| Error::internal("an expression reads a column that is not loaded"))
    }

    /// The columns that `node` reads, in the rows where `wanted` is true.
    ///
    /// # Errors
    /// As [`Inputs::column`].
    pub(super) fn filtered(&self, node: &Node, wanted: &BooleanArray) -> Result<Self> {
        let mut inputs = Inputs::of(node);
        inputs.rows = wanted.true_count();
        for (slot, array) in &mut inputs.columns {
            *array = Some(filter(&self.column(*slot)?, wanted)?);
        }
        Ok(inputs)
    }

    fn unload(&mut self) {
        self.columns.iter_mut().for_each(|(_, array)| *array = None);
    }
}

/// A bound expression with the columns it reads.
#[derive(Debug)]
pub(super) struct Computation {
    node: Node,
    inputs: Inputs,
}

impl Computation {
    /// The computation of `node`.
    pub(super) fn new(node: Node) -> Self {
        Computation {
            inputs: Inputs::of(&node),
            node,
        }
    }

    /// What is computed.
    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// One value for each row of `within`.
    ///
    /// # Errors
    /// `LimitExceeded` on overflow, `InvalidArgument` when a cast does not fit.
    pub(super) fn run(
        &mut self,
        frame: &Frame,
        within: &Selection,
        work: &mut Work,
    ) -> Result<ArrayRef> {
        self.inputs.load(frame, within, work)?;
        let result = evaluate(&self.node, &self.inputs);
        self.inputs.unload();
        result?.spread(within.count())
    }
}

/// The values of `node`.
pub(super) fn evaluate(node: &Node, inputs: &Inputs) -> Result<Operand> {
    match node {
        Node::Column(slot) => Ok(Operand {
            array: inputs.column(*slot)?,
            scalar: false,
        }),
        Node::Constant(array) => Ok(Operand {
            array: Arc::clone(array),
            scalar: true,
        }),
        Node::Truth(truth) => Ok(Operand {
            array: Arc::new(BooleanArray::from(vec![*truth])),
            scalar: true,
        }),
        Node::Test {
            input,
            data_type,
            predicate,
        } => {
            let input = evaluate(input, inputs)?;
            let passed = compare::test(&input.array, data_type, predicate)?;
            Ok(input.with(Arc::new(passed)))
        }
        Node::Compare(how, a, b) => {
            compare::compare(*how, &evaluate(a, inputs)?, &evaluate(b, inputs)?)
        }
        Node::CompareColumns(how, [a, b]) => {
            let column = |slot: &Slot| -> Result<Operand> {
                Ok(Operand {
                    array: inputs.column(*slot)?,
                    scalar: false,
                })
            };
            compare::compare(*how, &column(a)?, &column(b)?)
        }
        Node::Arithmetic {
            how,
            sides,
            number,
            text,
            ..
        } => {
            let (a, b) = (evaluate(&sides.0, inputs)?, evaluate(&sides.1, inputs)?);
            arithmetic::compute(*how, &a, &b, number).map_err(|error| overflow(error, number, text))
        }
        Node::All(parts) => join(parts, inputs, and_kleene),
        Node::Any(parts) => join(parts, inputs, or_kleene),
        Node::InTurn { parts, settles } => in_turn::ask(parts, *settles, inputs),
        Node::Not(input) => {
            let input = evaluate(input, inputs)?;
            Ok(input.with(Arc::new(not(input.array.as_boolean())?)))
        }
        Node::IsNull(input) => {
            let input = evaluate(input, inputs)?;
            Ok(input.with(Arc::new(is_null(input.array.as_ref())?)))
        }
        Node::Cast {
            input, to, text, ..
        } => cast(&evaluate(input, inputs)?, to, text),
        Node::MakeTimestamp(parts) => {
            let parts: Result<Vec<_>> = parts.iter().map(|part| evaluate(part, inputs)).collect();
            calendar::make_timestamp(&parts?, inputs.rows)
        }
        Node::EpochTime(input, unit) => calendar::epoch_time(&evaluate(input, inputs)?, *unit),
        Node::Call(call) => call.run(inputs),
    }
}

type Join = fn(&BooleanArray, &BooleanArray) -> std::result::Result<BooleanArray, ArrowError>;

fn join(parts: &[Node], inputs: &Inputs, join: Join) -> Result<Operand> {
    let mut joined: Option<ArrayRef> = None;
    for part in parts {
        let part = evaluate(part, inputs)?.spread(inputs.rows)?;
        joined = Some(match joined {
            Some(before) => Arc::new(join(before.as_boolean(), part.as_boolean())?),
            None => part,
        });
    }
    let array = joined.ok_or_else(|| Error::internal("a conjunction has parts"))?;
    Ok(Operand {
        array,
        scalar: false,
    })
}

fn cast(input: &Operand, to: &DataType, text: &str) -> Result<Operand> {
    if logical_type(input.array.data_type()) == *to && input.array.data_type() == to {
        return Ok(input.clone());
    }
    // A dictionary may hold texts of rows that are not here; they must not fail the cast.
    let plain = arithmetic::cast_exactly(&input.array, &logical_type(input.array.data_type()))?;
    let array = cast_time(&plain, to).map_err(|error| {
        Error::invalid(format!("{text}: {error}"))
            .hint("filter out what does not fit, or cast to a wider type")
    })?;
    Ok(input.with(array))
}

fn overflow(error: ArrowError, number: &DataType, text: &str) -> Error {
    let range = match number {
        DataType::Decimal128(..) => "decimals of 38 digits",
        _ => "64-bit integers",
    };
    let message = match error {
        ArrowError::ArithmeticOverflow(_) | ArrowError::CastError(_) => {
            format!("`{text}` leaves the range of {range}")
        }
        other => format!("`{text}`: {other}"),
    };
    Error::limit(message).hint("cast an operand: CAST(x AS DOUBLE)")
}
