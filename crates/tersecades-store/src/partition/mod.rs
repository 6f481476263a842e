//! Bytes compressed in partitions that are decoded one at a time, readable in the middle.
//!
//! ```text
//! bytes ──cut──▶ partitions ──layout──▶ head | stored partitions | tail | index | footer
//!                                                   ▲
//! read_at(offset) ──index──▶ touched partitions ────┘──decode front──▶ bytes
//!                                └──phrase map──▶ copy sources followed ──▶ a few bytes
//! ```
//! A container is what the stock tool of its layout reads from start to end (`gunzip`, `lz4 -d`,
//! `zstd -d`): index and footer hide in frames that such tools skip. Partitions do not refer to
//! each other, so they move into another container as they are.
//!
//! # Source
//! C. Constantinescu, J. Glider, D. Simha, D. Chambliss: "Random Read Speedup in Compression
//! Enabled Storage Systems", IBM Research Report.
//!
//! # Examples
//! ```
//! use tersecades_store::partition::{PackOptions, PackedBytes, pack};
//!
//! let bytes = b"2024-05-01 node-7 ok\n".repeat(50_000);
//! let packed = PackedBytes::from_bytes(pack(&bytes, &PackOptions::default())?)?;
//! let mut line = [0; 21];
//! packed.read_at(21 * 40_000, &mut line)?;
//! assert_eq!(&line, b"2024-05-01 node-7 ok\n");
//! assert!(packed.stored_len() * 50 < packed.len());
//! # Ok::<(), tersecades_columnar::Error>(())
//! ```

mod checksum;
mod footer;
mod index;
mod read_at;

pub mod dictionary;
pub mod gzip;
pub mod layout;
pub mod phrase;

mod file;
mod packed;
mod packer;
mod phrase_cache;
mod reader;
mod reseal;

pub use file::{pack_file, pack_reader};
pub use gzip::{Gzip, GzipFile, is_gzip, open_gzip};
pub use index::Partition;
pub use layout::{LAYOUTS, Layout, find_layout};
pub use packed::{Packed, PackedBytes, PackedFile, is_packed, open};
pub use packer::{PackOptions, Packer, Summary, concat, pack};
pub use read_at::ReadAt;
pub use reader::Reader;
pub use reseal::reseal;

/// Bytes of the longest partition.
///
/// It bounds what a damaged container makes a reader allocate.
pub const PARTITION_MAX: usize = 4 << 20;

/// Bytes of the shortest partition that can be asked for; the last one may be shorter.
pub const PARTITION_MIN: usize = 256;
