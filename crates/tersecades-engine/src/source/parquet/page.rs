//! The pages of a column of dictionary codes: which rows have a value, and their codes.

use arrow_buffer::BooleanBufferBuilder;
use arrow_buffer::bit_chunk_iterator::{BitChunks, UnalignedBitChunk};
use bytes::Bytes;
use parquet::column::page::{Page, PageReader};
use tersecades_columnar::error::{Error, Result};

use super::corrupt;
use super::hybrid::Hybrid;

/// Codes unpacked at a time.
pub(super) const STRETCH: usize = 1024;

/// The page being read.
pub(super) struct DataPage {
    /// 1 for a value, 0 for null; `None` in columns without nulls.
    levels: Option<Hybrid>,
    pub(super) codes: Hybrid,
    /// Rows that are ahead.
    pub(super) left: usize,
}

/// The data pages of a column.
pub(super) struct DataPages<R> {
    reader: R,
    nullable: bool,
    page: Option<DataPage>,
}

impl<R: PageReader> DataPages<R> {
    /// Those of `reader`, with levels if values may be null.
    pub(super) fn new(reader: R, nullable: bool) -> Self {
        DataPages {
            reader,
            nullable,
            page: None,
        }
    }

    /// The page being read, or the next one that has rows.
    pub(super) fn at_hand(&mut self) -> Result<&mut DataPage> {
        while self.page.as_ref().is_none_or(|page| page.left == 0) {
            self.page = Some(next_page(&mut self.reader, self.nullable)?);
        }
        self.page.as_mut().ok_or_else(ended)
    }

    /// The next codes, of rows that all have a value; `levels` is memory for which do.
    pub(super) fn read_codes(
        &mut self,
        mut out: &mut [u32],
        levels: &mut BooleanBufferBuilder,
    ) -> Result<()> {
        while !out.is_empty() {
            let page = self.at_hand()?;
            let (here, rest) = out.split_at_mut(page.left.min(out.len()));
            if page.present(here.len(), levels)? < here.len() {
                return Err(Error::corrupt("a page has nulls that the footer denies"));
            }
            page.codes.read(here)?;
            page.left -= here.len();
            out = rest;
        }
        Ok(())
    }
}

impl DataPage {
    /// How many of the next `count` rows have a value; `levels` says which if not all have.
    pub(super) fn present(
        &mut self,
        count: usize,
        levels: &mut BooleanBufferBuilder,
    ) -> Result<usize> {
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
    pub(super) fn decode<T>(
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
    pub(super) fn spread<T: Copy>(
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

fn next_page(pages: &mut impl PageReader, nullable: bool) -> Result<DataPage> {
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
pub(super) trait SplitChecked: Sized {
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

pub(super) fn ended() -> Error {
    Error::corrupt("a Parquet column ends before its last value")
}

pub(super) fn outside() -> Error {
    Error::corrupt("a Parquet page has a code outside its dictionary")
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;
    use parquet::column::page::PageMetadata;
    use parquet::errors::Result as ParquetResult;

    use super::*;

    struct Pages(std::vec::IntoIter<Page>);

    impl Iterator for Pages {
        type Item = ParquetResult<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.0.next().map(Ok)
        }
    }

    impl PageReader for Pages {
        fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
            Ok(self.0.next())
        }

        fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> ParquetResult<()> {
            self.0.next();
            Ok(())
        }
    }

    fn data_page(levels: &[u8], codes: &[u8], num_values: u32) -> Page {
        let mut buf = (levels.len() as u32).to_le_bytes().to_vec();
        buf.extend_from_slice(levels);
        buf.extend_from_slice(codes);
        Page::DataPage {
            buf: buf.into(),
            num_values,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn pages_without_rows_are_passed_over() {
        // Three values, all there: a run of ones; and of the code 1, one bit wide.
        let (levels, codes) = ([6, 1], [1, 6, 1]);
        let empty = || data_page(&[], &[], 0);
        let pages = vec![empty(), empty(), data_page(&levels, &codes, 3), empty()];
        let mut pages = DataPages::new(Pages(pages.into_iter()), true);
        let found = pages.at_hand().unwrap();
        assert_eq!(found.left, 3);
        let mut bits = BooleanBufferBuilder::new(0);
        assert_eq!(found.present(3, &mut bits).unwrap(), 3);
        found.left = 0;
        let end = pages.at_hand().map(|_| ());
        assert!(end.is_err_and(|error| error.message().contains("ends before")));
    }
}
