//! Which fields of a record stand in quotes; the splitter gives their text alone.

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

    use super::super::record::RecordReader;
    use super::*;

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
            assert!(RecordReader::new(input, b',').read(&mut record).unwrap());
            let mut walk = QuoteWalk::new(&record, b',');
            let found: Vec<bool> = (0..record.field_count())
                .map(|index| walk.is_quoted(index))
                .collect();
            assert_eq!(found, quoted, "{text}");
            let last = QuoteWalk::new(&record, b',').is_quoted(quoted.len() - 1);
            assert_eq!(last, quoted[quoted.len() - 1], "{text}");
        }
    }
}
