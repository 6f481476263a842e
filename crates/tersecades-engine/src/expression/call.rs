//! Calls of functions from outside: bound, and run on as few values as they can be.
//!
//! A call reads survivors only. Where it depends on one column that came as codes of a
//! dictionary, it runs once for each different text among them, and the results are spread:
//!
//! ```text
//! letters(name)   codes 0 2 2 0 2  ──▶  letters(["eu", "asia"]) = [2, 4]  ──▶  2 4 4 2 4
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::take::take;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Physical, logical_type};

use super::ast::Expression;
use super::bind::{bind, within};
use super::compute::{Inputs, Operand, evaluate};
use super::function::ScalarFunction;
use super::node::Node;
use crate::frame::{Scope, Slot};

/// How many times as many texts as rows a dictionary may hold for its used texts to be sought.
const TEXTS_PER_ROW_MAX: usize = 8;

/// A call after binding.
#[derive(Debug)]
pub(super) struct Call {
    function: Arc<dyn ScalarFunction>,
    arguments: Vec<Node>,
    argument_types: Vec<DataType>,
    data_type: DataType,
    /// The call as written, for errors.
    text: String,
    /// The one column that the result depends on.
    depends_on: Option<Slot>,
}

/// Binds `whole`, which calls `function`.
///
/// # Errors
/// What binding the arguments and the function itself say; `Unsupported` for result types that
/// no column can have.
pub(super) fn bind_call(
    whole: &Expression,
    function: &Arc<dyn ScalarFunction>,
    arguments: &[Expression],
    scope: &Scope,
) -> Result<(Node, DataType)> {
    let (mut nodes, mut argument_types) = (Vec::new(), Vec::new());
    for argument in arguments {
        let bound = bind(argument, scope)?;
        nodes.push(bound.node);
        argument_types.push(bound.data_type);
    }
    let text = whole.to_string();
    let returned = function.return_type(&argument_types);
    let data_type = logical_type(&returned.map_err(|error| within(error, &text))?);
    Physical::of(&data_type).map_err(|error| within(error, &text))?;
    let mut call = Call {
        function: Arc::clone(function),
        arguments: nodes,
        argument_types,
        data_type: data_type.clone(),
        text,
        depends_on: None,
    };
    call.depends_on = call.only_column();
    Ok((Node::Call(Box::new(call)), data_type))
}

impl Call {
    /// The nodes of the arguments.
    pub(super) fn arguments(&self) -> &[Node] {
        &self.arguments
    }

    /// Whether the same arguments always give the same result.
    pub(super) fn is_immutable(&self) -> bool {
        self.function.is_immutable() && self.arguments.iter().all(Node::is_immutable)
    }

    fn only_column(&self) -> Option<Slot> {
        let mut slots = Vec::new();
        let arguments = self.arguments.iter();
        arguments.for_each(|argument| argument.for_each_slot(&mut |slot| slots.push(slot)));
        slots.dedup();
        match *slots.as_slice() {
            [slot] if self.is_immutable() => Some(slot),
            _ => None,
        }
    }

    /// One value for each row of `inputs`.
    ///
    /// # Errors
    /// What the function says; `Internal` when it breaks its contract.
    pub(super) fn run(&self, inputs: &Inputs) -> Result<Operand> {
        let different = match self.depends_on {
            Some(slot) => Different::of(&inputs.column(slot)?).map(|different| (slot, different)),
            None => None,
        };
        let array = match different {
            Some((slot, different)) => {
                let values = take(&different.table, &different.used, None)?;
                let results = self.run_rows(&Inputs::of_column(slot, values))?;
                take(&results, &different.positions, None)?
            }
            None => self.run_rows(inputs)?,
        };
        Ok(Operand {
            array,
            scalar: false,
        })
    }

    fn run_rows(&self, inputs: &Inputs) -> Result<ArrayRef> {
        let rows = inputs.rows();
        let mut arrays = Vec::with_capacity(self.arguments.len());
        for (node, data_type) in self.arguments.iter().zip(&self.argument_types) {
            let array = evaluate(node, inputs)?.spread(rows)?;
            arrays.push(of_type(array, data_type)?);
        }
        let result = self.function.evaluate(&arrays, rows);
        let array = result.map_err(|error| within(error, &self.text))?;
        let returned = logical_type(array.data_type());
        if array.len() != rows || returned != self.data_type {
            return Err(Error::internal(format!(
                "`{}` gave {} values of {returned} for {rows} rows, promised {}",
                self.text,
                array.len(),
                self.data_type
            ))
            .hint("mend the function: a value for each row, of the type it returns"));
        }
        of_type(array, &self.data_type)
    }
}

/// The array as `data_type`, which it is but for its layout.
fn of_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    match array.data_type() == data_type {
        true => Ok(array),
        false => Ok(cast(&array, data_type)?),
    }
}

/// The texts of a dictionary array that occur in it.
struct Different {
    table: ArrayRef,
    /// Where in the table each text that occurs is; null where a row has none.
    used: UInt32Array,
    /// Which of those that occur each row has.
    positions: UInt32Array,
}

impl Different {
    /// The texts of `array`; `None` where looking for them would not pay.
    fn of(array: &ArrayRef) -> Option<Self> {
        let codes = array.as_any_dictionary_opt()?;
        let (table, rows) = (codes.values(), array.len());
        if table.is_empty() || table.len() > rows.saturating_mul(TEXTS_PER_ROW_MAX) {
            return None;
        }
        let mut known: Vec<Option<u32>> = vec![None; table.len() + 1];
        let mut used = Vec::new();
        let mut positions = Vec::with_capacity(rows);
        for (row, code) in codes.normalized_keys().into_iter().enumerate() {
            let valid = codes.keys().is_valid(row);
            let place = if valid { code } else { table.len() };
            let position = *known[place].get_or_insert_with(|| {
                used.push(valid.then_some(code as u32));
                used.len() as u32 - 1
            });
            positions.push(position);
        }
        Some(Different {
            table: Arc::clone(table),
            used: UInt32Array::from(used),
            positions: UInt32Array::from(positions),
        })
    }
}
