//! Reading containers at any position.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tersecades_columnar::error::{Error, Result};

use super::footer::{FOOTER_BYTES, Footer, FooterPlace};
use super::index::{Index, Partition};
use super::layout::{LAYOUTS, Layout, PartitionDecoder, layout_of_id};
use super::phrase_cache::PhraseCache;
use super::read_at::ReadAt;
use super::reader::Reader;
use super::{PARTITION_MAX, checksum, dictionary};

/// A container in a file.
pub type PackedFile = Packed<File>;

/// A container in memory; clones of its bytes are shared.
pub type PackedBytes = Packed<Arc<[u8]>>;

/// A container that is read at any position, by several threads at once.
///
/// # Cost
/// A read decodes the partitions it touches, the last one up to the last byte wanted where the
/// layout can stop there. Open containers hold 24 bytes per partition.
pub struct Packed<S> {
    source: S,
    name: Option<String>,
    layout: &'static dyn Layout,
    partition_bytes: usize,
    index: Index,
    dictionary: Vec<u8>,
    idle: Mutex<Vec<Decoder>>,
    phrases: Option<PhraseCache>,
}

/// A decoder and what it decoded last.
struct Decoder {
    decode: Box<dyn PartitionDecoder>,
    stored: Vec<u8>,
    /// The first bytes of `partition`.
    front: Vec<u8>,
    partition: Option<usize>,
}

impl<S> std::fmt::Debug for Packed<S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Packed")
            .field("name", &self.name)
            .field("layout", &self.layout.name())
            .field("len", &self.index.raw_len())
            .field("partitions", &self.index.count())
            .finish_non_exhaustive()
    }
}

/// Opens a packed file.
///
/// # Errors
/// Files that cannot be read, are no containers or are damaged where their index is.
pub fn open(path: impl AsRef<Path>) -> Result<PackedFile> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Error::from(error).file(name.clone()))?;
    let mut packed = Packed::new(file).map_err(|error| error.file(name.clone()))?;
    packed.name = Some(name);
    Ok(packed)
}

