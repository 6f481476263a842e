//! Which known name was probably meant.

/// The known name that differs least from `name`, if it differs little.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let scored = known
        .iter()
        .map(|known| (edit_distance(name, known), *known));
    scored
        .min()
        .filter(|(distance, _)| *distance <= 1 + name.len() / 3)
        .map(|(_, known)| known)
}

/// Levenshtein distance over bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let b = b.as_bytes();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_little_are_found() {
        let known = ["rtt_us", "error_code"];
        assert_eq!(nearest("rt_us", &known), Some("rtt_us"));
        assert_eq!(nearest("zzz", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
