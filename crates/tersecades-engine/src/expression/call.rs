//! Calls of functions from outside: bound, and run on as few values as they can be.
//!
//! A call reads survivors only. Where it depends on one column that came as codes of a
//! dictionary, it runs once for each different text, also over several batches, and the results
//! are spread; texts among them become the values of a dictionary, some of which may be equal:
//!
//! ```text
//! letters(name)   codes 0 2 2 0 2  ──▶  letters(["eu", "asia"]) = [2, 4]  ──▶  2 4 4 2 4
//! upper(name)     codes 0 2 2 0 2  ──▶  upper(["eu", "asia"]) = ["EU", "ASIA"], codes 0 1 1 0 1
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, UInt32Array};
use arrow_buffer::ScalarBuffer;
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
use super::remembered::Remembered;
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
    /// Results for texts of batches before.
    remembered: Mutex<Remembered>,
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
        remembered: Mutex::default(),
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
            Some(slot) => Different::of(&inputs.column(slot)?)?.map(|different| (slot, different)),
            None => None,
        };
        let array = match different {
            Some((slot, Different { values, positions })) => {
                let remembered = self.remembered.lock();
                let mut remembered = remembered.unwrap_or_else(PoisonError::into_inner);
                let results = remembered.results_of(&values, |values| {
                    let results = self.run_rows(&Inputs::of_column(slot, values))?;
                    of_type(results, &self.data_type)
                })?;
                match Physical::of(&self.data_type)? {
                    Physical::Text => Arc::new(DictionaryArray::try_new(positions, results)?),
                    _ => take(&results, &positions, None)?,
                }
            }
            None => self.run_rows(inputs)?,
        };
        Ok(Operand {
            array,
            scalar: false,
        })
    }

    /// One value for each row, of which texts may be codes of a dictionary.
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
        match array.data_type() {
            DataType::Dictionary(key, values)
                if **key == DataType::UInt32
                    && **values == self.data_type
                    && Physical::of(values)? == Physical::Text =>
            {
                Ok(array)
            }
            _ => of_type(array, &self.data_type),
        }
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
    /// Each text that occurs, and a null where a row has none.
    values: ArrayRef,
    /// Which of them each row has.
    positions: UInt32Array,
}

impl Different {
    /// The texts of `array`; `None` where looking for them would not pay.
    fn of(array: &ArrayRef) -> Result<Option<Self>> {
        let Some(coded) = array.as_any_dictionary_opt() else {
            return Ok(None);
        };
        let table = coded.values();
        if table.is_empty() || table.len() > array.len().saturating_mul(TEXTS_PER_ROW_MAX) {
            return Ok(None);
        }
        let keys = cast(coded.keys(), &DataType::UInt32)?;
        let keys = keys.as_primitive::<UInt32Type>();
        // Rows without a text have the code behind all texts.
        let absent = table.len();
        let codes: ScalarBuffer<u32> = match keys.nulls() {
            Some(nulls) => {
                let keys = keys.values().iter().zip(nulls.iter());
                let codes = keys.map(|(key, valid)| if valid { *key } else { absent as u32 });
                codes.collect()
            }
            None => keys.values().clone(),
        };
        let mut occurs = vec![false; table.len() + 1];
        codes.iter().for_each(|code| occurs[*code as usize] = true);
        if !occurs[absent] && occurs[..absent].iter().all(|occurs| *occurs) {
            return Ok(Some(Different {
                values: Arc::clone(table),
                positions: UInt32Array::new(codes, None),
            }));
        }
        let mut position = vec![0u32; occurs.len()];
        let mut used = Vec::new();
        for (code, _) in occurs.iter().enumerate().filter(|(_, occurs)| **occurs) {
            position[code] = used.len() as u32;
            used.push((code < absent).then_some(code as u32));
        }
        let positions = codes.iter().map(|code| position[*code as usize]);
        Ok(Some(Different {
            values: take(table, &UInt32Array::from(used), None)?,
            positions: UInt32Array::from_iter_values(positions),
        }))
    }
}
