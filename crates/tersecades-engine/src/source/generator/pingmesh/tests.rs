//! The promises of the generator: same seed same rows, prefixes, and the shares asked for.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampMillisecondType, UInt32Type};

use super::super::topology::TopologySize;
use super::*;

const ROWS: u64 = 1_000_000;

fn options() -> PingmeshOptions {
    PingmeshOptions {
        rows: ROWS,
        ..PingmeshOptions::default()
    }
}

/// All rows, generated in batches whose sizes cycle through `sizes`.
fn generate(options: PingmeshOptions, sizes: &[usize]) -> PingmeshRows {
    let mut stream = Pingmesh::new(options).unwrap();
    let (mut all, mut part) = (PingmeshRows::default(), PingmeshRows::default());
    for size in sizes.iter().cycle() {
        if stream.fill(*size, &mut part) == 0 {
            break;
        }
        append(&mut all, &part);
    }
    assert_eq!(all.len() as u64, stream.position());
    assert_eq!(all.len() as u64, stream.summary().rows);
    all
}

fn append(all: &mut PingmeshRows, part: &PingmeshRows) {
    all.timestamp.extend(&part.timestamp);
    all.src_ip.extend(&part.src_ip);
    all.src_region.extend(&part.src_region);
    all.src_cluster.extend(&part.src_cluster);
    all.dst_ip.extend(&part.dst_ip);
    all.dst_region.extend(&part.dst_region);
    all.dst_cluster.extend(&part.dst_cluster);
    all.rtt_us.extend(&part.rtt_us);
    all.error_code.extend(&part.error_code);
}

fn size(regions: u32, clusters: u32, racks: u32, servers: u32) -> TopologySize {
    TopologySize {
        regions,
        clusters,
        racks_per_cluster: racks,
        servers_per_rack: servers,
    }
}

fn share(count: usize, total: usize) -> f64 {
    count as f64 / total as f64
}

/// Asserts that `got` is within five standard errors of `want` over `total` tries.
fn assert_share(what: &str, got: f64, want: f64, total: usize) {
    let allowed = 5.0 * (want * (1.0 - want) / total as f64).sqrt();
    assert!(
        (got - want).abs() < allowed,
        "{what}: {got} is not {want} +- {allowed}"
    );
}

#[test]
fn batch_size_does_not_change_rows() {
    let options = PingmeshOptions {
        rows: 50_001,
        rows_per_second: 7001,
        fault_at: Some(Duration::from_secs(2)),
        ..options()
    };
    let whole = generate(options.clone(), &[100_000]);
    assert_eq!(whole.len(), 50_001);
    assert!(whole == generate(options.clone(), &[1, 1023, 1024, 1025, 7, 4096]));
    assert!(whole != generate(PingmeshOptions { seed: 1, ..options }, &[8192]));
}

#[test]
fn a_shorter_stream_is_a_prefix_and_seek_resumes() {
    let long = generate(
        PingmeshOptions {
            rows: 30_000,
            ..options()
        },
        &[4096],
    );
    let short = generate(
        PingmeshOptions {
            rows: 10_000,
            ..options()
        },
        &[3000],
    );
    let mut resumed = Pingmesh::new(PingmeshOptions {
        rows: 30_000,
        ..options()
    })
    .unwrap();
    let mut rest = PingmeshRows::default();
    resumed.seek(10_000);
    assert_eq!(resumed.fill(usize::MAX, &mut rest), 20_000);
    let mut joined = short;
    append(&mut joined, &rest);
    assert!(joined == long);
}

#[test]
fn rows_of_the_default_seed_are_pinned() {
    let rows = generate(options(), &[1 << 16]);
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |value: i64| digest = (digest ^ value as u64).wrapping_mul(0x100_0000_01b3);
    for row in 0..rows.len() {
        add(rows.timestamp[row]);
        add(i64::from(rows.src_ip[row]) << 32 | i64::from(rows.dst_ip[row]));
        add(i64::from(rows.src_region[row]) << 32 | i64::from(rows.src_cluster[row]));
        add(i64::from(rows.dst_region[row]) << 32 | i64::from(rows.dst_cluster[row]));
        add(i64::from(rows.rtt_us[row]) << 32 | i64::from(rows.error_code[row]));
    }
    assert_eq!(
        digest, PINNED_DIGEST,
        "rows of a seed are a promise to users: keep them"
    );
}

