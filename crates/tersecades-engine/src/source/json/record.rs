//! Records of a JSON file: the lines of JSON lines, the elements of an array or a sequence.
//!
//! ```text
//! lines:     {"a":1}\n{"a":2}\n              a broken line is one bad row
//! elements:  [{"a":1}, {"a":2}]   or   {"a":1} {"a":2}   brackets tell where one ends
//! ```

use std::io::{BufRead, Cursor, ErrorKind as IoErrorKind};

use tersecades_columnar::error::{Error, Result};

use crate::source::csv::record::{RECORD_BYTES_LIMIT, read_error};
use crate::source::lines::LineInput;
use crate::source::text::Next;
use crate::source::trickle::is_pause;

/// How records stand in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// One on each line.
    Lines,
    /// As elements of one array, or one after the other.
    Elements,
}

/// One record.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Its bytes, without line ends and commas around it.
    pub(super) text: Vec<u8>,
    /// Line on which it starts, from 1.
    pub(super) line: u64,
}

/// Where the reader stands between two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// Between records that no array holds.
    Sequence,
    /// Behind `[`.
    First,
    /// Behind an element of an array.
    Behind,
    /// Behind a comma.
    Comma,
    /// Behind `]`.
    End,
}

/// Splits text into records.
pub(super) struct RecordReader {
    input: LineInput,
    framing: Framing,
    place: Place,
    line: u64,
}

impl RecordReader {
    /// Records of `input`.
    pub(super) fn new(input: Box<dyn BufRead + Send>, framing: Framing) -> Self {
        RecordReader {
            input: LineInput::new(input),
            framing,
            place: Place::Start,
            line: 1,
        }
    }

    /// The lines that come next, at most `most` of them, to be read by another.
    pub(super) fn take_lines(&mut self, most: usize) -> Option<Self> {
        if self.framing != Framing::Lines {
            return None;
        }
        let lines = self.input.take_lines(most, None)?;
        let line = self.line;
        self.line += lines.ends as u64;
        let input = LineInput::new(Box::new(Cursor::new(lines.bytes)));
        Some(RecordReader {
            input,
            line,
            ..*self
        })
    }

    /// Reads the next record into `record`. Blank lines are passed over.
    ///
    /// # Errors
    /// `Io`, `Corrupt` for damaged compression and for arrays that are cut or lack commas,
    /// `LimitExceeded` past [`RECORD_BYTES_LIMIT`].
    pub(super) fn read(&mut self, record: &mut Record) -> Result<Next> {
        match self.framing {
            Framing::Lines => self.read_line(record),
            Framing::Elements => self.read_element(record),
        }
    }

    fn read_line(&mut self, record: &mut Record) -> Result<Next> {
        loop {
            record.text.clear();
            record.line = self.line;
            let mut is_whole = false;
            while !is_whole {
                let input = match fill(&mut self.input, self.line)? {
                    Some([]) => break,
                    Some(input) => input,
                    None if record.text.is_empty() => return Ok(Next::Pause),
                    None => continue,
                };
                let end = memchr::memchr(b'\n', input);
                let (length, read) = end.map_or((input.len(), input.len()), |at| (at, at + 1));
                record
                    .text
                    .extend_from_slice(input.get(..length).unwrap_or_default());
                is_whole = end.is_some();
                self.input.consume(read);
                check_size(record)?;
            }
            self.line += u64::from(is_whole);
            if record.text.last() == Some(&b'\r') {
                record.text.pop();
            }
            if !record.text.trim_ascii().is_empty() {
                return Ok(Next::Record);
            }
            if !is_whole {
                return Ok(Next::End);
            }
        }
    }

    fn read_element(&mut self, record: &mut Record) -> Result<Next> {
        record.text.clear();
        loop {
            let byte = match fill(&mut self.input, self.line)? {
                None => return Ok(Next::Pause),
                Some(input) => input.first().copied(),
            };
            let Some(byte) = byte else {
                return match self.place {
                    Place::Start | Place::Sequence | Place::End => Ok(Next::End),
                    _ => Err(self.corrupt("the array is not closed")),
                };
            };
            match (byte, self.place) {
                (b' ' | b'\t' | b'\r' | b'\n', _) => self.step(byte),
                (b'[', Place::Start) => self.enter(Place::First),
                (b',', Place::Behind) => self.enter(Place::Comma),
                (b']', Place::First | Place::Behind) => self.enter(Place::End),
                (_, Place::Behind) => return Err(self.corrupt("a comma is missing")),
                (_, Place::End) => return Err(self.corrupt("the array ended before")),
                (b',' | b']', _) => return Err(self.corrupt("an element is missing")),
                _ => break,
            }
        }
        record.line = self.line;
        self.take_element(record)?;
        self.place = match self.place {
            Place::Start | Place::Sequence => Place::Sequence,
            _ => Place::Behind,
        };
        Ok(Next::Record)
    }

