//! Records of a CSV file: fields as they mean, bytes as they stand, and the line they start on.
//!
//! `csv-core` splits; this file feeds it and keeps the original bytes for the bad-row report. Lines
//! without quotes, which lie in memory whole, are split here. A quote that is not closed, or that
//! is closed in the midst of a field, costs its line alone:
//!
//! ```text
//! 1,"x        one record whose quote is open in line 1
//! 2,y         read anew from here, once the end of the text shows that no quote follows,
//! 3,"z"       or that one which does is none that ends a field
//! ```

use std::io::{BufRead, Cursor, ErrorKind as IoErrorKind};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use tersecades_columnar::error::{Error, Result};

use super::quote::{BadQuote, QuoteFault, QuoteWalk, Quotes, pass_quotes};
use crate::source::lines::LineInput;
use crate::source::text::Next;
use crate::source::trickle::is_pause;

/// Longest record, in bytes of the file; a lost closing quote would swallow everything after it.
pub const RECORD_BYTES_LIMIT: usize = 16 << 20;

/// One record.
#[derive(Debug, Clone, Default)]
pub struct Record {
    text: Vec<u8>,
    ends: Vec<usize>,
    fields: usize,
    raw: Vec<u8>,
    /// Whether fields stand in `raw`, a delimiter between two, and not in `text`.
    is_plain: bool,
    /// Line of the file on which the record starts, from 1.
    pub line: u64,
    /// The quote that is not closed, or in the midst of a field; such a record has no fields.
    pub(super) bad_quote: Option<BadQuote>,
}

impl Record {
    /// Number of fields.
    pub fn field_count(&self) -> usize {
        self.fields
    }

    /// The unquoted bytes of field `index`.
    pub fn field(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(..self.fields)?.get(index)?;
        let start = match index {
            0 => 0,
            _ => *self.ends.get(index - 1)? + usize::from(self.is_plain),
        };
        let text = if self.is_plain { &self.raw } else { &self.text };
        text.get(start..end)
    }

    /// Every field.
    pub fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.fields).filter_map(|index| self.field(index))
    }

    /// The bytes of the record as they stand in the file, without line ends around them.
    pub fn original(&self) -> &[u8] {
        let start = self.raw.iter().take_while(|byte| is_line_end(byte)).count();
        let rest = self.raw.get(start..).unwrap_or_default();
        let tail = rest
            .iter()
            .rev()
            .take_while(|byte| is_line_end(byte))
            .count();
        rest.get(..rest.len() - tail).unwrap_or_default()
    }

    /// Becomes the line that `input` starts with, where it has a text and an end and no quotes;
    /// how many bytes that takes, none where it does not.
    fn take_line(&mut self, input: &[u8], delimiter: u8) -> usize {
        self.ends.clear();
        let mut special = memchr::memchr3_iter(delimiter, b'\n', b'"', input);
        let end = loop {
            match special.next() {
                Some(at) if input[at] == delimiter => self.ends.push(at),
                Some(at) if input[at] == b'\n' => break at,
                _ => return 0,
            }
        };
        let line = &input[..end];
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        if text.is_empty() || memchr::memchr(b'\r', text).is_some() {
            return 0;
        }
        self.ends.push(text.len());
        self.fields = self.ends.len();
        self.raw.extend_from_slice(&input[..=end]);
        self.is_plain = true;
        self.raw.len()
    }

    /// Whether any field stands in quotes, whose bytes are no text.
    pub(super) fn has_quotes(&self) -> bool {
        !self.is_plain && self.original().len() + 1 != self.text_bytes() + self.fields
    }

    /// Leaves blanks between closing quotes and the ends of their fields out of the text.
    fn drop_blanks(&mut self, delimiter: u8) {
        let mut walk = QuoteWalk::new(self, delimiter);
        let blanks = (0..self.fields).map(|index| walk.blanks_behind(index));
        let blanks: Vec<usize> = blanks.collect();
        let (mut read, mut kept) = (0, 0);
        for (end, blanks) in self.ends.iter_mut().zip(blanks) {
            let text = read..*end - blanks;
            read = *end;
            *end = kept + text.len();
            self.text.copy_within(text, kept);
            kept = *end;
        }
    }

    fn text_bytes(&self) -> usize {
        let ends = self.ends.get(..self.fields).unwrap_or_default();
        ends.last().copied().unwrap_or(0)
    }

    /// Bytes that a compact copy of this record takes, roughly.
    pub fn size_bytes(&self) -> usize {
        2 * self.raw.len() + self.fields * size_of::<usize>()
    }

    /// A copy with no spare room.
    pub fn compact(&self) -> Record {
        Record {
            text: self
                .text
                .get(..self.text_bytes())
                .unwrap_or_default()
                .to_vec(),
            ends: self.ends.get(..self.fields).unwrap_or_default().to_vec(),
            fields: self.fields,
            raw: self.raw.clone(),
            is_plain: self.is_plain,
            line: self.line,
            bad_quote: self.bad_quote,
        }
    }
}

