//! The example finds the network losses that the generator injects, and nothing else.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../examples/vm_health/query.rs"]
mod query;
#[path = "../examples/vm_health/score.rs"]
mod score;

use std::time::Duration;

use tersecades::prelude::*;

fn counters(seed: u64) -> GeneratorTable {
    let given = [
        ("vms", "60"),
        ("clusters", "4"),
        ("nodes", "20"),
        ("loss_share", "0.05"),
    ];
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    GeneratorTable::new("counters", 60 * 8 * 240, seed, given.to_vec()).unwrap()
}

#[test]
fn every_injected_loss_is_found_with_its_duration_and_nothing_else() {
    for seed in [1, 2, 3] {
        let mut truth = Vec::new();
        counters(seed)
            .start()
            .unwrap()
            .write_truth(&mut truth)
            .unwrap();
        let injected = score::injected(std::str::from_utf8(&truth).unwrap());
        assert!(injected.len() > 3, "{}", injected.len());
        let stream = Stream::from_table(counters(seed));
        let run = query::changes(stream, Duration::from_secs(60))
            .run()
            .unwrap();
        let found = query::losses(run).unwrap();
        let score = score::score(&injected, &found);
        assert_eq!((score.precision(), score.recall()), (1.0, 1.0), "{score:?}");
        let durations = found.iter().filter_map(|loss| Some((loss, loss.to_ms?)));
        let exact = durations.filter(|(loss, end)| {
            let same = |it: &&query::Loss| it.vm == loss.vm && it.to_ms == Some(*end);
            injected
                .iter()
                .find(same)
                .is_some_and(|it| it.from_ms == loss.from_ms)
        });
        let ended = found.iter().filter(|loss| loss.to_ms.is_some()).count();
        assert_eq!(
            exact.count(),
            ended,
            "beginnings and ends are those of the truth"
        );
    }
}
