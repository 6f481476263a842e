//! Checksummed frames, of which logs and manifests are made.
//!
//! ```text
//! 0 length u32 │ 4 CRC-32C u32 │ 8 kind u8, 7 zeros │ 16 durable u64 │ 24 payload
//! ```
//! The checksum starts from the number of the file, so that bytes of another file never pass, and
//! covers everything behind it. `durable` is how much of the file was known to be on the device
//! when the frame was written: a bad frame in front of it is damage, one behind it was cut short by
//! a crash and means nothing.

use std::ops::RangeInclusive;

use tersecades_columnar::error::{Error, Result};

use crate::bytes::{Put as _, Take};

/// Bytes in front of the payload.
const HEADER_BYTES: usize = 24;

/// Bytes in front of the first frame.
pub(crate) const FILE_HEADER_BYTES: usize = 32;

/// The version that is written; all up to it are read.
pub(crate) const VERSION: u16 = 4;

/// The version from which on files say whose they are.
const OWNED_FROM: u16 = 2;

const CHECKED_FROM: usize = 8;

/// One frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// What the payload is.
    pub(crate) kind: u8,
    /// The payload.
    pub(crate) payload: &'a [u8],
    /// Bytes of the file that were durable before it.
    pub(crate) durable: u64,
    /// Header and payload.
    length: usize,
}

impl Frame<'_> {
    /// Bytes of header and payload.
    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

/// Where reading stopped, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// At the end of the file.
    Whole,
    /// At bytes that a crash left, from this offset.
    Torn(usize),
}

/// What a file of frames starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// A number the file is free to use.
    pub(crate) free: u64,
    /// The identity of the store that it belongs to; 0 where that is not known.
    pub(crate) store: u32,
}

/// Appends what a file of frames starts with: its mark, its number, and `header`.
pub(crate) fn write_file_header(magic: [u8; 4], file: u64, header: FileHeader, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&magic);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out.put_u64(file);
    out.put_u64(header.free);
    let store = header.store.to_le_bytes();
    out.put_u32(header_sum(&out[start..], &store));
    out.extend_from_slice(&store);
}

/// The checksum of a header: of what lies in `front` of it and `behind` it.
pub(crate) fn header_sum(front: &[u8], behind: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(front), behind)
}

/// The header of file number `file`.
///
/// # Errors
/// `Corrupt` where it is no whole header, `Unsupported` for another version.
pub(crate) fn read_file_header(magic: [u8; 4], file: u64, bytes: &[u8]) -> Result<FileHeader> {
    let wrong = || Error::corrupt("the header of the file, at byte 0, is damaged");
    let header = bytes.get(..FILE_HEADER_BYTES).ok_or_else(wrong)?;
    let mut take = Take::new(header);
    let (mark, version) = (take.bytes(4)?, take.bytes(4)?);
    let (number, free, sum, store) = (take.u64()?, take.u64()?, take.u32()?, take.u32()?);
    let [low, high, 0, 0] = *version else {
        return Err(wrong());
    };
    let version = u16::from_le_bytes([low, high]);
    let sealed = match version < OWNED_FROM {
        true => crc32c::crc32c(&header[..24]) == sum && store == 0,
        false => header_sum(&header[..24], &header[28..]) == sum,
    };
    if mark != magic || number != file || !sealed {
        return Err(wrong());
    }
    match version {
        0..=VERSION => Ok(FileHeader { free, store }),
        newer => Err(
            Error::unsupported(format!("store files of the later version {newer}"))
                .hint(format!("this release reads versions up to {VERSION}")),
        ),
    }
}

/// The version of a file whose header was read.
pub(crate) fn version_of(header: &[u8]) -> u16 {
    let field = header.get(4..6).and_then(|field| field.first_chunk::<2>());
    field.map_or(VERSION, |field| u16::from_le_bytes(*field))
}

fn checksum(file: u64, checked: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&file.to_le_bytes()), checked)
}

/// Appends a frame of file number `file`, of which `durable` bytes are on the device.
///
/// # Errors
/// `LimitExceeded` for payloads of 4 GiB and more.
pub(crate) fn write(
    file: u64,
    durable: u64,
    kind: u8,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let length = u32::try_from(payload.len())
        .map_err(|_| Error::limit("a record of 4 GiB").hint("append smaller batches"))?;
    let start = out.len();
    out.put_u32(length);
    out.put_u32(0);
    out.extend_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    out.put_u64(durable);
    out.extend_from_slice(payload);
    let sum = checksum(file, &out[start + CHECKED_FROM..]);
    out[start + 4..start + CHECKED_FROM].copy_from_slice(&sum.to_le_bytes());
    Ok(())
}

/// The frame at the start of `bytes`, if it is whole and undamaged.
pub(crate) fn read(file: u64, bytes: &[u8]) -> Option<Frame<'_>> {
    let mut take = Take::new(bytes);
    let payload_bytes = take.u32().ok()? as usize;
    let sum = take.u32().ok()?;
    let [kind, zeros @ ..] = take.bytes(8).ok()? else {
        return None;
    };
    if zeros.iter().any(|byte| *byte != 0) {
        return None;
    }
    let durable = take.u64().ok()?;
    let payload = take.bytes(payload_bytes).ok()?;
    let length = HEADER_BYTES + payload_bytes;
    let checked = bytes.get(CHECKED_FROM..length)?;
    (checksum(file, checked) == sum).then_some(Frame {
        kind: *kind,
        payload,
        durable,
        length,
    })
}

