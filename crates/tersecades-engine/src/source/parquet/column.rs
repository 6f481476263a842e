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

use arrow_array::{Array, ArrayRef, Int32Array, StringArray, make_array};
use arrow_buffer::bit_chunk_iterator::{BitChunks, UnalignedBitChunk};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use tersecades_columnar::arrow::dictionary;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::kernels::{Lane, kernels};

use super::chunk_bytes::ChunkBytes;
use super::corrupt;
use super::hybrid::Hybrid;
use crate::source::text_type;

/// Codes unpacked at a time.
const STRETCH: usize = 1024;

/// Largest compressed column of a row group that is read at once.
const CHUNK_BYTES_MAX: u64 = 64 << 20;

/// The values that codes stand for.
enum Table {
    Four(Vec<u32>),
    Eight(Vec<u64>),
    Text(ArrayRef),
}

/// Looks up values by codes; false if one is outside.
type Take<W> = fn(&[W], &[u32], &mut [W]) -> bool;

/// The page being read.
struct DataPage {
    /// 1 for a value, 0 for null; `None` in columns without nulls.
    levels: Option<Hybrid>,
    codes: Hybrid,
    left: usize,
}

/// Rows of one column, in order.
pub(super) struct CodedColumn {
    pages: SerializedPageReader<ChunkBytes>,
    data_type: DataType,
    nullable: bool,
    table: Table,
    page: Option<DataPage>,
    /// Which rows of a stretch have a value, a bit each.
    levels: BooleanBufferBuilder,
}

impl CodedColumn {
    /// Whether [`Self::open`] can read the column of `field` from `chunk`.
    pub(super) fn reads(field: &Field, chunk: &ColumnChunkMetaData) -> bool {
        let column = chunk.column_descr();
        let flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
        let coded = chunk.dictionary_page_offset().is_some()
            && chunk.page_encoding_stats_mask().is_some_and(|mask| {
                mask.is_only(Encoding::RLE_DICTIONARY) || mask.is_only(Encoding::PLAIN_DICTIONARY)
            });
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
        Ok(CodedColumn {
            pages,
            data_type: field.data_type().clone(),
            nullable: chunk.column_descr().max_def_level() == 1,
            table: table(&buf, num_values as usize, chunk.column_type())?,
            page: None,
            levels: BooleanBufferBuilder::new(0),
        })
    }

    /// Values in the dictionary.
    pub(super) fn values(&self) -> usize {
        match &self.table {
            Table::Four(values) => values.len(),
            Table::Eight(values) => values.len(),
            Table::Text(texts) => texts.len(),
        }
    }

    /// The next `rows` rows; any values in rows other than `only`, which ascend, if given.
    ///
    /// # Errors
    /// `Corrupt` if pages are damaged or end before.
    pub(super) fn next(&mut self, rows: usize, only: Option<&[u32]>) -> Result<ArrayRef> {
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
        (rows, only): (usize, Option<&[u32]>),
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
        let data = ArrayData::try_new(
            self.data_type.clone(),
            rows,
            nulls.map(|nulls| nulls.into_inner().into_inner()),
            0,
            vec![Buffer::from_vec(values)],
            Vec::new(),
        )?;
        Ok(make_array(data))
    }

