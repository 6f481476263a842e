//! Which fields of a record stand in quotes, and which quotes are bad; the splitter gives the text
//! of fields alone, and takes text behind a closing quote for more of it:
//!
//! ```text
//! 1,"foo      opens a quote that nobody closes
//! 2,"bar"     closes it, and has text behind it where a delimiter would be
//! ```

use super::record::{RECORD_BYTES_LIMIT, Record};

/// What is wrong with a quote that opens a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteFault {
    /// None closes it before the text ends.
    Open,
    /// None closes it before the record is too long.
    Far,
    /// Text stands between the one that closes it and the end of the field.
    TextBehind,
}

/// A quote that makes its record a bad row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadQuote {
    /// Line of the file in which it opens a field.
    pub(super) line: u64,
    /// What is wrong with it.
    pub(super) fault: QuoteFault,
}

impl BadQuote {
    /// What is wrong with its record.
    pub(super) fn reason(&self) -> String {
        let line = self.line;
        match self.fault {
            QuoteFault::Open => format!("the quote that opens in line {line} is not closed"),
            QuoteFault::Far => format!(
                "the quote that opens in line {line} is not closed within {RECORD_BYTES_LIMIT} \
                 bytes"
            ),
            QuoteFault::TextBehind => format!(
                "the field in quotes that starts in line {line} has text behind its closing quote"
            ),
        }
    }

    /// What to do about it.
    pub(super) fn hint(&self) -> &'static str {
        match self.fault {
            QuoteFault::Open | QuoteFault::Far => {
                "close it, double it if it belongs to the text, or skip bad rows"
            }
            QuoteFault::TextBehind => "double quotes that belong to the text, or skip bad rows",
        }
    }
}

/// Fields in quotes, in which a line end ends no line; `csv-core` reads them so.
pub(in crate::source) struct Quotes {
    delimiter: u8,
    is_open: bool,
    /// Where the field in quotes starts that was seen last.
    opened_at: usize,
    /// Where a quote closed it, which a quote right behind it opens again: it is doubled.
    closed_at: Option<usize>,
    /// Whether blanks stand between a closing quote and the end of its field.
    has_blanks: bool,
}

impl Quotes {
    /// Those of fields between `delimiter`s.
    pub(super) fn new(delimiter: u8) -> Self {
        Quotes {
            delimiter,
            is_open: false,
            opened_at: 0,
            closed_at: None,
            has_blanks: false,
        }
    }

    /// Passes over the quote or line end at `at` of `bytes`, which start with a line; whether a
    /// record ends there. A quote opens a field where it is the first byte of it, and means itself
    /// elsewhere outside of quotes.
    ///
    /// # Errors
    /// The place of a quote that opened a field with text behind its closing quote; those behind
    /// the line of that one are to be passed over anew.
    pub(in crate::source) fn pass(&mut self, bytes: &[u8], at: usize) -> Result<bool, usize> {
        let is_quote = bytes[at] == b'"';
        if self.is_open {
            if is_quote {
                self.is_open = false;
                self.closed_at = Some(at);
            }
            return Ok(false);
        }
        if is_quote && self.closed_at.is_some_and(|closed| closed + 1 == at) {
            self.is_open = true;
            self.closed_at = None;
            return Ok(false);
        }
        self.end_field(bytes)?;
        if !is_quote {
            return Ok(true);
        }
        self.is_open = match at.checked_sub(1) {
            Some(before) => [self.delimiter, b'\n', b'\r'].contains(&bytes[before]),
            None => true,
        };
        if self.is_open {
            self.opened_at = at;
        }
        Ok(false)
    }