/// Whether a container's footer stands at the end of a file.
///
/// # Errors
/// Files that cannot be read.
pub fn is_packed(path: &Path) -> Result<bool> {
    let named = |error: std::io::Error| Error::from(error).file(path.display().to_string());
    let file = File::open(path).map_err(named)?;
    let length = file.byte_len().map_err(named)?;
    let mut footer = [0; FOOTER_BYTES];
    for layout in LAYOUTS {
        if let Some(place) = FooterPlace::of(layout.framing(), length) {
            file.read_exact_at(place.payload, &mut footer)
                .map_err(named)?;
            if Footer::is_here(&footer) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

impl PackedBytes {
    /// Opens a container in memory.
    ///
    /// # Errors
    /// Bytes that are no container or are damaged where their index is.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Self> {
        Packed::new(bytes.into())
    }
}

impl<S: ReadAt> Packed<S> {
    /// Opens the container that is all of `source`.
    ///
    /// # Errors
    /// As [`open`].
    pub fn new(source: S) -> Result<Self> {
        let (footer, footer_at) = read_footer(&source)?;
        let layout = layout_of_id(footer.layout)?;
        let head = layout.framing().head().len() as u64;
        let index_len = footer_at.checked_sub(footer.index_at);
        let data_end = head.checked_add(footer.stored_len);
        let (Some(index_len), Some(data_end)) = (index_len, data_end) else {
            return Err(Error::corrupt("the footer names an index behind itself"));
        };
        if data_end > footer.index_at || footer.partition_bytes as usize > PARTITION_MAX {
            return Err(Error::corrupt("the footer's lengths contradict each other"));
        }
        let too_long = |_| Error::limit("the index does not fit this machine's memory");
        let mut frames = vec![0; usize::try_from(index_len).map_err(too_long)?];
        source.read_exact_at(footer.index_at, &mut frames)?;
        let mut rest = frames.as_slice();
        let mut payload = Vec::with_capacity(rest.len());
        while let Some(piece) = layout.framing().reveal(&mut rest) {
            payload.extend_from_slice(piece);
        }
        if !rest.is_empty() || crc32c::crc32c(&payload) != footer.checksum {
            return Err(Error::corrupt("the checksum of the index does not fit")
                .hint("stock tools of its format may still read what is whole in the file"));
        }
        let dictionary_len = footer.dictionary_bytes as usize;
        let index_bytes = payload.len().checked_sub(dictionary_len);
        if index_bytes.map(|bytes| bytes as u64) != Some(footer.index_bytes)
            || dictionary_len > dictionary::DICTIONARY_MAX
        {
            return Err(Error::corrupt(
                "the index is not as long as the footer says",
            ));
        }
        let index = payload.split_off(dictionary_len);
        let sizes = (footer.partition_bytes, footer.raw_len);
        let index = Index::decode(&index, footer.columns, footer.partitions, sizes)?;
        if index.stored_len() != footer.stored_len {
            return Err(Error::corrupt(
                "the partitions are not as long as the footer says",
            ));
        }
        Ok(Packed {
            source,
            name: None,
            layout,
            partition_bytes: footer.partition_bytes as usize,
            index,
            dictionary: payload,
            idle: Mutex::new(Vec::new()),
            phrases: None,
        })
    }

    /// The same container, with up to `bytes` of phrase maps kept: short reads follow copies back
    /// to literals instead of decoding, where the layout is made of phrases.
    ///
    /// Reads are short up to [`Layout::recursive_read_max`].
    pub fn with_phrase_maps(mut self, bytes: usize) -> Self {
        self.phrases = (bytes > 0).then(|| PhraseCache::new(bytes));
        self
    }

    /// How many bytes the container stands for.
    pub fn len(&self) -> u64 {
        self.index.raw_len()
    }

    /// Whether it stands for no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes its partitions take.
    pub fn stored_len(&self) -> u64 {
        self.index.stored_len()
    }

    /// How its partitions are stored.
    pub fn layout(&self) -> &'static dyn Layout {
        self.layout
    }

    /// Bytes of a partition that is neither the last nor came from elsewhere.
    pub fn partition_bytes(&self) -> usize {
        self.partition_bytes
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> usize {
        self.index.count()
    }

    /// Where partition `at` lies.
    pub fn partition(&self, at: usize) -> Option<Partition> {
        self.index.get(at)
    }

    /// The dictionary of all partitions, empty where there is none.
    pub fn dictionary(&self) -> &[u8] {
        &self.dictionary
    }

    /// Fills `buffer` with the bytes from `offset` and says how many there were: fewer than asked
    /// only at the end.
    ///
    /// # Errors
    /// Damaged partitions among those touched, and what the system says.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let left = self.len().saturating_sub(offset);
        let wanted = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..wanted];
        if wanted == 0 {
            return Ok(0);
        }
        if wanted <= self.layout.recursive_read_max()
            && let Some(phrases) = &self.phrases
            && phrases.read(self, offset, buffer)?
        {
            return Ok(wanted);
        }
        let mut decoder = self.take_decoder()?;
        let mut done = 0;
        let mut at = self.index.locate(offset);
        while done < wanted {
            let partition = self.require(at)?;
            let from = (offset + done as u64 - partition.raw.start) as usize;
            let count = (wanted - done).min(partition.raw_len() - from);
            self.read_piece(&mut decoder, at, from, &mut buffer[done..done + count])?;
            done += count;
            at += 1;
        }
        self.idle().push(decoder);
        Ok(wanted)
    }

    /// The bytes of a range, cut at the end.
    ///
    /// # Errors
    /// As [`Packed::read_at`]; a range that ends before it starts.
    pub fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>> {
        if range.end < range.start {
            return Err(Error::invalid("a range ends before it starts"));
        }
        let end = range.end.min(self.len());
        let mut bytes = Vec::new();
        let mut at = range.start;
        while at < end {
            let stop = self.require(self.locate(at))?.raw.end.min(end);
            let done = bytes.len();
            bytes.resize(done + (stop - at) as usize, 0);
            self.read_at(at, &mut bytes[done..])?;
            at = stop;
        }
        Ok(bytes)
    }

    /// All bytes in order, through `Read` and `Seek`.
    pub fn reader(&self) -> Reader<'_, S> {
        self.reader_of(0..self.len())
    }

    /// The bytes of a range in order, through `Read` and `Seek`.
    pub fn reader_of(&self, range: Range<u64>) -> Reader<'_, S> {
        Reader::new(self, range)
    }

    /// The partitions in order, each decoded as it is asked for.
    pub fn iter(&self) -> impl Iterator<Item = Result<Vec<u8>>> + '_ {
        (0..self.partitions()).map(|at| {
            let partition = self.require(at)?;
            let mut raw = vec![0; partition.raw_len()];
            self.read_at(partition.raw.start, &mut raw)?;
            Ok(raw)
        })
    }

    /// Reads the stored bytes of a partition and checks them.
    ///
    /// # Errors
    /// A partition that is not there or damaged, and what the system says.
    pub fn read_stored(&self, at: usize, stored: &mut Vec<u8>) -> Result<Partition> {
        let partition = self.require(at)?;
        let offset = self.stored_at(&partition);
        stored.resize(partition.stored_len(), 0);
        self.source
            .read_exact_at(offset, stored)
            .map_err(|error| self.located(error.into()))?;
        self.check(at, &partition, stored)?;
        Ok(partition)
    }

    /// Checks everything: stored bytes, what they stand for, and what stock tools look at.
    ///
    /// # Errors
    /// The first thing that is damaged.
    pub fn verify(&self) -> Result<()> {
        let mut whole = 0;
        for (at, raw) in self.iter().enumerate() {
            let (raw, partition) = (raw?, self.require(at)?);
            if let Some(expected) = partition.raw_checksum {
                let found = checksum::crc32(&raw);
                if found != expected {
                    let message = format!("partition {at} does not stand for what was packed");
                    return Err(self.located(Error::corrupt(message)));
                }
                whole = checksum::combine(whole, found, raw.len() as u64);
            }
        }
        let (framing, mut end) = (self.layout.framing(), Vec::new());
        framing.end(whole, self.len(), &mut end);
        let end_at = framing.head().len() as u64 + self.stored_len();
        for (offset, expected) in [(0, framing.head()), (end_at, end.as_slice())] {
            let mut found = vec![0; expected.len()];
            self.source.read_exact_at(offset, &mut found)?;
            if found != expected {
                let message = format!("the frame around the partitions is damaged at {offset}");
                let hint = "reads are not affected, stock tools may refuse the file";
                return Err(self.located(Error::corrupt(message).hint(hint)));
            }
        }
        Ok(())
    }

    /// The partition with the byte at `offset`.
    pub(super) fn locate(&self, offset: u64) -> usize {
        self.index.locate(offset)
    }

    /// The partition at `at`.
    pub(super) fn require(&self, at: usize) -> Result<Partition> {
        self.index.get(at).ok_or_else(|| {
            let message = format!("there is no partition {at}, only {}", self.partitions());
            Error::invalid(message)
        })
    }

    /// Names the file, if there is one, in an error.
    pub(super) fn located(&self, error: Error) -> Error {
        match &self.name {
            Some(name) => error.file(name.clone()),
            None => error,
        }
    }

    fn stored_at(&self, partition: &Partition) -> u64 {
        self.layout.framing().head().len() as u64 + partition.stored.start
    }

    fn check(&self, at: usize, partition: &Partition, stored: &[u8]) -> Result<()> {
        if crc32c::crc32c(stored) == partition.checksum {
            return Ok(());
        }
        let message = format!(
            "the checksum of partition {at} does not fit: bytes {} to {} of the file",
            self.stored_at(partition),
            self.stored_at(partition) + partition.stored_len() as u64
        );
        let hint = format!(
            "bytes {} to {} of what is packed are lost, others are readable",
            partition.raw.start, partition.raw.end
        );
        Err(self.located(Error::corrupt(message).hint(hint)))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Decoder>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_decoder(&self) -> Result<Decoder> {
        if let Some(decoder) = self.idle().pop() {
            return Ok(decoder);
        }
        Ok(Decoder {
            decode: self.layout.decoder(&self.dictionary)?,
            stored: Vec::new(),
            front: Vec::new(),
            partition: None,
        })
    }

    /// Fills `piece` with the bytes of a partition from `from`.
    fn read_piece(
        &self,
        decoder: &mut Decoder,
        at: usize,
        from: usize,
        piece: &mut [u8],
    ) -> Result<()> {
        let Decoder {
            decode,
            stored,
            front,
            partition: last,
        } = decoder;
        let end = from + piece.len();
        let again = *last == Some(at);
        if !again || front.len() < end {
            let partition = self.require(at)?;
            let in_memory = self
                .source
                .slice(self.stored_at(&partition), partition.stored_len());
            let stored = match in_memory {
                Some(bytes) => {
                    self.check(at, &partition, bytes)?;
                    bytes
                }
                None => {
                    self.read_stored(at, stored)?;
                    stored
                }
            };
            if piece.len() == partition.raw_len() {
                let done = decode.decode(stored, piece);
                return done.map_err(|error| self.located(error));
            }
            *last = None;
            // Who comes back to a partition will read on in it.
            let stop = self.layout.stops_early() && !again;
            front.clear();
            front.resize(if stop { end } else { partition.raw_len() }, 0);
            decode
                .decode(stored, front)
                .map_err(|error| self.located(error))?;
            *last = Some(at);
        }
        piece.copy_from_slice(&front[from..end]);
        Ok(())
    }
}

/// Finds the footer: each framing puts it at its own distance from the end.
fn read_footer<S: ReadAt>(source: &S) -> Result<(Footer, u64)> {
    let length = source.byte_len()?;
    for framing in LAYOUTS.iter().map(|layout| layout.framing()) {
        let Some(place) = FooterPlace::of(framing, length) else {
            continue;
        };
        let mut footer = [0; FOOTER_BYTES];
        source.read_exact_at(place.payload, &mut footer)?;
        if Footer::is_here(&footer) {
            let decoded = Footer::decode(&footer)?;
            let (mut frame, mut found) = (Vec::new(), Vec::new());
            framing.hide(&footer, &mut frame);
            found.resize(frame.len(), 0);
            source.read_exact_at(place.frame, &mut found)?;
            if found != frame {
                return Err(Error::corrupt("the frame around the footer is damaged"));
            }
            return Ok((decoded, place.frame));
        }
    }
    Err(
        Error::corrupt("this is no packed file: no footer stands at its end")
            .hint("`tersecades pack` makes packed files; a file cut short has lost its footer"),
    )
}