/// Splits bytes into records.
pub struct RecordReader {
    input: LineInput,
    splitter: Box<Reader>,
    delimiter: u8,
    /// Whether the splitter has seen its first record, at which it passes over a byte order mark.
    is_started: bool,
}

impl RecordReader {
    /// Reads `input`, which has no byte order mark, by `delimiter`.
    pub fn new(input: Box<dyn BufRead + Send>, delimiter: u8) -> Self {
        RecordReader {
            input: LineInput::new(input),
            splitter: Box::new(splitter(delimiter)),
            delimiter,
            is_started: false,
        }
    }

    /// The lines that come next, at most `most` of them, to be read by another.
    pub(super) fn take_lines(&mut self, most: usize) -> Option<Self> {
        let quotes = Quotes::new(self.delimiter);
        let lines = self.input.take_lines(most, Some(quotes))?;
        let line = self.splitter.line();
        self.splitter.set_line(line + lines.ends as u64);
        let mut reader = RecordReader::new(Box::new(Cursor::new(lines.bytes)), self.delimiter);
        reader.restart(line);
        Some(reader)
    }

    /// Goes on with a record that starts on `line`, in the midst of the text.
    fn restart(&mut self, line: u64) {
        self.splitter.reset();
        // There a byte order mark is none.
        self.splitter.read_record(b"\n", &mut [], &mut []);
        self.splitter.set_line(line);
        self.is_started = true;
    }

    /// Reads the next record into `record`. Blank lines are passed over.
    ///
    /// # Errors
    /// `Io`, `Corrupt` for damaged compression, `LimitExceeded` past [`RECORD_BYTES_LIMIT`].
    pub fn read(&mut self, record: &mut Record) -> Result<Next> {
        let line = self.splitter.line();
        let mut text_bytes = 0;
        record.fields = 0;
        record.raw.clear();
        record.is_plain = false;
        record.bad_quote = None;
        let mut is_line_start = std::mem::replace(&mut self.is_started, true);
        let reached = loop {
            let input = match self.input.fill_buf() {
                Ok(input) => input,
                Err(error) if error.kind() == IoErrorKind::Interrupted => continue,
                Err(error) if is_pause(&error) => match record.raw.iter().all(is_line_end) {
                    true => return Ok(Next::Pause),
                    false => continue,
                },
                Err(error) => return Err(read_error(error).row(line)),
            };
            if std::mem::take(&mut is_line_start) {
                let read = record.take_line(input, self.delimiter);
                if read > 0 {
                    self.input.consume(read);
                    self.splitter.set_line(line + 1);
                    record.line = line;
                    return Ok(Next::Record);
                }
            }
            let text = record.text.get_mut(text_bytes..).unwrap_or_default();
            let ends = record.ends.get_mut(record.fields..).unwrap_or_default();
            let is_end = input.is_empty();
            let (result, read, written, ended) = self.splitter.read_record(input, text, ends);
            record
                .raw
                .extend_from_slice(input.get(..read).unwrap_or_default());
            self.input.consume(read);
            text_bytes += written;
            record.fields += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => grow(&mut record.text, 1024),
                ReadRecordResult::OutputEndsFull => grow(&mut record.ends, 32),
                ReadRecordResult::End => return Ok(Next::End),
                ReadRecordResult::Record if is_end => break Reached::TextEnd,
                ReadRecordResult::Record => break Reached::RecordEnd,
            }
            if record.raw.len() > RECORD_BYTES_LIMIT {
                return match self.finish(record, line, Reached::Limit) {
                    true => Ok(Next::Record),
                    false => Err(too_long(line)),
                };
            }
        };
        self.finish(record, line, reached);
        Ok(Next::Record)
    }

    /// Looks at the quotes of the record that was read from `line` on. Where one is bad, cuts the
    /// record at the end of the line with it, and what follows is read next; whether that is so.
    fn finish(&mut self, record: &mut Record, line: u64, reached: Reached) -> bool {
        let blank = record.raw.iter().take_while(|byte| is_line_end(byte));
        let start = blank.count();
        record.line = line + line_ends(&record.raw, start);
        if reached == Reached::RecordEnd && !record.has_quotes() {
            return false;
        }
        let bytes = record.raw.get(start..).unwrap_or_default();
        let (at, fault) = match (pass_quotes(bytes, self.delimiter), reached) {
            (Ok(has_blanks), _) => {
                if has_blanks {
                    record.drop_blanks(self.delimiter);
                }
                return false;
            }
            (Err((at, QuoteFault::Open)), Reached::Limit) => (at, QuoteFault::Far),
            (Err(bad), _) => bad,
        };
        let behind = bytes.get(at..).unwrap_or_default();
        let length = match (memchr::memchr2(b'\n', b'\r', behind), reached) {
            (Some(length), _) => length,
            (None, Reached::Limit) => return false,
            (None, _) => behind.len(),
        };
        let line = record.line + line_ends(bytes, at);
        let rest = record.raw.split_off(start + at + length);
        record.fields = 0;
        record.bad_quote = Some(BadQuote { line, fault });
        self.input.reread(rest);
        self.restart(line);
        true
    }
}

