//! Groups that the table finds are those that a linear search finds.

use super::*;

/// Words of a key, and whether the standard map finds it.
const WAYS: [(usize, bool); 11] = [
    (1, false),
    (2, false),
    (3, false),
    (4, false),
    (5, false),
    (6, false),
    (7, false),
    (8, false),
    (9, false),
    (1, true),
    (2, true),
];

#[test]
fn ids_equal_a_linear_search() {
    for (words, standard) in WAYS {
        let mut table = GroupTable {
            standard: standard.then(HashMap::new),
            ..GroupTable::of_words(words)
        };
        let mut known: Vec<Vec<u64>> = Vec::new();
        let mut seed = 7u64;
        for round in 0..3 {
            for _ in 0..2_000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let key: Vec<u64> = (0..words as u64).map(|w| (seed >> 58) * (w + 1)).collect();
                let expected = known.iter().position(|k| *k == key).unwrap_or_else(|| {
                    known.push(key.clone());
                    known.len() - 1
                });
                assert_eq!(table.assign_one(&key) as usize, expected, "round {round}");
            }
            table.clear();
            known.clear();
        }
    }
}
#[test]
fn ids_of_many_keys_are_those_of_one_at_a_time() {
    for (words, standard) in WAYS {
        let table = GroupTable {
            standard: standard.then(HashMap::new),
            ..GroupTable::of_words(words)
        };
        let (mut one, mut many) = (table.clone(), table);
        let mut seed = 11u64;
        for rows in [0, 1, 5_000, 30_000, 0, 50, 9_000] {
            if rows == 50 {
                one.clear();
                many.clear();
            }
            // Keys that differ in one word, whichever it is, or in none.
            let mut keys = vec![7u64; rows * words];
            for key in keys.chunks_exact_mut(words) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                key[(seed >> 40) as usize % words] = seed >> 51;
            }
            let keys_one_by_one = keys.chunks_exact(words);
            let expected: Vec<u32> = keys_one_by_one.map(|key| one.assign_one(key)).collect();
            let mut ids = Vec::new();
            many.assign(&keys, &mut ids);
            assert_eq!(ids, expected, "{words} words");
            assert_eq!(many.keys(), one.keys(), "{words} words");
        }
    }
}