    fn enter(&mut self, place: Place) {
        self.place = place;
        self.input.consume(1);
    }

    fn step(&mut self, byte: u8) {
        self.line += u64::from(byte == b'\n');
        self.input.consume(1);
    }

    /// Takes bytes up to the bracket that closes the first one, or, for what opens none, up to
    /// the next comma, bracket or line end.
    fn take_element(&mut self, record: &mut Record) -> Result<()> {
        let (mut depth, mut in_text, mut is_escaped) = (0_u32, false, false);
        loop {
            let Some(input) = fill(&mut self.input, record.line)? else {
                continue;
            };
            if input.is_empty() {
                return match depth == 0 && !in_text {
                    true => Ok(()),
                    false => Err(self.corrupt("the text ends within an element")),
                };
            }
            let (mut taken, mut is_end) = (0, false);
            for &byte in input {
                if depth == 0 && !in_text && matches!(byte, b',' | b']' | b'}' | b'\n') {
                    is_end = true;
                    // A stray brace is part of what it ends, else it would be met for ever.
                    taken += usize::from(byte == b'}');
                    break;
                }
                taken += 1;
                self.line += u64::from(byte == b'\n');
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if in_text => is_escaped = true,
                    b'"' => in_text = !in_text,
                    b'{' | b'[' if !in_text => depth += 1,
                    b'}' | b']' if !in_text => {
                        depth = depth.saturating_sub(1);
                        is_end = depth == 0;
                    }
                    _ => {}
                }
                if is_end {
                    break;
                }
            }
            record
                .text
                .extend_from_slice(input.get(..taken).unwrap_or_default());
            self.input.consume(taken);
            check_size(record)?;
            if is_end {
                return Ok(());
            }
        }
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(format!("{what}: this is no array of JSON objects"))
            .row(self.line)
            .hint("the file may be cut; JSON lines have the suffix .jsonl")
    }
}

/// What the buffer of `input` holds, filled if it was empty; `None` in a pause.
fn fill(input: &mut LineInput, line: u64) -> Result<Option<&[u8]>> {
    // The loop cannot hand out the borrow of its own call, so the buffer is asked for twice.
    loop {
        match input.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == IoErrorKind::Interrupted => {}
            Err(error) if is_pause(&error) => return Ok(None),
            Err(error) => return Err(read_error(error).row(line)),
        }
    }
    let held = input.fill_buf();
    held.map(Some).map_err(|error| read_error(error).row(line))
}

fn check_size(record: &Record) -> Result<()> {
    match record.text.len() > RECORD_BYTES_LIMIT {
        false => Ok(()),
        true => Err(
            Error::limit(format!("a row is over {RECORD_BYTES_LIMIT} bytes long"))
                .row(record.line)
                .hint("a quote or bracket may lack its closing one"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    fn records(text: &str, framing: Framing) -> Result<Vec<(u64, String)>> {
        let input = BufReader::with_capacity(3, Cursor::new(text.to_owned().into_bytes()));
        let mut reader = RecordReader::new(Box::new(input), framing);
        let (mut record, mut all) = (Record::default(), Vec::new());
        while reader.read(&mut record)? == Next::Record {
            all.push((
                record.line,
                String::from_utf8_lossy(&record.text).into_owned(),
            ));
        }
        let behind = reader.read(&mut record)?;
        assert_eq!(behind, Next::End, "the end stays the end");
        Ok(all)
    }

    #[test]
    fn lines_are_counted_and_blank_ones_passed_over() {
        let found = records("{\"a\":1}\r\n\n  \n{\"a\":\n2}", Framing::Lines).unwrap();
        let expected = [(1, "{\"a\":1}"), (4, "{\"a\":"), (5, "2}")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
        assert!(records("", Framing::Lines).unwrap().is_empty());
    }

    #[test]
    fn elements_of_arrays_and_sequences_are_found() {
        let one = "{\"a\":\"}]\\\"\",\n\"b\":[1,{}]}";
        let array = format!(" [\n{one} , {one}\n]\n");
        let found = records(&array, Framing::Elements).unwrap();
        assert_eq!(found, [(2, one.to_owned()), (3, one.to_owned())]);
        let found = records(&format!("{one}{one}\n{one}"), Framing::Elements).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(
            records("[1,null , {} ]", Framing::Elements).unwrap().len(),
            3
        );
        assert!(records("[ ]", Framing::Elements).unwrap().is_empty());
    }

    #[test]
    fn broken_arrays_are_corrupt() {
        for text in [
            "[",
            "[{}",
            "[{},",
            "[{},]",
            "[{} {}]",
            "[{}] {}",
            "[{\"a\":1",
            "{\"a\"",
            "]",
            ",",
        ] {
            let error = records(text, Framing::Elements).unwrap_err();
            assert!(error.hint_text().is_some(), "{text}: {error}");
        }
        assert_eq!(records("}}", Framing::Elements).unwrap().len(), 2);
    }
}
