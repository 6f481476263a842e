//! The VM-health query on recorded counters: states of machines and how long they lasted, beside a
//! loop over the rows.
//!
//! The recordings have no known outages: what is compared is every change and its duration. The
//! trace of 25 machines has the processor alone, the one machine all counters, CloudWatch one
//! series a file.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use tersecades_engine::aggregate::call;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::source::{SourceOptions, open};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;

use crate::data_set::data_folder;
use crate::{report, skip};

const INTERVAL_S: i64 = 300;

/// A recording: where it is, and what its columns are called.
struct Recording {
    file: &'static str,
    machine: Option<&'static str>,
    time: &'static str,
    /// Ticks of the time in a second, as it is read.
    ticks: i64,
    processor: &'static str,
    /// From here on a machine works.
    active: f64,
    network: &'static [&'static str],
}

const RECORDINGS: &[Recording] = &[
    Recording {
        file: "bitbrains_small/one_vm_all_counters.csv",
        machine: None,
        time: "Timestamp [ms]",
        ticks: 1,
        processor: "CPU usage [%]",
        active: 1.0,
        network: &[
            "Network received throughput [KB/s]",
            "Network transmitted throughput [KB/s]",
        ],
    },
    Recording {
        file: "bitbrains_small/trace_by_time.parquet",
        machine: Some("id"),
        time: "timestamp",
        ticks: 1_000,
        processor: "cpu_usage",
        active: 500.0,
        network: &[],
    },
    Recording {
        file: "nab_cloudwatch/ec2_cpu_utilization_825cc2.csv",
        machine: None,
        time: "timestamp",
        ticks: 1_000_000,
        processor: "value",
        active: 90.0,
        network: &[],
    },
];

/// A change: when (in seconds), whose, and how long what was before lasted.
type Change = (i64, String, i64);

fn asked(recording: &Recording, rows: &[RecordBatch]) -> Vec<Change> {
    let unit = TimeUnit::Second;
    let network = recording.network.iter().map(|name| col(*name));
    let network = network
        .reduce(|a, b| a + b)
        .unwrap_or_else(|| col(recording.processor) * 0.0);
    let stream = Stream::from_batches(rows[0].schema(), rows.to_vec())
        .event_time(col(recording.time), Duration::ZERO)
        .event_time_unit(unit);
    let keys: Vec<&str> = recording.machine.into_iter().collect();
    let mut states: Vec<(&str, Expression)> = vec![
        ("window_start", col("window_start")),
        ("active", col("processor").gt_eq(recording.active)),
        ("silent", col("network").eq(0.0)),
    ];
    states.extend(keys.iter().map(|key| (*key, col(*key))));
    let run = stream
        .window(tumble(Duration::from_secs(INTERVAL_S as u64)))
        .group_by(keys.clone())
        .aggregate([
            call("max", col(recording.processor)).alias("processor"),
            call("max", network).alias("network"),
        ])
        .project(states)
        .changes(["active", "silent"], keys.clone())
        .run()
        .unwrap();
    let mut changes = Vec::new();
    for batch in run {
        let batch = batch.unwrap();
        let integers = |name: &str| cast(batch.column_by_name(name).unwrap(), &DataType::Int64);
        let (times, lasted) = (
            integers("window_start").unwrap(),
            integers("lasted").unwrap(),
        );
        let machines = texts(&batch, recording.machine);
        for (row, machine) in machines.into_iter().enumerate() {
            let seconds = |column: &dyn Array| {
                let ticks = column.as_primitive::<Int64Type>().value(row);
                ticks.div_euclid(recording.ticks)
            };
            changes.push((seconds(&times), machine, seconds(&lasted)));
        }
    }
    changes.sort();
    changes
}

fn texts(batch: &RecordBatch, name: Option<&str>) -> Vec<String> {
    let Some(name) = name else {
        return vec![String::new(); batch.num_rows()];
    };
    let column = cast(batch.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
    let texts = column.as_string::<i32>();
    texts.iter().map(|text| text.unwrap().to_owned()).collect()
}

fn floats(batch: &RecordBatch, name: &str) -> Vec<f64> {
    let column = cast(batch.column_by_name(name).unwrap(), &DataType::Float64).unwrap();
    column.as_primitive::<Float64Type>().values().to_vec()
}

/// The same, by a loop.
fn expected(recording: &Recording, rows: &[RecordBatch]) -> Vec<Change> {
    let mut groups: BTreeMap<(i64, String), (f64, f64)> = BTreeMap::new();
    for batch in rows {
        let times = cast(
            batch.column_by_name(recording.time).unwrap(),
            &DataType::Int64,
        )
        .unwrap();
        let times = times.as_primitive::<Int64Type>();
        let processor = floats(batch, recording.processor);
        let network: Vec<Vec<f64>> = recording
            .network
            .iter()
            .map(|it| floats(batch, it))
            .collect();
        for (row, machine) in texts(batch, recording.machine).into_iter().enumerate() {
            let second = times.value(row).div_euclid(recording.ticks);
            let start = second - second.rem_euclid(INTERVAL_S);
            let group = groups
                .entry((start, machine))
                .or_insert((f64::MIN, f64::MIN));
            let traffic: f64 = network.iter().map(|column| column[row]).sum();
            *group = (group.0.max(processor[row]), group.1.max(traffic));
        }
    }
    let mut known: HashMap<String, ((bool, bool), i64)> = HashMap::new();
    let mut changes = Vec::new();
    for ((start, machine), (processor, network)) in groups {
        let state = (processor >= recording.active, network == 0.0);
        let before = known.entry(machine.clone()).or_insert((state, start));
        if before.0 != state {
            changes.push((start, machine, start - before.1));
            *before = (state, start);
        }
    }
    changes.sort();
    changes
}

#[test]
fn changes_of_state_and_their_durations_are_those_of_a_loop() {
    for recording in RECORDINGS {
        let path = data_folder().join(recording.file);
        if !path.exists() {
            skip(recording.file);
            continue;
        }
        let mut options = SourceOptions::default();
        options.csv.infer_rows = usize::MAX;
        let mut source = open(&path, &options).unwrap();
        let rows: Vec<RecordBatch> = std::iter::from_fn(|| source.next().unwrap()).collect();
        let changes = asked(recording, &rows);
        assert_eq!(changes, expected(recording, &rows), "{}", recording.file);
        assert!(
            changes.len() > 3,
            "{}: {} changes",
            recording.file,
            changes.len()
        );
        report(&format!(
            "{}: {} changes of state",
            recording.file,
            changes.len()
        ));
    }
}