    /// Looks at what stands between the closing quote that was passed last and the end of its
    /// field, which lies in `bytes` or is their end.
    fn end_field(&mut self, bytes: &[u8]) -> Result<(), usize> {
        let Some(closed) = self.closed_at.take() else {
            return Ok(());
        };
        let behind = &bytes[closed + 1..];
        let is_text = |byte: &u8| *byte == self.delimiter || !is_blank(byte);
        let blanks = behind.iter().position(is_text).unwrap_or(behind.len());
        self.has_blanks |= blanks > 0;
        match behind.get(blanks) {
            None | Some(b'\n' | b'\r') => Ok(()),
            Some(end) if *end == self.delimiter => Ok(()),
            Some(_) => Err(self.opened_at),
        }
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Passes over the quotes in `bytes`, which are those of one record; whether blanks stand behind
/// closing ones.
///
/// # Errors
/// The place of the first one that is bad, and what is wrong with it.
pub(super) fn pass_quotes(bytes: &[u8], delimiter: u8) -> Result<bool, (usize, QuoteFault)> {
    let mut quotes = Quotes::new(delimiter);
    let text_behind = |at| (at, QuoteFault::TextBehind);
    for at in memchr::memchr_iter(b'"', bytes) {
        quotes.pass(bytes, at).map_err(text_behind)?;
    }
    quotes.end_field(bytes).map_err(text_behind)?;
    match quotes.is_open {
        true => Err((quotes.opened_at, QuoteFault::Open)),
        false => Ok(quotes.has_blanks),
    }
}

/// Walks the fields of one record from the first on, as far as it is asked.
pub(super) struct QuoteWalk<'a> {
    record: &'a Record,
    delimiter: u8,
    /// The field that the walk has come to.
    field: usize,
    /// Where it starts in the original bytes.
    start: usize,
}

impl<'a> QuoteWalk<'a> {
    /// Starts before the first field.
    pub(super) fn new(record: &'a Record, delimiter: u8) -> Self {
        QuoteWalk {
            record,
            delimiter,
            field: 0,
            start: 0,
        }
    }

    /// Whether field `index` stands in quotes; no `index` may be below an earlier one.
    pub(super) fn is_quoted(&mut self, index: usize) -> bool {
        if !self.record.has_quotes() {
            return false;
        }
        let original = self.record.original();
        while self.field < index {
            let Some(end) = field_end(original, self.start, self.delimiter) else {
                return false;
            };
            self.start = end + 1;
            self.field += 1;
        }
        original.get(self.start) == Some(&b'"')
    }

