//! Ways to get a few bytes out of a compressed unit.

use flate2::{Decompress, FlushDecompress};
use tersecades_columnar::error::{Error, Result};
use tersecades_store::partition::layout::{Layout, PartitionDecoder};
use tersecades_store::partition::phrase::{Extraction, PhraseMap};

/// A way to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Decode from the start of the partition, with its entropy code.
    Decode,
    /// The same by a stock decoder of streams, for layout `zlib`.
    Stream,
    /// The same over phrases, as if there were no entropy code.
    Phrases,
    /// Follow copies back to literals.
    Recursive,
}

/// A unit in partitions, ready to be read in one way.
pub(super) struct Method {
    way: Way,
    stops_early: bool,
    partition: usize,
    unit_len: usize,
    decoder: Box<dyn PartitionDecoder>,
    stream: Decompress,
    stored: Vec<Vec<u8>>,
    maps: Vec<PhraseMap>,
    extraction: Extraction,
    front: Vec<u8>,
}

impl Method {
    /// Compresses `unit` in partitions of that many bytes.
    ///
    /// # Errors
    /// What the layout says.
    pub(super) fn new(
        layout: &dyn Layout,
        level: i32,
        partition: usize,
        way: Way,
        unit: &[u8],
    ) -> Result<Method> {
        let mut encoder = layout.encoder(level, &[])?;
        let (mut stored, mut maps) = (Vec::new(), Vec::new());
        for raw in unit.chunks(partition) {
            let mut bytes = Vec::new();
            encoder.encode(raw, &mut bytes)?;
            if matches!(way, Way::Phrases | Way::Recursive) {
                maps.extend(layout.phrases(&bytes, raw.len())?);
            }
            stored.push(bytes);
        }
        Ok(Method {
            way,
            stops_early: layout.stops_early(),
            partition,
            unit_len: unit.len(),
            decoder: layout.decoder(&[])?,
            stream: Decompress::new(false),
            stored,
            maps,
            extraction: Extraction::default(),
            front: Vec::new(),
        })
    }

    /// Bytes of the compressed unit.
    pub(super) fn stored_len(&self) -> usize {
        self.stored.iter().map(Vec::len).sum()
    }

    /// Bytes of the unit's tokens where each literal takes 9 bits and each copy 24: one bit to tell
    /// them apart, 15 for the distance, 8 for the length.
    pub(super) fn token_len(&self) -> usize {
        let tokens = |map: &PhraseMap| (9 * map.literal_count() + 24 * map.copies()).div_ceil(8);
        self.maps.iter().map(tokens).sum()
    }

    /// Bytes of the maps in memory.
    pub(super) fn map_len(&self) -> usize {
        self.maps.iter().map(PhraseMap::byte_size).sum()
    }

    /// Fills `out` with the bytes from `from`.
    ///
    /// # Errors
    /// What the decoder says.
    pub(super) fn read(&mut self, from: usize, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let at = (from + done) / self.partition;
            let start = (from + done) % self.partition;
            let raw_len = self.partition.min(self.unit_len - at * self.partition);
            let count = (out.len() - done).min(raw_len - start);
            let piece = &mut out[done..done + count];
            self.read_piece(at, start, raw_len, piece)?;
            done += count;
        }
        Ok(())
    }

    fn read_piece(
        &mut self,
        at: usize,
        start: usize,
        raw_len: usize,
        piece: &mut [u8],
    ) -> Result<()> {
        if self.way == Way::Recursive {
            self.extraction.extract(&self.maps[at], start, piece);
            return Ok(());
        }
        let early = self.stops_early || self.way == Way::Phrases;
        let end = if early { start + piece.len() } else { raw_len };
        self.front.resize(end, 0);
        match self.way {
            Way::Decode => self.decoder.decode(&self.stored[at], &mut self.front)?,
            Way::Stream => {
                self.stream.reset(false);
                self.stream
                    .decompress(&self.stored[at], &mut self.front, FlushDecompress::None)
                    .map_err(|error| Error::corrupt(error.to_string()))?;
            }
            _ => drop(self.maps[at].decode(&mut self.front)),
        }
        piece.copy_from_slice(&self.front[start..start + piece.len()]);
        Ok(())
    }
}
