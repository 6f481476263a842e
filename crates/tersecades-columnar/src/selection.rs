//! Which rows of a chunk are still wanted.
//!
//! A selection is *none*, *all*, a bitmap (dense) or a sorted list of rows (sparse). Primitives
//! return whichever they produce cheaply; [`Selection::settle`] picks the form the next primitive
//! works best on. Measured on Pingmesh's error filter (1 % of rows survive), handing survivors on
//! as a row list is 1.3 times as fast as a bitmap; above one row in 32 the bitmap wins.

use std::ops::Range;

use crate::bitmap::{WORD_ROWS, set_range};
use crate::block::BLOCK_ROWS;
use crate::kernels::kernels;

/// Above one selected row in this many, a bitmap is the better form.
pub const SPARSE_SHARE: usize = 32;

/// Above this many rows of one list for each of another, each is searched for.
const SEARCHED_SHARE: usize = 16;

/// The form a [`Selection`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// No row.
    #[default]
    None,
    /// Every row.
    All,
    /// A bit per row.
    Bits,
    /// A sorted list of rows.
    Rows,
}

/// The rows that are *true*: a set over the rows of one chunk, its memory reused.
///
/// # Examples
/// ```
/// use tersecades_columnar::selection::Selection;
/// let mut selection = Selection::default();
/// selection.set_rows(1_000).extend([3, 500]);
/// assert_eq!(selection.count(), 2);
/// selection.invert();
/// assert_eq!(selection.count(), 998);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Selection {
    rows: usize,
    shape: Shape,
    words: Vec<u64>,
    list: Vec<u32>,
}

/// The selected rows of one block, as [`Selection::block`] gives them.
#[derive(Debug, Clone, Copy)]
pub enum BlockSelection<'a> {
    /// No row of the block.
    None,
    /// Every row of the block.
    All,
    /// A bit per row of the block.
    Bits(&'a [u64]),
}

impl Selection {
    /// Selects every one of `rows` rows.
    pub fn all(rows: usize) -> Self {
        let mut selection = Selection::default();
        selection.set_all(rows);
        selection
    }

    /// Becomes "no row of `rows`".
    pub fn set_none(&mut self, rows: usize) {
        self.rows = rows;
        self.shape = Shape::None;
    }

    /// Becomes "every row of `rows`".
    pub fn set_all(&mut self, rows: usize) {
        self.rows = rows;
        self.shape = if rows == 0 { Shape::None } else { Shape::All };
    }

    /// Becomes a bitmap of zeros over `rows` rows and hands out its words to fill.
    ///
    /// Bits past the last row must stay zero.
    pub fn set_bits(&mut self, rows: usize) -> &mut [u64] {
        self.rows = rows;
        self.shape = Shape::Bits;
        self.words.clear();
        self.words.resize(rows.div_ceil(WORD_ROWS), 0);
        &mut self.words
    }

    /// Becomes a bitmap over `rows` rows whose words are stale and must all be written.
    pub(crate) fn set_stale_bits(&mut self, rows: usize) -> &mut [u64] {
        self.rows = rows;
        self.shape = Shape::Bits;
        self.words.resize(rows.div_ceil(WORD_ROWS), 0);
        &mut self.words
    }

    /// Becomes an empty row list over `rows` rows and hands it out to fill in ascending order.
    pub fn set_rows(&mut self, rows: usize) -> &mut Vec<u32> {
        self.rows = rows;
        self.shape = Shape::Rows;
        self.list.clear();
        &mut self.list
    }

    /// Becomes the rows of `range`, of `rows` in all, in the form that [`Selection::settle`] gives.
    pub fn set_range(&mut self, range: Range<usize>, rows: usize) {
        let count = range.len();
        if count == 0 {
            self.set_none(rows);
        } else if count == rows {
            self.set_all(rows);
        } else if count * SPARSE_SHARE < rows {
            let list = self.set_rows(rows);
            list.extend(range.start as u32..range.end as u32);
        } else {
            set_range(self.set_bits(rows), range);
        }
    }

