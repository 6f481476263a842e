//! The bytes of one column of a row group, read at once, at their place in the file.

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use tersecades_columnar::error::{Error, Result};

use super::corrupt;

/// A part of a file that is addressed as in the file.
pub(super) struct ChunkBytes {
    start: u64,
    bytes: Bytes,
}

impl ChunkBytes {
    /// Reads `length` bytes from `start` on.
    ///
    /// # Errors
    /// `Corrupt` if the file is shorter.
    pub(super) fn load<R: ChunkReader>(input: &R, (start, length): (u64, u64)) -> Result<Self> {
        let length = usize::try_from(length).map_err(|_| Error::corrupt("an oversized column"))?;
        let bytes = input.get_bytes(start, length).map_err(corrupt)?;
        Ok(ChunkBytes { start, bytes })
    }

    fn from(&self, start: u64) -> ParquetResult<Bytes> {
        let at = start.checked_sub(self.start);
        let at = at.and_then(|at| usize::try_from(at).ok());
        match at.filter(|at| *at <= self.bytes.len()) {
            Some(at) => Ok(self.bytes.slice(at..)),
            None => Err(ParquetError::EOF(format!("no byte {start} in this column"))),
        }
    }
}

impl Length for ChunkBytes {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for ChunkBytes {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.from(start)?;
        match length <= bytes.len() {
            true => Ok(bytes.slice(..length)),
            false => Err(ParquetError::EOF(format!(
                "no {length} bytes from {start} on"
            ))),
        }
    }
}
