//! The Python package `tersecades`: classes and functions that build the engine's own plans.
//!
//! ```text
//! Python objects ──capsule, arrow_table──▶ tables ─▶ stream, group, expression ─▶ engine's Stream
//!                                                                                      │ running
//! other libraries ◀──capsule── table ◀─────── batches of results, Ctrl-C in between ◀──┘
//! ```
//! There is no logic on the Python side: its files are re-exports, types and documentation.

mod error;

mod capsule;

mod arrow_table;
mod clock;
mod cost;
mod data_type;
mod dead_letter;
mod duration;
mod literal;
mod order;

mod aggregate;
mod expression;
mod function;
mod promise;
mod row_function;
mod user_aggregate;
mod window;

mod group;
mod join;
mod lookup;
mod lossy;
mod projection;
mod stream;

mod generate;
mod packed;
#[cfg(feature = "sql")]
mod qos;
mod reading;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "sql")]
mod store;

mod progress_bar;
mod running;
mod standing;
mod turn;

mod explain;
mod metrics;
mod number;
mod open_window;
mod schema;
mod table;
mod writing;

use pyo3::prelude::*;

// It keeps the memory of batches and results for the next ones; the system's allocator gives it
// back to the kernel, and queries of many result rows then take 1.3 times as long.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What `tersecades` re-exports.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(module)?;
    expression::register(module)?;
    aggregate::register(module)?;
    window::register(module)?;
    function::register(module)?;
    user_aggregate::register(module)?;
    dead_letter::register(module)?;
    reading::register(module)?;
    #[cfg(feature = "sql")]
    sql::register(module)?;
    #[cfg(feature = "sql")]
    qos::register(module)?;
    #[cfg(feature = "sql")]
    store::register(module)?;
    generate::register(module)?;
    packed::register(module)?;
    group::register(module)?;
    clock::register(module)?;
    cost::register(module)?;
    progress_bar::register(module)?;
    table::register(module)?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<running::Running>()?;
    module.add_class::<standing::Standing>()?;
    module.add_class::<explain::Explanation>()
}