    /// Becomes a copy of `other`, keeping the memory.
    pub fn copy_from(&mut self, other: &Selection) {
        self.rows = other.rows;
        self.shape = other.shape;
        match other.shape {
            Shape::Bits => self.words.clone_from(&other.words),
            Shape::Rows => self.list.clone_from(&other.list),
            Shape::None | Shape::All => {}
        }
    }

    /// Rows of the chunk, selected or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The present form.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Words of the bitmap form.
    pub fn words(&self) -> &[u64] {
        debug_assert_eq!(self.shape, Shape::Bits);
        &self.words
    }

    /// Becomes the bitmap form and hands out its words; bits past the last row must stay zero.
    pub(crate) fn bits_mut(&mut self) -> &mut [u64] {
        self.to_bits();
        &mut self.words
    }

    /// Rows of the list form.
    pub fn list(&self) -> &[u32] {
        debug_assert_eq!(self.shape, Shape::Rows);
        &self.list
    }

    /// Number of selected rows.
    pub fn count(&self) -> usize {
        match self.shape {
            Shape::None => 0,
            Shape::All => self.rows,
            Shape::Bits => (kernels().bitmap.count)(&self.words) as usize,
            Shape::Rows => self.list.len(),
        }
    }

    /// Whether no row is selected.
    pub fn is_empty(&self) -> bool {
        match self.shape {
            Shape::None => true,
            Shape::All => self.rows == 0,
            Shape::Bits => self.words.iter().all(|word| *word == 0),
            Shape::Rows => self.list.is_empty(),
        }
    }

    /// Whether `row` is selected.
    pub fn contains(&self, row: usize) -> bool {
        match self.shape {
            Shape::None => false,
            Shape::All => row < self.rows,
            Shape::Bits => self.words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1 == 1,
            Shape::Rows => {
                u32::try_from(row).is_ok_and(|row| self.list.binary_search(&row).is_ok())
            }
        }
    }

    /// The first selected row.
    pub fn first(&self) -> Option<usize> {
        match self.shape {
            Shape::None => None,
            Shape::All => Some(0),
            Shape::Rows => self.list.first().map(|row| *row as usize),
            Shape::Bits => {
                let index = self.words.iter().position(|word| *word != 0)?;
                Some(index * WORD_ROWS + self.words[index].trailing_zeros() as usize)
            }
        }
    }

    /// The last selected row.
    pub fn last(&self) -> Option<usize> {
        match self.shape {
            Shape::None => None,
            Shape::All => self.rows.checked_sub(1),
            Shape::Rows => self.list.last().map(|row| *row as usize),
            Shape::Bits => {
                let index = self.words.iter().rposition(|word| *word != 0)?;
                Some((index + 1) * WORD_ROWS - 1 - self.words[index].leading_zeros() as usize)
            }
        }
    }

    /// Calls `visit` with every selected row, ascending.
    pub fn for_each(&self, mut visit: impl FnMut(usize)) {
        match self.shape {
            Shape::None => {}
            Shape::All => (0..self.rows).for_each(visit),
            Shape::Rows => self.list.iter().for_each(|row| visit(*row as usize)),
            Shape::Bits => {
                for (index, word) in self.words.iter().enumerate() {
                    let mut rest = *word;
                    while rest != 0 {
                        visit(index * WORD_ROWS + rest.trailing_zeros() as usize);
                        rest &= rest - 1;
                    }
                }
            }
        }
    }

