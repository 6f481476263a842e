//! Users move at the speeds of their modes within the trips of the truth, and stay put outside.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, TimestampMillisecondType, UInt32Type};

use crate::source::generator::{Generator, find_generator};

const USERS: usize = 40;
const HOURS: u64 = 6;

struct Fix {
    at_ms: i64,
    east: f64,
    north: f64,
}

fn stream() -> Box<dyn Generator> {
    let given = [("users".to_owned(), USERS.to_string())];
    let rows = HOURS * 3_600 * USERS as u64;
    find_generator("positions")
        .unwrap()
        .start(rows, 11, &given)
        .unwrap()
}

/// Fixes of each user in metres around the first.
fn fixes() -> Vec<Vec<Fix>> {
    let batch = stream().next_batch(usize::MAX).unwrap().unwrap();
    let times = batch
        .column(0)
        .as_primitive::<TimestampMillisecondType>()
        .values()
        .clone();
    let users = batch
        .column(1)
        .as_primitive::<UInt32Type>()
        .values()
        .clone();
    let latitudes = batch
        .column(2)
        .as_primitive::<Float64Type>()
        .values()
        .clone();
    let longitudes = batch
        .column(3)
        .as_primitive::<Float64Type>()
        .values()
        .clone();
    let altitudes = batch.column(4).as_primitive::<Int32Type>().values();
    assert!(altitudes.iter().all(|it| (0..200).contains(it)));
    let mut fixes: Vec<Vec<Fix>> = (0..USERS).map(|_| Vec::new()).collect();
    for row in 0..batch.num_rows() {
        for degrees in [latitudes[row], longitudes[row]] {
            assert_eq!((degrees * 1e6).round() / 1e6, degrees, "six decimals");
        }
        fixes[users[row] as usize].push(Fix {
            at_ms: times[row],
            east: (longitudes[row] - 116.4) * 111_320.0 * 39.9_f64.to_radians().cos(),
            north: (latitudes[row] - 39.9) * 111_320.0,
        });
    }
    fixes
}

type Trips = BTreeMap<usize, Vec<(i64, i64, String, f64)>>;

fn trips() -> Trips {
    let mut text = Vec::new();
    stream().write_truth(&mut text).unwrap();
    let mut trips = Trips::new();
    for line in String::from_utf8(text).unwrap().lines() {
        let value = |name: &str| {
            let rest = line.split_once(&format!("\"{name}\":")).unwrap().1;
            rest.split([',', '}'])
                .next()
                .unwrap()
                .trim_matches('"')
                .to_owned()
        };
        let whole = |name: &str| value(name).parse::<i64>().unwrap();
        assert_eq!(value("kind"), "trip");
        let metres = value("metres").parse().unwrap();
        let trip = (whole("from_ms"), whole("to_ms"), value("mode"), metres);
        trips.entry(whole("user") as usize).or_default().push(trip);
    }
    trips
}

fn metres(left: &Fix, right: &Fix) -> f64 {
    (left.east - right.east).hypot(left.north - right.north)
}

#[test]
fn nobody_moves_outside_a_trip_and_nobody_flies_within() {
    let trips = trips();
    for (user, fixes) in fixes().iter().enumerate() {
        let of_user = trips.get(&user).cloned().unwrap_or_default();
        for pair in fixes.windows(61).step_by(20) {
            let (first, last) = (&pair[0], &pair[60]);
            let meets = |it: &&(i64, i64, String, f64)| it.0 < last.at_ms && first.at_ms < it.1;
            let speed = metres(first, last) / 60.0;
            match of_user.iter().find(meets) {
                None => assert!(speed < 0.3, "user {user} at {}: {speed}", first.at_ms),
                Some((_, _, mode, _)) => {
                    let fastest = [("walk", 3.0), ("bike", 8.0), ("drive", 20.0)];
                    let limit = fastest.iter().find(|(name, _)| name == mode).unwrap().1;
                    assert!(speed < limit, "user {user}, {mode}: {speed}");
                }
            }
        }
    }
}

#[test]
fn trips_are_as_long_as_the_truth_says() {
    let fixes = fixes();
    let (mut seen, mut modes) = (0, BTreeMap::new());
    for (user, of_user) in trips() {
        for (from_ms, to_ms, mode, length) in of_user {
            let at = |ms: i64| fixes[user].iter().find(|fix| fix.at_ms >= ms);
            let (Some(from), Some(to)) = (at(from_ms), at(to_ms)) else {
                continue;
            };
            assert!(
                (metres(from, to) - length).abs() < 25.0,
                "user {user}: {length}"
            );
            *modes.entry(mode).or_insert(0) += 1;
            seen += 1;
        }
    }
    assert!(seen > 50 && modes.len() == 3, "{modes:?}");
}
