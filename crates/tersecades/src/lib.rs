//! Stream analytics that runs on encoded data.
//!
//! Rows arrive as Arrow batches or from files, are encoded column by column with the cheapest
//! codec, and are filtered, joined, grouped and folded in their encoded form. Results come out as
//! Arrow record batches while windows close.
//!
//! # Examples
//! How many slow, failing probes did each pair of clusters see in every minute, updated every ten
//! seconds? Half a minute of a generated stream stands for the real one:
//! ```
//! use std::time::Duration;
//! use tersecades::prelude::*;
//!
//! let options = PingmeshOptions { rows: 30_000, rows_per_second: 1_000, ..Default::default() };
//! let probes = PingmeshSource::new(Pingmesh::new(options)?, 4_096);
//! let windows = Stream::from_source(Box::new(probes))
//!     .event_time(col("timestamp"), Duration::from_secs(3))
//!     .filter(col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100)))
//!     .window(hop(Duration::from_secs(60), Duration::from_secs(10)))
//!     .group_by(["src_cluster", "dst_cluster"])
//!     .aggregate([count().alias("probes"), call("max", col("rtt_us")).alias("worst_us")])
//!     .run()?;
//! for window in windows {
//!     let pairs = window?;
//!     assert_eq!(pairs.num_columns(), 6); // window_start, window_end, two keys, two results
//! }
//! # Ok::<(), tersecades::Error>(())
//! ```
//! Files are opened by their suffix with [`Stream::open`](prelude::Stream::open): Parquet, Arrow
//! IPC and CSV.

pub use arrow_array;
pub use arrow_schema;

pub use tersecades_columnar as columnar;
pub use tersecades_engine as engine;
#[cfg(feature = "sql")]
pub use tersecades_sql as sql;
pub use tersecades_store as store;

pub use tersecades_columnar::error::{Error, ErrorKind, Result};

/// What most programs need, in one `use`.
pub mod prelude {
    pub use crate::{Error, ErrorKind};
    pub use arrow_array::RecordBatch;
    pub use arrow_schema::{DataType, SchemaRef, TimeUnit};
    pub use tersecades_columnar::types::Value;
    pub use tersecades_engine::aggregate::{call, count};
    pub use tersecades_engine::event_time::{Clock, SystemClock, TestClock};
    pub use tersecades_engine::expression::{Expression, col, lit};
    pub use tersecades_engine::operator::join::as_of::Direction;
    pub use tersecades_engine::operator::join::{JoinKind, JoinOptions};
    pub use tersecades_engine::operator::row::Extent;
    pub use tersecades_engine::operator::row::keys::SortOrder;
    pub use tersecades_engine::plan::LookupTable;
    pub use tersecades_engine::runtime::{Keep, Metrics, OnLimit, OpenWindow, Retained, Running};
    pub use tersecades_engine::source::generated::{GeneratorTable, PingmeshSource};
    pub use tersecades_engine::source::generator::{Pingmesh, PingmeshOptions};
    pub use tersecades_engine::source::{Source, SourceOptions};
    pub use tersecades_engine::stream::{Stream, WindowedStream};
    pub use tersecades_engine::window::{
        CalendarUnit, Emit, Window, calendar, cumulate, global, hop, session, tumble,
    };
}

/// The program of the README, which has to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