    /// The selected rows of block `block`; the list form must be settled to bits first.
    pub fn block(&self, block: usize) -> BlockSelection<'_> {
        match self.shape {
            Shape::None => BlockSelection::None,
            Shape::All => BlockSelection::All,
            Shape::Bits => {
                let first = block * BLOCK_ROWS / WORD_ROWS;
                let last = (first + BLOCK_ROWS / WORD_ROWS).min(self.words.len());
                let words = &self.words[first..last];
                let (any, all) = words
                    .iter()
                    .fold((0, u64::MAX), |(any, all), word| (any | word, all & word));
                match (any, all) {
                    (0, _) => BlockSelection::None,
                    (_, u64::MAX) => BlockSelection::All,
                    _ => BlockSelection::Bits(words),
                }
            }
            Shape::Rows => unreachable!("callers convert row lists before walking blocks"),
        }
    }

    /// Takes the cheapest form for what comes next: none, all, a row list when few rows are
    /// selected, else a bitmap.
    pub fn settle(&mut self) {
        let count = self.count();
        if count == 0 {
            self.set_none(self.rows);
        } else if count == self.rows {
            self.set_all(self.rows);
        } else if count * SPARSE_SHARE < self.rows {
            self.to_rows();
        } else {
            self.to_bits();
        }
    }

    /// Turns any form into the bitmap form.
    pub fn to_bits(&mut self) {
        let rows = self.rows;
        match self.shape {
            Shape::Bits => {}
            Shape::None => {
                self.set_bits(rows);
            }
            Shape::All => {
                self.set_bits(rows).fill(u64::MAX);
                clear_tail(&mut self.words, rows);
            }
            Shape::Rows => {
                let list = std::mem::take(&mut self.list);
                let words = self.set_bits(rows);
                for row in &list {
                    words[*row as usize / WORD_ROWS] |= 1 << (*row as usize % WORD_ROWS);
                }
                self.list = list;
            }
        }
    }

    /// Turns any form into the row-list form.
    pub fn to_rows(&mut self) {
        let rows = self.rows;
        match self.shape {
            Shape::Rows => {}
            Shape::None => {
                self.set_rows(rows);
            }
            Shape::All => {
                let end = u32::try_from(rows).unwrap_or(u32::MAX);
                self.set_rows(rows).extend(0..end);
            }
            Shape::Bits => {
                self.list.clear();
                (kernels().bitmap.to_rows)(&self.words, 0, &mut self.list);
                self.shape = Shape::Rows;
            }
        }
    }

    /// Keeps only rows whose bit in `words` is set.
    pub fn retain_words(&mut self, words: &[u64]) {
        match self.shape {
            Shape::None => {}
            Shape::All => {
                let rows = self.rows;
                self.set_bits(rows)
                    .copy_from_slice(&words[..rows.div_ceil(WORD_ROWS)]);
                clear_tail(&mut self.words, rows);
            }
            Shape::Bits => (kernels().bitmap.and)(&mut self.words, words),
            Shape::Rows => self.list.retain(|row| {
                words[*row as usize / WORD_ROWS] >> (*row as usize % WORD_ROWS) & 1 == 1
            }),
        }
    }

    /// Keeps only rows that `other` selects too.
    pub fn intersect(&mut self, other: &Selection) {
        match (self.shape, other.shape) {
            (_, Shape::All) | (Shape::None, _) => {}
            (_, Shape::None) => self.set_none(self.rows),
            (Shape::All, _) => self.copy_from(other),
            (_, Shape::Bits) => self.retain_words(&other.words),
            (Shape::Rows, Shape::Rows) if other.list.len() / SEARCHED_SHARE > self.list.len() => {
                self.list.retain(|row| other.contains(*row as usize));
            }
            (Shape::Rows, Shape::Rows) => {
                let mut kept = ascending(&other.list);
                self.list.retain(|row| kept(*row));
            }
            (Shape::Bits, Shape::Rows) => {
                let words = std::mem::take(&mut self.words);
                self.copy_from(other);
                self.retain_words(&words);
                self.words = words;
            }
        }
    }

    /// Adds the rows that `other` selects.
    pub fn unite(&mut self, other: &Selection) {
        match (self.shape, other.shape) {
            (Shape::All, _) | (_, Shape::None) => {}
            (_, Shape::All) => self.set_all(self.rows),
            (Shape::None, _) => self.copy_from(other),
            (_, Shape::Bits) => {
                self.to_bits();
                (kernels().bitmap.or)(&mut self.words, &other.words);
            }
            (_, Shape::Rows) => {
                self.to_bits();
                for row in &other.list {
                    self.words[*row as usize / WORD_ROWS] |= 1 << (*row as usize % WORD_ROWS);
                }
            }
        }
    }

    /// Drops the rows that `other` selects.
    pub fn subtract(&mut self, other: &Selection) {
        match (self.shape, other.shape) {
            (Shape::None, _) | (_, Shape::None) => {}
            (_, Shape::All) => self.set_none(self.rows),
            (Shape::Rows, Shape::Rows) => {
                let mut dropped = ascending(&other.list);
                self.list.retain(|row| !dropped(*row));
            }
            (Shape::Rows, _) => self.list.retain(|row| !other.contains(*row as usize)),
            (_, Shape::Bits) => {
                self.to_bits();
                (kernels().bitmap.and_not)(&mut self.words, &other.words);
            }
            (_, Shape::Rows) => {
                self.to_bits();
                for row in &other.list {
                    self.words[*row as usize / WORD_ROWS] &= !(1 << (*row as usize % WORD_ROWS));
                }
            }
        }
    }

    /// Selects exactly the rows that are not selected.
    pub fn invert(&mut self) {
        match self.shape {
            Shape::None => self.set_all(self.rows),
            Shape::All => self.set_none(self.rows),
            Shape::Bits | Shape::Rows => {
                self.to_bits();
                self.words.iter_mut().for_each(|word| *word = !*word);
                clear_tail(&mut self.words, self.rows);
            }
        }
    }
}

