//! A list that grows page by page: what is in it stays where it is.
//!
//! Doubling a long list moves all of it, into memory that the system has to make ready first. That
//! takes longer than the rest of what is done with a row.

use std::ops::{Index, IndexMut};

/// Entries of a page: a power of two.
const PAGE: usize = 1 << 16;

/// Entries, in pages of which all but the last are full.
#[derive(Debug, Clone)]
pub(crate) struct Paged<T> {
    pages: Vec<Vec<T>>,
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Paged { pages: Vec::new() }
    }
}

impl<T: Clone> Paged<T> {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        let last = self.pages.last().map_or(PAGE, Vec::len);
        self.pages.len() * PAGE + last - PAGE
    }

    /// The last page, and how many entries it has room for.
    fn last_page(&mut self) -> (&mut Vec<T>, usize) {
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            // Short lists grow as any other.
            let room = if self.pages.is_empty() { 0 } else { PAGE };
            self.pages.push(Vec::with_capacity(room));
        }
        let at = self.pages.len() - 1;
        let page = &mut self.pages[at];
        let room = PAGE - page.len();
        (page, room)
    }

    /// Appends `entries`.
    pub(crate) fn extend_from_slice(&mut self, mut entries: &[T]) {
        while !entries.is_empty() {
            let (page, room) = self.last_page();
            let (now, later) = entries.split_at(room.min(entries.len()));
            page.extend_from_slice(now);
            entries = later;
        }
    }

    /// Appends all of `entries`.
    pub(crate) fn extend(&mut self, entries: impl IntoIterator<Item = T>) {
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            let (page, room) = self.last_page();
            page.extend(entries.by_ref().take(room));
        }
    }

    /// Appends `entry` until there are `len`.
    pub(crate) fn grow(&mut self, len: usize, entry: T) {
        let mut more = len.saturating_sub(self.len());
        while more > 0 {
            let (page, room) = self.last_page();
            let now = room.min(more);
            page.resize(page.len() + now, entry.clone());
            more -= now;
        }
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flatten()
    }

    /// The entry at `at`, if there is one.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.pages.get_mut(at / PAGE)?.get_mut(at % PAGE)
    }

    /// The entry at `at`, if there is one.
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.pages.get(at / PAGE)?.get(at % PAGE)
    }

    /// Leaves those entries that `stays` is true of.
    pub(crate) fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        let mut left = Paged::default();
        for page in std::mem::take(&mut self.pages) {
            left.extend(page.into_iter().filter(&stays));
        }
        *self = left;
    }

    /// Bytes of memory held.
    pub(crate) fn byte_size(&self) -> usize {
        let pages = self.pages.iter().map(|page| page.capacity());
        pages.sum::<usize>() * size_of::<T>()
    }
}

impl<T> Index<usize> for Paged<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.pages[at / PAGE][at % PAGE]
    }
}

impl<T> IndexMut<usize> for Paged<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.pages[at / PAGE][at % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_a_list() {
        let (mut paged, mut list) = (Paged::default(), Vec::new());
        for round in 0..40_usize {
            let entries: Vec<usize> = (0..round * 1_733 % 9_001).map(|it| it ^ round).collect();
            match round % 3 {
                0 => paged.extend_from_slice(&entries),
                1 => paged.extend(entries.iter().copied()),
                _ => paged.grow(list.len() + entries.len(), round),
            }
            match round % 3 {
                2 => list.resize(list.len() + entries.len(), round),
                _ => list.extend(entries),
            }
            assert_eq!(paged.len(), list.len());
        }
        assert!(list.len() > 2 * PAGE);
        paged[PAGE] = 7;
        list[PAGE] = 7;
        assert!(paged.iter().eq(&list));
        let at = list.len() - 1;
        assert_eq!((paged[at], paged.get(at)), (list[at], list.last()));
        assert_eq!(paged.get(at + 1), None);
        assert_eq!(paged.get_mut(at + 1), None);
        paged.retain(|entry| entry.is_multiple_of(3));
        list.retain(|entry| entry.is_multiple_of(3));
        assert!(paged.iter().eq(&list));
        assert_eq!(paged.len(), list.len());
        paged.grow(3, 1);
        assert_eq!(paged.len(), list.len());
    }
}
