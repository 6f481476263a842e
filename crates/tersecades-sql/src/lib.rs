//! SQL over streams: parsed and planned by DataFusion's planning crates, run by the engine.
//!
//! ```text
//! text ──parse──▶ statements ──▶ DataFusion: names, types, joins from subqueries ──▶ LogicalPlan
//!                                     LogicalPlan ──lower──▶ Stream of the engine ──▶ results
//! ```
//! DataFusion's execution engine is not used. Operations that the engine has run in it, encoded
//! where they can; what is left of a scalar expression is one of DataFusion's physical
//! expressions behind the engine's `ScalarFunction`. `docs/sql.md` describes the language.

mod answer;
mod catalog;
mod command;
mod computed_key;
mod correlated;
mod create;
mod drawn;
mod error;
mod explain;
mod fork;
mod function;
mod hidden_sort;
mod in_turn;
mod keep;
mod late;
mod lower;
mod parse;
mod plan;
mod qos;
mod scalar;
mod session;
mod summary;

pub use answer::{Answer, Results};
pub use catalog::{FindTable, TableTime};
pub use fork::Tables;
pub use qos::{Experiment, Setting, loosest, loss_lines, scheme_within};
pub use session::{OPTIONS, Session};