/// Where reading a record came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    RecordEnd,
    TextEnd,
    /// [`RECORD_BYTES_LIMIT`], in the midst of a record.
    Limit,
}

fn too_long(line: u64) -> Error {
    Error::limit(format!("a row is over {RECORD_BYTES_LIMIT} bytes long"))
        .row(line)
        .hint("an opening quote may lack its closing one")
}

fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Line ends among the first `end` of `bytes`.
fn line_ends(bytes: &[u8], end: usize) -> u64 {
    let bytes = bytes.get(..end).unwrap_or_default();
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// What splits records by `delimiter`.
pub(super) fn splitter(delimiter: u8) -> Reader {
    ReaderBuilder::new().delimiter(delimiter).build()
}

fn grow<T: Default + Clone>(buffer: &mut Vec<T>, least: usize) {
    buffer.resize((buffer.len() * 2).max(least), T::default());
}

/// An input error; what a damaged or cut gzip or zstd stream reports is `Corrupt`.
pub fn read_error(error: std::io::Error) -> Error {
    match error.kind() {
        IoErrorKind::UnexpectedEof | IoErrorKind::InvalidData | IoErrorKind::InvalidInput => {
            Error::corrupt(format!("compressed text is damaged or cut short: {error}"))
        }
        IoErrorKind::Other => Error::corrupt(format!("text cannot be unpacked: {error}")),
        _ => Error::from(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::next_random;
    use std::io::BufReader;

    fn records(text: &[u8], delimiter: u8) -> Vec<(u64, Vec<String>, String)> {
        records_by(3, text, delimiter)
    }

    /// The records of a text of which so many bytes are in memory at once.
    fn records_by(
        buffer_bytes: usize,
        text: &[u8],
        delimiter: u8,
    ) -> Vec<(u64, Vec<String>, String)> {
        let input = BufReader::with_capacity(buffer_bytes, Cursor::new(text.to_vec()));
        let mut reader = RecordReader::new(Box::new(input), delimiter);
        let (mut record, mut all) = (Record::default(), Vec::new());
        while reader.read(&mut record).unwrap() == Next::Record {
            let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let fields = record.fields().map(show).collect();
            all.push((record.line, fields, show(record.original())));
            assert_eq!(record.compact().fields().count(), record.field_count());
        }
        all
    }

    #[test]
    fn lines_and_originals_survive_quotes_and_line_ends() {
        let text = b"a,b\r\n1,\"x,\r\ny\"\r\n\r\n\n2,\"he said \"\"no\"\"\"\n3,";
        let all = records(text, b',');
        let row = |line, fields: [&str; 2], original: &str| {
            (
                line,
                fields.map(String::from).to_vec(),
                original.to_string(),
            )
        };
        assert_eq!(
            all,
            vec![
                row(1, ["a", "b"], "a,b"),
                row(2, ["1", "x,\r\ny"], "1,\"x,\r\ny\""),
                row(6, ["2", "he said \"no\""], "2,\"he said \"\"no\"\"\""),
                row(7, ["3", ""], "3,"),
            ]
        );
    }

    #[test]
    fn a_quote_that_is_not_closed_costs_its_line_alone() {
        for line_end in ["\n", "\r\n"] {
            let lines = ["a,b", "", "1,\"x", "y\",\"z", "2,\"\"", "", "3,u", ""];
            let all = records(lines.join(line_end).as_bytes(), b',');
            let original = format!("1,\"x{line_end}y\",\"z");
            let shown: Vec<_> = all
                .iter()
                .map(|(line, fields, original)| (*line, fields.len(), original.as_str()))
                .collect();
            let expected = [
                (1, 2, "a,b"),
                (3, 0, &original),
                (5, 2, "2,\"\""),
                (7, 2, "3,u"),
            ];
            assert_eq!(shown, expected);
        }
        let mut reader = RecordReader::new(Box::new(Cursor::new(b"1,\"x\ny\",\"z\n")), b',');
        let mut record = Record::default();
        assert_eq!(reader.read(&mut record).unwrap(), Next::Record);
        let (line, fault) = (2, QuoteFault::Open);
        assert_eq!(
            (record.line, record.bad_quote),
            (1, Some(BadQuote { line, fault }))
        );
        assert_eq!(record.compact().bad_quote, record.bad_quote);
        assert_eq!(reader.read(&mut record).unwrap(), Next::End);
    }

    #[test]
    fn blanks_behind_closing_quotes_are_no_text() {
        let all = records(b"\"a\" ,b ,\"\"\t,\"c \"\r\n\"d\",\" e\" \n", b',');
        let fields: Vec<&[String]> = all.iter().map(|(_, fields, _)| &fields[..]).collect();
        assert_eq!(fields, [&["a", "b ", "", "c "][..], &["d", " e"]]);
        assert_eq!(all[1].2, "\"d\",\" e\" ");
    }

    #[test]
    fn lines_in_memory_whole_are_split_as_others() {
        let mut state = 3u64;
        let mut below = |bound: usize| next_random(&mut state) % bound;
        let parts: [&[u8]; 9] = [
            b"a", b"bc ", b",", b",", b"\n", b"\n", b"\r\n", b"\r", b"\"",
        ];
        for case in 0..20_000 {
            // Quotes and carriage returns are rare in every other text.
            let kinds = if case % 2 == 0 { parts.len() } else { 6 };
            let text: Vec<u8> = (0..below(60))
                .flat_map(|_| match below(40) {
                    0 => parts[below(parts.len())],
                    _ => parts[below(kinds)],
                })
                .copied()
                .collect();
            // No line with a text is in memory whole where that is a byte long.
            let wanted = records_by(1, &text, b',');
            let shown = String::from_utf8_lossy(&text);
            for buffer_bytes in [2, 5, 16, 1_024] {
                let found = records_by(buffer_bytes, &text, b',');
                assert_eq!(found, wanted, "{shown:?} by {buffer_bytes}");
            }
        }
    }

    #[test]
    fn empty_input_has_no_records() {
        assert!(records(b"", b',').is_empty());
        assert!(records(b"\n\r\n\n", b',').is_empty());
    }

    #[test]
    fn a_lost_quote_hits_the_limit() {
        let mut text = b"a,b\n1,\"open".to_vec();
        text.resize(RECORD_BYTES_LIMIT + (1 << 20), b'x');
        let mut reader = RecordReader::new(Box::new(BufReader::new(Cursor::new(text))), b',');
        let mut record = Record::default();
        assert_eq!(reader.read(&mut record).unwrap(), Next::Record);
        let error = reader.read(&mut record).unwrap_err();
        assert_eq!(error.context().row, Some(2));
        assert!(error.hint_text().unwrap().contains("quote"));
    }

    #[test]
    fn a_lost_quote_with_lines_behind_it_costs_its_line_alone_at_the_limit() {
        let mut text = b"a,b\n1,\"open\n".to_vec();
        while text.len() < RECORD_BYTES_LIMIT + (1 << 20) {
            text.extend_from_slice(b"22222222,3333333\n");
        }
        let lines = memchr::memchr_iter(b'\n', &text).count() as u64;
        let mut reader = RecordReader::new(Box::new(BufReader::new(Cursor::new(text))), b',');
        let (mut record, mut last) = (Record::default(), 0);
        while reader.read(&mut record).unwrap() == Next::Record {
            let quote = record.bad_quote.map(|quote| (quote.line, quote.fault));
            assert_eq!(quote, (record.line == 2).then_some((2, QuoteFault::Far)));
            assert_eq!(record.line, last + 1);
            last = record.line;
        }
        assert_eq!(last, lines);
    }
}