/// The whole frames of `bytes` from `start` on, each with its offset, whatever lies between them.
pub(crate) fn whole(
    file: u64,
    bytes: &[u8],
    start: usize,
) -> impl Iterator<Item = (usize, Frame<'_>)> {
    let mut next = start;
    std::iter::from_fn(move || {
        let mut offsets = next..bytes.len();
        let found = offsets.find_map(|at| {
            let rest = &bytes[at..];
            let frame = could_be_frame(rest, 0..=at as u64).then(|| read(file, rest))??;
            Some((at, frame))
        })?;
        next = found.0 + found.1.length;
        Some(found)
    })
}

/// Calls `visit` with the offset and each frame of `bytes` from `start` on.
///
/// # Errors
/// `Corrupt`, with the offset, for a damaged frame that was durable once; what `visit` says.
pub(crate) fn read_all<'a>(
    file: u64,
    bytes: &'a [u8],
    start: usize,
    mut visit: impl FnMut(usize, Frame<'a>) -> Result<()>,
) -> Result<End> {
    let mut offset = start;
    while offset < bytes.len() {
        match bytes.get(offset..).and_then(|rest| read(file, rest)) {
            Some(frame) => {
                visit(offset, frame)?;
                offset += frame.length;
            }
            None if was_durable(file, &bytes[offset..], offset as u64) => {
                return Err(damaged(offset));
            }
            None => return Ok(End::Torn(offset)),
        }
    }
    Ok(End::Whole)
}

/// The error of a damaged record at `offset`.
pub(crate) fn damaged(offset: usize) -> Error {
    Error::corrupt(format!("the record at byte {offset} is damaged"))
        .hint("`store repair` keeps what is readable and says what it gives up")
}

/// Whether a frame behind the first of `bytes`, which is byte `offset` of the file, says that this
/// byte had reached the device.
pub(crate) fn was_durable(file: u64, bytes: &[u8], offset: u64) -> bool {
    (1..bytes.len()).any(|later| {
        let (rest, at) = (&bytes[later..], offset + later as u64);
        could_be_frame(rest, offset + 1..=at) && read(file, rest).is_some()
    })
}

/// Whether `rest` may begin with a frame that says that so many bytes were `durable`, which are no
/// more than lie in front of it: rules out nearly every offset before a checksum is computed.
fn could_be_frame(rest: &[u8], durable: RangeInclusive<u64>) -> bool {
    let Some(header) = rest.first_chunk::<HEADER_BYTES>() else {
        return false;
    };
    let [.., a, b, c, d, e, f, g, h] = *header;
    let known = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    KINDS.contains(&header[8]) && header[9..16] == [0; 7] && durable.contains(&known)
}

/// Numbers that kinds may have.
const KINDS: RangeInclusive<u8> = 1..=15;

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<u8> {
        let mut bytes = Vec::new();
        for kind in 1..=3u8 {
            let durable = bytes.len() as u64;
            write(7, durable, kind, &[kind; 9], &mut bytes).unwrap();
        }
        bytes
    }

    fn kinds(file: u64, bytes: &[u8]) -> Result<(Vec<u8>, End)> {
        let mut kinds = Vec::new();
        let end = read_all(file, bytes, 0, |_, frame| {
            kinds.push(frame.kind);
            Ok(())
        })?;
        Ok((kinds, end))
    }

    #[test]
    fn a_cut_frame_is_torn_and_a_damaged_one_in_front_of_durable_ones_is_an_error() {
        let bytes = three();
        assert_eq!(kinds(7, &bytes).unwrap(), (vec![1, 2, 3], End::Whole));
        for length in 67..bytes.len() {
            let torn = End::Torn(66);
            assert_eq!(kinds(7, &bytes[..length]).unwrap(), (vec![1, 2], torn));
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match kinds(7, &flipped) {
                Ok(read) => assert_eq!(read, (vec![1, 2], End::Torn(66)), "bit {bit}"),
                Err(error) => assert!(bit < 66 * 8, "bit {bit}: {error}"),
            }
        }
    }

    #[test]
    fn frames_of_another_file_are_not_read() {
        assert_eq!(kinds(8, &three()).unwrap(), (vec![], End::Torn(0)));
    }

    #[test]
    fn few_bytes_are_summed_where_a_damaged_record_holds_numbers() {
        let numbers = |step: u128, bytes: usize| -> Vec<u8> {
            let numbers = (0..1 << 14).map(|number: u128| (number * step).to_le_bytes());
            numbers
                .flat_map(|number| number[..bytes].to_vec())
                .collect()
        };
        for bytes in [
            numbers(0, 8),
            numbers(1, 4),
            numbers(1, 8),
            numbers(1, 16),
            numbers(25, 8),
            numbers(25, 16),
        ] {
            let summed = (0..bytes.len()).map(|at| {
                let rest = &bytes[at..];
                let length = rest
                    .first_chunk::<4>()
                    .map_or(0, |it| u32::from_le_bytes(*it));
                let is_summed =
                    could_be_frame(rest, 0..=at as u64) && length as usize <= rest.len();
                if is_summed { u64::from(length) } else { 0 }
            });
            let summed: u64 = summed.sum();
            assert!(summed <= bytes.len() as u64, "{summed} of {}", bytes.len());
        }
    }
}
