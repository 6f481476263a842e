//! Rows are spread evenly, but for the bursts that the truth names.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampMillisecondType};

use crate::source::generator::{Generator, find_generator};

const SECONDS: u64 = 180;
const RATE: u64 = 1_000;

fn stream(share: &str) -> Box<dyn Generator> {
    let given = [("rate", "1k"), ("burst_share", share)];
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let yahoo = find_generator("yahoo").unwrap();
    yahoo.start(SECONDS * RATE, 9, &given).unwrap()
}

/// Rows of each campaign and second.
fn counts(stream: &mut dyn Generator) -> HashMap<String, Vec<u32>> {
    let (_, table) = stream.tables().unwrap().remove(0);
    let of_ad: HashMap<String, String> = (0..table.num_rows())
        .map(|row| {
            let text = |column: usize| {
                table
                    .column(column)
                    .as_string::<i32>()
                    .value(row)
                    .to_owned()
            };
            (text(0), text(1))
        })
        .collect();
    assert_eq!(of_ad.len(), 1_000);
    let batch = stream.next_batch(usize::MAX).unwrap().unwrap();
    let ads = batch.column(2).as_dictionary::<Int32Type>();
    let names = ads.values().as_string::<i32>();
    let times = batch.column(5).as_primitive::<TimestampMillisecondType>();
    let mut counts: HashMap<String, Vec<u32>> = HashMap::new();
    for row in 0..batch.num_rows() {
        let campaign = &of_ad[names.value(ads.keys().value(row) as usize)];
        let second = (times.value(row) - 1_700_006_400_000)
            .div_euclid(1_000)
            .max(0);
        let of_campaign = counts
            .entry(campaign.clone())
            .or_insert_with(|| vec![0; SECONDS as usize]);
        of_campaign[second as usize] += 1;
    }
    counts
}

#[test]
fn campaigns_are_alike_without_bursts() {
    let counts = counts(&mut *stream("0"));
    assert_eq!(counts.len(), 100);
    let totals: Vec<u32> = counts
        .values()
        .map(|seconds| seconds.iter().sum())
        .collect();
    // 1,800 rows each, with a standard deviation of 42.
    assert!(
        totals.iter().all(|total| (1_580..2_020).contains(total)),
        "{totals:?}"
    );
}

#[test]
fn a_burst_stands_out_where_the_truth_says() {
    let mut stream = stream("0.3");
    let mut truth = Vec::new();
    stream.write_truth(&mut truth).unwrap();
    let counts = counts(&mut *stream);
    let truth = String::from_utf8(truth).unwrap();
    assert_eq!(truth.lines().count(), 3);
    for line in truth.lines() {
        let value = |name: &str| {
            let rest = line.split_once(&format!("\"{name}\":")).unwrap().1;
            rest.split([',', '}']).next().unwrap().trim_matches('"')
        };
        let second = |name| (value(name).parse::<i64>().unwrap() - 1_700_006_400_000) / 1_000;
        let within = second("from_ms") as usize + 1..second("to_ms") as usize;
        // 7 of the rows of its own, and 300 of the burst, in each second.
        let seconds = &counts[value("campaign_id")];
        assert!(within.clone().all(|second| seconds[second] > 200), "{line}");
        let others = counts
            .iter()
            .filter(|(name, _)| *name != value("campaign_id"));
        assert!(
            others
                .clone()
                .all(|(_, it)| within.clone().all(|second| it[second] < 60))
        );
    }
}
