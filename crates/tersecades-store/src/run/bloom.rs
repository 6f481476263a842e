//! A Bloom filter over the keys of a run: tells most keys that are not there.
//!
//! Hash: FNV-1a of 64 bits over the key's sort bytes, finished as in MurmurHash3. Bit `i` of `k` is
//! `(low + i * high) mod bits` with the halves of the hash as `low` and (odd) `high`.

use tersecades_columnar::error::{Error, Result};

use crate::bytes::{Put as _, Take};

/// Most hashes of one key.
const HASHES_MAX: u32 = 30;

/// The filter of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bloom {
    hashes: u32,
    words: Vec<u64>,
}

/// The hash of a key.
pub(crate) fn hash(key: &[u8]) -> u64 {
    let folded = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (folded ^ (folded >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

impl Bloom {
    /// A filter of `bits` per key over the keys with `hashes_of_keys`.
    pub(crate) fn new(hashes_of_keys: &[u64], bits: usize) -> Self {
        let words = (hashes_of_keys.len() * bits).div_ceil(64).max(1);
        // The number that makes false positives fewest: bits per key times ln 2.
        let hashes = ((bits as f64 * std::f64::consts::LN_2).round() as u32).clamp(1, HASHES_MAX);
        let mut bloom = Bloom {
            hashes,
            words: vec![0; words],
        };
        for hash in hashes_of_keys {
            for bit in positions(*hash, bloom.hashes, words) {
                bloom.words[bit / 64] |= 1 << (bit % 64);
            }
        }
        bloom
    }

    /// Whether a key with this hash may be there.
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        positions(hash, self.hashes, self.words.len())
            .all(|bit| self.words[bit / 64] >> (bit % 64) & 1 == 1)
    }

    /// Bytes of the filter.
    pub(crate) fn byte_size(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    /// Appends the filter.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.hashes);
        out.put_u32(self.words.len() as u32);
        self.words.iter().for_each(|word| out.put_u64(*word));
    }

    /// Takes a filter off the front of `bytes`.
    ///
    /// # Errors
    /// `Corrupt` for what [`Bloom::write`] cannot have written.
    pub(crate) fn read(bytes: &mut Take<'_>) -> Result<Self> {
        let hashes = bytes.u32()?;
        let count = bytes.count(8)?;
        if count == 0 || !(1..=HASHES_MAX).contains(&hashes) {
            return Err(Error::corrupt("a Bloom filter without bits"));
        }
        let words = (0..count).map(|_| bytes.u64()).collect::<Result<_>>()?;
        Ok(Bloom { hashes, words })
    }
}

fn positions(hash: u64, hashes: u32, words: usize) -> impl Iterator<Item = usize> {
    let (low, high) = (hash & 0xffff_ffff, (hash >> 32) | 1);
    let bits = words as u64 * 64;
    (0..u64::from(hashes)).map(move |index| ((low + index * high) % bits) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_and_few_others() {
        let hashes: Vec<u64> = (0u64..10_000).map(|key| hash(&key.to_be_bytes())).collect();
        let bloom = Bloom::new(&hashes, 10);
        assert!(hashes.iter().all(|hash| bloom.may_hold(*hash)));
        let others = (10_000u64..110_000).map(|key| hash(&key.to_be_bytes()));
        let wrong = others.filter(|hash| bloom.may_hold(*hash)).count();
        assert!(
            wrong < 2_000,
            "{wrong} of 100,000; 10 bits should let about 1 % pass"
        );
        let mut bytes = Vec::new();
        bloom.write(&mut bytes);
        assert_eq!(Bloom::read(&mut Take::new(&bytes)).unwrap(), bloom);
    }
}
