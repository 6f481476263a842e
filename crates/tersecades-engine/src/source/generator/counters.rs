//! Seeded performance counters of virtual machines, some of which lose their network.
//!
//! At every interval each machine reports eight counters. Machines are idle, steady, follow the
//! day or come in bursts; counters of one machine share its activity. Now and then an active
//! machine loses its network: its two network counters are flat zero while its processor goes on.
//! The truth file names each loss.
//!
//! ```text
//! row = (interval * vms + vm) * 8 + counter
//! class, peaks of a machine      pure functions of (seed, vm)
//! activity                       class, hour of the day, drift: of (seed, vm, interval)
//! loss                           at most one in 64 intervals: of (seed, vm, interval / 64)
//! ```

mod load;
mod outage;
mod place;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use self::load::{COUNTERS, Load, Reading};
use self::outage::Losses;
use self::place::Places;
use super::grid::{Clock, Grid, GridModel, check_count};
use super::kind::GeneratorKind;
use super::name::{coded, coded_type};
use super::parameter::{Arguments, Parameter, ParameterKind};
use super::truth::{Part, object};

/// The line of this generator in [`super::GENERATORS`].
pub const KIND: GeneratorKind = GeneratorKind {
    name: "counters",
    summary: "performance counters of virtual machines, some of which lose their network",
    parameters: PARAMETERS,
    open: |rows, seed, arguments| {
        Ok(Box::new(Grid::new(
            Model::new(rows, seed, arguments)?,
            rows,
        )))
    },
};

/// Average processor load, in percent, from which a machine counts as active.
pub const ACTIVE_PERCENT: f64 = 5.0;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "start_ms",
        kind: ParameterKind::Whole,
        default: "1700006400000",
        summary: "time of the first interval, in ms since 1970 UTC",
    },
    Parameter {
        name: "interval",
        kind: ParameterKind::Duration,
        default: "1m",
        summary: "time between two reports of a machine; one sample a second",
    },
    Parameter {
        name: "datacenters",
        kind: ParameterKind::Count,
        default: "4",
        summary: "data centres, at most 16",
    },
    Parameter {
        name: "clusters",
        kind: ParameterKind::Count,
        default: "20",
        summary: "clusters of all data centres together",
    },
    Parameter {
        name: "nodes",
        kind: ParameterKind::Count,
        default: "400",
        summary: "hosts of all clusters together",
    },
    Parameter {
        name: "vms",
        kind: ParameterKind::Count,
        default: "2000",
        summary: "virtual machines",
    },
    Parameter {
        name: "loss_share",
        kind: ParameterKind::Number,
        default: "0.01",
        summary: "chance that an active machine loses its network within 64 intervals",
    },
];

/// Machines with their places and loads, and when they lose their network.
struct Model {
    clock: Clock,
    vms: u64,
    places: Places,
    load: Load,
    losses: Losses,
    counter_names: Arc<StringArray>,
}

impl Model {
    fn new(rows: u64, seed: u64, arguments: &Arguments<'_>) -> Result<Self> {
        let places = Places::new(
            seed,
            check_count("datacenters", arguments.count_u32("datacenters")?, 16)?,
            check_count("clusters", arguments.count_u32("clusters")?, 900)?,
            check_count("nodes", arguments.count_u32("nodes")?, 1 << 20)?,
            check_count("vms", arguments.count_u32("vms")?, 1 << 20)?,
        )?;
        let interval = arguments.duration("interval")?;
        let vms = places.vms();
        let steps = rows / (vms * COUNTERS.len() as u64);
        let clock = Clock::new(arguments.whole("start_ms")?, interval, steps)?;
        let samples = u32::try_from(interval.as_secs()).map_err(|_| {
            Error::invalid(format!("`interval` is {interval:?}")).hint("use less than a century")
        })?;
        Ok(Model {
            clock,
            vms,
            places,
            load: Load::new(seed, clock, samples.max(1)),
            losses: Losses::new(seed, arguments.share("loss_share")?),
            counter_names: Arc::new(COUNTERS.iter().map(|it| Some(it.name)).collect()),
        })
    }

    /// The machine at `vm`, if it loses its network at `step`.
    fn is_lost(&self, vm: u64, step: u64) -> bool {
        self.losses
            .at(vm, step / outage::SLOT_STEPS)
            .is_some_and(|lost| lost.contains(&step) && self.load.is_active(vm))
    }
}

