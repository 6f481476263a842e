//! Writing containers.

use std::io::{self, Write};
use std::ops::Range;
use std::thread;

use tersecades_columnar::error::{Error, Result};

use super::checksum;
use super::footer::Footer;
use super::index::Index;
use super::layout::{Layout, PartitionEncoder, Zlib};
use super::packed::Packed;
use super::read_at::ReadAt;
use super::{PARTITION_MAX, PARTITION_MIN, dictionary};

/// Partitions that each thread gets at a time.
const PARTITIONS_PER_THREAD: usize = 16;

/// How a container is made.
#[derive(Debug, Clone)]
pub struct PackOptions {
    /// How partitions are stored.
    pub layout: &'static dyn Layout,
    /// Bytes of a partition; by default the layout's own.
    pub partition: Option<usize>,
    /// The level; by default the layout's own.
    pub level: Option<i32>,
    /// What all partitions begin from, for layouts that take it; see [`dictionary::choose`].
    pub dictionary: Vec<u8>,
    /// Whether a dictionary is trained where the layout takes one and none is given; stock tools
    /// do not know it.
    pub train: bool,
    /// Threads that compress.
    pub threads: usize,
}

impl Default for PackOptions {
    fn default() -> Self {
        PackOptions::of(&Zlib)
    }
}

impl PackOptions {
    /// The defaults of a layout, without a dictionary.
    pub fn of(layout: &'static dyn Layout) -> Self {
        PackOptions {
            layout,
            partition: None,
            level: None,
            dictionary: Vec::new(),
            train: true,
            threads: 1,
        }
    }

    /// Trains a dictionary on samples of `raw_len` bytes where it may, where the layout takes one,
    /// none is given and it pays.
    pub(super) fn choose_dictionary(
        &mut self,
        raw_len: u64,
        samples: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<()> {
        let layout = self.layout;
        if self.train && self.dictionary.is_empty() && layout.dictionary_default() > 0 {
            let level = self.level.unwrap_or(layout.level_default());
            let partition = self.partition.unwrap_or(layout.partition_default()).max(1);
            self.dictionary = dictionary::choose(layout, level, partition, &samples()?, raw_len)?;
        }
        Ok(())
    }
}

/// What became of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Bytes that went in.
    pub raw_len: u64,
    /// Bytes of the container.
    pub file_len: u64,
    /// Partitions.
    pub partitions: usize,
}

/// Takes bytes and writes a container.
#[derive(Debug)]
pub struct Packer<W> {
    out: W,
    options: PackOptions,
    partition: usize,
    encoders: Vec<Encoder>,
    pending: Vec<u8>,
    index: Index,
    raw_checksum: u32,
}

/// A compressor with what it made of its last partitions.
struct Encoder {
    compress: Box<dyn PartitionEncoder>,
    stored: Vec<u8>,
    /// Raw and stored length, and checksums, of each.
    made: Vec<(usize, usize, (u32, Option<u32>))>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Encoder {
    fn encode(&mut self, raw: &[u8], partition: usize, sums_raw: bool) -> Result<()> {
        self.stored.clear();
        self.made.clear();
        for raw in raw.chunks(partition) {
            let start = self.stored.len();
            self.compress.encode(raw, &mut self.stored)?;
            let stored = &self.stored[start..];
            let sums = (
                crc32c::crc32c(stored),
                sums_raw.then(|| checksum::crc32(raw)),
            );
            self.made.push((raw.len(), stored.len(), sums));
        }
        Ok(())
    }
}

impl<W: Write> Packer<W> {
    /// Starts a container.
    ///
    /// # Errors
    /// Options that make no sense, and what the writer says.
    pub fn new(mut out: W, options: PackOptions) -> Result<Self> {
        let layout = options.layout;
        let partition = options.partition.unwrap_or(layout.partition_default());
        if !(PARTITION_MIN..=PARTITION_MAX).contains(&partition) {
            let message = format!("partitions of {partition} bytes are not possible");
            return Err(Error::invalid(message).hint(format!(
                "choose {PARTITION_MIN} B to {} MiB",
                PARTITION_MAX >> 20
            )));
        }
        if !options.dictionary.is_empty() && layout.dictionary_default() == 0 {
            return Err(Error::invalid(format!(
                "{} takes no dictionary",
                layout.name()
            )));
        }
        let level = options.level.unwrap_or(layout.level_default());
        let encoder = || {
            Ok(Encoder {
                compress: layout.encoder(level, &options.dictionary)?,
                stored: Vec::new(),
                made: Vec::new(),
            })
        };
        let encoders: Result<Vec<_>> = (0..options.threads.max(1)).map(|_| encoder()).collect();
        out.write_all(layout.framing().head())?;
        Ok(Packer {
            out,
            partition,
            encoders: encoders?,
            options,
            pending: Vec::new(),
            index: Index::default(),
            raw_checksum: 0,
        })
    }

    /// Takes further bytes.
    ///
    /// # Errors
    /// What the writer says.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        let limit = self.partition * self.encoders.len() * PARTITIONS_PER_THREAD;
        while !bytes.is_empty() {
            let count = bytes.len().min(limit - self.pending.len());
            let (front, rest) = bytes.split_at(count);
            self.pending.extend_from_slice(front);
            bytes = rest;
            if self.pending.len() == limit {
                self.encode_pending()?;
            }
        }
        Ok(())
    }

