//! State as bytes: what snapshots are written with and read from.
//!
//! Little-endian, no padding. Every snapshot opens with a magic number, a version and a checksum
//! of what follows, so damaged or foreign bytes are refused before anything is restored.

use tersecades_columnar::error::{Error, Result};

mod arrow;

pub use arrow::{read_arrow, write_arrow};

const MAGIC: &[u8; 8] = b"TCSTATE7";

/// Appends values to a snapshot.
#[derive(Debug, Default)]
pub struct StateWriter {
    bytes: Vec<u8>,
}

impl StateWriter {
    /// Appends a number.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a signed number.
    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a 128-bit number.
    pub fn i128(&mut self, value: i128) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a float, bit for bit.
    pub fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// Appends a truth value.
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    /// Appends a key, or that there is none.
    pub fn key(&mut self, key: Option<&[u8]>) {
        self.bool(key.is_some());
        self.blob(key.unwrap_or_default());
    }

    /// Appends how many `items` there are, and each as `write` does.
    pub fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.u64(items.len() as u64);
        items.for_each(|item| write(self, item));
    }

    /// Appends bytes and their length.
    pub fn blob(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends what the state is of, for [`StateReader::check`].
    pub fn sign(&mut self, of: &str) {
        self.blob(of.as_bytes());
    }

    /// The finished snapshot.
    pub fn seal(self) -> Vec<u8> {
        let mut sealed = MAGIC.to_vec();
        sealed.extend_from_slice(&crc32c::crc32c(&self.bytes).to_le_bytes());
        sealed.extend_from_slice(&self.bytes);
        sealed
    }
}

/// Reads a snapshot back.
#[derive(Debug)]
pub struct StateReader<'a> {
    rest: &'a [u8],
}

impl<'a> StateReader<'a> {
    /// Refuses the state of anything but `of`.
    ///
    /// # Errors
    /// `Corrupt` when [`StateWriter::sign`] has written something else.
    pub fn check(&mut self, of: &str) -> Result<()> {
        if self.blob()? != of.as_bytes() {
            return Err(Error::corrupt("the snapshot belongs to another query")
                .hint("restore with the columns, event time and steps it was taken with"));
        }
        Ok(())
    }

    /// Opens a sealed snapshot.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are no snapshot, or a damaged one.
    pub fn open(sealed: &'a [u8]) -> Result<Self> {
        let body = sealed
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_first_chunk::<4>());
        let Some((checksum, rest)) = body else {
            return Err(Error::corrupt(
                "these bytes are no snapshot of this version",
            ));
        };
        if crc32c::crc32c(rest) != u32::from_le_bytes(*checksum) {
            return Err(Error::corrupt(
                "the snapshot is damaged: its checksum differs",
            ));
        }
        Ok(StateReader { rest })
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or_else(|| Error::corrupt("snapshot too short"))?;
        self.rest = rest;
        Ok(*head)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// `Corrupt` at the end of the bytes, here and below.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// Reads a number of things, each of which takes at least one byte of the rest.
    ///
    /// # Errors
    /// `Corrupt` when the rest cannot hold that many.
    pub fn count(&mut self) -> Result<usize> {
        let count = self.u64()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(Error::corrupt("a snapshot claims more than it holds")),
        }
    }

    /// Reads a signed number.
    ///
    /// # Errors
    /// `Corrupt` at the end of the bytes.
    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.take()?))
    }

    /// Reads a 128-bit number.
    ///
    /// # Errors
    /// `Corrupt` at the end of the bytes.
    pub fn i128(&mut self) -> Result<i128> {
        Ok(i128::from_le_bytes(self.take()?))
    }

    /// Reads a float.
    ///
    /// # Errors
    /// `Corrupt` at the end of the bytes.
    pub fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_bits(self.u64()?))
    }

    /// Reads a truth value.
    ///
    /// # Errors
    /// `Corrupt` at the end of the bytes.
    pub fn bool(&mut self) -> Result<bool> {
        let [byte] = self.take()?;
        Ok(byte != 0)
    }

    /// Reads what [`StateWriter::key`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is not all there.
    pub fn key(&mut self) -> Result<Option<Box<[u8]>>> {
        let is_some = self.bool()?;
        let bytes = self.blob()?;
        Ok(is_some.then(|| bytes.into()))
    }

    /// Reads what [`StateWriter::list`] wrote, each item as `read` does.
    ///
    /// # Errors
    /// `Corrupt` when they are not all there.
    pub fn list<T, C: FromIterator<T>>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<C> {
        let count = self.count()?;
        (0..count).map(|_| read(self)).collect()
    }

    /// Reads bytes written by [`StateWriter::blob`].
    ///
    /// # Errors
    /// `Corrupt` when they are not all there.
    pub fn blob(&mut self) -> Result<&'a [u8]> {
        let length = self.count()?;
        let (blob, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(blob)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_snapshots_are_refused() {
        let mut writer = StateWriter::default();
        writer.i128(-7);
        writer.blob(b"text");
        let sealed = writer.seal();
        let mut reader = StateReader::open(&sealed).unwrap();
        assert_eq!(
            (reader.i128().unwrap(), reader.blob().unwrap()),
            (-7, &b"text"[..])
        );
        assert!(reader.u64().is_err());
        for index in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[index] ^= 1;
            assert!(StateReader::open(&damaged).is_err());
        }
    }
}