const PINNED_DIGEST: u64 = 5_779_912_753_984_551_555;

#[test]
fn shares_and_median_are_those_asked_for() {
    let rows = generate(
        PingmeshOptions {
            fault_at: None,
            ..options()
        },
        &[1 << 14],
    );
    let codes = || rows.error_code.iter();
    let total = rows.len();
    let errors = codes().filter(|code| **code != 0).count();
    assert_share("errors", share(errors, total), 0.01, total);
    let timeouts = codes().filter(|code| **code == TIMED_OUT).count();
    assert_share("time-outs", share(timeouts, errors), 0.55, errors);
    for (rtt, _) in rows
        .rtt_us
        .iter()
        .zip(codes())
        .filter(|(_, code)| **code == TIMED_OUT)
    {
        let near = |timer: u32| (timer..timer + 50_000).contains(rtt);
        assert!(
            near(3_000_000) || near(9_000_000) || near(21_000_000),
            "{rtt}"
        );
    }
    let good = rows
        .rtt_us
        .iter()
        .zip(codes())
        .filter(|(_, code)| **code == 0);
    let mut good: Vec<u32> = good.map(|(rtt, _)| *rtt).collect();
    good.sort_unstable();
    let tail = good.iter().filter(|rtt| **rtt >= TAIL_FLOOR_US).count();
    assert_share("tail", share(tail, good.len()), 0.03, good.len());
    let body = &good[..good.len() - tail];
    let median = f64::from(body[body.len() / 2]);
    assert!((median / 250.0 - 1.0).abs() < 0.01, "{median}");
    let upper = f64::from(body[body.len() * 84_134 / 100_000]);
    assert!(
        (upper / (250.0 * 0.6_f64.exp()) - 1.0).abs() < 0.01,
        "{upper}"
    );
    assert!(f64::from(good[good.len() - 1]) > 1e6, "the tail is heavy");
}

#[test]
fn delays_are_jitter_with_a_share_of_late_rows() {
    let rows = generate(options(), &[1 << 14]);
    let arrivals = (0..).map(|row: i64| options().start_ms + row / 100);
    let delays: Vec<i64> = arrivals
        .zip(&rows.timestamp)
        .map(|(at, sent)| at - sent)
        .collect();
    let late = delays.iter().filter(|delay| **delay > 10).count();
    assert_share("late rows", share(late, rows.len()), 0.005, rows.len());
    assert!(delays.iter().all(|delay| (0..=2500).contains(delay)));
    assert!(delays.contains(&2500));
    let mut stream = Pingmesh::new(options()).unwrap();
    stream.fill(ROWS as usize, &mut PingmeshRows::default());
    assert_eq!(stream.summary().late, late as u64);
    for jitter in 0..=10 {
        let count = delays.iter().filter(|delay| **delay == jitter).count();
        assert_share("jitter", share(count, rows.len()), 0.995 / 11.0, rows.len());
    }
}

#[test]
fn clusters_follow_zipf_and_no_server_probes_itself() {
    let rows = generate(options(), &[1 << 14]);
    assert!(
        rows.src_ip
            .iter()
            .zip(&rows.dst_ip)
            .all(|(src, dst)| src != dst)
    );
    let total_weight: f64 = (1..=200).map(|rank| f64::from(rank).powf(-0.9)).sum();
    for codes in [&rows.src_cluster, &rows.dst_cluster] {
        let mut counts = [0_usize; 200];
        codes.iter().for_each(|code| counts[*code as usize] += 1);
        counts.sort_unstable_by(|left, right| right.cmp(left));
        for rank in [1_usize, 2, 10] {
            let want = (rank as f64).powf(-0.9) / total_weight;
            assert_share(
                "cluster",
                share(counts[rank - 1], rows.len()),
                want,
                rows.len(),
            );
        }
        assert!(counts[199] > 0);
    }
}

