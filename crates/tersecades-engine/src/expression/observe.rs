//! What an expression can tell about the columns it reads.

use tersecades_columnar::cut::CutPoints;
use tersecades_columnar::error::Result;

use super::ast::Expression;
use super::bind::bind;
use super::node::Node;
use crate::frame::{Scope, Slot};

/// What of a column decides about a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Aspect {
    /// Whether it is null.
    Presence,
    /// Between which of these points it lies, and whether it is null.
    Class(CutPoints),
    /// All of it.
    Value,
}

/// Calls `see` with every column that `expression` reads, and what it reads of it.
///
/// # Errors
/// What binding says.
pub fn observe(
    expression: &Expression,
    scope: &Scope,
    see: &mut dyn FnMut(Slot, Aspect),
) -> Result<()> {
    look(&bind(expression, scope)?.node, see);
    Ok(())
}

fn look(node: &Node, see: &mut dyn FnMut(Slot, Aspect)) {
    match node {
        Node::Constant(_) | Node::Truth(_) => {}
        Node::Column(slot) => see(*slot, Aspect::Value),
        Node::IsNull(input) => match **input {
            Node::Column(slot) => see(slot, Aspect::Presence),
            _ => look(input, see),
        },
        Node::Test {
            input, predicate, ..
        } => match **input {
            Node::Column(slot) => see(slot, Aspect::Class(predicate.cut_points())),
            _ => look(input, see),
        },
        Node::CompareColumns(_, slots) => {
            slots.iter().for_each(|slot| see(*slot, Aspect::Value));
        }
        Node::Compare(_, a, b) => {
            look(a, see);
            look(b, see);
        }
        Node::Arithmetic { sides, .. } => {
            look(&sides.0, see);
            look(&sides.1, see);
        }
        Node::All(parts)
        | Node::Any(parts)
        | Node::InTurn { parts, .. }
        | Node::MakeTimestamp(parts) => parts.iter().for_each(|part| look(part, see)),
        Node::Call(call) => call.arguments().iter().for_each(|part| look(part, see)),
        Node::Not(input) | Node::Cast { input, .. } | Node::EpochTime(input, _) => look(input, see),
    }
}
