//! What the manifest knows of a run.

use std::ops::Range;

use tersecades_columnar::error::{Error, Result};

use crate::bytes::{Put as _, Take};

/// A run as the manifest knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunId {
    /// Number of the file, larger than those of all runs that were there when it was written.
    pub(crate) number: u64,
    /// Level of the tree.
    pub(crate) level: u32,
    /// Bytes of the file.
    pub(crate) length: u64,
    /// CRC-32C of the footer.
    pub(crate) footer_checksum: u32,
    /// Number of rows.
    pub(crate) rows: u64,
    /// Numbers of the rows of the store that are there.
    pub(crate) sequences: Range<u64>,
    /// Sort keys of the first and the last row; `None` where an earlier release wrote the entry.
    pub(crate) fences: Option<Fences>,
}

/// Sort keys of two rows.
pub(crate) type Fences = (Vec<u8>, Vec<u8>);

impl RunId {
    /// Appends the entry.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.put_u64(self.number);
        out.put_u32(self.level);
        out.put_u64(self.length);
        out.put_u32(self.footer_checksum);
        out.put_u64(self.rows);
        out.put_u64(self.sequences.start);
        out.put_u64(self.sequences.end);
    }

    /// Appends the sort keys.
    ///
    /// # Errors
    /// `LimitExceeded` for keys of 4 GiB.
    pub(crate) fn write_fences(&self, out: &mut Vec<u8>) -> Result<()> {
        out.put_u8(u8::from(self.fences.is_some()));
        let Some((first, last)) = &self.fences else {
            return Ok(());
        };
        out.put_blob(first)?;
        out.put_blob(last)
    }

    /// Takes the sort keys off the front of `bytes`.
    ///
    /// # Errors
    /// `Corrupt` where bytes are missing or make no sense.
    pub(crate) fn read_fences(&mut self, bytes: &mut Take<'_>) -> Result<()> {
        self.fences = match bytes.u8()? {
            0 => None,
            1 => Some((bytes.blob()?.to_vec(), bytes.blob()?.to_vec())),
            _ => return Err(Error::corrupt("a run has keys of an unknown kind")),
        };
        Ok(())
    }

    /// Takes an entry off the front of `bytes`, without its sort keys.
    ///
    /// # Errors
    /// `Corrupt` where bytes are missing.
    pub(crate) fn read(bytes: &mut Take<'_>) -> Result<Self> {
        Ok(RunId {
            number: bytes.u64()?,
            level: bytes.u32()?,
            length: bytes.u64()?,
            footer_checksum: bytes.u32()?,
            rows: bytes.u64()?,
            sequences: bytes.u64()?..bytes.u64()?,
            fences: None,
        })
    }
}
