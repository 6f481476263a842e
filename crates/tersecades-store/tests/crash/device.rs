//! What a simulated device keeps of a file when the power goes.

use crate::simulated::Loss;

const SECTOR_BYTES: usize = 512;

#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    /// Bytes on the device, and as they are read while the power is there.
    durable: Vec<u8>,
    seen: Vec<u8>,
    /// Writes since the last sync, each with the number of its call.
    pub(crate) pending: Vec<(u64, Vec<u8>)>,
    /// The first of them, which a failed sync counts as written: no later sync writes them.
    dropped: usize,
    /// Syncs that have failed.
    pub(crate) failures: usize,
}

impl File {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        File {
            seen: bytes.clone(),
            durable: bytes,
            ..File::default()
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.seen.clone();
        for (_, written) in &self.pending {
            bytes.extend_from_slice(written);
        }
        bytes
    }

    pub(crate) fn sync(&mut self) {
        self.seen = self.bytes();
        for (index, (_, written)) in self.pending.drain(..).enumerate() {
            match index < self.dropped {
                true => self.durable.resize(self.durable.len() + written.len(), 0),
                false => self.durable.extend(written),
            }
        }
        self.dropped = 0;
    }

    pub(crate) fn fail_sync(&mut self) {
        self.dropped = self.pending.len();
        self.failures += 1;
    }

    /// Writes all bytes anew and syncs.
    pub(crate) fn renew(&mut self) {
        *self = File {
            failures: self.failures,
            ..File::of(self.bytes())
        };
    }

    pub(crate) fn length(&self) -> usize {
        let pending = self.pending.iter().map(|(_, bytes)| bytes.len());
        self.seen.len() + pending.sum::<usize>()
    }
}

/// A small generator of numbers that repeat with the seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// What is left of a file.
pub(crate) fn lose(file: &File, loss: Loss, until: u64, random: &mut Random) -> File {
    let mut bytes = file.durable.clone();
    let durable = bytes.len();
    for (call, write) in &file.pending {
        if *call <= until {
            bytes.extend_from_slice(write);
        }
    }
    let pending = bytes.len() - durable;
    match loss {
        Loss::Tear if pending > 0 => bytes.truncate(durable + random.below(pending)),
        Loss::Reorder if pending > 0 => {
            bytes.truncate(durable + random.below(pending + 1));
            for sector in (durable..bytes.len()).step_by(SECTOR_BYTES) {
                if random.below(3) == 0 {
                    let end = bytes.len().min(sector + SECTOR_BYTES);
                    bytes[sector..end].fill(0);
                }
            }
        }
        _ => {}
    }
    File::of(bytes)
}
