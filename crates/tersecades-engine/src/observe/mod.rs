//! What queries can observe of a stream, and keeping no more than that.
//!
//! ```text
//! registered queries ──▶ sight: per column nothing │ a class │ the value, and why
//!                          ▼ joined
//!                       Observed ──▶ reduce: columns of class representatives, encoded as any
//!                          └───────▶ admit: a later query that would see more is refused
//! ```
//! Lossy without a change in any answer: a column that is only compared with constants is kept as
//! the class between their cut points, an event time that only windows read as its pane, a column
//! that nobody reads not at all; where every query's filters drop a row, its place is taken by a
//! value that others have. Every representative is a value of its class, so that the queries run
//! on it as they are.
//!
//! # Source
//! TerseCades (USENIX ATC 2018), section 3.3: a timestamp that only places rows in windows needs
//! its base alone.

mod mask;
mod need;
mod passed;
mod reduce;
mod retention;
mod sight;
mod time_cut;

pub use mask::Kept;
pub use need::{Classes, Need};
pub use passed::Passed;
pub use reduce::Reducer;
pub use retention::{Observed, Reduced, Reduction, Registered};
pub use time_cut::TimeCuts;
