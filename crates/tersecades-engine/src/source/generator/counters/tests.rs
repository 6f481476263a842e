//! Counters are consistent, follow the day, and lose their network when the truth says so.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMillisecondType, UInt32Type};
use arrow_schema::DataType;

use crate::source::generator::{Generator, find_generator};

fn start(rows: u64, given: &[(&str, &str)]) -> Box<dyn Generator> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    let given: Vec<(String, String)> = given.iter().map(owned).collect();
    find_generator("counters")
        .unwrap()
        .start(rows, 3, &given)
        .unwrap()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<String> {
    let plain = arrow_cast::cast(batch.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
    plain
        .as_string::<i32>()
        .iter()
        .map(|it| it.unwrap().to_owned())
        .collect()
}

fn numbers(batch: &RecordBatch, name: &str) -> Vec<f64> {
    batch
        .column_by_name(name)
        .unwrap()
        .as_primitive::<Float64Type>()
        .values()
        .to_vec()
}

fn times(batch: &RecordBatch) -> Vec<i64> {
    batch
        .column(0)
        .as_primitive::<TimestampMillisecondType>()
        .values()
        .to_vec()
}

/// A day of 100 machines.
fn day() -> (RecordBatch, String) {
    let mut stream = start(
        1_440 * 100 * 8,
        &[("vms", "100"), ("loss_share", "0.1"), ("nodes", "30")],
    );
    let batch = stream.next_batch(usize::MAX).unwrap().unwrap();
    let mut truth = Vec::new();
    stream.write_truth(&mut truth).unwrap();
    (batch, String::from_utf8(truth).unwrap())
}

#[test]
fn least_average_and_most_are_in_order() {
    for interval in ["1m", "1s", "5m"] {
        let mut stream = start(200_000, &[("interval", interval)]);
        let batch = stream.next_batch(usize::MAX).unwrap().unwrap();
        let [average, least, most] =
            ["average_value", "min_value", "max_value"].map(|name| numbers(&batch, name));
        let samples = batch.column_by_name("sample_count").unwrap();
        for row in 0..batch.num_rows() {
            assert!(
                least[row] <= average[row] && average[row] <= most[row],
                "row {row}"
            );
            assert!(least[row] >= 0.0);
            if samples.as_primitive::<UInt32Type>().value(row) == 1 {
                assert_eq!(least[row], most[row]);
            }
        }
        let names = texts(&batch, "counter_name");
        let percents = names
            .iter()
            .zip(&most)
            .filter(|(name, _)| name.ends_with("percent"));
        assert!(percents.map(|(_, most)| *most).fold(0.0, f64::max) <= 100.0);
    }
}

#[test]
fn names_look_like_those_of_the_paper() {
    let (batch, _) = day();
    let widths: [(&str, usize); 4] = [
        ("datacenter", 3),
        ("cluster", 11),
        ("node_id", 10),
        ("vm_id", 36),
    ];
    for (name, width) in widths {
        assert!(
            texts(&batch, name).iter().all(|text| text.len() == width),
            "{name}"
        );
    }
    let of = |name: &str| {
        texts(&batch, name)
            .into_iter()
            .collect::<BTreeSet<_>>()
            .len()
    };
    assert_eq!(
        (of("datacenter"), of("vm_id"), of("counter_name")),
        (4, 100, 8)
    );
    let cluster_of: BTreeSet<_> = texts(&batch, "vm_id")
        .into_iter()
        .zip(texts(&batch, "cluster"))
        .collect();
    assert_eq!(cluster_of.len(), 100, "a machine stays in its cluster");
    let datacenters = texts(&batch, "datacenter");
    assert!(
        texts(&batch, "cluster")
            .iter()
            .zip(datacenters)
            .all(|(it, dc)| it.starts_with(&dc))
    );
}

#[test]
fn flat_networks_of_active_machines_are_those_of_the_truth() {
    let (batch, truth) = day();
    let (at, vm) = (times(&batch), texts(&batch, "vm_id"));
    let (name, average) = (
        texts(&batch, "counter_name"),
        numbers(&batch, "average_value"),
    );
    let most = numbers(&batch, "max_value");
    let mut reports: BTreeMap<(String, i64), (bool, bool)> = BTreeMap::new();
    for row in 0..batch.num_rows() {
        let report = reports
            .entry((vm[row].clone(), at[row]))
            .or_insert((false, true));
        match name[row].as_str() {
            "cpu_percent" => report.0 = average[row] >= super::ACTIVE_PERCENT,
            "network_in_bytes" | "network_out_bytes" => report.1 &= most[row] == 0.0,
            _ => {}
        }
    }
    let lost = reports
        .into_iter()
        .filter(|(_, (active, flat))| *active && *flat);
    let found: BTreeSet<(String, i64)> = lost.map(|(key, _)| key).collect();
    let mut told = BTreeSet::new();
    for line in truth.lines() {
        let value = |name: &str| {
            let rest = line.split_once(&format!("\"{name}\":")).unwrap().1;
            rest.split([',', '}'])
                .next()
                .unwrap()
                .trim_matches('"')
                .to_owned()
        };
        assert_eq!(value("kind"), "network_lost");
        let (from, to): (i64, i64) = (
            value("from_ms").parse().unwrap(),
            value("to_ms").parse().unwrap(),
        );
        assert!((3 * 60_000..=40 * 60_000).contains(&(to - from)));
        let steps = (from..to.min(at[at.len() - 1] + 1)).step_by(60_000);
        told.extend(steps.map(|step| (value("vm_id"), step)));
    }
    assert!(told.len() > 1_000, "{}", told.len());
    assert_eq!(found, told);
}

#[test]
fn machines_follow_the_day() {
    let (batch, _) = day();
    let (at, name) = (times(&batch), texts(&batch, "counter_name"));
    let average = numbers(&batch, "average_value");
    let mut by_hour = vec![(0.0, 0_u32); 24];
    for row in (0..batch.num_rows()).filter(|row| name[*row] == "cpu_percent") {
        let hour = &mut by_hour[(at[row].rem_euclid(86_400_000) / 3_600_000) as usize];
        *hour = (hour.0 + average[row], hour.1 + 1);
    }
    let means: Vec<f64> = by_hour
        .iter()
        .map(|(sum, count)| sum / f64::from(*count))
        .collect();
    let (least, most) = means
        .iter()
        .fold((f64::MAX, 0.0_f64), |(a, b), it| (a.min(*it), b.max(*it)));
    assert!(most > 1.3 * least, "{means:?}");
}
