//! Seeded weather: stations that report 18 metrics, with gaps, and sensors that get stuck.
//!
//! Metrics hang together as real ones do: clouds dim the sun, the sun warms the ground, warm air
//! is dry, fronts bring low pressure, wind and rain. Each has a fixed number of decimals. Some
//! values are missing; now and then one sensor of a station repeats itself for a while, which
//! the truth file names.
//!
//! ```text
//! row = step * stations + station
//! sky and air   functions of (seed, station, step): season, day, drifting clouds and fronts
//! stuck sensor  at most one a station in 64 steps
//! ```

mod metric;
mod sensor;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::Result;

use self::metric::{Climate, METRICS, METRICS_COUNT};
use self::sensor::{SLOT_STEPS, Sensors, Stuck};
use super::grid::{Clock, Grid, GridModel, check_count};
use super::kind::GeneratorKind;
use super::parameter::{Arguments, Parameter, ParameterKind};
use super::truth::{Part, object};

/// The line of this generator in [`super::GENERATORS`].
pub const KIND: GeneratorKind = GeneratorKind {
    name: "weather",
    summary: "18 metrics of weather stations, with gaps and sensors that get stuck",
    parameters: PARAMETERS,
    open: |rows, seed, arguments| {
        Ok(Box::new(Grid::new(
            Model::new(rows, seed, arguments)?,
            rows,
        )))
    },
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "start_ms",
        kind: ParameterKind::Whole,
        default: "1700006400000",
        summary: "time of the first reports, in ms since 1970 UTC",
    },
    Parameter {
        name: "interval",
        kind: ParameterKind::Duration,
        default: "1h",
        summary: "time between two reports of a station",
    },
    Parameter {
        name: "stations",
        kind: ParameterKind::Count,
        default: "250",
        summary: "stations",
    },
    Parameter {
        name: "missing_share",
        kind: ParameterKind::Number,
        default: "0.01",
        summary: "share of values that are missing",
    },
    Parameter {
        name: "stuck_share",
        kind: ParameterKind::Number,
        default: "0.02",
        summary: "chance that a sensor of a station gets stuck within 64 reports",
    },
];

/// A slot of a station, and the sensor that is stuck in it.
type KnownSlot = (u64, Option<(Stuck, f64)>);

/// Stations and what they measure.
struct Model {
    clock: Clock,
    stations: u64,
    names: Arc<StringArray>,
    climate: Climate,
    sensors: Sensors,
    /// The stuck sensor of each station in the slot that was asked for last, with its value.
    stuck: Vec<Option<KnownSlot>>,
}

impl Model {
    fn new(rows: u64, seed: u64, arguments: &Arguments<'_>) -> Result<Self> {
        let stations = check_count("stations", arguments.count_u32("stations")?, 99_999)?;
        let interval = arguments.duration("interval")?;
        let steps = rows / u64::from(stations);
        let clock = Clock::new(arguments.whole("start_ms")?, interval, steps)?;
        let missing = arguments.share("missing_share")?;
        Ok(Model {
            clock,
            stations: stations.into(),
            names: Arc::new(
                (1..=stations)
                    .map(|it| Some(format!("wx-{it:05}")))
                    .collect(),
            ),
            climate: Climate::new(seed, clock, u64::from(stations)),
            sensors: Sensors::new(seed, missing, arguments.share("stuck_share")?),
            stuck: vec![None; stations as usize],
        })
    }

    /// The stuck sensor of `station` in `slot`, with the value that it repeats.
    fn find_stuck(&self, station: u64, slot: u64) -> Option<(Stuck, f64)> {
        let stuck = self.sensors.stuck(station, slot)?;
        let values = self.climate.measure(station, stuck.steps.start);
        let value = values[stuck.metric];
        Some((stuck, value))
    }

    /// What the sensors of `station` say at `step`; NaN where a value is missing.
    fn report(&mut self, station: u64, step: u64) -> [f64; METRICS_COUNT] {
        let slot = step / SLOT_STEPS;
        let known = matches!(&self.stuck[station as usize], Some((of, _)) if *of == slot);
        if !known {
            let found = self.find_stuck(station, slot);
            self.stuck[station as usize] = Some((slot, found));
        }
        let mut values = self.climate.measure(station, step);
        self.sensors.lose(station, step, &mut values);
        if let Some((_, Some((stuck, value)))) = &self.stuck[station as usize]
            && stuck.steps.contains(&step)
        {
            values[stuck.metric] = *value;
        }
        values
    }
}

impl GridModel for Model {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn batch(&mut self, range: Range<u64>) -> Result<RecordBatch> {
        let rows = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut stations = Vec::with_capacity(rows);
        let mut timestamps = Vec::with_capacity(rows);
        let new_column = || (Vec::with_capacity(rows), NullBufferBuilder::new(rows));
        let mut metrics: [(Vec<f64>, NullBufferBuilder); METRICS_COUNT] =
            std::array::from_fn(|_| new_column());
        for row in range {
            let (step, station) = (row / self.stations, row % self.stations);
            // There are at most 99,999 stations.
            stations.push(station as i32);
            timestamps.push(self.clock.at_ms(step));
            for ((values, nulls), value) in metrics.iter_mut().zip(self.report(station, step)) {
                nulls.append(!value.is_nan());
                values.push(if value.is_nan() { 0.0 } else { value });
            }
        }
        let stations = Int32Array::new(stations.into(), None);
        let stations =
            DictionaryArray::<Int32Type>::try_new(stations, Arc::clone(&self.names) as _)?;
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(stations),
            Arc::new(TimestampMillisecondArray::new(timestamps.into(), None)),
        ];
        for (values, mut nulls) in metrics {
            arrays.push(Arc::new(Float64Array::new(values.into(), nulls.finish())));
        }
        Ok(RecordBatch::try_new(schema(), arrays)?)
    }

    fn write_truth(&self, rows: u64, out: &mut dyn Write) -> Result<()> {
        let steps = rows.div_ceil(self.stations);
        for slot in 0..steps.div_ceil(SLOT_STEPS) {
            let stuck = |station| Some((station, self.find_stuck(station, slot)?));
            let mut stuck: Vec<(u64, (Stuck, f64))> =
                (0..self.stations).filter_map(stuck).collect();
            stuck.sort_by_key(|(station, (it, _))| (it.steps.start, *station));
            for (station, (it, value)) in stuck.iter().filter(|(_, (it, _))| it.steps.start < steps)
            {
                // There are at most 99,999 stations.
                let record = object(&[
                    ("kind", Part::Text("stuck_sensor")),
                    ("station", Part::Text(self.names.value(*station as usize))),
                    ("metric", Part::Text(METRICS[it.metric].name)),
                    ("from_ms", Part::Whole(self.clock.at_ms(it.steps.start))),
                    ("to_ms", Part::Whole(self.clock.at_ms(it.steps.end))),
                    ("value", Part::Number(*value)),
                ]);
                writeln!(out, "{record}")?;
            }
        }
        Ok(())
    }
}

/// Schema of a stream of weather: station, time, and the metrics, which may be null.
///
/// # Source
/// TerseCades (ATC 2018), section 5.3: 18 metrics with a fixed number of digits.
pub fn schema() -> SchemaRef {
    let name = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let time = DataType::Timestamp(TimeUnit::Millisecond, None);
    let mut fields = vec![
        Field::new("station", name, false),
        Field::new("timestamp", time, false),
    ];
    let metric = |metric: &metric::Metric| Field::new(metric.name, DataType::Float64, true);
    fields.extend(METRICS.iter().map(metric));
    Arc::new(Schema::new(fields))
}