    /// How many blanks stand between the closing quote of field `index` and its end, of one that
    /// stands in quotes; no `index` may be below an earlier one.
    pub(super) fn blanks_behind(&mut self, index: usize) -> usize {
        if !self.is_quoted(index) {
            return 0;
        }
        let original = self.record.original();
        let end = field_end(original, self.start, self.delimiter).unwrap_or(original.len());
        let blanks = original[self.start..end]
            .iter()
            .rev()
            .take_while(|byte| is_blank(byte));
        blanks.count()
    }
}

/// The end of the field that starts at `start`: its delimiter, or the end of `bytes`; `None` if
/// its quote is not closed.
fn field_end(bytes: &[u8], start: usize, delimiter: u8) -> Option<usize> {
    let find = |byte, from| memchr::memchr(byte, bytes.get(from..)?).map(|found| from + found);
    let mut at = start;
    if bytes.get(at) == Some(&b'"') {
        at = find(b'"', at + 1)? + 1;
        while bytes.get(at) == Some(&b'"') {
            at = find(b'"', at + 1)? + 1;
        }
    }
    Some(find(delimiter, at).unwrap_or(bytes.len()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::super::CsvOptions;
    use super::super::record::RecordReader;
    use super::super::tests::{csv, read, read_all, read_error, source, texts};
    use super::*;
    use crate::source::text::Next;
    use crate::source::{OnError, Source as _, SourceOptions};

    #[test]
    fn quotes_that_are_not_closed_are_found() {
        for (text, quote) in [
            ("", None),
            ("a,\"b\"", None),
            ("a,\"\"\"\",\"\"", None),
            ("a\",b", None),
            ("\"", Some(0)),
            ("a,\"b\"\"", Some(2)),
            ("\"x,\ny\",\"z\n1,2\n", Some(7)),
        ] {
            let found = pass_quotes(text.as_bytes(), b',');
            let wanted = quote.map_or(Ok(false), |at| Err((at, QuoteFault::Open)));
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn text_behind_closing_quotes_is_found_and_blanks_are_none() {
        let behind = |at| Err((at, QuoteFault::TextBehind));
        for (text, found) in [
            ("1,\"foo\n2,bar\n3,\"baz\"\n", behind(2)),
            ("\"a\"b", behind(0)),
            ("a,\"b\" \"c\"", behind(2)),
            ("\"x\ny\",\"a\"\t\"\"\r\n", behind(6)),
            ("\"a\" ,b", Ok(true)),
            ("\"a\",\"b\"\t \r\n", Ok(true)),
            ("\"a\"\"\",b \"c\"\n", Ok(false)),
        ] {
            assert_eq!(pass_quotes(text.as_bytes(), b','), found, "{text:?}");
        }
        assert_eq!(pass_quotes(b"\"a\"\t\"b\" \t", b'\t'), Ok(true));
    }

    #[test]
    fn quoted_fields_are_told_apart() {
        for (text, quoted) in [
            ("a,b", vec![false, false]),
            ("\r\n\"\",,\"\"\r\n", vec![true, false, true]),
            ("a\"b,\"x,\"\"y\"\",\n\",c", vec![false, true, false]),
            ("\"\"\"\",\"a\" ,,\"c\"", vec![true, true, false, true]),
            (" \"a\",b", vec![false, false]),
            ("\"\r\n\"", vec![true]),
        ] {
            let input = Box::new(Cursor::new(text.as_bytes()));
            let mut record = Record::default();
            let found = RecordReader::new(input, b',').read(&mut record).unwrap();
            assert_eq!(found, Next::Record);
            let mut walk = QuoteWalk::new(&record, b',');
            let found: Vec<bool> = (0..record.field_count())
                .map(|index| walk.is_quoted(index))
                .collect();
            assert_eq!(found, quoted, "{text}");
            let last = QuoteWalk::new(&record, b',').is_quoted(quoted.len() - 1);
            assert_eq!(last, quoted[quoted.len() - 1], "{text}");
        }
    }

    #[test]
    fn a_field_in_quotes_is_null_only_where_it_cannot_be_text() {
        let text = "n,t,u\n1,\"NA\",NA\n\"NA\",\"\",\"x\"\n\"2\",-,\"-\"\n";
        let batch = read(text, CsvOptions::default());
        let numbers: Vec<_> = batch.column(0).as_primitive::<Int64Type>().iter().collect();
        assert_eq!(numbers, [Some(1), None, Some(2)]);
        assert_eq!(texts(&batch, 1), [Some("NA".into()), Some("".into()), None]);
        assert_eq!(texts(&batch, 2), [None, Some("x".into()), Some("-".into())]);
        let columns = Some(vec!["u".to_string()]);
        let options = SourceOptions {
            columns,
            ..Default::default()
        };
        let batches = read_all(&mut source(text.as_bytes(), &options).unwrap()).unwrap();
        assert_eq!(texts(&batches[0], 0), texts(&batch, 2));
    }

    #[test]
    fn a_quote_that_is_not_closed_makes_its_line_a_bad_row() {
        for infer_rows in [1, 100] {
            let mut options = SourceOptions {
                csv: csv(|csv| csv.infer_rows = infer_rows),
                ..Default::default()
            };
            let read = source(b"n,t\n1,a\n2,\"b\n3,c\n", &options);
            let error = read_all(&mut read.unwrap()).unwrap_err();
            assert_eq!(error.context().row, Some(3));
            assert!(error.message().contains("line 3 is not closed"), "{error}");
            assert!(error.hint_text().unwrap().contains("close it"));
            options.on_error = OnError::Skip;
            let mut source = source(b"n,t\n1,a\n2,\"b\n3,c\n4,\"\"\n", &options).unwrap();
            let batches = read_all(&mut source).unwrap();
            let numbers: Vec<_> = batches[0]
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec();
            assert_eq!(numbers, [1, 3, 4]);
            let rejected = source.rejected();
            assert_eq!((rejected.count_rows, rejected.kept.len()), (1, 1));
            assert_eq!(rejected.kept[0].original, b"2,\"b");
            assert_eq!(rejected.kept[0].line, 3);
        }
        let error = read_error("n,\"t\n1,a\n", CsvOptions::default());
        assert_eq!(error.context().row, Some(1));
        assert!(error.message().contains("not closed"), "{error}");
    }

    #[test]
    fn text_behind_a_closing_quote_makes_a_bad_row_that_costs_no_other_lines() {
        let text = b"id,name\n1,\"foo\n2,bar\n3,\"baz\"\n4,\"qu\"x\n5,\"a\" \n";
        let mut options = SourceOptions::default();
        let error = read_all(&mut source(text, &options).unwrap()).unwrap_err();
        assert_eq!(error.context().row, Some(2));
        assert!(error.message().contains("starts in line 2"), "{error}");
        assert!(error.hint_text().unwrap().contains("double quotes"));
        options.on_error = OnError::Skip;
        let mut source = source(text, &options).unwrap();
        let batches = read_all(&mut source).unwrap();
        let names = ["bar", "baz", "a"].map(|name| Some(name.to_owned()));
        assert_eq!(texts(&batches[0], 1), names);
        let kept = source.rejected().kept.iter();
        let kept: Vec<_> = kept.map(|row| (row.line, row.original.clone())).collect();
        assert_eq!(kept, [(2, b"1,\"foo".to_vec()), (5, b"4,\"qu\"x".to_vec())]);
    }
}
