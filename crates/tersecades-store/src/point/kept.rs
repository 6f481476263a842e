//! Opened chunks that a reader keeps, within a limit of bytes.

use std::collections::VecDeque;
use std::ops::Range;

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::error::{Error, Result};

/// Chunks that were opened, each at its number; those not asked for again make room for others.
pub(super) struct KeptChunks {
    limit: usize,
    bytes: usize,
    chunks: Vec<Option<Box<Chunk>>>,
    /// Whether a chunk was asked for since it was last looked at to make room.
    asked: Vec<bool>,
    turn: VecDeque<usize>,
    /// The last one that was larger than all that is kept.
    too_large: Option<Box<Chunk>>,
    opened: u64,
}

impl KeptChunks {
    /// None yet of so many, and at most `limit` encoded bytes of them.
    pub(super) fn new(count: usize, limit: usize) -> Self {
        KeptChunks {
            limit,
            bytes: 0,
            chunks: std::iter::repeat_with(|| None).take(count).collect(),
            asked: vec![false; count],
            turn: VecDeque::new(),
            too_large: None,
            opened: 0,
        }
    }

    /// Keeps at most `limit` encoded bytes from here on.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.make_room(0);
    }

    /// Chunks that had to be read.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// Chunk `number`, which `read` reads where it is not kept.
    ///
    /// # Errors
    /// What reading says.
    pub(super) fn get(
        &mut self,
        number: usize,
        read: impl FnOnce() -> Result<Chunk>,
    ) -> Result<&Chunk> {
        if self.chunks[number].is_none() {
            let chunk = Box::new(read()?);
            self.opened += 1;
            let bytes = kept_bytes(&chunk);
            if bytes > self.limit {
                return Ok(self.too_large.insert(chunk));
            }
            self.make_room(bytes);
            self.bytes += bytes;
            self.turn.push_back(number);
            self.asked[number] = false;
            return Ok(self.chunks[number].insert(chunk));
        }
        self.asked[number] = true;
        self.chunks[number]
            .as_deref()
            .ok_or_else(|| Error::internal("a kept chunk is gone"))
    }

    /// The kept ones of the chunks with these numbers.
    pub(super) fn of(&self, numbers: Range<usize>) -> impl Iterator<Item = &Chunk> {
        self.chunks[numbers].iter().flatten().map(|chunk| &**chunk)
    }

    fn make_room(&mut self, bytes: usize) {
        while self.bytes + bytes > self.limit {
            let Some(number) = self.turn.pop_front() else {
                return;
            };
            if std::mem::take(&mut self.asked[number]) {
                self.turn.push_back(number);
            } else if let Some(gone) = self.chunks[number].take() {
                self.bytes -= kept_bytes(&gone);
            }
        }
    }
}

fn kept_bytes(chunk: &Chunk) -> usize {
    chunk.byte_size() + size_of::<Chunk>()
}
