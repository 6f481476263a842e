//! One column of a row group whose pages hold nothing but dictionary codes.
//!
//! ```text
//! dictionary page -> table of values
//! data page       -> definition levels (1 bit each, hybrid), codes (hybrid)
//!                    numbers: table[code]      text: the code itself, beside the table
//! ```
//! Codes are unpacked a stretch at a time into a buffer that stays in the first-level cache, and
//! go from there to their place in the batch; where rows are null, by way of a buffer of the values
//! alone, from which whole runs of rows are copied.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use parquet::basic::{Encoding, Type};
use parquet::column::page::Page;
use parquet::column::page::PageReader;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;
use tersecades_columnar::arrow::dictionary;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::kernels::{Lane, WORD_LANES, kernels};
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::types::Physical;

use super::chosen::Only;
use super::chunk_bytes::ChunkBytes;
use super::corrupt;
use super::newest::Newest;
use super::page::{DataPages, STRETCH, outside};
use super::table::{Table, Take, look_up};
use super::tested::CodeTest;
use crate::source::text_type;

/// Largest compressed column of a row group that is read at once.
const CHUNK_BYTES_MAX: u64 = 64 << 20;

/// Rows of a batch of which some are tested before the others are.
const SAMPLE_ROWS: usize = 4 * STRETCH;

type Pages = DataPages<SerializedPageReader<ChunkBytes>>;

/// Rows of one column, in order.
pub(super) struct CodedColumn {
    pages: Pages,
    data_type: DataType,
    /// Whether the footer says that there are no nulls.
    has_all: bool,
    table: Table,
    /// Of the rows that were marked last.
    codes: Vec<u32>,
    /// Which rows of a stretch have a value, a bit each.
    levels: BooleanBufferBuilder,
}

/// Whether all pages of a column are dictionary codes; `None` where the file does not say.
pub(super) fn is_all_codes(chunk: &ColumnChunkMetaData) -> Option<bool> {
    if chunk.dictionary_page_offset().is_none() {
        return Some(false);
    }
    let mask = chunk.page_encoding_stats_mask()?;
    Some(mask.is_only(Encoding::RLE_DICTIONARY) || mask.is_only(Encoding::PLAIN_DICTIONARY))
}

impl CodedColumn {
    /// Whether [`Self::open`] can read the column of `field` from `chunk`.
    pub(super) fn reads(field: &Field, chunk: &ColumnChunkMetaData) -> bool {
        let column = chunk.column_descr();
        let flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
        let coded = is_all_codes(chunk) == Some(true);
        // Levels of files from before the hybrid.
        #[allow(deprecated, reason = "such files exist")]
        let old = chunk
            .encodings()
            .any(|encoding| encoding == Encoding::BIT_PACKED);
        let typed = match (field.data_type(), chunk.column_type()) {
            (DataType::Int32 | DataType::UInt32 | DataType::Date32, Type::INT32)
            | (DataType::Int64 | DataType::UInt64 | DataType::Timestamp(..), Type::INT64)
            | (DataType::Float32, Type::FLOAT)
            | (DataType::Float64, Type::DOUBLE) => true,
            (text, Type::BYTE_ARRAY) => *text == text_type(),
            _ => false,
        };
        flat && coded && !old && typed && chunk.byte_range().1 <= CHUNK_BYTES_MAX
    }

    /// The column of `field` in the `rows` rows of a row group, whose bytes `input` has.
    ///
    /// # Errors
    /// `Corrupt` if the bytes or the dictionary are damaged.
    pub(super) fn open<R: ChunkReader>(
        input: &R,
        field: &Field,
        chunk: &ColumnChunkMetaData,
        rows: usize,
    ) -> Result<Self> {
        let bytes = ChunkBytes::load(input, chunk.byte_range())?;
        let pages = SerializedPageReader::new(Arc::new(bytes), chunk, rows, None);
        let mut pages = pages.map_err(corrupt)?;
        let Some(Page::DictionaryPage {
            buf, num_values, ..
        }) = pages.get_next_page().map_err(corrupt)?
        else {
            return Err(Error::corrupt("the dictionary page is not the first"));
        };
        let nullable = chunk.column_descr().max_def_level() == 1;
        let nulls = chunk.statistics().and_then(Statistics::null_count_opt);
        Ok(CodedColumn {
            pages: DataPages::new(pages, nullable),
            data_type: field.data_type().clone(),
            has_all: !nullable || nulls == Some(0),
            table: Table::read(&buf, num_values as usize, chunk.column_type())?,
            codes: Vec::new(),
            levels: BooleanBufferBuilder::new(0),
        })
    }