    fn texts(
        &mut self,
        texts: &ArrayRef,
        (rows, only): (usize, Option<&[u32]>),
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
            let page = page_at_hand(&mut self.page, &mut self.pages, self.nullable)?;
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

    /// As [`Self::gather`], where only the rows `only` matter: the values of their codes are what
    /// `one` says, or nothing for a code outside. Other rows hold any value of the column.
    fn pick<T: ArrowNativeType>(
        &mut self,
        rows: usize,
        only: &[u32],
        mut decode: impl FnMut(&[u32], &mut Vec<T>) -> bool,
        one: impl Fn(u32) -> Option<T>,
    ) -> Result<(Vec<T>, Option<NullBuffer>)> {
        let mut values = vec![one(0).unwrap_or_default(); rows];
        let (mut start, mut only, mut valid) = (0, only, Validity::default());
        while start < rows {
            let page = page_at_hand(&mut self.page, &mut self.pages, self.nullable)?;
            let taken = page.left.min(rows - start);
            let present = page.present(taken, &mut self.levels)?;
            let here = only.partition_point(|row| (*row as usize) < start + taken);
            let (here, rest) = only.split_at(here);
            if present == taken {
                page.codes.pick(taken, start, here, |row, code| {
                    one(code)
                        .map(|value| values[row] = value)
                        .ok_or_else(outside)
                })?;
            } else {
                let levels = self.levels.as_slice();
                let values = &mut values[start..start + taken];
                page.spread((present, levels), values, &mut decode)?;
            }
            valid.append((start, taken), (present, &self.levels));
            page.left -= taken;
            (start, only) = (start + taken, rest);
        }
        Ok((values, valid.finish()))
    }
}

/// Which rows have a value, once one has none.
#[derive(Default)]
struct Validity(Option<BooleanBufferBuilder>);

impl Validity {
    /// Adds `taken` rows from `start` on, of which as many as `present` have a value: all, or those
    /// of the levels.
    fn append(
        &mut self,
        (start, taken): (usize, usize),
        (present, levels): (usize, &BooleanBufferBuilder),
    ) {
        if present < taken {
            let valid = self.0.get_or_insert_with(|| {
                let mut valid = BooleanBufferBuilder::new(start + taken);
                valid.append_n(start, true);
                valid
            });
            valid.append_packed_range(0..taken, levels.as_slice());
        } else if let Some(valid) = &mut self.0 {
            valid.append_n(taken, true);
        }
    }

    fn finish(self) -> Option<NullBuffer> {
        self.0.map(|mut valid| NullBuffer::new(valid.finish()))
    }
}

/// The page being read, or the next one.
fn page_at_hand<'a>(
    page: &'a mut Option<DataPage>,
    pages: &mut SerializedPageReader<ChunkBytes>,
    nullable: bool,
) -> Result<&'a mut DataPage> {
    if page.as_ref().is_none_or(|page| page.left == 0) {
        *page = Some(next_page(pages, nullable)?);
    }
    page.as_mut().ok_or_else(ended)
}

impl DataPage {
    /// How many of the next `count` rows have a value; `levels` says which if not all have.
    fn present(&mut self, count: usize, levels: &mut BooleanBufferBuilder) -> Result<usize> {
        let Some(ahead) = &mut self.levels else {
            return Ok(count);
        };
        if ahead.pass_repeated(1, count)? {
            return Ok(count);
        }
        levels.truncate(0);
        ahead.read_bits(count, levels)?;
        Ok(UnalignedBitChunk::new(levels.as_slice(), 0, count).count_ones())
    }

    /// What `decode` appends for the next `count` codes.
    fn decode<T>(
        &mut self,
        count: usize,
        values: &mut Vec<T>,
        decode: &mut impl FnMut(&[u32], &mut Vec<T>) -> bool,
    ) -> Result<()> {
        let mut codes = [0; STRETCH];
        for from in (0..count).step_by(STRETCH) {
            let codes = &mut codes[..STRETCH.min(count - from)];
            self.codes.read(codes)?;
            if !decode(codes, values) {
                return Err(outside());
            }
        }
        Ok(())
    }

    /// Puts what `decode` appends for the next `present` codes into the rows whose bit is set.
    fn spread<T: Copy>(
        &mut self,
        (present, levels): (usize, &[u8]),
        rows: &mut [T],
        decode: &mut impl FnMut(&[u32], &mut Vec<T>) -> bool,
    ) -> Result<()> {
        let mut found = Vec::with_capacity(present);
        self.decode(present, &mut found, decode)?;
        spread(rows, &found, levels);
        Ok(())
    }
}

