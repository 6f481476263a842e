//! Byte storage whose every section starts on a cache line.

use bytemuck::{Pod, Zeroable};

/// Bytes of one cache line; also the alignment of every section of a chunk.
pub const CACHE_LINE_BYTES: usize = 64;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct CacheLine([u64; 8]);

/// A growable run of bytes that starts on a cache line and grows by whole cache lines.
///
/// Clearing keeps the memory, so a chunk that is filled again and again allocates once.
#[derive(Clone, Default)]
pub struct AlignedBytes {
    lines: Vec<CacheLine>,
}

impl AlignedBytes {
    /// All bytes, a multiple of the cache line.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.lines)
    }

    /// All bytes, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }

    /// Forgets the content, keeps the memory.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// Appends `bytes` zero bytes, rounded up to a cache line; returns where they start.
    pub fn grow(&mut self, bytes: usize) -> usize {
        let start = self.lines.len() * CACHE_LINE_BYTES;
        let lines = bytes.div_ceil(CACHE_LINE_BYTES);
        self.lines
            .resize(self.lines.len() + lines, CacheLine([0; 8]));
        start
    }

    /// Becomes `bytes` long, rounded up to a cache line, keeping what was stored before.
    pub fn resize_stale(&mut self, bytes: usize) {
        self.lines
            .resize(bytes.div_ceil(CACHE_LINE_BYTES), CacheLine([0; 8]));
    }

    /// Makes room for `bytes` more without moving later.
    pub fn reserve(&mut self, bytes: usize) {
        self.lines.reserve_exact(bytes.div_ceil(CACHE_LINE_BYTES));
    }

    /// Cuts to `bytes`, rounded up to a cache line.
    pub fn truncate(&mut self, bytes: usize) {
        self.lines.truncate(bytes.div_ceil(CACHE_LINE_BYTES));
    }

    /// Bytes of memory held, used or not.
    pub fn capacity_bytes(&self) -> usize {
        self.lines.capacity() * CACHE_LINE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_start_on_cache_lines_and_memory_is_kept() {
        let mut bytes = AlignedBytes::default();
        assert_eq!(bytes.grow(1), 0);
        assert_eq!(bytes.grow(65), 64);
        assert_eq!(bytes.bytes().len(), 192);
        assert_eq!(bytes.bytes().as_ptr() as usize % 64, 0);
        let capacity = bytes.capacity_bytes();
        bytes.clear();
        bytes.grow(192);
        assert_eq!(bytes.capacity_bytes(), capacity);
    }
}
