//! Ways to store partitions, and the frames that make stock tools read the whole.
//!
//! To add one: write `layout/<name>.rs` and add a line to [`LAYOUTS`].

mod lz4;
mod zlib;
mod zstd;

pub use lz4::Lz4;
pub use zlib::Zlib;
pub use zstd::Zstd;

use std::fmt::Debug;
use std::ops::RangeInclusive;

use tersecades_columnar::error::{Error, Result};

use super::phrase::PhraseMap;

/// Every layout, the default first.
///
/// `zlib` leads because every system reads it; `zstd` packs and reads better where its library
/// is at hand; `lz4` reads fastest and packs least.
pub const LAYOUTS: &[&dyn Layout] = &[&Zlib, &Zstd, &Lz4];

/// The layout of that name.
///
/// # Errors
/// Names that are not in [`LAYOUTS`].
pub fn find_layout(name: &str) -> Result<&'static dyn Layout> {
    let found = LAYOUTS.iter().find(|layout| layout.name() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name()).collect();
        Error::invalid(format!("there is no layout `{name}`"))
            .hint(format!("the layouts are {}", names.join(", ")))
    })
}

/// The layout with that number.
pub(super) fn layout_of_id(id: u8) -> Result<&'static dyn Layout> {
    let found = LAYOUTS.iter().find(|layout| layout.id() == id);
    found.copied().ok_or_else(|| {
        Error::unsupported(format!("layout {id} of packed files is unknown"))
            .hint("a later release wrote the file")
    })
}

/// One way to store partitions.
pub trait Layout: Debug + Send + Sync {
    /// Its number in footers.
    fn id(&self) -> u8;

    /// Its name for users.
    fn name(&self) -> &'static str;

    /// What it is good for, in half a line.
    fn summary(&self) -> &'static str;

    /// Bytes of a partition unless said otherwise.
    fn partition_default(&self) -> usize;

    /// The levels, from fast to small.
    fn levels(&self) -> RangeInclusive<i32>;

    /// The level unless said otherwise.
    fn level_default(&self) -> i32;

    /// Bytes of the dictionary that is trained for all partitions; 0 without one.
    fn dictionary_default(&self) -> usize {
        0
    }

    /// Whether decoding can stop in the middle of a partition.
    fn stops_early(&self) -> bool {
        false
    }

    /// The longest read that is faster by following copies in a phrase map than by decoding.
    fn recursive_read_max(&self) -> usize {
        0
    }

    /// How its containers are framed.
    fn framing(&self) -> &'static dyn Framing;

    /// What compresses partitions.
    ///
    /// # Errors
    /// Levels it does not have, and what its library says.
    fn encoder(&self, level: i32, dictionary: &[u8]) -> Result<Box<dyn PartitionEncoder>>;

    /// What decodes partitions.
    ///
    /// # Errors
    /// What its library says of the dictionary.
    fn decoder(&self, dictionary: &[u8]) -> Result<Box<dyn PartitionDecoder>>;

    /// The phrases of a partition, for layouts that are made of them.
    ///
    /// # Errors
    /// Damaged bytes.
    fn phrases(&self, _stored: &[u8], _raw_len: usize) -> Result<Option<PhraseMap>> {
        Ok(None)
    }
}

/// Compresses one partition after the other.
pub trait PartitionEncoder: Send {
    /// Appends the stored form of `raw`.
    ///
    /// # Errors
    /// What the library says.
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()>;
}

/// Decodes one partition after the other.
pub trait PartitionDecoder: Send {
    /// Fills `front` with the first bytes of a partition: all of them, unless the layout stops
    /// early.
    ///
    /// # Errors
    /// Bytes that stand for fewer bytes than asked, or are damaged.
    fn decode(&mut self, stored: &[u8], front: &mut [u8]) -> Result<()>;
}

/// What stands around partitions, so that stock tools read them as one stream and skip the rest.
pub trait Framing: Debug + Send + Sync {
    /// The bytes in front of the first partition.
    fn head(&self) -> &'static [u8];

    /// Appends what ends the stream of `raw_len` bytes with that checksum.
    fn end(&self, raw_checksum: u32, raw_len: u64, out: &mut Vec<u8>);

    /// Whether the end needs the checksum of the raw bytes.
    fn sums_raw(&self) -> bool;

    /// The most that one hidden frame holds.
    fn hidden_max(&self) -> usize;

    /// Appends a frame that holds `payload` and stands for nothing.
    fn hide(&self, payload: &[u8], out: &mut Vec<u8>);

    /// How many bytes follow the payload of a hidden frame.
    fn hidden_suffix(&self) -> usize;

    /// Takes a hidden frame off the front of `frames`; none where there is no whole one.
    fn reveal<'a>(&self, frames: &mut &'a [u8]) -> Option<&'a [u8]>;
}

/// Takes `count` bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(front)
}

/// Frames of Zstandard and LZ4 that every reader of theirs skips.
///
/// # Source
/// RFC 8878, section 3.1.2.
mod skippable {
    use super::take;

    /// One of the sixteen numbers for frames of users.
    const MAGIC: u32 = 0x184D_2A57;

    /// The most that one frame is given.
    pub(super) const PAYLOAD_MAX: usize = 1 << 30;

    pub(super) fn hide(payload: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.extend_from_slice(payload);
    }

    pub(super) fn reveal<'a>(frames: &mut &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = *frames;
        if take(&mut rest, 4)? != MAGIC.to_le_bytes() {
            return None;
        }
        let length = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
        let payload = take(&mut rest, length as usize)?;
        *frames = rest;
        Some(payload)
    }
}

/// The error for a level that a layout does not have.
fn check_level(layout: &dyn Layout, level: i32) -> Result<()> {
    let levels = layout.levels();
    if levels.contains(&level) {
        return Ok(());
    }
    let message = format!("the layout {} has no level {level}", layout.name());
    Err(Error::invalid(message).hint(format!("levels: {} to {}", levels.start(), levels.end())))
}
