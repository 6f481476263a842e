//! Decoding a gzip file from its start or from a place between two blocks.

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY,
};
use miniz_oxide::inflate::core::{BlockBoundaryState, DecompressorOxide, decompress_with_limit};
use tersecades_columnar::error::{Error, Result};

use super::super::read_at::ReadAt;
use super::index::{Between, Place};

/// First bytes of a member.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How far back a copy may reach.
pub(super) const WINDOW: usize = 32 << 10;
/// Bytes of the ring that is decoded into.
const RING: usize = 2 * WINDOW;
/// Bytes that are read at once.
const INPUT: usize = 64 << 10;

const HEADER_CHECKSUM: u8 = 2;
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

/// What is decoded next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Member,
    Block,
    End,
}

/// A decoder at some place of a gzip file.
pub(super) struct Stream {
    next: Next,
    decoder: Box<DecompressorOxide>,
    input: Vec<u8>,
    used: usize,
    /// Offset of the first byte behind `input`.
    input_end: u64,
    at_end: bool,
    ring: Vec<u8>,
    position: usize,
    raw: u64,
    /// Whether a block or member has just ended.
    between: bool,
    /// Checksum and length of the member so far, where it was decoded from its start.
    member: Option<flate2::Crc>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("next", &self.next)
            .field("offset", &self.offset())
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}

/// What a file does that is too short.
pub(super) const IS_CUT: &str = "ends inside a member";

fn damaged(what: &str) -> Error {
    Error::corrupt(format!("the gzip file {what}")).hint("`gunzip -t` says the same")
}

/// The error that what stands at `offset`, behind the last member, is none.
fn no_member<S: ReadAt>(source: &S, offset: u64) -> Result<Error> {
    let bytes = source.byte_len()?.saturating_sub(offset);
    let message = match bytes {
        1 => format!("the last byte, at offset {offset}, is no gzip member"),
        _ => format!("the last {bytes} bytes, at offset {offset}, are no gzip member"),
    };
    Ok(Error::corrupt(message).hint(format!("`head -c {offset} FILE` gives what comes before")))
}

impl Stream {
    /// The decoder at `place`.
    ///
    /// # Errors
    /// `Corrupt` where the window of the place does not come back.
    pub(super) fn at(place: &Place) -> Result<Self> {
        let mut ring = vec![0; RING];
        let mut stream = Stream {
            next: Next::Member,
            decoder: Box::default(),
            input: Vec::new(),
            used: 0,
            input_end: place.offset,
            at_end: false,
            position: 0,
            raw: place.raw,
            between: true,
            member: None,
            ring: Vec::new(),
        };
        if let Some(between) = &place.between {
            let window = between.window()?;
            ring[..window.len()].copy_from_slice(&window);
            stream.position = window.len();
            stream.next = Next::Block;
            let state = BlockBoundaryState {
                num_bits: between.bits,
                bit_buf: between.held,
                ..BlockBoundaryState::default()
            };
            *stream.decoder = DecompressorOxide::from_block_boundary_state(&state);
        }
        stream.ring = ring;
        Ok(stream)
    }

    /// Bytes of the raw file before the next.
    pub(super) fn raw(&self) -> u64 {
        self.raw
    }

