//! The flow: rows in, encoded batches through windows and operators, results out.
//!
//! ```text
//! source ─▶ runtime::ingest ─▶ Frame ─▶ operators ─▶ window aggregate ─▶ next stage or out ─▶ sink
//!                 │ event time, watermark                  ▲ closes windows
//! ```
//! Batches are pushed as they arrive; nothing needs the whole input, and a file is a stream that
//! ends. Operators call only the waist of `tersecades-columnar` and never name a codec.

pub mod stream;

pub mod plan;

pub mod source;

pub mod event_time;
pub mod window;

pub mod expression;
pub mod frame;
pub mod operator;

pub mod aggregate;

pub mod cost;

pub mod error_bound;
pub mod observe;
pub mod quality;

pub mod runtime;

pub mod sink;

pub use tersecades_columnar::error::{Error, ErrorKind, Result};
