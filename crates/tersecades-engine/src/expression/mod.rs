//! Expressions: written ([`ast`]), bound to columns, run on encoded chunks where a term is
//! a comparison of a column with constants, and on decoded survivors otherwise.
//!
//! ```text
//! Expression ──bind──▶ Node ──┬─ columns against constants ─▶ EncodedTerm: waist, no decoding
//!                             ├─ sums of whole columns ─────▶ Direct: waist, no decoding
//!                    └─ everything else ───────────▶ Computation: gather, then Arrow kernels
//! ```

pub mod ast;

mod display;

pub mod function;

mod bind;
mod literal;
mod node;
pub mod observe;
mod ranges;
mod remembered;

mod arithmetic;
mod calendar;
mod call;
mod compare;
mod compute;
mod decimal;
mod direct;
mod in_turn;
mod time;
mod total;

mod encoded;

pub mod evaluate;
pub mod filter;

#[cfg(test)]
mod tests;

pub use arithmetic::narrowed;
pub use ast::{Arithmetic, Expression, col, lit};
pub use calendar::seconds_of;
pub use compare::{Side, compare_arrays};
pub use evaluate::BoundExpression;
pub use filter::BoundFilter;
pub use function::ScalarFunction;
pub use literal::with_seconds;
pub(crate) use time::offset_at;
pub use time::{cast_time, texts_with_seconds};