/// Columns of rows under construction.
#[derive(Default)]
struct Columns {
    timestamp: Vec<i64>,
    vm: Vec<i32>,
    counter: Vec<i32>,
    sample_count: Vec<u32>,
    average: Vec<f64>,
    least: Vec<f64>,
    most: Vec<f64>,
}

impl Columns {
    fn with_capacity(rows: usize) -> Self {
        Columns {
            timestamp: Vec::with_capacity(rows),
            vm: Vec::with_capacity(rows),
            counter: Vec::with_capacity(rows),
            sample_count: Vec::with_capacity(rows),
            average: Vec::with_capacity(rows),
            least: Vec::with_capacity(rows),
            most: Vec::with_capacity(rows),
        }
    }

    fn push(&mut self, at_ms: i64, vm: u64, counter: usize, reading: &Reading) {
        self.timestamp.push(at_ms);
        // There are at most 2^20 machines and 8 counters.
        self.vm.push(vm as i32);
        self.counter.push(counter as i32);
        self.sample_count.push(reading.samples);
        self.average.push(reading.average);
        self.least.push(reading.least);
        self.most.push(reading.most);
    }
}

impl GridModel for Model {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn batch(&mut self, range: Range<u64>) -> Result<RecordBatch> {
        let per_vm = COUNTERS.len() as u64;
        let rows = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut columns = Columns::with_capacity(rows);
        for report in range.start / per_vm..range.end.div_ceil(per_vm) {
            let (step, vm) = (report / self.vms, report % self.vms);
            let activity = self.load.activity(vm, step);
            let lost = self.is_lost(vm, step);
            let first = report * per_vm;
            let wanted = range.start.max(first)..range.end.min(first + per_vm);
            for row in wanted {
                let counter = (row - first) as usize;
                let reading = self.load.read(&activity, counter, lost);
                columns.push(self.clock.at_ms(step), vm, counter, &reading);
            }
        }
        let places = &self.places;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::new(
                columns.timestamp.into(),
                None,
            )),
            coded(
                places.datacenter_codes(&columns.vm),
                places.datacenter_names(),
            )?,
            coded(places.cluster_codes(&columns.vm), places.cluster_names())?,
            coded(places.node_codes(&columns.vm), places.node_names())?,
            coded(columns.vm, places.vm_names())?,
            coded(columns.counter, &self.counter_names)?,
            Arc::new(UInt32Array::new(columns.sample_count.into(), None)),
            Arc::new(Float64Array::new(columns.average.into(), None)),
            Arc::new(Float64Array::new(columns.least.into(), None)),
            Arc::new(Float64Array::new(columns.most.into(), None)),
        ];
        Ok(RecordBatch::try_new(schema(), arrays)?)
    }

    fn write_truth(&self, rows: u64, out: &mut dyn Write) -> Result<()> {
        let steps = rows.div_ceil(self.vms * COUNTERS.len() as u64);
        for slot in 0..steps.div_ceil(outage::SLOT_STEPS) {
            let lost = |vm| Some((self.losses.at(vm, slot)?, vm));
            let active = (0..self.vms).filter(|vm| self.load.is_active(*vm));
            let mut losses: Vec<(Range<u64>, u64)> = active.filter_map(lost).collect();
            losses.sort_unstable_by_key(|(interval, vm)| (interval.start, *vm));
            for (interval, vm) in losses.iter().filter(|(it, _)| it.start < steps) {
                // There are at most 2^20 machines.
                let record = object(&[
                    ("kind", Part::Text("network_lost")),
                    (
                        "vm_id",
                        Part::Text(self.places.vm_names().value(*vm as usize)),
                    ),
                    ("from_ms", Part::Whole(self.clock.at_ms(interval.start))),
                    ("to_ms", Part::Whole(self.clock.at_ms(interval.end))),
                ]);
                writeln!(out, "{record}")?;
            }
        }
        Ok(())
    }
}

/// Schema of a stream of counters.
///
/// # Source
/// TerseCades (ATC 2018), Table 4.
pub fn schema() -> SchemaRef {
    let fields = [
        (
            "timestamp",
            DataType::Timestamp(TimeUnit::Millisecond, None),
        ),
        ("datacenter", coded_type()),
        ("cluster", coded_type()),
        ("node_id", coded_type()),
        ("vm_id", coded_type()),
        ("counter_name", coded_type()),
        ("sample_count", DataType::UInt32),
        ("average_value", DataType::Float64),
        ("min_value", DataType::Float64),
        ("max_value", DataType::Float64),
    ];
    let fields = fields.map(|(name, data_type)| Field::new(name, data_type, false));
    Arc::new(Schema::new(fields.to_vec()))
}
