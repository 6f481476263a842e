//! Seeded positions: users who stay at their places and travel between them, once a second each.
//!
//! Each user has four places. In every slot of two hours a user makes at most one trip, on foot,
//! by bicycle or by car depending on how far it is, with halts on the way; the rest of the time
//! the receiver only jitters. The truth file names every trip.
//!
//! ```text
//! row  = step * users + user
//! trip = function of (seed, user, slot): from, to, departure, halts, bend of the way
//! fix  = way at the moment + drift of the receiver, in millionths of a degree
//! ```

mod trip;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int32Array, RecordBatch, TimestampMillisecondArray, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use self::trip::{SLOT_MS, Spot, Trip, Trips};
use super::grid::{Clock, Grid, GridModel, check_count};
use super::kind::GeneratorKind;
use super::parameter::{Arguments, Parameter, ParameterKind};
use super::signal::{Drift, wave};
use super::truth::{Part, object};

/// The line of this generator in [`super::GENERATORS`].
pub const KIND: GeneratorKind = GeneratorKind {
    name: "positions",
    summary: "positions of users who stay and travel, a fix a second",
    parameters: PARAMETERS,
    open: |rows, seed, arguments| {
        Ok(Box::new(Grid::new(
            Model::new(rows, seed, arguments)?,
            rows,
        )))
    },
};

/// Metres in a degree of latitude.
const METRES_PER_DEGREE: f64 = 111_320.0;
/// Millionths of a degree: the digits of a fix.
const DIGITS: f64 = 1e6;
/// How far a receiver errs at most, in each direction.
const JITTER_METRES: f64 = 4.0;

const EAST_STREAM: u64 = 210;
const NORTH_STREAM: u64 = 211;
const HEIGHT_STREAM: u64 = 212;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "start_ms",
        kind: ParameterKind::Whole,
        default: "1700006400000",
        summary: "time of the first fixes, in ms since 1970 UTC",
    },
    Parameter {
        name: "interval",
        kind: ParameterKind::Duration,
        default: "1s",
        summary: "time between two fixes of a user",
    },
    Parameter {
        name: "users",
        kind: ParameterKind::Count,
        default: "200",
        summary: "users",
    },
    Parameter {
        name: "latitude",
        kind: ParameterKind::Number,
        default: "39.9",
        summary: "middle of the town, in degrees from -80 to 80",
    },
    Parameter {
        name: "longitude",
        kind: ParameterKind::Number,
        default: "116.4",
        summary: "middle of the town, in degrees from -179 to 179",
    },
    Parameter {
        name: "radius_km",
        kind: ParameterKind::Number,
        default: "12",
        summary: "how far from it users live, from 0.1 to 30",
    },
];

/// Users, their trips and their receivers.
struct Model {
    clock: Clock,
    users: u64,
    latitude: f64,
    longitude: f64,
    metres_per_degree_east: f64,
    trips: Trips,
    /// The trip of each user in the slot that was asked for last.
    travelling: Vec<Option<(u64, Option<Trip>)>>,
    east: Drift,
    north: Drift,
    height: Drift,
}

impl Model {
    fn new(rows: u64, seed: u64, arguments: &Arguments<'_>) -> Result<Self> {
        let users = check_count("users", arguments.count_u32("users")?, 1 << 20)?;
        let interval = arguments.duration("interval")?;
        let steps = rows / u64::from(users);
        let latitude = bounded(arguments, "latitude", -80.0, 80.0)?;
        let longitude = bounded(arguments, "longitude", -179.0, 179.0)?;
        let radius_km = bounded(arguments, "radius_km", 0.1, 30.0)?;
        Ok(Model {
            clock: Clock::new(arguments.whole("start_ms")?, interval, steps)?,
            users: users.into(),
            latitude,
            longitude,
            metres_per_degree_east: METRES_PER_DEGREE * wave(0.25 + latitude / 360.0),
            trips: Trips::new(seed, radius_km * 1_000.0),
            travelling: vec![None; users as usize],
            east: Drift::new(seed, EAST_STREAM, 30),
            north: Drift::new(seed, NORTH_STREAM, 30),
            height: Drift::new(seed, HEIGHT_STREAM, 60),
        })
    }

    /// Where `user` is, without the errors of the receiver.
    fn spot(&mut self, user: u64, step: u64) -> Spot {
        let now_ms = self.clock.step_ms.unsigned_abs() * step;
        let slot = now_ms / SLOT_MS;
        let travelling = &mut self.travelling[user as usize];
        let trip = match travelling {
            Some((known, trip)) if *known == slot => trip,
            _ => &mut travelling.insert((slot, self.trips.at(user, slot))).1,
        };
        match trip {
            Some(trip) => trip.spot(now_ms),
            None => self.trips.place(user, slot),
        }
    }

