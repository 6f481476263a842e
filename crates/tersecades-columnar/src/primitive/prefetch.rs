//! Asking for what is looked at next, while something else is looked at.

use crate::aligned::CACHE_LINE_BYTES;
use crate::chunk::Chunk;
use crate::kernels::prefetch_past;
use crate::selection::{Selection, Shape};

impl Chunk {
    /// Asks for what a row list needs, ahead of [`Chunk::gather`] or [`Chunk::compare`].
    pub fn prefetch(&self, within: &Selection) {
        if within.shape() == Shape::Rows {
            self.codec.prefetch(self, within.list());
        }
    }

    /// Asks for what every use looks at first.
    #[inline]
    pub fn prefetch_head(&self) {
        for at in (0..size_of::<Chunk>()).step_by(CACHE_LINE_BYTES) {
            prefetch_past(std::slice::from_ref(self), at);
        }
    }

    /// Asks for the heads of the chunks inside, and where the sections begin.
    #[inline]
    pub fn prefetch_inside(&self) {
        self.inner().for_each(Chunk::prefetch_head);
        prefetch_past(self.body.bytes.bytes(), 0);
    }
}
