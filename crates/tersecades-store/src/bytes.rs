//! Little-endian fields, written to and read from bytes that may be damaged.

use tersecades_columnar::error::{Error, Result};

/// Appends fields.
pub(crate) trait Put {
    /// A number of one byte.
    fn put_u8(&mut self, value: u8);
    /// A number of four bytes.
    fn put_u32(&mut self, value: u32);
    /// A number of eight bytes.
    fn put_u64(&mut self, value: u64);
    /// A length of four bytes and as many bytes.
    ///
    /// # Errors
    /// `LimitExceeded` for 4 GiB and more.
    fn put_blob(&mut self, bytes: &[u8]) -> Result<()>;
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<()> {
        let length = u32::try_from(bytes.len())
            .map_err(|_| Error::limit("a part of a store's file is larger than 4 GiB"))?;
        self.put_u32(length);
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Takes fields off the front of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Take<'a> {
    rest: &'a [u8],
}

impl<'a> Take<'a> {
    /// Reads from the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Take { rest: bytes }
    }

    /// Bytes that were not taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// `Corrupt` where there are fewer.
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let (front, rest) = self.rest.split_at_checked(length).ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (front, rest) = self.rest.split_first_chunk::<N>().ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(*front)
    }

    /// A number of one byte.
    ///
    /// # Errors
    /// As [`Take::bytes`], like all that follow.
    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A number of four bytes.
    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of eight bytes.
    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of things, each of which takes at least `least` of the bytes that are left.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize> {
        let count = self.u32()? as usize;
        match count <= self.rest.len() / least.max(1) {
            true => Ok(count),
            false => Err(cut_short()),
        }
    }

    /// A length of four bytes and as many bytes.
    pub(crate) fn blob(&mut self) -> Result<&'a [u8]> {
        let length = self.u32()? as usize;
        self.bytes(length)
    }

    /// Text with its length.
    pub(crate) fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.blob()?).map_err(|_| Error::corrupt("a name is not UTF-8"))
    }

    /// Checks that nothing is left.
    pub(crate) fn end(self) -> Result<()> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(Error::corrupt("bytes follow the last field")),
        }
    }
}

fn cut_short() -> Error {
    Error::corrupt("the bytes end inside a field").hint("the file was cut short or damaged")
}
