//! Expressions after binding: columns are slots, constants have types, every operator is legal.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::predicate::{Comparison, Predicate};

use super::ast::Arithmetic;
use crate::frame::Slot;

/// A bound expression and the type of its values.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) node: Node,
    pub(super) data_type: DataType,
}

/// A bound expression.
#[derive(Debug)]
pub(super) enum Node {
    /// The column in a slot.
    Column(Slot),
    /// An array of one value.
    Constant(ArrayRef),
    /// True, false or unknown, whatever the row.
    Truth(Option<bool>),
    /// Whether values pass a predicate; unknown where they are null.
    Test {
        input: Box<Node>,
        /// Type of the input, which the predicate is made for.
        data_type: DataType,
        predicate: Predicate,
    },
    /// Two computed values compared.
    Compare(Comparison, Box<Node>, Box<Node>),
    /// Arithmetic in `number`, one of `Int64`, `Float64` and `Decimal128`.
    Arithmetic {
        how: Arithmetic,
        sides: Box<(Node, Node)>,
        number: DataType,
        /// The operation as written, for errors.
        text: String,
    },
    /// Every part is true.
    All(Vec<Node>),
    /// Some part is true.
    Any(Vec<Node>),
    /// The opposite.
    Not(Box<Node>),
    /// Whether the value is null.
    IsNull(Box<Node>),
    /// The value as another type.
    Cast {
        input: Box<Node>,
        to: DataType,
        /// The cast as written, for errors.
        text: String,
    },
    /// A timestamp in seconds from calendar parts.
    MakeTimestamp(Vec<Node>),
    /// A timestamp from units since the epoch.
    EpochTime(Box<Node>, TimeUnit),
}

impl Node {
    /// Calls `see` with the slot of every column.
    pub(super) fn for_each_slot(&self, see: &mut impl FnMut(Slot)) {
        match self {
            Node::Column(slot) => see(*slot),
            Node::Constant(_) | Node::Truth(_) => {}
            Node::Compare(_, a, b) => {
                a.for_each_slot(see);
                b.for_each_slot(see);
            }
            Node::Arithmetic { sides, .. } => {
                sides.0.for_each_slot(see);
                sides.1.for_each_slot(see);
            }
            Node::All(parts) | Node::Any(parts) | Node::MakeTimestamp(parts) => {
                parts.iter().for_each(|part| part.for_each_slot(see));
            }
            Node::Test { input, .. }
            | Node::Not(input)
            | Node::IsNull(input)
            | Node::Cast { input, .. }
            | Node::EpochTime(input, _) => input.for_each_slot(see),
        }
    }
}
