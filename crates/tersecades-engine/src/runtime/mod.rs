//! Running a query: ingest, workers, closing windows, metrics.
//!
//! ```text
//! source ─▶ Ingest (columns used, encoded; event time; watermark; cuts) ─▶ frame
//!           frame ─▶ worker 0..n (its own Stage: transforms, partial panes)   bounded queues
//!           watermark passes a window end ─▶ flush workers ─▶ merge panes ─▶ emit
//!           emitted windows ─▶ next Part (window over window, operator on rows) ─▶ out
//! ```

pub mod ablation;
pub mod bound_time;
pub mod encoded;
pub mod encoding;
pub mod engine;
pub mod feed;
mod first;
pub mod ingest;
pub mod interrupt;
mod lent_thread;
pub mod meter;
pub mod metrics;
pub(crate) mod on_thread;
pub mod option;
pub mod part;
pub mod retained;
pub(crate) mod share;
pub mod spill;
pub mod stage;
pub mod standing;
pub mod state;
pub mod tail;
pub mod worker;

pub use encoding::EncodeOptions;
pub use engine::{OpenWindow, Running};
pub use feed::{Feed, Feeding};
pub use interrupt::Interrupt;
pub use metrics::{ColumnMetrics, LateWindow, Metrics};
pub use option::{OnLimit, RunOptions, THREADS_MAX, TimeKind, TimeOptions};
pub use retained::{Keep, Retained};
pub use standing::Standing;
