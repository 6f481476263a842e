//! Texts in the order of their bytes, by several of them at a time.
//!
//! ```text
//! http://site7.ru/a   ┐ what all begin with is passed over
//! http://site7.ru/bb  │ the next bytes make a number: 7.ru/a, 7.ru/bb, 12.ru/c
//! http://site12.ru/c  ┘ numbers are sorted, then the texts of each number by what follows
//! ```
//! Comparing whole texts would fetch both of them for each comparison.

/// Bytes of a text that one number holds, beside how many they are.
const WORD: usize = 7;

/// Texts that are so few are compared.
const COMPARED: usize = 16;

/// The numbers below `count` in the order of the texts that `text` gives them, which differ.
///
/// # Cost
/// Two looks at each text for every [`WORD`] bytes in which it is told from others.
pub(crate) fn sorted<'a>(count: u32, text: impl Fn(u32) -> &'a [u8]) -> Vec<u32> {
    let mut entries: Vec<(u64, u32)> = (0..count).map(|code| (0, code)).collect();
    let mut open = vec![(0..entries.len(), 0)];
    while let Some((range, depth)) = open.pop() {
        let mut start = range.start;
        let entries = &mut entries[range];
        if entries.len() <= COMPARED {
            entries.sort_unstable_by_key(|(_, code)| &text(*code)[depth..]);
            continue;
        }
        let depth = depth + shared(entries.iter().map(|(_, code)| &text(*code)[depth..]));
        for (word, code) in &mut *entries {
            *word = word_of(&text(*code)[depth..]);
        }
        entries.sort_unstable();
        for run in entries.chunk_by(|a, b| a.0 == b.0) {
            let end = start + run.len();
            if run.len() > 1 {
                open.push((start..end, depth + WORD));
            }
            start = end;
        }
    }
    entries.into_iter().map(|(_, code)| code).collect()
}

/// How many bytes all of `texts` begin with.
fn shared<'a>(mut texts: impl Iterator<Item = &'a [u8]>) -> usize {
    let first = texts.next().unwrap_or_default();
    texts.fold(first.len(), |shared, text| {
        let same = first[..shared].iter().zip(text).take_while(|(a, b)| a == b);
        same.count()
    })
}

/// The first bytes of `text` as a number in their order; the last byte counts them, and those that
/// follow as one.
fn word_of(text: &[u8]) -> u64 {
    let mut bytes = [0; WORD + 1];
    let count = text.len().min(WORD);
    bytes[..count].copy_from_slice(&text[..count]);
    bytes[WORD] = text.len().min(WORD + 1) as u8;
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tersecades_testkit::random::Random;

    use super::*;

    fn check(texts: &BTreeSet<Vec<u8>>, random: &mut Random) {
        let mut mixed: Vec<&Vec<u8>> = texts.iter().collect();
        for last in (1..mixed.len()).rev() {
            mixed.swap(last, random.below(last + 1));
        }
        let order = sorted(mixed.len() as u32, |code| mixed[code as usize]);
        assert!(order.iter().map(|code| mixed[*code as usize]).eq(texts));
    }

    #[test]
    fn texts_are_in_the_order_of_their_bytes() {
        let mut random = Random::new(0x7e07);
        let starts: [&[u8]; 5] = [
            b"",
            b"\0",
            b"http://",
            b"a start of many bytes, ",
            &[255; 40],
        ];
        for count in [0, 1, 2, 16, 17, 300, 3_000] {
            for bytes in [2, 4, 256] {
                let text = |random: &mut Random| {
                    let end = (0..random.below(20)).map(|_| random.below(bytes) as u8);
                    let end: Vec<u8> = end.collect();
                    [*random.pick(&starts), &end].concat()
                };
                let texts = (0..count).map(|_| text(&mut random)).collect();
                check(&texts, &mut random);
            }
        }
        let nested = (0..500).map(|length| vec![b'a'; length * 3]).collect();
        check(&nested, &mut random);
        let zeros = (0..100).map(|length| vec![0; length]).collect();
        check(&zeros, &mut random);
    }
}
