//! Weather keeps its digits and its correlations, loses the share asked for, and says what sticks.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMillisecondType};
use arrow_array::{Array, Float64Array, RecordBatch};
use arrow_schema::DataType;

use super::metric::METRICS;
use crate::source::generator::{Generator, find_generator};

const STATIONS: usize = 20;
const STEPS: usize = 2_000;

fn stream(missing: &str, stuck: &str) -> Box<dyn Generator> {
    let given = [
        ("stations", STATIONS.to_string()),
        ("missing_share", missing.to_owned()),
        ("stuck_share", stuck.to_owned()),
    ];
    let given: Vec<(String, String)> = given.map(|(name, text)| (name.to_owned(), text)).to_vec();
    let rows = (STATIONS * STEPS) as u64;
    find_generator("weather")
        .unwrap()
        .start(rows, 5, &given)
        .unwrap()
}

fn batch(missing: &str, stuck: &str) -> RecordBatch {
    stream(missing, stuck)
        .next_batch(usize::MAX)
        .unwrap()
        .unwrap()
}

fn metric<'a>(batch: &'a RecordBatch, name: &str) -> &'a Float64Array {
    batch
        .column_by_name(name)
        .unwrap()
        .as_primitive::<Float64Type>()
}

fn correlation(batch: &RecordBatch, left: &str, right: &str) -> f64 {
    let (left, right) = (metric(batch, left).values(), metric(batch, right).values());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (left_mean, right_mean) = (mean(left), mean(right));
    let pairs = left
        .iter()
        .zip(right)
        .map(|(l, r)| (l - left_mean, r - right_mean));
    let sums = pairs.fold((0.0, 0.0, 0.0), |(lr, ll, rr), (l, r)| {
        (lr + l * r, ll + l * l, rr + r * r)
    });
    sums.0 / (sums.1 * sums.2).sqrt()
}

#[test]
fn metrics_have_their_digits_and_bounds() {
    let batch = batch("0", "0");
    assert_eq!(batch.num_columns(), 20);
    for (index, it) in METRICS.iter().enumerate() {
        let values = batch.column(index + 2).as_primitive::<Float64Type>();
        assert_eq!(values.null_count(), 0);
        let scale = if it.name == "battery_v" { 100.0 } else { 10.0 };
        assert!(
            values
                .values()
                .iter()
                .all(|v| (v * scale).round() / scale == *v),
            "{}",
            it.name
        );
        let different = values.values().windows(2).any(|pair| pair[0] != pair[1]);
        assert!(different, "{} never changes", it.name);
    }
    let within = |name: &str, least: f64, most: f64| {
        let values = metric(&batch, name).values();
        assert!(values.iter().all(|v| (least..=most).contains(v)), "{name}");
    };
    within("temperature_c", -60.0, 55.0);
    within("humidity_percent", 8.0, 100.0);
    within("sea_level_pressure_hpa", 960.0, 1_060.0);
    within("wind_direction_deg", 0.0, 360.0);
    within("cloud_cover_percent", 0.0, 100.0);
    within("solar_radiation_wm2", 0.0, 1_050.0);
    let gusts = metric(&batch, "wind_gust_mps").values().iter();
    assert!(
        gusts
            .zip(metric(&batch, "wind_speed_mps").values())
            .all(|(gust, wind)| gust >= wind)
    );
}

#[test]
fn metrics_hang_together() {
    let batch = batch("0", "0");
    assert!(correlation(&batch, "temperature_c", "dew_point_c") > 0.7);
    assert!(correlation(&batch, "temperature_c", "soil_temperature_c") > 0.8);
    assert!(correlation(&batch, "solar_radiation_wm2", "uv_index") > 0.95);
    assert!(correlation(&batch, "sea_level_pressure_hpa", "wind_speed_mps") < -0.3);
    assert!(correlation(&batch, "cloud_cover_percent", "precipitation_mm") > 0.15);
}

#[test]
fn the_share_asked_for_is_missing() {
    let batch = batch("0.05", "0");
    for column in 2..batch.num_columns() {
        let share = batch.column(column).null_count() as f64 / batch.num_rows() as f64;
        assert!((share - 0.05).abs() < 0.006, "column {column}: {share}");
    }
}

/// From, to, value.
type Intervals = Vec<(i64, i64, f64)>;

fn truth() -> BTreeMap<(String, String), Intervals> {
    let mut text = Vec::new();
    stream("0.01", "0.3").write_truth(&mut text).unwrap();
    let mut truth: BTreeMap<(String, String), Intervals> = BTreeMap::new();
    for line in String::from_utf8(text).unwrap().lines() {
        let value = |name: &str| {
            let rest = line.split_once(&format!("\"{name}\":")).unwrap().1;
            rest.split([',', '}'])
                .next()
                .unwrap()
                .trim_matches('"')
                .to_owned()
        };
        let interval = (
            value("from_ms").parse().unwrap(),
            value("to_ms").parse().unwrap(),
            value("value").parse().unwrap(),
        );
        truth
            .entry((value("station"), value("metric")))
            .or_default()
            .push(interval);
    }
    truth
}

#[test]
fn sensors_repeat_themselves_when_the_truth_says_so_and_not_otherwise() {
    let (batch, truth) = (batch("0.01", "0.3"), truth());
    assert!(truth.len() > 30);
    let stations = arrow_cast::cast(batch.column(0), &DataType::Utf8).unwrap();
    let stations = stations.as_string::<i32>();
    let at = batch.column(1).as_primitive::<TimestampMillisecondType>();
    for it in METRICS.iter().filter(|metric| metric.is_lively) {
        let values = metric(&batch, it.name);
        for station in 0..STATIONS {
            let key = (stations.value(station).to_owned(), it.name.to_owned());
            let stuck = truth.get(&key).cloned().unwrap_or_default();
            let (mut run, mut last) = (0, f64::NAN);
            for row in (station..batch.num_rows()).step_by(STATIONS) {
                let now = at.value(row);
                if let Some((_, _, value)) = stuck.iter().find(|it| (it.0..it.1).contains(&now)) {
                    assert!(
                        values.is_valid(row) && values.value(row) == *value,
                        "{key:?} {now}"
                    );
                    run = 0;
                } else if values.is_valid(row) {
                    run = if values.value(row) == last {
                        run + 1
                    } else {
                        1
                    };
                    last = values.value(row);
                    assert!(run < 8, "{key:?} repeats {last} at {now}");
                }
            }
        }
    }
}