/// Whether rows that are asked for in ascending order are in `list`, which ascends too.
fn ascending(list: &[u32]) -> impl FnMut(u32) -> bool + '_ {
    let mut rest = list.iter().peekable();
    move |row| {
        while rest.next_if(|listed| **listed < row).is_some() {}
        rest.peek() == Some(&&row)
    }
}

/// Zeroes the bits past `rows` in the last word.
pub(crate) fn clear_tail(words: &mut [u64], rows: usize) {
    let used = rows % WORD_ROWS;
    if used > 0
        && let Some(last) = words.get_mut(rows / WORD_ROWS)
    {
        *last &= u64::MAX >> (WORD_ROWS - used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = 300;

    fn forms(rows: &[u32]) -> Vec<Selection> {
        let mut list = Selection::default();
        list.set_rows(ROWS).extend(rows);
        let mut bits = list.clone();
        bits.to_bits();
        let mut settled = list.clone();
        settled.settle();
        vec![list, bits, settled]
    }

    fn rows_of(selection: &Selection) -> Vec<usize> {
        let mut rows = Vec::new();
        selection.for_each(|row| rows.push(row));
        rows
    }

    #[test]
    fn set_algebra_agrees_in_every_form() {
        let all: Vec<u32> = (0..300).collect();
        let sets: [&[u32]; 5] = [
            &[],
            &all,
            &[0, 63, 64, 299],
            &[1, 64, 65, 200],
            &all[10..250],
        ];
        for a in sets {
            for b in sets {
                let pair = |x: Selection| forms(b).into_iter().map(move |y| (x.clone(), y));
                for (x, y) in forms(a).into_iter().flat_map(pair) {
                    let check = |op: fn(&mut Selection, &Selection),
                                 keep: fn(bool, bool) -> bool| {
                        let mut result = x.clone();
                        op(&mut result, &y);
                        let kept = |row: &u32| keep(a.contains(row), b.contains(row));
                        let expected = (0..300).filter(kept).map(|row| row as usize);
                        let expected: Vec<usize> = expected.collect();
                        assert_eq!(rows_of(&result), expected);
                        assert_eq!(result.count(), expected.len());
                    };
                    check(Selection::intersect, |a, b| a && b);
                    check(Selection::unite, |a, b| a || b);
                    check(Selection::subtract, |a, b| a && !b);
                }
            }
        }
    }

    #[test]
    fn inverting_twice_is_the_identity() {
        for mut selection in forms(&[0, 5, 299]) {
            selection.invert();
            assert_eq!(selection.count(), 297);
            assert!(!selection.contains(5));
            selection.invert();
            assert_eq!(rows_of(&selection), [0, 5, 299]);
        }
    }
}
