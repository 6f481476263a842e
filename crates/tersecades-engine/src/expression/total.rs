//! Operations with a result for all values of their operands' types: of rows that do not count they
//! may be computed all the same.

use arrow_schema::DataType;
use tersecades_columnar::types::Physical;

use super::ast::Arithmetic;
use super::direct::integer;
use super::node::{Bound, Node};

/// The least and the greatest of whole numbers.
type Range = (i128, i128);

/// Whether every value of the type `from` has one in the type `to`.
pub(super) fn casts_all(from: &DataType, to: &DataType) -> bool {
    use DataType::{Boolean, Float32, Float64, Int64, Timestamp, Utf8};
    match (from, to) {
        (from, Float64 | Utf8) if from.is_numeric() => true,
        (from, Float32) if from.is_integer() => true,
        (Boolean, to) => to.is_integer() || to.is_floating() || *to == Utf8,
        (Timestamp(..), Int64) => true,
        _ => match (range_of(from), range_of(to)) {
            (Some(from), Some(to)) => lies_in(from, to),
            _ => false,
        },
    }
}

/// Whether `a how b` of whole numbers is one of 64 bits, whatever they are.
pub(super) fn computes_all(how: Arithmetic, a: &Bound, b: &Bound) -> bool {
    const WORD: Range = (i64::MIN as i128, i64::MAX as i128);
    let (Some(a), Some(b)) = (range(a), range(b)) else {
        return false;
    };
    let ends = |compute: fn(i128, i128) -> i128| {
        [a.0, a.1].iter().all(|a| {
            let mut results = [b.0, b.1].into_iter().map(|b| compute(*a, b));
            results.all(|result| lies_in((result, result), WORD))
        })
    };
    lies_in(a, WORD)
        && lies_in(b, WORD)
        && match how {
            Arithmetic::Add => ends(|a, b| a + b),
            Arithmetic::Subtract => ends(|a, b| a - b),
            Arithmetic::Multiply => ends(|a, b| a * b),
            // The one quotient that is too large is that of the least number by -1.
            Arithmetic::Divide | Arithmetic::Remainder => a.0 > WORD.0,
        }
}

fn lies_in(inner: Range, outer: Range) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// The range of what is computed, where it is whole numbers.
fn range(bound: &Bound) -> Option<Range> {
    match integer(&bound.node) {
        Some(constant) => Some((constant.into(), constant.into())),
        None => range_of(&bound.data_type),
    }
}

fn range_of(data_type: &DataType) -> Option<Range> {
    let physical = Physical::of(data_type).ok()?;
    let below = i128::from(physical.flip());
    let most = i128::from(physical.key_max()) - below;
    data_type.is_integer().then_some((-below, most))
}

impl Node {
    /// Whether computing it fails for some values of its columns.
    pub(super) fn may_fail(&self) -> bool {
        let mut may_fail = false;
        self.visit(&mut |node| {
            may_fail |= match node {
                Node::Arithmetic { total, .. } | Node::Cast { total, .. } => !total,
                // What a function from outside does is not known.
                Node::Call(_) => true,
                _ => false,
            };
        });
        may_fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::bind::bind;
    use crate::expression::{Expression, col, lit};
    use crate::frame::Scope;

    #[test]
    fn what_fails_for_no_value_is_known_by_its_types() {
        use DataType::{Boolean, Decimal128, Float32, Float64, Int8, Int32, Int64};
        use DataType::{UInt8, UInt32, UInt64, Utf8};
        let mut scope = Scope::default();
        for (name, data_type) in [
            ("byte", UInt8),
            ("int", Int32),
            ("long", Int64),
            ("large", UInt64),
            ("float", Float64),
            ("digits", Decimal128(10, 2)),
            ("text", Utf8),
            ("truth", Boolean),
        ] {
            scope.add(name, data_type);
        }
        let (int, long, byte) = (|| col("int"), || col("long"), || col("byte"));
        let may_fail = |expression: &Expression| bind(expression, &scope).unwrap().node.may_fail();
        for total in [
            int() + int(),
            int() * int(),
            int() + 5,
            int() / byte(),
            col("float") * long(),
            byte().cast(Int32),
            byte() + lit(i64::MAX - 255),
            col("large").cast(Float64),
            col("digits").cast(Float64),
            long().cast(Float32),
            long().cast(Utf8),
            col("truth").cast(Int8),
            col("text").eq("").or(int().gt(byte())),
        ] {
            assert!(!may_fail(&total), "{total}");
        }
        for partial in [
            long() + 1,
            int() * int() * int(),
            long() / int(),
            byte() + lit(i64::MAX - 254),
            col("large") + 1,
            col("digits") * col("digits"),
            int().cast(UInt32),
            byte().cast(Int8),
            col("float").cast(Float32),
            col("float").cast(Int64),
            col("text").cast(Int64),
            col("text").eq("").or(col("text").cast(Int32).gt(5)),
        ] {
            assert!(may_fail(&partial), "{partial}");
        }
    }
}
