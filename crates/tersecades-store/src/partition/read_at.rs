//! Where the bytes of a container come from.

use std::fs::File;
use std::io;
use std::sync::Arc;

/// Bytes that are read at any position, by several threads at once.
pub trait ReadAt: Send + Sync {
    /// Fills `buffer` with the bytes from `offset`.
    ///
    /// # Errors
    /// What the system says; bytes behind the end are `UnexpectedEof`.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// How many bytes there are.
    ///
    /// # Errors
    /// What the system says.
    fn byte_len(&self) -> io::Result<u64>;

    /// The bytes themselves where they are in memory; then nothing is copied before decoding.
    fn slice(&self, _offset: u64, _length: usize) -> Option<&[u8]> {
        None
    }
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let rest = &mut buffer[done..];
            match std::os::windows::fs::FileExt::seek_read(self, rest, at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(())
    }

    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl ReadAt for Arc<[u8]> {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.slice(offset, buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn slice(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.get(start..start.checked_add(length)?)
    }
}
