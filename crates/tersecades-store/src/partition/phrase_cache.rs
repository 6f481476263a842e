//! Phrase maps of partitions that small reads came to, within a limit of bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tersecades_columnar::error::Result;

use super::packed::Packed;
use super::phrase::{Extraction, PhraseMap};
use super::read_at::ReadAt;

/// Maps by partition, the oldest forgotten first.
#[derive(Debug)]
pub(super) struct PhraseCache {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    maps: HashMap<usize, Arc<PhraseMap>>,
    order: VecDeque<usize>,
    bytes: usize,
    idle: Vec<Extraction>,
}

impl PhraseCache {
    /// A cache of at most `limit` bytes, or of one map.
    pub(super) fn new(limit: usize) -> Self {
        PhraseCache {
            limit,
            state: Mutex::new(State::default()),
        }
    }

    /// Fills `buffer` with the bytes from `offset`; false where the layout has no phrases.
    ///
    /// # Errors
    /// Damaged partitions, and what the system says.
    pub(super) fn read<S: ReadAt>(
        &self,
        packed: &Packed<S>,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<bool> {
        let mut extraction = self.state().idle.pop().unwrap_or_default();
        let mut done = 0;
        let mut at = packed.locate(offset);
        while done < buffer.len() {
            let partition = packed.require(at)?;
            let Some(map) = self.map(packed, at)? else {
                return Ok(false);
            };
            let from = (offset + done as u64 - partition.raw.start) as usize;
            let count = (buffer.len() - done).min(partition.raw_len() - from);
            extraction.extract(&map, from, &mut buffer[done..done + count]);
            done += count;
            at += 1;
        }
        self.state().idle.push(extraction);
        Ok(true)
    }

    fn map<S: ReadAt>(&self, packed: &Packed<S>, at: usize) -> Result<Option<Arc<PhraseMap>>> {
        if let Some(map) = self.state().maps.get(&at) {
            return Ok(Some(map.clone()));
        }
        let mut stored = Vec::new();
        let partition = packed.read_stored(at, &mut stored)?;
        let map = packed.layout().phrases(&stored, partition.raw_len());
        let Some(map) = map.map_err(|error| packed.located(error))? else {
            return Ok(None);
        };
        let map = Arc::new(map);
        self.state().keep(at, map.clone(), self.limit);
        Ok(Some(map))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, at: usize, map: Arc<PhraseMap>, limit: usize) {
        self.bytes += map.byte_size();
        match self.maps.insert(at, map) {
            Some(other) => self.bytes -= other.byte_size(),
            None => self.order.push_back(at),
        }
        while self.bytes > limit && self.order.len() > 1 {
            let oldest = self.order.pop_front();
            let map = oldest.and_then(|oldest| self.maps.remove(&oldest));
            self.bytes -= map.map_or(0, |map| map.byte_size());
        }
    }
}
