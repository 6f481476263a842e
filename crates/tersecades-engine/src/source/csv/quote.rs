//! Which fields of a record stand in quotes, and which quote is not closed; the splitter gives the
//! text of fields alone.

use super::record::Record;

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
}

/// Where the quote stands that is not closed in `bytes`, which are those of one record.
pub(super) fn open_quote(bytes: &[u8], delimiter: u8) -> Option<usize> {
    let mut start = 0;
    while start < bytes.len() {
        match field_end(bytes, start, delimiter) {
            Some(end) => start = end + 1,
            None => return Some(start),
        }
    }
    None
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
            assert_eq!(open_quote(text.as_bytes(), b','), quote, "{text}");
        }
    }

    #[test]
    fn quoted_fields_are_told_apart() {
        for (text, quoted) in [
            ("a,b", vec![false, false]),
            ("\r\n\"\",,\"\"\r\n", vec![true, false, true]),
            ("a\"b,\"x,\"\"y\"\",\n\",c", vec![false, true, false]),
            ("\"\"\"\",\"a\"b,,\"c\"", vec![true, true, false, true]),
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
}