    /// Appends partitions of another container as they are stored, checked but not decoded.
    ///
    /// What was written before ends its partition there.
    ///
    /// # Errors
    /// Another layout or dictionary, partitions that are not there or damaged, and what the writer
    /// says.
    pub fn append<S: ReadAt>(&mut self, from: &Packed<S>, which: Range<usize>) -> Result<()> {
        let ours = self.options.layout;
        if from.layout().id() != ours.id() || from.dictionary() != self.options.dictionary {
            let message = format!(
                "partitions of layout {} do not fit a container of layout {} as they are",
                from.layout().name(),
                ours.name()
            );
            return Err(Error::unsupported(message)
                .hint("layout and dictionary must be equal; else read and pack again"));
        }
        self.encode_pending()?;
        let mut stored = Vec::new();
        for at in which {
            let partition = from.read_stored(at, &mut stored)?;
            let sums = (partition.checksum, partition.raw_checksum);
            self.note(partition.raw_len(), partition.stored_len(), sums);
            self.out.write_all(&stored)?;
        }
        Ok(())
    }

    /// Ends the container and gives the writer back.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish(mut self) -> Result<(W, Summary)> {
        self.encode_pending()?;
        let framing = self.options.layout.framing();
        let mut tail = Vec::new();
        framing.end(self.raw_checksum, self.index.raw_len(), &mut tail);
        let data_end = framing.head().len() as u64 + self.index.stored_len();
        let index_at = data_end + tail.len() as u64;
        let (columns, index) = self.index.encode(self.partition as u32);
        let mut payload = std::mem::take(&mut self.options.dictionary);
        let dictionary_bytes = payload.len() as u32;
        payload.extend_from_slice(&index);
        let pieces = payload.chunks(framing.hidden_max());
        pieces.for_each(|piece| framing.hide(piece, &mut tail));
        let footer = Footer {
            layout: self.options.layout.id(),
            columns,
            partition_bytes: self.partition as u32,
            raw_len: self.index.raw_len(),
            stored_len: self.index.stored_len(),
            partitions: self.index.count() as u64,
            index_at,
            index_bytes: index.len() as u64,
            dictionary_bytes,
            checksum: crc32c::crc32c(&payload),
        };
        framing.hide(&footer.encode(), &mut tail);
        self.out.write_all(&tail)?;
        self.out.flush()?;
        let summary = Summary {
            raw_len: self.index.raw_len(),
            file_len: data_end + tail.len() as u64,
            partitions: self.index.count(),
        };
        Ok((self.out, summary))
    }

    fn note(&mut self, raw_len: usize, stored_len: usize, sums: (u32, Option<u32>)) {
        self.index.push(raw_len, stored_len, sums);
        if let Some(raw) = sums.1 {
            self.raw_checksum = checksum::combine(self.raw_checksum, raw, raw_len as u64);
        }
    }

    fn encode_pending(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let (partition, sums_raw) = (self.partition, self.options.layout.framing().sums_raw());
        let share = pending
            .len()
            .div_ceil(partition)
            .div_ceil(self.encoders.len())
            * partition;
        let shares = pending.chunks(share.max(1));
        let busy = shares.len();
        let mut work = self.encoders.iter_mut().zip(shares);
        if busy == 1 {
            work.try_for_each(|(encoder, raw)| encoder.encode(raw, partition, sums_raw))?;
        } else {
            thread::scope(|scope| {
                let running: Vec<_> = work
                    .map(|(encoder, raw)| scope.spawn(|| encoder.encode(raw, partition, sums_raw)))
                    .collect();
                let died = |_| Error::internal("a thread that compresses has died");
                running
                    .into_iter()
                    .try_for_each(|it| it.join().map_err(died)?)
            })?;
        }
        for at in 0..busy {
            let made = std::mem::take(&mut self.encoders[at].made);
            made.iter()
                .for_each(|(raw, stored, sums)| self.note(*raw, *stored, *sums));
            self.out.write_all(&self.encoders[at].stored)?;
        }
        self.pending = pending;
        self.pending.clear();
        Ok(())
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    /// Flushes the writer below; what does not fill a partition yet stays here.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Packs bytes in memory, with a trained dictionary where the layout takes one.
///
/// # Errors
/// Options that make no sense.
pub fn pack(bytes: &[u8], options: &PackOptions) -> Result<Vec<u8>> {
    let mut options = options.clone();
    options.choose_dictionary(bytes.len() as u64, || Ok(dictionary::sample(bytes)))?;
    let mut packer = Packer::new(Vec::with_capacity(bytes.len() / 2), options)?;
    packer.push(bytes)?;
    Ok(packer.finish()?.0)
}

/// Writes all partitions of several containers as one, without compressing anything again.
///
/// # Errors
/// No container, containers of different layouts or dictionaries, damage, and what the writer says.
pub fn concat<S: ReadAt, W: Write>(parts: &[Packed<S>], out: W) -> Result<(W, Summary)> {
    let first = parts.first();
    let first = first.ok_or_else(|| Error::invalid("there is nothing to put together"))?;
    let options = PackOptions {
        partition: Some(first.partition_bytes()),
        dictionary: first.dictionary().to_vec(),
        ..PackOptions::of(first.layout())
    };
    let mut packer = Packer::new(out, options)?;
    for part in parts {
        packer.append(part, 0..part.partitions())?;
    }
    packer.finish()
}
