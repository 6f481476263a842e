//! Opened chunks that a reader keeps, within a limit of bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::error::Result;

use crate::run::Run;

/// Number of the run, group and column.
type Key = (u64, u32, u32);

struct Kept {
    chunk: Arc<Chunk>,
    bytes: usize,
    /// Whether it was asked for since it was last looked at to make room.
    asked: bool,
}

/// Chunks that were opened; those not asked for again make room for others.
pub(super) struct KeptChunks {
    limit: usize,
    bytes: usize,
    chunks: HashMap<Key, Kept, FixedState>,
    turn: VecDeque<Key>,
    opened: u64,
}

impl KeptChunks {
    /// None yet, and at most `limit` encoded bytes of them.
    pub(super) fn new(limit: usize) -> Self {
        KeptChunks {
            limit,
            bytes: 0,
            chunks: HashMap::default(),
            turn: VecDeque::new(),
            opened: 0,
        }
    }

    /// Chunks that had to be read.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// Column `column` of group `group` of `run`.
    ///
    /// # Errors
    /// What reading says.
    pub(super) fn get(&mut self, run: &Run, group: usize, column: usize) -> Result<Arc<Chunk>> {
        let key = (run.id().number, group as u32, column as u32);
        if let Some(kept) = self.chunks.get_mut(&key) {
            kept.asked = true;
            return Ok(Arc::clone(&kept.chunk));
        }
        let chunk = Arc::new(run.read_chunk(group, column)?);
        self.opened += 1;
        let bytes = chunk.byte_size() + size_of::<Chunk>();
        if bytes <= self.limit {
            self.make_room(bytes);
            self.bytes += bytes;
            self.turn.push_back(key);
            let kept = Kept {
                chunk: Arc::clone(&chunk),
                bytes,
                asked: false,
            };
            self.chunks.insert(key, kept);
        }
        Ok(chunk)
    }

    fn make_room(&mut self, bytes: usize) {
        while self.bytes + bytes > self.limit {
            let Some(key) = self.turn.pop_front() else {
                return;
            };
            if let Some(kept) = self.chunks.get_mut(&key).filter(|kept| kept.asked) {
                kept.asked = false;
                self.turn.push_back(key);
            } else if let Some(gone) = self.chunks.remove(&key) {
                self.bytes -= gone.bytes;
            }
        }
    }
}
