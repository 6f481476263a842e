//! Which known name was probably meant.

/// The known name that differs least from `name`, if it differs little and not in every letter.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let scored = known
        .iter()
        .map(|known| (edit_distance(name, known), *known));
    let is_near = |(distance, known): &(usize, &str)| {
        let letters = name.len().max(known.len());
        *distance <= 1 + name.len() / 3 && *distance < letters
    };
    scored.filter(is_near).min().map(|(_, known)| known)
}

/// Letters to change, add, leave out or swap with the next, over bytes.
///
/// # Source
/// Damerau (1964) and Levenshtein (1966): the distance of optimal string alignment.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let change = rows[i][j] + usize::from(x != y);
            let mut least = change.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
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
        assert_eq!(nearest("cuont", &["cot", "count"]), Some("count"));
        assert_eq!(nearest("t", &["k", "ts", "v"]), Some("ts"));
        assert_eq!(nearest("t", &["k", "v"]), None);
    }
}
