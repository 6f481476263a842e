//! The delimiter of a file, guessed from its first records.

use csv_core::ReadRecordResult;

use super::record::splitter;

/// Delimiters that are tried when none is given, in order of preference.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Records that the guess of the delimiter looks at.
const SNIFF_RECORDS: usize = 100;

/// Guesses the delimiter of a file that starts with `sample`, or is that and no more: the one that
/// gives the most records as many fields as the first, then the one that gives the most fields; `,`
/// if nothing splits.
pub(super) fn sniff_delimiter(sample: &[u8], is_whole: bool) -> u8 {
    let mut best = (0, 0, b',');
    for delimiter in DELIMITERS {
        let counts = field_counts(sample, is_whole, delimiter);
        let Some(&fields) = counts.first().filter(|&&fields| fields > 1) else {
            continue;
        };
        let alike = counts.iter().filter(|&&count| count == fields).count();
        if (alike, fields) > (best.0, best.1) {
            best = (alike, fields, delimiter);
        }
    }
    best.2
}

/// Number of fields of each of the first whole records of `sample`, behind which the file ends
/// where it `is_whole`; of a first one that is not whole, those so far.
fn field_counts(sample: &[u8], is_whole: bool, delimiter: u8) -> Vec<usize> {
    let mut splitter = splitter(delimiter);
    let (mut text, mut ends) = (vec![0; sample.len() + 1], vec![0; sample.len() + 1]);
    let (mut counts, mut rest, mut fields) = (Vec::new(), sample, 0);
    while counts.len() < SNIFF_RECORDS {
        let (result, read, _, found) = splitter.read_record(rest, &mut text, &mut ends);
        rest = rest.get(read..).unwrap_or_default();
        fields += found;
        match result {
            ReadRecordResult::Record => counts.push(std::mem::take(&mut fields)),
            // Nothing given next is the end.
            ReadRecordResult::InputEmpty if is_whole => {}
            _ => break,
        }
    }
    if counts.is_empty() {
        // The first record is longer than the sample, and goes on behind these fields.
        counts.push(fields + 1);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_guessed() {
        for (text, delimiter) in [
            ("a,b\n1,2\n", b','),
            ("a;b;c\n1,5;2,5;3\n", b';'),
            ("a;\tb;\tc\n1;\t2;\t3\n", b';'),
            ("a\tb\n1\t2,3\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            ("word\nother\n", b','),
            ("\"a;b\",c\n\"d;e\",f\n", b','),
            ("", b','),
        ] {
            for is_whole in [false, true] {
                let found = sniff_delimiter(text.as_bytes(), is_whole);
                assert_eq!(found, delimiter, "{text}");
            }
        }
    }

    #[test]
    fn a_last_line_without_an_end_tells_the_delimiter_where_the_file_ends_there() {
        for (text, delimiter) in [
            ("a;b;c", b';'),
            ("a|\"b\"", b'|'),
            ("a\t", b'\t'),
            ("a;b, c\n1;2", b';'),
            ("a", b','),
        ] {
            assert_eq!(sniff_delimiter(text.as_bytes(), true), delimiter, "{text}");
        }
    }

    #[test]
    fn a_first_row_beyond_the_sample_tells_the_delimiter_as_far_as_it_is_there() {
        assert_eq!(sniff_delimiter(b"a;b, c;d", false), b';');
        assert_eq!(sniff_delimiter(b"\"a;b\"|\"c", false), b'|');
        assert_eq!(sniff_delimiter(b"\"a;b;c", false), b',');
    }
}