    /// Values in the dictionary.
    pub(super) fn values(&self) -> usize {
        self.table.len()
    }

    /// The next `rows` rows, or what `only` leaves of them.
    ///
    /// # Errors
    /// `Corrupt` if pages are damaged or end before.
    pub(super) fn next(&mut self, rows: usize, only: Option<Only<'_>>) -> Result<ArrayRef> {
        let mut table = std::mem::replace(&mut self.table, Table::Four(Vec::new()));
        let found = match &table {
            Table::Four(values) => self.numbers(values, (rows, only), kernels().u32.take),
            Table::Eight(values) => self.numbers(values, (rows, only), kernels().u64.take),
            Table::Text(texts) => self.texts(texts, (rows, only)),
        };
        std::mem::swap(&mut self.table, &mut table);
        found
    }

    fn numbers<W>(
        &mut self,
        table: &[W],
        (rows, only): (usize, Option<Only<'_>>),
        take: Take<W>,
    ) -> Result<ArrayRef>
    where
        W: Lane + ArrowNativeType,
    {
        let mut found = [W::default(); STRETCH];
        let all = |codes: &[u32], values: &mut Vec<W>| {
            let found = &mut found[..codes.len()];
            let inside = take(table, codes, found);
            values.extend_from_slice(found);
            inside
        };
        let (values, nulls) = match only {
            None => self.gather(rows, all)?,
            Some(only) => self.pick(rows, only, all, |code| table.get(code as usize).copied())?,
        };
        self.array(values, nulls)
    }

    fn array<W: ArrowNativeType>(
        &self,
        values: Vec<W>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let data = ArrayData::try_new(
            self.data_type.clone(),
            values.len(),
            nulls.map(|nulls| nulls.into_inner().into_inner()),
            0,
            vec![Buffer::from_vec(values)],
            Vec::new(),
        )?;
        Ok(make_array(data))
    }

    /// Whether [`Self::newest`] can read it: integers without nulls.
    pub(super) fn has_newest(&self) -> bool {
        self.has_all && self.flip().is_some()
    }

    fn flip(&self) -> Option<u64> {
        match Physical::of(&self.data_type) {
            Ok(physical @ Physical::Integer { .. }) => Some(physical.flip()),
            _ => None,
        }
    }

    /// Of the next `rows` rows, times, those whose bit is set in `passing`, and before each and at
    /// the end the newest so far: which they are, and their values.
    ///
    /// Most rows cost a comparison of their code: a dictionary lists values in the order in which
    /// they come, so that in most stretches none is newer than those before.
    ///
    /// # Errors
    /// As [`Self::next`]; `Corrupt` for nulls where the footer says that there are none.
    pub(super) fn newest(&mut self, rows: usize, passing: &[u64]) -> Result<(Vec<u32>, ArrayRef)> {
        let mut table = std::mem::replace(&mut self.table, Table::Four(Vec::new()));
        let found = match &table {
            Table::Four(values) => self.newest_by(values, rows, passing),
            Table::Eight(values) => self.newest_by(values, rows, passing),
            Table::Text(_) => Err(Error::internal("text has no newest value")),
        };
        std::mem::swap(&mut self.table, &mut table);
        found
    }

    fn newest_by<W>(
        &mut self,
        table: &[W],
        rows: usize,
        passing: &[u64],
    ) -> Result<(Vec<u32>, ArrayRef)>
    where
        W: Lane + ArrowNativeType,
    {
        let mut newest = Newest::new(self.flip().unwrap_or_default());
        // No value of a code below is newer than those before.
        let mut limit = 0;
        let mut codes = [0; STRETCH];
        for (first, passing) in (0..rows)
            .step_by(STRETCH)
            .zip(passing.chunks(STRETCH / WORD_LANES))
        {
            let codes = &mut codes[..STRETCH.min(rows - first)];
            self.pages.read_codes(codes, &mut self.levels)?;
            for (word, (codes, passing)) in codes.chunks(WORD_LANES).zip(passing).enumerate() {
                let mut candidates = [0];
                (kernels().u32.range_mask_flat)(codes, limit, u32::MAX - limit, &mut candidates);
                newest
                    .add(
                        first + word * WORD_LANES,
                        (*passing, candidates[0]),
                        |lane| table.get(codes[lane] as usize).copied(),
                    )
                    .ok_or_else(outside)?;
                let known = |limit: u32| {
                    let value = table.get(limit as usize);
                    value.is_some_and(|value| !newest.is_newer(*value))
                };
                while known(limit) {
                    limit += 1;
                }
            }
        }
        let (given, times) = newest.finish();
        Ok((given, self.array(times, None)?))
    }

    /// The test of codes that is `tests` of values; none where some may be null, or where there are
    /// as many texts as rows.
    pub(super) fn code_test(&self, tests: &[Arc<Predicate>], rows: usize) -> Option<CodeTest> {
        let flip = self.flip().unwrap_or_default();
        let test = || self.table.code_test(flip, tests, rows);
        self.has_all.then(test).flatten()
    }

    /// Sets the bits of the next `rows` rows that may pass `test`; [`Self::marked`] has the rows.
    ///
    /// Where half of the first rows pass, the others are not tested.
    ///
    /// # Errors
    /// As [`Self::newest`].
    pub(super) fn mark(&mut self, rows: usize, test: &CodeTest, out: &mut [u64]) -> Result<()> {
        self.codes.resize(rows, 0);
        let (mut seen, mut kept) = (0, 0);
        let stretches = self.codes.chunks_mut(STRETCH);
        for (codes, out) in stretches.zip(out.chunks_mut(STRETCH / WORD_LANES)) {
            self.pages.read_codes(codes, &mut self.levels)?;
            if seen < SAMPLE_ROWS || 2 * kept < seen {
                test.mark(codes, out);
                kept += (kernels().bitmap.count)(out) as usize;
                seen += codes.len();
            } else {
                out.fill(u64::MAX);
            }
        }
        Ok(())
    }

    /// The rows that were marked last, or those of `given`.
    ///
    /// # Errors
    /// `Corrupt` for codes without a value.
    pub(super) fn marked(&self, given: Option<&[u32]>) -> Result<ArrayRef> {
        let given = given.map(|rows| rows.iter().map(|row| self.codes[*row as usize]).collect());
        let given: Option<Vec<u32>> = given;
        let codes = given.as_deref().unwrap_or(&self.codes);
        match &self.table {
            Table::Four(table) => self.array(look_up(table, codes, kernels().u32.take)?, None),
            Table::Eight(table) => self.array(look_up(table, codes, kernels().u64.take)?, None),
            Table::Text(texts) => {
                let keys: Int32Array = codes.iter().map(|code| code.cast_signed()).collect();
                Ok(Arc::new(dictionary(keys, Arc::clone(texts))?))
            }
        }
    }

    fn texts(
        &mut self,
        texts: &ArrayRef,
        (rows, only): (usize, Option<Only<'_>>),
    ) -> Result<ArrayRef> {
        let all = |codes: &[u32], keys: &mut Vec<i32>| {
            keys.extend(codes.iter().map(|code| code.cast_signed()));
            true
        };
        let (keys, nulls) = match only {
            None => self.gather(rows, all)?,
            Some(only) => self.pick(rows, only, all, |code| Some(code.cast_signed()))?,
        };
        let keys = Int32Array::try_new(keys.into(), nulls)?;
        Ok(Arc::new(dictionary(keys, Arc::clone(texts))?))
    }

    /// What `decode` appends for the codes of the next `rows` rows, or false; null rows hold 0.
    fn gather<T: ArrowNativeType>(
        &mut self,
        rows: usize,
        mut decode: impl FnMut(&[u32], &mut Vec<T>) -> bool,
    ) -> Result<(Vec<T>, Option<NullBuffer>)> {
        let (mut values, mut valid) = (Vec::with_capacity(rows), Validity::default());
        while values.len() < rows {
            let page = self.pages.at_hand()?;
            let start = values.len();
            let taken = page.left.min(rows - start);
            let present = page.present(taken, &mut self.levels)?;
            if present == taken {
                page.decode(present, &mut values, &mut decode)?;
            } else {
                values.resize(start + taken, T::default());
                let levels = self.levels.as_slice();
                page.spread((present, levels), &mut values[start..], &mut decode)?;
            }
            valid.append((start, taken), (present, &self.levels));
            page.left -= taken;
        }
        Ok((values, valid.finish()))
    }

    /// As [`Self::gather`], where only the rows of `only` matter: the values of their codes are
    /// what `one` says, or nothing for a code outside.
    fn pick<T: ArrowNativeType>(
        &mut self,
        rows: usize,
        only: Only<'_>,
        mut decode: impl FnMut(&[u32], &mut Vec<T>) -> bool,
        one: impl Fn(u32) -> Option<T>,
    ) -> Result<(Vec<T>, Option<NullBuffer>)> {
        let mut values = vec![one(0).unwrap_or_default(); only.length(rows)];
        let (mut start, mut ahead, mut valid) = (0, only.rows, Validity::default());
        while start < rows {
            let page = self.pages.at_hand()?;
            let taken = page.left.min(rows - start);
            let present = page.present(taken, &mut self.levels)?;
            let here = ahead.partition_point(|row| (*row as usize) < start + taken);
            let (here, rest) = ahead.split_at(here);
            let places = only.places(start, taken, (ahead, here));
            let found = &mut values[places.clone()];
            if present == taken {
                let mut rank = 0;
                page.codes.pick(taken, start, here, |row, code| {
                    let place = if only.alone { rank } else { row - start };
                    rank += 1;
                    one(code)
                        .map(|value| found[place] = value)
                        .ok_or_else(outside)
                })?;
            } else if only.alone {
                let mut all = vec![T::default(); taken];
                page.spread((present, self.levels.as_slice()), &mut all, &mut decode)?;
                let picked = here.iter().map(|row| all[*row as usize - start]);
                found
                    .iter_mut()
                    .zip(picked)
                    .for_each(|(to, from)| *to = from);
                let levels = here
                    .iter()
                    .map(|row| self.levels.get_bit(*row as usize - start));
                valid.append_each(places.start, levels);
            } else {
                page.spread((present, self.levels.as_slice()), found, &mut decode)?;
            }
            match only.alone {
                true if present == taken => valid.append_valid(here.len()),
                true => {}
                false => valid.append((start, taken), (present, &self.levels)),
            }
            page.left -= taken;
            (start, ahead) = (start + taken, rest);
        }
        Ok((values, valid.finish()))
    }
}

/// Which rows have a value, once one has none.
#[derive(Default)]
struct Validity(Option<BooleanBufferBuilder>);

impl Validity {
    /// Adds `taken` rows behind `start` others, of which as many as `present` have a value: all, or
    /// those of the levels.
    fn append(
        &mut self,
        (start, taken): (usize, usize),
        (present, levels): (usize, &BooleanBufferBuilder),
    ) {
        match present < taken {
            true => self
                .behind(start)
                .append_packed_range(0..taken, levels.as_slice()),
            false => self.append_valid(taken),
        }
    }

    /// Adds `rows` rows that have a value.
    fn append_valid(&mut self, rows: usize) {
        if let Some(valid) = &mut self.0 {
            valid.append_n(rows, true);
        }
    }

    /// Adds rows behind `start` others.
    fn append_each(&mut self, start: usize, rows: impl Iterator<Item = bool>) {
        let valid = self.behind(start);
        rows.for_each(|row| valid.append(row));
    }

    fn behind(&mut self, start: usize) -> &mut BooleanBufferBuilder {
        self.0.get_or_insert_with(|| {
            let mut valid = BooleanBufferBuilder::new(start);
            valid.append_n(start, true);
            valid
        })
    }

    fn finish(self) -> Option<NullBuffer> {
        self.0.map(|mut valid| NullBuffer::new(valid.finish()))
    }
}
