//! Lines that are taken out for other threads, and those between them.

use std::io::{BufReader, Cursor};

use super::super::record::{Record, RecordReader};
use crate::source::tests::next_random;
use crate::source::text::Next;

/// Line, fields and bytes of a record, and whether a quote of it is bad.
type Shown = (u64, Vec<Vec<u8>>, Vec<u8>, bool);

fn next(reader: &mut RecordReader) -> Option<Shown> {
    let mut record = Record::default();
    let found = reader.read(&mut record).unwrap() == Next::Record;
    found.then(|| {
        let fields = record.fields().map(<[u8]>::to_vec).collect();
        let original = record.original().to_vec();
        (record.line, fields, original, record.bad_quote.is_some())
    })
}

#[test]
fn lines_that_are_taken_hold_the_same_records() {
    let mut state = 11u64;
    let mut below = |bound: usize| next_random(&mut state) % bound;
    let parts: [&[u8]; 10] = [
        b"a", b"bc", b";", b";", b"\n", b"\n", b"\r\n", b"\r", b"\"", b"\"\"",
    ];
    let mut taken_records = 0;
    for case in 0..20_000 {
        let mut text: Vec<u8> = (0..below(80))
            .flat_map(|_| match below(4) {
                0 => b";\"x\n\"",
                _ => parts[below(parts.len())],
            })
            .copied()
            .collect();
        if case % 2 == 0 {
            text.push(b'\n');
        }
        let open = |buffer_bytes: usize| {
            let input = BufReader::with_capacity(buffer_bytes, Cursor::new(text.clone()));
            RecordReader::new(Box::new(input), b';')
        };
        let mut whole = open(1_024);
        let wanted: Vec<Shown> = std::iter::from_fn(|| next(&mut whole)).collect();
        let mut reader = open([1, 2, 5, 1_024][below(4)]);
        let mut found = Vec::new();
        loop {
            if below(3) > 0
                && let Some(mut taken) = reader.take_lines(1 + below(4))
            {
                let before = found.len();
                found.extend(std::iter::from_fn(|| next(&mut taken)));
                taken_records += found.len() - before;
            }
            match next(&mut reader) {
                Some(record) => found.push(record),
                None => break,
            }
        }
        let shown = String::from_utf8_lossy(&text);
        assert_eq!(found, wanted, "case {case}: {shown:?}");
    }
    assert!(taken_records > 20_000, "{taken_records}");
}
