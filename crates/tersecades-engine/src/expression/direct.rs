//! Sums and multiples of whole columns, computed on their encoded form by the waist.
//!
//! ```text
//! x + 3, 3 + x, x - 3, x * 3    map           x and y: columns, or again one of these
//! x + y, x - y                  add, map
//! ```
//! What these do not take (rows left out, other operators, codecs without an encoded form,
//! results beyond 64 bits) is computed on decoded values as every other expression is.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{EncodeWork, Work};
use tersecades_columnar::primitive::arithmetic::Change;
use tersecades_columnar::selection::Shape;

use super::ast::Arithmetic;
use super::node::Node;
use crate::frame::{Frame, Slot};

/// Integer arithmetic that the waist has a primitive for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Direct {
    /// A column as it is.
    Column(Slot),
    /// A constant added to values, or multiplied with them.
    Map(Box<Direct>, Change),
    /// A sum.
    Add(Box<Direct>, Box<Direct>),
}

/// Chunks between the steps, their memory reused.
pub(super) type Between = Vec<Chunk>;

/// The value of an integer constant.
pub(super) fn integer(node: &Node) -> Option<i64> {
    let Node::Constant(array) = node else {
        return None;
    };
    let whole = array.data_type() == &DataType::Int64 && array.null_count() == 0;
    whole.then(|| array.as_primitive::<Int64Type>().value(0))
}

impl Direct {
    /// The primitives that compute `node`, if it is more than a column.
    pub(super) fn of(node: &Node) -> Option<Self> {
        Self::part(node).filter(|part| !matches!(part, Direct::Column(_)))
    }

    fn part(node: &Node) -> Option<Self> {
        let (how, sides) = match node {
            Node::Column(slot) => return Some(Direct::Column(*slot)),
            Node::Arithmetic {
                how,
                sides,
                number: DataType::Int64,
                ..
            } => (how, sides),
            _ => return None,
        };
        let map = |part: &Node, change| Some(Direct::Map(Box::new(Self::part(part)?), change));
        match (how, integer(&sides.0), integer(&sides.1)) {
            (Arithmetic::Add, Some(constant), None) => map(&sides.1, Change::Add(constant)),
            (Arithmetic::Add, None, Some(constant)) => map(&sides.0, Change::Add(constant)),
            (Arithmetic::Subtract, None, Some(constant)) => {
                map(&sides.0, Change::Add(constant.checked_neg()?))
            }
            (Arithmetic::Multiply, Some(constant), None) => {
                map(&sides.1, Change::Multiply(constant))
            }
            (Arithmetic::Multiply, None, Some(constant)) => {
                map(&sides.0, Change::Multiply(constant))
            }
            (Arithmetic::Add, None, None) => {
                let (a, b) = (Self::part(&sides.0)?, Self::part(&sides.1)?);
                Some(Direct::Add(Box::new(a), Box::new(b)))
            }
            (Arithmetic::Subtract, None, None) => {
                let opposite = map(&sides.1, Change::Multiply(-1))?;
                let a = Self::part(&sides.0)?;
                Some(Direct::Add(Box::new(opposite), Box::new(a)))
            }
            _ => None,
        }
    }

    /// Computes all rows of `frame` into `out`; false when that has no encoded form.
    pub(super) fn run(
        &self,
        frame: &Frame,
        out: &mut Chunk,
        work: (&mut Work, &mut EncodeWork, &mut Between),
    ) -> bool {
        frame.selection.shape() == Shape::All && self.compute(frame, out, work)
    }

    fn compute(
        &self,
        frame: &Frame,
        out: &mut Chunk,
        (work, encode, between): (&mut Work, &mut EncodeWork, &mut Between),
    ) -> bool {
        match self {
            Direct::Column(slot) => {
                out.clone_from(frame.column(*slot));
                true
            }
            Direct::Map(part, change) => {
                part.with(frame, (work, encode, between), |column, work| {
                    let (work, encode, _) = work;
                    column.maps(*change) && column.map(*change, out, work, encode).is_ok()
                })
            }
            Direct::Add(a, b) => a.with(frame, (work, encode, between), |a, work| {
                b.with(frame, work, |b, (work, encode, _)| {
                    let added = match (a.adds(b), b.adds(a)) {
                        (true, _) => a.add(b, out, work, encode),
                        (_, true) => b.add(a, out, work, encode),
                        _ => return false,
                    };
                    if added.is_ok() && !out.stats().known {
                        out.settle(work);
                    }
                    added.is_ok()
                })
            }),
        }
    }

    /// Hands the column, or what is computed, to `then`; false when it has no encoded form.
    fn with(
        &self,
        frame: &Frame,
        (work, encode, between): (&mut Work, &mut EncodeWork, &mut Between),
        then: impl FnOnce(&Chunk, (&mut Work, &mut EncodeWork, &mut Between)) -> bool,
    ) -> bool {
        if let Direct::Column(slot) = self {
            return then(frame.column(*slot), (work, encode, between));
        }
        let mut chunk = between.pop().unwrap_or_default();
        let computed = self.compute(frame, &mut chunk, (&mut *work, &mut *encode, &mut *between))
            && then(&chunk, (work, encode, &mut *between));
        between.push(chunk);
        computed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
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
        let value = |a: i128, b: i128, how: usize| {
            [
                a + b,
                a + 3,
                b - 9,
                2 * a + b + 1,
                a + b + a - 5,
                a - b,
                b - a,
                2 * a,
            ][how]
        };
        let sums = [
            col("a") + col("b"),
            lit(3i64) + col("a"),
            col("b") - lit(9i64),
            col("a") + col("b") + (col("a") + lit(1i64)),
            (col("a") + col("b")) + (col("a") - lit(5i64)),
            col("a") - col("b"),
            col("b") - col("a"),
            col("a") * lit(2i64),
        ];
        let (mut out, mut values) = (Chunk::default(), Values::default());
        for (how, sum) in sums.iter().enumerate() {
            let mut work = Work::default();
            let mut bound = BoundExpression::bind(sum, &scope).unwrap();
            bound.evaluate(&frame, &mut out, &mut work).unwrap();
            assert_eq!(work.tally.decoded, 0, "{sum}");
            assert_eq!(out.codec().id() == 2, how < 7, "{sum}");
            assert!(out.stats().known);
            out.gather(&frame.selection, &mut values, &mut work);
            for i in 0..3_000i32 {
                let (a, b) = (i128::from(i * 7 % 90), i128::from(-(i % 40)));
                let null = i % 5 == 0 && [true, false, true, true, true, true, true, false][how];
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
