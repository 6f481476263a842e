//! Places of a gzip file at which decoding can begin.

use tersecades_columnar::error::{Error, Result};

use super::super::read_at::ReadAt;
use super::stream::{Stream, WINDOW};
use crate::bytes::{Put as _, Take};

const MAGIC: [u8; 4] = *b"TCGI";
const VERSION: u8 = 0;

/// Raw bytes between two places.
const SPAN: u64 = 1 << 20;
/// Bytes at either end of a file that tell it from others.
const ENDS: u64 = 4 << 10;
/// Windows are compressed this much; more takes longer than decoding the file.
const LEVEL: i32 = 3;
/// Least bytes of a place.
const PLACE_BYTES: usize = 17;

/// A place of a gzip file at which decoding can begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Raw bytes before it.
    pub(super) raw: u64,
    /// Offset in the file of the first byte that was not looked at.
    pub(super) offset: u64,
    /// `None` at the start of a member.
    pub(super) between: Option<Between>,
}

/// What is needed to go on between two blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Between {
    /// Bits of the byte before `offset` that belong to the next block.
    pub(super) bits: u8,
    /// These bits.
    pub(super) held: u8,
    /// The bytes before, compressed.
    packed: Vec<u8>,
}

impl Between {
    /// `bits` bits, which are `held`, are left, and `window` comes before.
    ///
    /// # Errors
    /// What compressing says.
    pub(super) fn new(bits: u8, held: u8, window: &[u8]) -> Result<Self> {
        let packed = zstd::bulk::compress(window, LEVEL)?;
        Ok(Between { bits, held, packed })
    }

    /// The bytes before.
    ///
    /// # Errors
    /// `Corrupt` where they do not come back.
    pub(super) fn window(&self) -> Result<Vec<u8>> {
        zstd::bulk::decompress(&self.packed, WINDOW)
            .map_err(|_| Error::corrupt("a window of the index is damaged"))
    }
}

/// Where to begin, for any offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GzipIndex {
    /// Bytes that the file stands for.
    pub(super) raw_len: u64,
    /// Bytes of the file, and a checksum of its ends.
    file: (u64, u32),
    /// The places, the start of the file first.
    places: Vec<Place>,
}

impl GzipIndex {
    /// Decodes and checks all of `source`.
    ///
    /// # Errors
    /// `Corrupt` for damage; what reading says.
    pub(super) fn make<S: ReadAt>(source: &S) -> Result<Self> {
        let mut places = vec![Place::default()];
        let mut stream = Stream::at(&places[0])?;
        let mut next = SPAN;
        while stream.step(source, usize::MAX)?.is_some() {
            if stream.raw() < next {
                continue;
            }
            if let Some(place) = stream.place()? {
                places.push(place);
                next = stream.raw() + SPAN;
            }
        }
        Ok(GzipIndex {
            raw_len: stream.raw(),
            file: identity(source)?,
            places,
        })
    }

    /// The last place that is not behind `offset`.
    pub(super) fn place(&self, offset: u64) -> &Place {
        let behind = self.places.partition_point(|place| place.raw <= offset);
        &self.places[behind.saturating_sub(1)]
    }

    /// Whether this is the index of `source`.
    ///
    /// # Errors
    /// `Corrupt` where it is not; what reading says.
    pub(super) fn check_is_of<S: ReadAt>(&self, source: &S) -> Result<()> {
        match identity(source)? == self.file {
            true => Ok(()),
            false => Err(Error::corrupt("the index is of another gzip file")
                .hint("remove it: it is made again")),
        }
    }

    /// The bytes of the index.
    ///
    /// # Errors
    /// `LimitExceeded` for windows of 4 GiB.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = MAGIC.to_vec();
        out.put_u8(VERSION);
        out.put_u64(self.raw_len);
        out.put_u64(self.file.0);
        out.put_u32(self.file.1);
        out.put_u32(self.places.len() as u32);
        for place in &self.places {
            out.put_u64(place.raw);
            out.put_u64(place.offset);
            out.put_u8(u8::from(place.between.is_some()));
            if let Some(between) = &place.between {
                out.put_u8(between.bits);
                out.put_u8(between.held);
                out.put_blob(&between.packed)?;
            }
        }
        let checksum = crc32c::crc32c(&out);
        out.put_u32(checksum);
        Ok(out)
    }

    /// What [`GzipIndex::to_bytes`] wrote.
    ///
    /// # Errors
    /// `Corrupt` for what it cannot have written, `Unsupported` for another version.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong = || {
            Error::corrupt("the index of a gzip file is damaged")
                .hint("remove it: it is made again")
        };
        let (content, checksum) = bytes.split_last_chunk::<4>().ok_or_else(wrong)?;
        if crc32c::crc32c(content) != u32::from_le_bytes(*checksum) {
            return Err(wrong());
        }
        let mut take = Take::new(content);
        if take.bytes(4)? != MAGIC {
            return Err(wrong());
        }
        if take.u8()? != VERSION {
            return Err(Error::unsupported("another version of an index"));
        }
        let (raw_len, file) = (take.u64()?, (take.u64()?, take.u32()?));
        let count = take.count(PLACE_BYTES)?;
        let places = (0..count).map(|_| read_place(&mut take));
        let places = places.collect::<Result<Vec<_>>>()?;
        take.end()?;
        let ordered = places.is_sorted_by_key(|place| place.raw);
        let whole = places.first() == Some(&Place::default());
        match ordered && whole && places.iter().all(|place| place.raw <= raw_len) {
            true => Ok(GzipIndex {
                raw_len,
                file,
                places,
            }),
            false => Err(wrong()),
        }
    }
}

fn read_place(take: &mut Take<'_>) -> Result<Place> {
    let (raw, offset) = (take.u64()?, take.u64()?);
    let between = match take.u8()? {
        0 => None,
        _ => Some(Between {
            bits: take.u8()?.min(7),
            held: take.u8()?,
            packed: take.blob()?.to_vec(),
        }),
    };
    Ok(Place {
        raw,
        offset,
        between,
    })
}

/// Length of a file, and a checksum of its ends.
fn identity<S: ReadAt>(source: &S) -> Result<(u64, u32)> {
    let length = source.byte_len()?;
    let mut bytes = vec![0; ENDS.min(length) as usize];
    source.read_exact_at(0, &mut bytes)?;
    let checksum = crc32c::crc32c(&bytes);
    source.read_exact_at(length - bytes.len() as u64, &mut bytes)?;
    Ok((length, crc32c::crc32c_append(checksum, &bytes)))
}
