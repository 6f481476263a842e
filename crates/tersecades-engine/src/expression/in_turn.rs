//! Conditions that are asked one after the other, each of the rows that those before leave open.
//!
//! ```text
//! s                               ''       '7'      null
//! s = ''                          true     false    unknown    fails for no row: asked first
//! CAST(s AS INTEGER) > 5          –        true     unknown    asked of two rows
//! s = '' OR CAST(s AS INTEGER) > 5    true     true     unknown
//! ```

use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, or_kleene};
use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray};
use arrow_buffer::BooleanBuffer;
use tersecades_columnar::error::Result;

use super::compute::{Inputs, Operand, evaluate};
use super::node::Node;

/// AND of the parts, or OR if `settles`: the truth of a part that settles the whole.
///
/// # Errors
/// Those of the rows that each part is asked of.
pub(super) fn ask(parts: &[Node], settles: bool, inputs: &Inputs) -> Result<Operand> {
    let rows = inputs.rows();
    let same = match settles {
        true => BooleanBuffer::new_unset(rows),
        false => BooleanBuffer::new_set(rows),
    };
    let mut joined = BooleanArray::new(same, None);
    for part in parts {
        let open = open_rows(&joined, settles);
        let truths = match open.count_set_bits() {
            0 => break,
            all if all == rows => truths_of(part, inputs)?,
            _ => {
                let inputs = inputs.filtered(part, &BooleanArray::new(open.clone(), None))?;
                spread(&truths_of(part, &inputs)?, &open)
            }
        };
        joined = match settles {
            true => or_kleene(&joined, &truths)?,
            false => and_kleene(&joined, &truths)?,
        };
    }
    Ok(Operand {
        array: Arc::new(joined),
        scalar: false,
    })
}

/// The rows that no part has settled.
fn open_rows(joined: &BooleanArray, settles: bool) -> BooleanBuffer {
    let settled = match settles {
        true => joined.values().clone(),
        false => !joined.values(),
    };
    match joined.nulls() {
        Some(nulls) => !&(&settled & nulls.inner()),
        None => !&settled,
    }
}

fn truths_of(part: &Node, inputs: &Inputs) -> Result<BooleanArray> {
    let truths = evaluate(part, inputs)?.spread(inputs.rows())?;
    Ok(truths.as_boolean().clone())
}

/// Truths of the rows in `open` as those of all rows, unknown where nothing was asked.
fn spread(truths: &BooleanArray, open: &BooleanBuffer) -> BooleanArray {
    let mut truths = truths.iter();
    let mut next = || truths.next().flatten();
    let all = open.iter().map(|open| if open { next() } else { None });
    all.collect()
}