#[test]
fn a_fault_shows_in_its_interval_and_nowhere_else() {
    let options = PingmeshOptions {
        topology: size(2, 4, 2, 10),
        fault_at: Some(Duration::from_secs(4)),
        fault_duration: Duration::from_secs(2),
        ..options()
    };
    let mut stream = Pingmesh::new(options.clone()).unwrap();
    let truth = stream.truth().remove(0);
    assert_eq!(truth.from_ms, options.start_ms + 4000);
    assert_eq!(truth.to_ms, options.start_ms + 6000);
    let bad: Vec<u32> = (0..)
        .zip(stream.topology().servers())
        .filter(|(server, _)| stream.topology().tor_of(*server) == truth.tor_id)
        .map(|(_, server)| server.ip)
        .collect();
    assert_eq!(bad.len(), 10);
    let mut rows = PingmeshRows::default();
    stream.fill(ROWS as usize, &mut rows);
    let healthy = generate(
        PingmeshOptions {
            fault_at: None,
            ..options
        },
        &[1 << 14],
    );
    let (mut struck, mut answered, mut dropped) = (0, 0, 0);
    for row in 0..rows.len() {
        let through = bad.contains(&rows.src_ip[row]) || bad.contains(&rows.dst_ip[row]);
        let inside = (truth.from_ms..truth.to_ms).contains(&rows.timestamp[row]);
        struck += u64::from(through && inside);
        let changed = rows.rtt_us[row] != healthy.rtt_us[row];
        if !(through && inside) {
            assert!(
                !changed && rows.error_code[row] == healthy.error_code[row],
                "row {row}"
            );
        } else if healthy.error_code[row] != TIMED_OUT {
            assert!(changed, "row {row}");
            answered += 1;
            dropped += usize::from(rows.error_code[row] == TIMED_OUT);
        }
    }
    assert_eq!(stream.summary().faulty, struck);
    assert!(answered > 10_000, "{answered}");
    assert_share("drops", share(dropped, answered), 0.5, answered);
    assert_eq!(healthy.timestamp, rows.timestamp);
}

#[test]
fn a_stream_that_ends_before_its_fault_has_no_truth() {
    let stream = |rows| Pingmesh::new(PingmeshOptions { rows, ..options() }).unwrap();
    assert!(stream(2_900_000).truth().is_empty());
    assert_eq!(stream(3_100_000).truth().len(), 1);
}

#[test]
fn batches_hold_the_same_rows_and_share_their_names() {
    let options = PingmeshOptions {
        rows: 5000,
        ..options()
    };
    let rows = generate(options.clone(), &[5000]);
    let mut stream = Pingmesh::new(options).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = stream.next_batch(2048).unwrap() {
        assert_eq!(batch.schema(), stream.schema());
        batches.push(batch);
    }
    assert_eq!(
        batches.iter().map(|b| b.num_rows()).collect::<Vec<_>>(),
        [2048, 2048, 904]
    );
    assert_eq!(stream.rows_hint(), Some(5000));
    let names: Vec<_> = [2, 3, 5, 6]
        .map(|c| batches[0].column(c).as_dictionary::<Int32Type>())
        .into();
    for batch in &batches {
        for (column, first) in [2, 3, 5, 6].into_iter().zip(&names) {
            let here = batch.column(column).as_dictionary::<Int32Type>();
            assert!(Arc::ptr_eq(here.values(), first.values()));
        }
    }
    let second = &batches[1];
    let times = second.column(0).as_primitive::<TimestampMillisecondType>();
    assert_eq!(times.values()[..], rows.timestamp[2048..4096]);
    let rtts = second.column(7).as_primitive::<UInt32Type>();
    assert_eq!(rtts.values()[..], rows.rtt_us[2048..4096]);
    let clusters = second.column(6).as_dictionary::<Int32Type>();
    assert_eq!(clusters.keys().values()[..], rows.dst_cluster[2048..4096]);
    assert_eq!(clusters.values().len(), 200);
}

#[test]
fn odd_options_still_make_rows() {
    let topology = size(1, 1, 1, 1);
    let alone = PingmeshOptions {
        rows: 3000,
        topology,
        rows_per_second: 3,
        ..options()
    };
    let rows = generate(alone, &[1000]);
    assert!(rows.src_ip == rows.dst_ip && rows.timestamp[2999] > rows.timestamp[0] + 990_000);
    let all_bad = PingmeshOptions {
        error_share: 1.0,
        late_share: 1.0,
        rows: 3000,
        ..options()
    };
    let rows = generate(all_bad, &[1000]);
    assert!(rows.error_code.iter().all(|code| *code != 0));
    let mut empty = Pingmesh::new(PingmeshOptions {
        rows: 0,
        ..options()
    })
    .unwrap();
    assert!(empty.next_batch(10).unwrap().is_none());
}
