//! Expressions after binding: columns are slots, constants have types, every operator is legal.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::predicate::{Comparison, Predicate};

use super::ast::Arithmetic;
use super::call::Call;
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
    /// Two columns compared whose integers are of one kind, so that their encoded forms tell.
    CompareColumns(Comparison, [Slot; 2]),
    /// Arithmetic in `number`, one of `Int64`, `Float64` and `Decimal128`.
    Arithmetic {
        how: Arithmetic,
        sides: Box<(Node, Node)>,
        number: DataType,
        /// Whether it has a result for all values of its sides.
        total: bool,
        /// The operation as written, for errors.
        text: String,
    },
    /// Every part is true.
    All(Vec<Node>),
    /// Some part is true.
    Any(Vec<Node>),
    /// Every part is true, or some part is: the first that cannot fail, each of the others asked
    /// only of the rows that none before it settles.
    InTurn {
        parts: Vec<Node>,
        /// The truth of a part that is the truth of the whole.
        settles: bool,
    },
    /// The opposite.
    Not(Box<Node>),
    /// Whether the value is null.
    IsNull(Box<Node>),
    /// The value as another type.
    Cast {
        input: Box<Node>,
        to: DataType,
        /// Whether every value has one in the other type.
        total: bool,
        /// The cast as written, for errors.
        text: String,
    },
    /// A timestamp in seconds from calendar parts.
    MakeTimestamp(Vec<Node>),
    /// A timestamp from units since the epoch.
    EpochTime(Box<Node>, TimeUnit),
    /// A function from outside.
    Call(Box<Call>),
}

impl Node {
    /// Calls `see` with the slot of every column.
    pub(super) fn for_each_slot(&self, see: &mut dyn FnMut(Slot)) {
        self.visit(&mut |node| match node {
            Node::Column(slot) => see(*slot),
            Node::CompareColumns(_, slots) => slots.iter().copied().for_each(&mut *see),
            _ => {}
        });
    }

    /// Whether the same columns always give the same values.
    pub(super) fn is_immutable(&self) -> bool {
        let mut immutable = true;
        self.visit(&mut |node| {
            if let Node::Call(call) = node {
                immutable &= call.is_immutable();
            }
        });
        immutable
    }

    pub(super) fn visit(&self, see: &mut dyn FnMut(&Node)) {
        see(self);
        match self {
            Node::Column(_) | Node::Constant(_) | Node::Truth(_) | Node::CompareColumns(..) => {}
            Node::Compare(_, a, b) => {
                a.visit(see);
                b.visit(see);
            }
            Node::Arithmetic { sides, .. } => {
                sides.0.visit(see);
                sides.1.visit(see);
            }
            Node::All(parts)
            | Node::Any(parts)
            | Node::InTurn { parts, .. }
            | Node::MakeTimestamp(parts) => parts.iter().for_each(|part| part.visit(see)),
            Node::Call(call) => call.arguments().iter().for_each(|part| part.visit(see)),
            Node::Test { input, .. }
            | Node::Not(input)
            | Node::IsNull(input)
            | Node::Cast { input, .. }
            | Node::EpochTime(input, _) => input.visit(see),
        }
    }
}
