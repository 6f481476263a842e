//! What encoding made of a column: bytes before and after, codecs, and why they were chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use tersecades::columnar::choose::Candidate;
use tersecades::columnar::chunk::Chunk;
use tersecades::columnar::codec::Work;
use tersecades::columnar::dictionary::Dictionary;
use tersecades::columnar::selection::Selection;
use tersecades::columnar::types::Physical;
use tersecades::columnar::values::Values;
use tersecades::prelude::DataType;

use crate::figure;

/// Bytes of an Arrow offset, and of an Arrow dictionary key.
const OFFSET_BYTES: u64 = 4;

/// What one codec would have cost, summed over rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price {
    /// The codec.
    pub(crate) codec: &'static str,
    bytes: f64,
    scan_ns: f64,
    rows: f64,
}

impl Price {
    /// Expected bytes per row.
    pub(crate) fn bytes_per_row(&self) -> f64 {
        self.bytes / self.rows.max(1.0)
    }

    /// Expected nanoseconds to scan a row.
    pub(crate) fn scan_ns(&self) -> f64 {
        self.scan_ns / self.rows.max(1.0)
    }
}

/// The figures of one column over all its chunks.
#[derive(Debug, Default)]
pub(crate) struct ColumnEncoding {
    /// Rows.
    pub(crate) rows: u64,
    /// Nulls among them.
    pub(crate) nulls: u64,
    /// Bytes of values and validity in Arrow; for text, of keys or offsets.
    arrow_bytes: u64,
    /// Bytes of all texts, one after the other.
    text_bytes: u64,
    /// Bytes of all chunks.
    chunk_bytes: u64,
    dictionary: Option<Arc<Dictionary>>,
    /// Whether every chunk has the dictionary.
    is_dictionary_whole: bool,
    codecs: BTreeMap<String, u64>,
    prices: Vec<Price>,
    work: Work,
    values: Values,
}

impl ColumnEncoding {
    /// Counts one more chunk of the column.
    pub(crate) fn add(&mut self, chunk: &Chunk) {
        let rows = chunk.rows() as u64;
        self.is_dictionary_whole =
            chunk.dictionary().is_some() && (self.rows == 0 || self.is_dictionary_whole);
        self.rows += rows;
        self.nulls += chunk.nulls() as u64;
        self.arrow_bytes += if chunk.nulls() > 0 {
            rows.div_ceil(8)
        } else {
            0
        };
        self.arrow_bytes += match (chunk.physical(), chunk.data_type()) {
            (Physical::Text, _) => rows * OFFSET_BYTES,
            (_, DataType::Boolean) => rows.div_ceil(8),
            (physical, _) => rows * physical.lane_bytes() as u64,
        };
        if chunk.physical() == Physical::Text {
            self.text_bytes += self.text_bytes_of(chunk);
        }
        self.chunk_bytes += chunk.byte_size() as u64;
        if let Some(dictionary) = chunk.dictionary() {
            self.dictionary = Some(Arc::clone(dictionary));
        }
        *self.codecs.entry(chunk.codec_label()).or_default() += rows;
        let codes = chunk.codes().map(|codes| codes.codes.candidates());
        let weighed = codes.filter(|candidates| candidates.iter().next().is_some());
        self.add_prices(weighed.unwrap_or(chunk.candidates()), rows as f64);
    }

    /// Bytes of the texts of a chunk, without offsets.
    fn text_bytes_of(&mut self, chunk: &Chunk) -> u64 {
        let Some(dictionary) = chunk.dictionary() else {
            return (chunk.byte_size() as u64).saturating_sub(chunk.rows() as u64 * OFFSET_BYTES);
        };
        self.values.reset(Physical::Text);
        chunk.gather(
            &Selection::all(chunk.rows()),
            &mut self.values,
            &mut self.work,
        );
        let texts = dictionary.read();
        let valid = self
            .values
            .keys
            .iter()
            .enumerate()
            .filter(|(row, _)| self.values.is_valid(*row));
        let code = |key: &u64| u32::try_from(*key).unwrap_or_default();
        valid
            .map(|(_, key)| texts.get(code(key)).len() as u64)
            .sum()
    }

    fn add_prices(&mut self, candidates: &[Candidate], rows: f64) {
        for candidate in candidates.iter() {
            let codec = candidate.codec.name();
            let known = self.prices.iter().position(|price| price.codec == codec);
            let index = known.unwrap_or_else(|| {
                self.prices.push(Price {
                    codec,
                    bytes: 0.0,
                    scan_ns: 0.0,
                    rows: 0.0,
                });
                self.prices.len() - 1
            });
            let price = &mut self.prices[index];
            price.bytes += candidate.bytes_per_row * rows;
            price.scan_ns += candidate.scan_ns * rows;
            price.rows += rows;
        }
    }

    fn dictionary_bytes(&self) -> u64 {
        self.dictionary
            .as_ref()
            .map_or(0, |dictionary| dictionary.byte_size() as u64)
    }

    /// Bytes as Arrow arrays, text as dictionary arrays where those are smaller.
    pub(crate) fn raw_bytes(&self) -> u64 {
        match self.is_dictionary_whole {
            true => self.arrow_bytes + self.text_bytes.min(self.dictionary_bytes()),
            false => self.arrow_bytes + self.text_bytes,
        }
    }

    /// Bytes of all that is needed to get the values back.
    pub(crate) fn encoded_bytes(&self) -> u64 {
        self.chunk_bytes + self.dictionary_bytes()
    }

    /// Codecs and their rows, most rows first.
    pub(crate) fn codecs(&self) -> Vec<(&str, u64)> {
        let mut codecs: Vec<(&str, u64)> = self
            .codecs
            .iter()
            .map(|(codec, rows)| (codec.as_str(), *rows))
            .collect();
        codecs.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        codecs
    }

    /// The codec, or the codecs and their shares of the rows.
    pub(crate) fn codec_text(&self) -> String {
        match self.codecs().as_slice() {
            [] => "none".to_owned(),
            [(codec, _)] => (*codec).to_owned(),
            codecs => {
                let share = |(codec, rows): &(&str, u64)| {
                    format!("{codec} {}", figure::percent(*rows, self.rows))
                };
                codecs.iter().map(share).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// What each codec would have cost, cheapest first.
    pub(crate) fn prices(&self) -> Vec<Price> {
        let mut prices = self.prices.clone();
        prices.sort_by(|a, b| a.scan_ns().total_cmp(&b.scan_ns()));
        prices
    }

    /// Why the codec was chosen: the price of each candidate.
    pub(crate) fn why(&self) -> String {
        let price = |price: &Price| {
            format!(
                "{} {:.2} B {:.2} ns",
                price.codec,
                price.bytes_per_row(),
                price.scan_ns()
            )
        };
        match self.prices().as_slice() {
            [] => "no choice was made".to_owned(),
            [only] => format!("{} (the only candidate)", price(only)),
            prices => prices.iter().map(price).collect::<Vec<_>>().join(" < "),
        }
    }
}