    /// Offset in the file of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.input_end - (self.input.len() - self.used) as u64
    }

    /// Where the stream stands, if that is between two blocks or members.
    ///
    /// # Errors
    /// What compressing the window says.
    pub(super) fn place(&self) -> Result<Option<Place>> {
        if !self.between {
            return Ok(None);
        }
        let between = match (self.next, self.decoder.block_boundary_state()) {
            (Next::Block, Some(state)) => {
                let mut window =
                    [&self.ring[self.position..], &self.ring[..self.position]].concat();
                window.drain(..RING - WINDOW);
                Some(Between::new(state.num_bits, state.bit_buf, &window)?)
            }
            _ => None,
        };
        Ok(Some(Place {
            raw: self.raw,
            offset: self.offset(),
            between,
        }))
    }

    /// Decodes up to `limit` bytes, none at the end of some blocks; `None` at the end of the file.
    ///
    /// # Errors
    /// `Corrupt` for damage and for checksums that do not fit; what reading says.
    pub(super) fn step<S: ReadAt>(&mut self, source: &S, limit: usize) -> Result<Option<&[u8]>> {
        if self.next == Next::Member {
            self.next = match self.begin_member(source)? {
                true => Next::Block,
                false => Next::End,
            };
        }
        match self.next {
            Next::Block => self.decode(source, limit).map(Some),
            Next::Member | Next::End => Ok(None),
        }
    }

    fn decode<S: ReadAt>(&mut self, source: &S, limit: usize) -> Result<&[u8]> {
        loop {
            if self.position == RING {
                self.position = 0;
            }
            if self.used == self.input.len() {
                self.refill(source)?;
            }
            let more = match self.at_end {
                true => 0,
                false => TINFL_FLAG_HAS_MORE_INPUT,
            };
            let (status, used, made) = decompress_with_limit(
                &mut self.decoder,
                &self.input[self.used..],
                &mut self.ring,
                self.position,
                limit.min(RING - self.position),
                more | TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY,
            );
            self.used += used;
            let bytes = self.position..self.position + made;
            self.position = bytes.end;
            self.raw += made as u64;
            if let Some(member) = &mut self.member {
                member.update(&self.ring[bytes.clone()]);
            }
            self.between = matches!(status, TINFLStatus::BlockBoundary | TINFLStatus::Done);
            match status {
                TINFLStatus::BlockBoundary => return Ok(&self.ring[bytes]),
                TINFLStatus::Done => {
                    self.end_member(source)?;
                    return Ok(&self.ring[bytes]);
                }
                TINFLStatus::HasMoreOutput | TINFLStatus::NeedsMoreInput if made > 0 => {
                    return Ok(&self.ring[bytes]);
                }
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::NeedsMoreInput if !self.at_end => {}
                TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                    return Err(damaged(IS_CUT));
                }
                _ => return Err(damaged("holds bytes that are no deflate stream")),
            }
        }
    }

    /// Reads the header of a member; `false` where the file ends.
    fn begin_member<S: ReadAt>(&mut self, source: &S) -> Result<bool> {
        let is_first = self.offset() == 0;
        match self.peek(source)? {
            None if is_first => return Err(Error::corrupt("the file is empty, which no gzip is")),
            None => return Ok(false),
            // Tapes fill their last block with zeros.
            Some(0) if !is_first => return self.only_zeros(source).map(|()| false),
            Some(_) => {}
        }
        let start = self.offset();
        let [first] = self.take(source)?;
        // A member that is cut behind its first byte is one.
        let second = self.peek(source)?.unwrap_or(MAGIC[1]);
        if [first, second] != MAGIC {
            return Err(match is_first {
                true => Error::corrupt("the file is no gzip file"),
                false => no_member(source, start)?,
            });
        }
        let head = self.take::<S, 9>(source)?;
        let [_, method, flags, ..] = head;
        if method != 8 || flags & RESERVED != 0 {
            return Err(Error::unsupported(
                "a method of compression that gzip never had",
            ));
        }
        if flags & EXTRA != 0 {
            let length = u16::from_le_bytes(self.take::<S, 2>(source)?);
            for _ in 0..length {
                self.take::<S, 1>(source)?;
            }
        }
        for text in [NAME, COMMENT] {
            while flags & text != 0 && self.take::<S, 1>(source)? != [0] {}
        }
        if flags & HEADER_CHECKSUM != 0 {
            self.take::<S, 2>(source)?;
        }
        *self.decoder = DecompressorOxide::default();
        self.member = Some(flate2::Crc::new());
        Ok(true)
    }

    fn end_member<S: ReadAt>(&mut self, source: &S) -> Result<()> {
        let checksum = u32::from_le_bytes(self.take::<S, 4>(source)?);
        let length = u32::from_le_bytes(self.take::<S, 4>(source)?);
        self.next = Next::Member;
        let member = self.member.take();
        match member.is_none_or(|found| (found.sum(), found.amount()) == (checksum, length)) {
            true => Ok(()),
            false => Err(damaged("holds a member whose checksum does not fit")),
        }
    }

    fn only_zeros<S: ReadAt>(&mut self, source: &S) -> Result<()> {
        while let Some(byte) = self.peek(source)? {
            if byte != 0 {
                return Err(no_member(source, self.offset())?);
            }
            self.used += 1;
        }
        Ok(())
    }

    fn peek<S: ReadAt>(&mut self, source: &S) -> Result<Option<u8>> {
        if self.used == self.input.len() {
            self.refill(source)?;
        }
        Ok(self.input.get(self.used).copied())
    }

    fn take<S: ReadAt, const N: usize>(&mut self, source: &S) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            let next = self.peek(source)?;
            *byte = next.ok_or_else(|| damaged(IS_CUT))?;
            self.used += 1;
        }
        Ok(bytes)
    }

    fn refill<S: ReadAt>(&mut self, source: &S) -> Result<()> {
        let length = source.byte_len()?;
        let left = length.saturating_sub(self.input_end).min(INPUT as u64);
        self.input.resize(left as usize, 0);
        source.read_exact_at(self.input_end, &mut self.input)?;
        self.used = 0;
        self.input_end += left;
        self.at_end = self.input_end >= length;
        Ok(())
    }
}
