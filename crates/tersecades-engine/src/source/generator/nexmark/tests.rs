//! People, auctions and bids are as the benchmark defines them, and the hot auctions as the truth
//! says.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};

use crate::source::generator::{Generator, find_generator};

const ROWS: u64 = 100_000;

fn stream() -> Box<dyn Generator> {
    let nexmark = find_generator("nexmark").unwrap();
    nexmark.start(ROWS, 5, &[]).unwrap()
}

fn number(batch: &RecordBatch, name: &str, row: usize) -> Option<i64> {
    let column = batch.column_by_name(name).unwrap();
    let column = column.as_primitive::<Int64Type>();
    column.is_valid(row).then(|| column.value(row))
}

#[test]
fn of_fifty_rows_one_is_a_person_and_three_are_auctions() {
    let batch = stream().next_batch(usize::MAX).unwrap().unwrap();
    let kinds = batch.column(0).as_primitive::<Int32Type>().values();
    let mut counts = [0_u64; 3];
    for (row, kind) in kinds.iter().enumerate() {
        counts[*kind as usize] += 1;
        let known = ["person_id", "auction_id", "price"].map(|name| number(&batch, name, row));
        let is_known = known.map(|value| value.is_some());
        assert_eq!(is_known, [0, 1, 2].map(|it| it == *kind), "row {row}");
        let texts = [
            ("email_address", 0),
            ("state", 0),
            ("description", 1),
            ("url", 2),
        ];
        for (name, of) in texts {
            let column = batch.column_by_name(name).unwrap();
            assert_eq!(column.is_valid(row), of == *kind, "{name}, row {row}");
        }
    }
    assert_eq!(counts, [1, 3, 46].map(|it| it * ROWS / 50));
}

#[test]
fn people_and_auctions_are_numbered_and_bids_name_those_near() {
    let batch = stream().next_batch(usize::MAX).unwrap().unwrap();
    let times = batch.column(1).as_primitive::<TimestampMillisecondType>();
    let expires = batch.column_by_name("expires").unwrap();
    let expires = expires.as_primitive::<TimestampMillisecondType>();
    let (mut people, mut auctions) = (0, 0);
    for row in 0..batch.num_rows() {
        let number = |name| number(&batch, name, row);
        if let Some(id) = number("person_id") {
            assert_eq!(id, 1_000 + people);
            people += 1;
        }
        if let Some(id) = number("auction_id") {
            assert_eq!(id, 1_000 + auctions);
            auctions += 1;
            let open_ms = expires.value(row) - times.value(row);
            // Twice the 1,666 rows in which a hundred auctions open, at 10 rows a millisecond.
            assert!((1..=334).contains(&open_ms), "{open_ms}");
            assert!((10..15).contains(&number("category").unwrap()));
            assert!(number("reserve") > number("initial_bid"));
        }
        if let Some(auction) = number("auction") {
            let newest = 1_000 + auctions - 1;
            assert!((newest - 110..=newest + 10).contains(&auction), "{auction}");
            assert!((100..=100_000_000).contains(&number("price").unwrap()));
            assert!(number("bidder").unwrap() <= 1_000 + people + 10);
        }
    }
}

#[test]
fn half_of_the_bids_go_to_the_auctions_of_the_truth() {
    let batch = stream().next_batch(usize::MAX).unwrap().unwrap();
    let mut truth = Vec::new();
    stream().write_truth(&mut truth).unwrap();
    let truth = String::from_utf8(truth).unwrap();
    let mut bids: HashMap<i64, usize> = HashMap::new();
    for row in 0..batch.num_rows() {
        if let Some(auction) = number(&batch, "auction", row) {
            *bids.entry(auction).or_default() += 1;
        }
    }
    let hot: Vec<i64> = truth
        .lines()
        .map(|line| {
            let rest = line.split_once("\"auction\":").unwrap().1;
            rest.split_once(',').unwrap().0.parse().unwrap()
        })
        .collect();
    assert_eq!(hot.len() as u64, (ROWS * 3 / 50).div_ceil(100));
    let on_hot: usize = hot.iter().map(|auction| bids[auction]).sum();
    let all: usize = bids.values().sum();
    let share = on_hot as f64 / all as f64;
    assert!((0.49..0.52).contains(&share), "{share}");
    let most_else = bids.iter().filter(|(auction, _)| !hot.contains(auction));
    let most_else = most_else.map(|(_, bids)| *bids).max().unwrap();
    assert!(
        hot[..hot.len() - 1]
            .iter()
            .all(|it| bids[it] > 4 * most_else)
    );
}
