//! The bytes of a container in order.

use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::ops::Range;

use tersecades_columnar::error::{Error, ErrorKind};

use super::packed::Packed;
use super::read_at::ReadAt;

/// Bytes of a range of a container, a partition at a time.
pub struct Reader<'a, S> {
    packed: &'a Packed<S>,
    range: Range<u64>,
    /// Of what is read next.
    at: u64,
    /// Decoded bytes of which those from `used` are to be read.
    buffer: Vec<u8>,
    used: usize,
}

impl<S> std::fmt::Debug for Reader<'_, S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Reader")
            .field("range", &self.range)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl<'a, S: ReadAt> Reader<'a, S> {
    /// A reader at the start of `range`, which is cut at the container's end.
    pub(super) fn new(packed: &'a Packed<S>, range: Range<u64>) -> Self {
        let end = range.end.min(packed.len());
        let range = range.start.min(end)..end;
        Reader {
            packed,
            at: range.start,
            range,
            buffer: Vec::new(),
            used: 0,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.used = 0;
        self.buffer.clear();
        if self.at >= self.range.end {
            return Ok(());
        }
        let partition = self.packed.locate(self.at);
        let partition = self.packed.require(partition).map_err(as_io)?;
        let end = partition.raw.end.min(self.range.end);
        self.buffer.resize((end - self.at) as usize, 0);
        let read = self.packed.read_at(self.at, &mut self.buffer);
        read.inspect_err(|_| self.buffer.clear()).map_err(as_io)?;
        self.at = end;
        Ok(())
    }
}

/// The error as one of input and output, whole inside it.
fn as_io(error: Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::Corrupt => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl<S: ReadAt> BufRead for Reader<'_, S> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            self.fill()?;
        }
        Ok(&self.buffer[self.used..])
    }

    fn consume(&mut self, count: usize) {
        self.used = (self.used + count).min(self.buffer.len());
    }
}

impl<S: ReadAt> Read for Reader<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(out.len());
        out[..count].copy_from_slice(&ready[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<S: ReadAt> Seek for Reader<'_, S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let length = self.range.end - self.range.start;
        let left = (self.buffer.len() - self.used) as u64;
        let here = self.at - self.range.start - left;
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => length.checked_add_signed(by),
            SeekFrom::Current(by) => here.checked_add_signed(by),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "a position before the start");
        let target = target.ok_or_else(before)?;
        self.buffer.clear();
        self.used = 0;
        self.at = self
            .range
            .start
            .saturating_add(target)
            .max(self.range.start);
        Ok(target)
    }
}
