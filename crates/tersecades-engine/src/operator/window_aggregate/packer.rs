//! From columns of a frame to packed keys.

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, float_key};
use tersecades_columnar::values::Values;

use crate::frame::Frame;

use super::keys::{KeyColumn, KeyLayout, NULL_CODE, Translation};

/// Packed keys, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct PackedKeys<'a> {
    /// Their words.
    pub keys: &'a [u64],
    /// Words of each.
    pub words: usize,
}

impl PackedKeys<'_> {
    /// The same keys of more words, which are zero.
    pub fn widened(self, words: usize) -> Vec<u64> {
        let rows = self.keys.len() / self.words.max(1);
        let mut wide = vec![0; rows * words];
        let keys = self.keys.chunks_exact(self.words.max(1));
        for (key, wide) in keys.zip(wide.chunks_exact_mut(words.max(1))) {
            wide[..self.words].copy_from_slice(key);
        }
        wide
    }
}

/// Packs the keys of rows; one per worker, its memory reused.
#[derive(Debug, Default)]
pub struct KeyPacker {
    values: Values,
    translations: Vec<Translation>,
    keys: Vec<u64>,
    words: usize,
}

impl KeyPacker {
    /// The keys that were packed last.
    pub fn keys(&self) -> PackedKeys<'_> {
        PackedKeys {
            keys: &self.keys,
            words: self.words,
        }
    }

    /// Packs the keys of the rows of `within`, without the words for nulls where no row of the
    /// frame needs them.
    ///
    /// # Errors
    /// `LimitExceeded` when a dictionary outgrows its limit.
    pub fn pack(
        &mut self,
        layout: &KeyLayout,
        frame: &Frame,
        within: &Selection,
        work: &mut Work,
    ) -> Result<()> {
        let null = |column: &KeyColumn| frame.column(column.slot).nulls() > 0;
        let mut numbers = layout.columns.iter().filter(|column| !column.is_text());
        let words = match layout.standard_map || numbers.any(null) {
            true => layout.words,
            false => layout.words_without_nulls(),
        };
        let rows = within.count();
        self.words = words;
        self.keys.clear();
        self.keys.resize(rows * words, 0);
        self.translations
            .resize_with(layout.columns.len(), Default::default);
        for column in &layout.columns {
            frame.column(column.slot).prefetch(within);
        }
        for (index, column) in layout.columns.iter().enumerate() {
            let mut values = std::mem::take(&mut self.values);
            frame.column(column.slot).gather(within, &mut values, work);
            let unified = column
                .dictionary()
                .unify(&mut values, &mut self.translations[index]);
            match column.physical() {
                Physical::Text => self.pack_text(column, words, &values),
                _ => self.pack_numbers(column, words, &values),
            }
            if let (Some(null), false) = (layout.null_bit(index), values.validity.is_empty()) {
                self.pack_nulls(column, words, null, &values);
            }
            self.values = values;
            unified?;
        }
        Ok(())
    }

    fn pack_numbers(&mut self, column: &KeyColumn, words: usize, values: &Values) {
        let keys = self.keys.chunks_exact_mut(words);
        match column.physical() {
            Physical::Wide => {
                for (key, value) in keys.zip(&values.wide) {
                    column.put_wide(*value, key);
                }
            }
            Physical::Float { .. } => {
                for (index, key) in keys.enumerate() {
                    column.put(float_key(values.float(index)), key);
                }
            }
            _ => {
                for (key, value) in keys.zip(&values.keys) {
                    column.put(*value, key);
                }
            }
        }
    }

    fn pack_text(&mut self, column: &KeyColumn, words: usize, values: &Values) {
        let rows = self
            .keys
            .chunks_exact_mut(words)
            .zip(&values.keys)
            .enumerate();
        for (row, (key, code)) in rows {
            let code = if values.is_valid(row) {
                *code
            } else {
                NULL_CODE
            };
            column.put(code, key);
        }
    }

    /// Nulls that are not text: their part becomes zero and their bit one.
    fn pack_nulls(
        &mut self,
        column: &KeyColumn,
        words: usize,
        (null_word, null_bit): (usize, u64),
        values: &Values,
    ) {
        if column.is_text() {
            return;
        }
        for (row, key) in self.keys.chunks_exact_mut(words).enumerate() {
            if values.is_valid(row) {
                continue;
            }
            key[null_word] |= null_bit;
            column.clear(key);
        }
    }
}
