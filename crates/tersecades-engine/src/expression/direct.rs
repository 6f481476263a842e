//! Sums and multiples of whole columns, computed on their encoded form by the waist.
//!
//! ```text
//! a + 3, 3 + a, a - 3, a * 3    map
//! a + b                         add
//! ```
//! What these do not take (rows left out, other operators, codecs without an encoded form,
//! results beyond 64 bits) is computed on decoded values as every other expression is.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{EncodeWork, Work};
use tersecades_columnar::primitive::arithmetic::Change;
use tersecades_columnar::selection::Shape;

use super::ast::Arithmetic;
use super::node::Node;
use crate::frame::{Frame, Slot};

/// Integer arithmetic that the waist has a primitive for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direct {
    /// A column and a constant.
    Map(Slot, Change),
    /// Two columns.
    Add(Slot, Slot),
}

/// The value of an integer constant.
fn integer(array: &ArrayRef) -> Option<i64> {
    let whole = array.data_type() == &DataType::Int64 && array.null_count() == 0;
    whole.then(|| array.as_primitive::<Int64Type>().value(0))
}

impl Direct {
    /// The primitive that computes `node`.
    pub(super) fn of(node: &Node) -> Option<Self> {
        let Node::Arithmetic {
            how,
            sides,
            number: DataType::Int64,
            ..
        } = node
        else {
            return None;
        };
        match (how, &sides.0, &sides.1) {
            (Arithmetic::Add, Node::Column(a), Node::Column(b)) => Some(Direct::Add(*a, *b)),
            (Arithmetic::Add, Node::Column(slot), Node::Constant(constant))
            | (Arithmetic::Add, Node::Constant(constant), Node::Column(slot)) => {
                Some(Direct::Map(*slot, Change::Add(integer(constant)?)))
            }
            (Arithmetic::Subtract, Node::Column(slot), Node::Constant(constant)) => {
                let opposite = integer(constant)?.checked_neg()?;
                Some(Direct::Map(*slot, Change::Add(opposite)))
            }
            (Arithmetic::Multiply, Node::Column(slot), Node::Constant(constant))
            | (Arithmetic::Multiply, Node::Constant(constant), Node::Column(slot)) => {
                Some(Direct::Map(*slot, Change::Multiply(integer(constant)?)))
            }
            _ => None,
        }
    }

    /// Computes all rows of `frame` into `out`; false when that has no encoded form.
    pub(super) fn run(
        self,
        frame: &Frame,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> bool {
        if frame.selection.shape() != Shape::All {
            return false;
        }
        match self {
            Direct::Map(slot, change) => {
                let column = frame.column(slot);
                column.maps(change) && column.map(change, out, work, encode).is_ok()
            }
            Direct::Add(a, b) => {
                let (a, b) = (frame.column(a), frame.column(b));
                let added = match (a.adds(b), b.adds(a)) {
                    (true, _) => a.add(b, out, work, encode),
                    (_, true) => b.add(a, out, work, encode),
                    _ => return false,
                };
                if added.is_ok() && !out.stats().known {
                    out.settle(work);
                }
                added.is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, Int64Array, RecordBatch};
    use tersecades_columnar::ErrorKind;
    use tersecades_columnar::batch::BatchEncoder;
    use tersecades_columnar::registry::by_id;
    use tersecades_columnar::values::Values;

    use super::*;
    use crate::expression::{BoundExpression, col, lit};
    use crate::frame::Scope;

    #[test]
    fn sums_of_whole_columns_are_not_decoded() {
        let a: ArrayRef = Arc::new(Int64Array::from_iter_values((0..3_000).map(|i| i * 7 % 90)));
        let b: ArrayRef = Arc::new(Int32Array::from_iter(
            (0..3_000).map(|i| (i % 5 > 0).then_some(-(i % 40))),
        ));
        let rows = RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap();
        let mut encoder = BatchEncoder::new(&rows.schema()).unwrap();
        let base_delta = by_id(2).unwrap();
        for column in encoder.columns_mut() {
            column.pin(base_delta);
        }
        let frame = Frame::new(Arc::new(encoder.encode_new(&rows).unwrap()));
        let scope = Scope::of_schema(&rows.schema());
        let value = |a: i128, b: i128, how: usize| [a + b, a + 3, b - 9, 2 * a][how];
        let sums = [
            col("a") + col("b"),
            lit(3i64) + col("a"),
            col("b") - lit(9i64),
            col("a") * lit(2i64),
        ];
        let (mut out, mut values) = (Chunk::default(), Values::default());
        for (how, sum) in sums.iter().enumerate() {
            let mut work = Work::default();
            let mut bound = BoundExpression::bind(sum, &scope).unwrap();
            bound.evaluate(&frame, &mut out, &mut work).unwrap();
            assert_eq!(work.tally.decoded, 0, "{sum}");
            assert_eq!(out.codec().id() == 2, how < 3, "{sum}");
            assert!(out.stats().known);
            out.gather(&frame.selection, &mut values, &mut work);
            for i in 0..3_000i32 {
                let (a, b) = (i128::from(i * 7 % 90), i128::from(-(i % 40)));
                let null = i % 5 == 0 && (how == 0 || how == 2);
                assert_eq!(values.is_valid(i as usize), !null, "{sum} row {i}");
                if !null {
                    assert_eq!(
                        values.integer(i as usize),
                        value(a, b, how),
                        "{sum} row {i}"
                    );
                }
            }
        }
        let mut bound = BoundExpression::bind(&(col("a") + lit(i64::MAX)), &scope).unwrap();
        let overflow = bound.evaluate(&frame, &mut out, &mut Work::default());
        assert_eq!(overflow.unwrap_err().kind(), ErrorKind::LimitExceeded);
    }
}
