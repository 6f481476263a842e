//! The last words of a container: where its index is and what it must add up to.
//!
//! ```text
//!  0 u8  version    1 u8 layout     2 u16 columns of the index   4 u32 bytes of a partition
//!  8 u64 raw bytes 16 u64 stored bytes of all partitions        24 u64 partitions
//! 32 u64 where the index's first frame starts                   40 u64 bytes of the index
//! 48 u32 bytes of the dictionary in front of it                 52 u32 CRC-32C of both
//! 56 u32 CRC-32C of bytes 0 to 56                               60 "TCZ1"
//! ```

use tersecades_columnar::error::{Error, Result};

use super::layout::Framing;

/// Bytes of a footer.
pub(super) const FOOTER_BYTES: usize = 64;

const VERSION: u8 = 1;
const MAGIC: &[u8; 4] = b"TCZ1";
const CHECKED: usize = 56;

/// What a footer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) layout: u8,
    pub(super) columns: u16,
    pub(super) partition_bytes: u32,
    pub(super) raw_len: u64,
    pub(super) stored_len: u64,
    pub(super) partitions: u64,
    pub(super) index_at: u64,
    pub(super) index_bytes: u64,
    pub(super) dictionary_bytes: u32,
    pub(super) checksum: u32,
}

impl Footer {
    /// The footer's bytes.
    pub(super) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.layout;
        bytes[2..4].copy_from_slice(&self.columns.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.partition_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.raw_len.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.stored_len.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.partitions.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.index_at.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.index_bytes.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.dictionary_bytes.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[60..].copy_from_slice(MAGIC);
        Footer::reseal(&mut bytes);
        bytes
    }

    /// Whether bytes look like a footer, damaged or not.
    pub(super) fn is_here(bytes: &[u8; FOOTER_BYTES]) -> bool {
        bytes[60..] == *MAGIC
    }

    /// Makes the checksum of a footer's bytes right.
    pub(super) fn reseal(bytes: &mut [u8; FOOTER_BYTES]) {
        let checksum = crc32c::crc32c(&bytes[..CHECKED]);
        bytes[CHECKED..60].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Makes the checksum of the index in a footer's bytes that of `payload`.
    pub(super) fn reseal_index(bytes: &mut [u8; FOOTER_BYTES], payload: &[u8]) {
        bytes[52..CHECKED].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
        Footer::reseal(bytes);
    }

    /// Reads a footer.
    ///
    /// # Errors
    /// Damaged bytes and versions of later releases.
    pub(super) fn decode(bytes: &[u8; FOOTER_BYTES]) -> Result<Footer> {
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if crc32c::crc32c(&bytes[..CHECKED]) != word(CHECKED) {
            return Err(Error::corrupt("the checksum of the footer does not fit")
                .hint("restore the file; `gunzip` may still read what is whole in it"));
        }
        if bytes[0] != VERSION {
            let message = format!("version {} of packed files is unknown", bytes[0]);
            return Err(Error::unsupported(message).hint("a later release wrote the file"));
        }
        Ok(Footer {
            layout: bytes[1],
            columns: u16::from_le_bytes([bytes[2], bytes[3]]),
            partition_bytes: word(4),
            raw_len: long(8),
            stored_len: long(16),
            partitions: long(24),
            index_at: long(32),
            index_bytes: long(40),
            dictionary_bytes: word(48),
            checksum: word(52),
        })
    }
}

/// Where the footer of a container lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct FooterPlace {
    /// Where its frame starts.
    pub(super) frame: u64,
    /// Where its bytes start.
    pub(super) payload: u64,
}

impl FooterPlace {
    /// The place in a container of `length` bytes, if it is long enough.
    pub(super) fn of(framing: &dyn Framing, length: u64) -> Option<Self> {
        let mut frame = Vec::new();
        framing.hide(&[0; FOOTER_BYTES], &mut frame);
        let behind = (FOOTER_BYTES + framing.hidden_suffix()) as u64;
        Some(FooterPlace {
            frame: length.checked_sub(frame.len() as u64)?,
            payload: length.checked_sub(behind)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footers_come_back_and_no_flipped_bit_passes() {
        let footer = Footer {
            layout: 1,
            columns: 3,
            partition_bytes: 16_384,
            raw_len: 1 << 40,
            stored_len: 1 << 38,
            partitions: 67_108_864,
            index_at: (1 << 38) + 20,
            index_bytes: 1 << 29,
            dictionary_bytes: 110_000,
            checksum: 0xDEAD_BEEF,
        };
        let bytes = footer.encode();
        assert_eq!(Footer::decode(&bytes), Ok(footer));
        for bit in 0..60 * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Footer::decode(&damaged).is_err(), "bit {bit}");
        }
    }
}
