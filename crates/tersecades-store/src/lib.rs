//! History on disk: encoded batches become durable, sorted and small, and are queried in place.
//!
//! ```text
//! writers ──batch──▶ log (durable) ──ack──▶ memory ──flush──▶ runs, level 0 ──merge──▶ level 1 …
//!                                             │                  │
//!                                             └── version ◀── manifest (which runs there are)
//!                                                    │
//!                                                 snapshot ──▶ encoded batches
//! ```
//! `docs/store.md` says how to use it, `docs/format.md` what the bytes are.

pub mod fs;
pub mod partition;
pub mod whole_file;

mod adopt;
mod bookmark;
mod bytes;
mod frame;

mod codec_policy;
mod option;
mod schema;
mod schema_text;

mod encode;
mod retention;
mod sort_key;

pub mod raw;

mod catalog;
mod log;
mod lost;
mod manifest;
mod memory;
mod run;

mod commit;
mod compaction;
mod cost_model;
mod counters;
mod explain;
mod feed;
mod follow;
mod maintenance;
mod merge;
mod merger;
mod merging;
mod placement;
mod point;
mod recovery;
mod repair;
mod scan;
mod source;
mod stats;
mod store;
mod sync;
mod tail;
mod upgrade;
mod verify;
mod version;
mod workload;
mod writer;
mod zone;

pub use bookmark::{Bookmark, BookmarkStats};
pub use codec_policy::CodecPolicy;
pub use cost_model::{TreeShape, UnitCosts, runs_opened};
pub use counters::Activity;
pub use explain::{AccessCost, Explained, LevelCost};
pub use feed::FeedWriter;
pub use follow::{Arrival, Arrivals};
pub use merger::Merger;
pub use option::{Durability, Layout, OPTIONS, StoreOptions};
pub use placement::Placement;
pub use point::PointReader;
pub use repair::{Repaired, repair, repair_in};
pub use scan::{ColumnRange, Found, Scan, Scanned};
pub use schema::StoreSchema;
pub use schema_text::{parse_fields, parse_names, split_list, take_name};
pub use stats::{ColumnStats, LevelStats, StoreStats};
pub use store::Store;
pub use upgrade::upgrade;
pub use verify::{Verified, verify, verify_in};
pub use version::Snapshot;
pub use writer::Writer;
pub use zone::Ends;