    fn degrees(&self, spot: Spot) -> (f64, f64) {
        let rounded = |degrees: f64| (degrees * DIGITS).round() / DIGITS;
        (
            rounded(self.latitude + spot.north / METRES_PER_DEGREE),
            rounded(self.longitude + spot.east / self.metres_per_degree_east),
        )
    }

    /// Metres above the sea.
    fn altitude(&self, user: u64, step: u64, spot: Spot) -> i32 {
        let hills = 40.0 * wave(spot.east / 7_000.0) + 25.0 * wave(spot.north / 4_500.0);
        // Within a few hundred metres of the sea.
        (80.0 + hills + 3.0 * self.height.at(user, step)).round() as i32
    }
}

impl GridModel for Model {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn batch(&mut self, range: Range<u64>) -> Result<RecordBatch> {
        let rows = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut timestamps = Vec::with_capacity(rows);
        let mut users = Vec::with_capacity(rows);
        let mut latitudes = Vec::with_capacity(rows);
        let mut longitudes = Vec::with_capacity(rows);
        let mut altitudes = Vec::with_capacity(rows);
        for row in range {
            let (step, user) = (row / self.users, row % self.users);
            let mut spot = self.spot(user, step);
            altitudes.push(self.altitude(user, step, spot));
            spot.east += JITTER_METRES * self.east.at(user, step);
            spot.north += JITTER_METRES * self.north.at(user, step);
            let (latitude, longitude) = self.degrees(spot);
            timestamps.push(self.clock.at_ms(step));
            // There are at most 2^20 users.
            users.push(user as u32);
            latitudes.push(latitude);
            longitudes.push(longitude);
        }
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::new(timestamps.into(), None)),
            Arc::new(UInt32Array::new(users.into(), None)),
            Arc::new(Float64Array::new(latitudes.into(), None)),
            Arc::new(Float64Array::new(longitudes.into(), None)),
            Arc::new(Int32Array::new(altitudes.into(), None)),
        ];
        Ok(RecordBatch::try_new(schema(), arrays)?)
    }

    fn write_truth(&self, rows: u64, out: &mut dyn Write) -> Result<()> {
        let end_ms = self.clock.step_ms.unsigned_abs() * rows.div_ceil(self.users);
        for slot in 0..end_ms.div_ceil(SLOT_MS) {
            let trips = (0..self.users).filter_map(|user| Some((user, self.trips.at(user, slot)?)));
            let mut trips: Vec<(u64, Trip)> = trips.collect();
            trips.sort_by_key(|(user, trip)| (trip.departure_ms, *user));
            for (user, trip) in trips.iter().filter(|(_, it)| it.departure_ms < end_ms) {
                writeln!(out, "{}", self.describe(*user, trip))?;
            }
        }
        Ok(())
    }
}

impl Model {
    fn describe(&self, user: u64, trip: &Trip) -> String {
        let at_ms = |ms: u64| Part::Whole(self.clock.start_ms + ms.cast_signed());
        let ((from_latitude, from_longitude), (to_latitude, to_longitude)) =
            (self.degrees(trip.from), self.degrees(trip.to));
        object(&[
            ("kind", Part::Text("trip")),
            ("user", Part::Whole(user.cast_signed())),
            ("from_ms", at_ms(trip.departure_ms)),
            ("to_ms", at_ms(trip.arrival_ms())),
            ("mode", Part::Text(trip.mode.name)),
            ("metres", Part::Number(trip.metres().round())),
            ("halts", Part::Whole(trip.halts().cast_signed())),
            ("from_latitude", Part::Number(from_latitude)),
            ("from_longitude", Part::Number(from_longitude)),
            ("to_latitude", Part::Number(to_latitude)),
            ("to_longitude", Part::Number(to_longitude)),
        ])
    }
}

/// The number `name`, if it lies between `least` and `most`.
fn bounded(arguments: &Arguments<'_>, name: &str, least: f64, most: f64) -> Result<f64> {
    let number = arguments.number(name)?;
    match (least..=most).contains(&number) {
        true => Ok(number),
        false => {
            Err(Error::invalid(format!("`{name}` is {number}"))
                .hint(format!("use {least} to {most}")))
        }
    }
}

/// Schema of a stream of positions.
///
/// # Source
/// TerseCades (ATC 2018), Table 5, with the user that its data set keeps in folder names.
pub fn schema() -> SchemaRef {
    let fields = [
        (
            "timestamp",
            DataType::Timestamp(TimeUnit::Millisecond, None),
        ),
        ("user", DataType::UInt32),
        ("latitude", DataType::Float64),
        ("longitude", DataType::Float64),
        ("altitude", DataType::Int32),
    ];
    let fields = fields.map(|(name, data_type)| Field::new(name, data_type, false));
    Arc::new(Schema::new(fields.to_vec()))
}