/// Puts `found` into the rows whose bit is set, in order.
fn spread<T: Copy>(rows: &mut [T], mut found: &[T], bits: &[u8]) {
    let words = BitChunks::new(bits, 0, rows.len());
    let all_words = words.iter().chain([words.remainder_bits()]);
    for (mut word, rows) in all_words.zip(rows.chunks_mut(64)) {
        let mut row = 0;
        while word != 0 {
            let absent = word.trailing_zeros() as usize;
            let run = (!(word >> absent)).trailing_zeros() as usize;
            let (head, rest) = found.split_at(run);
            rows[row + absent..row + absent + run].copy_from_slice(head);
            found = rest;
            row += absent + run;
            word = word.checked_shr((absent + run) as u32).unwrap_or(0);
        }
    }
}

fn next_page(pages: &mut SerializedPageReader<ChunkBytes>, nullable: bool) -> Result<DataPage> {
    let page = pages.get_next_page().map_err(corrupt)?;
    let (levels, codes, rows) = match page.ok_or_else(ended)? {
        Page::DataPage {
            mut buf,
            num_values,
            ..
        } => {
            let levels = if nullable {
                let length = buf.split_to_checked(4)?;
                let length = length.first_chunk().map_or(0, |n| u32::from_le_bytes(*n));
                Some(buf.split_to_checked(length as usize)?)
            } else {
                None
            };
            (levels, buf, num_values)
        }
        Page::DataPageV2 {
            mut buf,
            num_values,
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => {
            buf.split_to_checked(rep_levels_byte_len as usize)?;
            let levels = buf.split_to_checked(def_levels_byte_len as usize)?;
            (nullable.then_some(levels), buf, num_values)
        }
        Page::DictionaryPage { .. } => {
            return Err(Error::corrupt("a second dictionary page in a row group"));
        }
    };
    let mut codes = codes;
    // A page of nulls may leave out even the width.
    let width = match codes.is_empty() {
        true => 0,
        false => u32::from(codes.split_to_checked(1)?[0]),
    };
    Ok(DataPage {
        levels: levels.map(|levels| Hybrid::new(levels, 1)).transpose()?,
        codes: Hybrid::new(codes, width)?,
        left: rows as usize,
    })
}

/// Splitting that refuses what is not there.
trait SplitChecked: Sized {
    fn split_to_checked(&mut self, length: usize) -> Result<Self>;
}

impl SplitChecked for Bytes {
    fn split_to_checked(&mut self, length: usize) -> Result<Self> {
        if length > self.len() {
            return Err(ended());
        }
        Ok(self.split_to(length))
    }
}

/// The values of a dictionary page, which are written plainly.
fn table(bytes: &Bytes, count: usize, stored: Type) -> Result<Table> {
    Ok(match stored {
        Type::INT32 | Type::FLOAT => {
            let (values, _) = bytes.as_chunks();
            let values = values.get(..count).ok_or_else(ended)?;
            Table::Four(
                values
                    .iter()
                    .map(|value| u32::from_le_bytes(*value))
                    .collect(),
            )
        }
        Type::INT64 | Type::DOUBLE => {
            let (values, _) = bytes.as_chunks();
            let values = values.get(..count).ok_or_else(ended)?;
            Table::Eight(
                values
                    .iter()
                    .map(|value| u64::from_le_bytes(*value))
                    .collect(),
            )
        }
        _ => Table::Text(text_table(bytes.clone(), count)?),
    })
}

/// Texts, each behind its length.
fn text_table(mut bytes: Bytes, count: usize) -> Result<ArrayRef> {
    let mut lengths = Vec::with_capacity(count.min(bytes.len() / 4));
    let mut text = Vec::with_capacity(bytes.len());
    for _ in 0..count {
        let length = bytes.split_to_checked(4)?;
        let length = length.first_chunk().map_or(0, |n| u32::from_le_bytes(*n)) as usize;
        text.extend_from_slice(&bytes.split_to_checked(length)?);
        lengths.push(length);
    }
    let offsets: OffsetBuffer<i32> = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(StringArray::try_new(offsets, text.into(), None)?))
}

fn ended() -> Error {
    Error::corrupt("a Parquet column ends before its last value")
}

fn outside() -> Error {
    Error::corrupt("a Parquet page has a code outside its dictionary")
}
