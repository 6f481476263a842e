//! The weather itself: 18 metrics of a station at a moment, from season, day, clouds and fronts.

use super::super::grid::Clock;
use super::super::random::{CounterStream, high, low, unit};
use super::super::signal::{Drift, bell, cell, wave};

const STATION_STREAM: u64 = 300;
const NOISE_STREAM: u64 = 301;
const CLOUD_STREAM: u64 = 302;
const FRONT_STREAM: u64 = 303;
const WIND_STREAM: u64 = 304;
const SOIL_STREAM: u64 = 305;
const SMOG_STREAM: u64 = 306;

/// Draws of the noise of one report.
const DRAWS: u64 = 16;
const HOUR_MS: i64 = 3_600_000;

/// Number of metrics.
pub(super) const METRICS_COUNT: usize = 18;

/// One metric.
pub(super) struct Metric {
    pub(super) name: &'static str,
    /// Decimals of its values.
    digits: i32,
    /// Whether its noise is above its last digit, so that it never repeats for long by itself.
    pub(super) is_lively: bool,
}

const fn metric(name: &'static str, digits: i32) -> Metric {
    Metric {
        name,
        digits,
        is_lively: false,
    }
}

const fn lively(name: &'static str, digits: i32) -> Metric {
    Metric {
        name,
        digits,
        is_lively: true,
    }
}

/// Every metric, in the order of the columns.
pub(super) const METRICS: [Metric; METRICS_COUNT] = [
    lively("temperature_c", 1),
    lively("dew_point_c", 1),
    metric("humidity_percent", 0),
    lively("pressure_hpa", 1),
    metric("sea_level_pressure_hpa", 1),
    lively("wind_speed_mps", 1),
    metric("wind_gust_mps", 1),
    metric("wind_direction_deg", 0),
    metric("precipitation_mm", 1),
    metric("visibility_km", 1),
    metric("cloud_cover_percent", 0),
    metric("solar_radiation_wm2", 0),
    metric("uv_index", 1),
    metric("soil_temperature_c", 1),
    metric("soil_moisture_percent", 1),
    metric("snow_depth_cm", 0),
    metric("pm25_ugm3", 0),
    metric("battery_v", 2),
];

/// Climates of all stations, and the weather that passes over them.
pub(super) struct Climate {
    clock: Clock,
    stations: Vec<Station>,
    noise: CounterStream,
    clouds: Drift,
    fronts: Drift,
    winds: Drift,
    soil: Drift,
    smog: Drift,
}

/// What does not change at a station.
struct Station {
    /// Part of a turn that local time is ahead.
    east: f64,
    /// 0 at the equator, 1 at the poles.
    polar: f64,
    /// 1 in the north, -1 in the south.
    side: f64,
    elevation_metres: f64,
    /// How dirty the air is on average.
    smog: f64,
}

impl Station {
    fn new(first: u64, second: u64) -> Self {
        Station {
            east: unit(high(first)),
            polar: 0.05 + 0.65 * unit(low(first)),
            side: if high(second) & 3 == 0 { -1.0 } else { 1.0 },
            elevation_metres: 900.0 * unit(low(second)) * unit(high(second)),
            smog: unit(high(first ^ second)),
        }
    }
}

/// The state of the sky, from which the rest follows.
struct Sky {
    /// 0 to 1.
    clouds: f64,
    /// Height of the sun, 0 by night to 1.
    sun: f64,
    /// -1 to 1, 1 in the warmest hour.
    warmth: f64,
    /// -1 to 1, 1 in the warmest month.
    season: f64,
    /// -1 to 1, -1 in the deepest low.
    front: f64,
}

impl Climate {
    /// Climates of `stations` stations.
    pub(super) fn new(seed: u64, clock: Clock, stations: u64) -> Self {
        let draws = CounterStream::new(seed, STATION_STREAM);
        let station = |it: u64| Station::new(draws.draw(2 * it), draws.draw(2 * it + 1));
        let hours = |hours: i64| (hours * HOUR_MS / clock.step_ms).unsigned_abs();
        Climate {
            clock,
            stations: (0..stations).map(station).collect(),
            noise: CounterStream::new(seed, NOISE_STREAM),
            clouds: Drift::new(seed, CLOUD_STREAM, hours(14)),
            fronts: Drift::new(seed, FRONT_STREAM, hours(60)),
            winds: Drift::new(seed, WIND_STREAM, hours(5)),
            soil: Drift::new(seed, SOIL_STREAM, hours(200)),
            smog: Drift::new(seed, SMOG_STREAM, hours(30)),
        }
    }

    fn sky(&self, place: &Station, station: u64, step: u64) -> Sky {
        const YEAR_DAYS: f64 = 365.242_5;
        let day = self.clock.day(step);
        let local = day + place.east;
        let season = place.side * wave(day / YEAR_DAYS - 0.3);
        let front = self.fronts.at(station, step);
        let clouds = 0.45 + 0.75 * self.clouds.at(station, step) - 0.35 * front;
        let height = wave(local - 0.25) * (1.0 - 0.6 * place.polar) + 0.35 * season * place.polar;
        Sky {
            clouds: clouds.clamp(0.0, 1.0),
            sun: height.clamp(0.0, 1.0),
            warmth: wave(local - 0.375),
            season,
            front,
        }
    }

    /// All metrics of `station` at `step`, rounded to their digits.
    pub(super) fn measure(&self, station: u64, step: u64) -> [f64; METRICS_COUNT] {
        let place = &self.stations[station as usize];
        let sky = self.sky(place, station, step);
        let first = cell(station, step).wrapping_mul(DRAWS);
        let noise = |index: u64| bell(self.noise.draw(first.wrapping_add(index)));

        let mean = 27.0 - 32.0 * place.polar - 0.006_5 * place.elevation_metres;
        let month = mean + 18.0 * place.polar * sky.season;
        let clear = 1.0 - 0.6 * sky.clouds;
        let temperature = month + 5.5 * clear * sky.warmth + 3.5 * sky.front + 0.3 * noise(0);
        let damp = 62.0 - 2.4 * (temperature - month) + 30.0 * (sky.clouds - 0.4) + 1.5 * noise(1);
        let humidity = damp.clamp(8.0, 100.0);
        let sea_pressure = 1_013.0 + 16.0 * sky.front - 3.0 * sky.clouds + 0.2 * noise(2);
        let breeze = self.winds.at(station, step);
        let wind = 2.5 + 4.0 * (1.0 - sky.front) * (0.6 + 0.4 * breeze) + 0.6 * noise(3);
        let wind = wind.max(0.0);
        let raining = (sky.clouds - 0.8).max(0.0) * (0.4 - sky.front).max(0.0);
        let precipitation = 30.0 * raining * (1.0 + 0.3 * noise(4)).max(0.2);
        let fog = (humidity - 92.0).max(0.0) / 8.0;
        let solar = 1_050.0 * sky.sun * (1.0 - 0.75 * sky.clouds);
        let soil_moisture = 28.0 + 12.0 * self.soil.at(station, step) + 0.4 * precipitation;
        let smog = (8.0 + 60.0 * place.smog) * (1.0 + 0.7 * self.smog.at(station, step));
        let values = [
            temperature,
            temperature - (100.0 - humidity) / 5.0 + 0.2 * noise(5),
            humidity,
            sea_pressure - 0.115 * place.elevation_metres + 0.2 * noise(6),
            sea_pressure,
            wind,
            wind * (1.35 + 0.12 * noise(7).abs()),
            (180.0 + 170.0 * breeze + 5.0 * noise(8)).rem_euclid(360.0),
            precipitation,
            (35.0 - 22.0 * fog - 4.0 * precipitation.min(5.0)).max(0.1),
            100.0 * sky.clouds,
            solar,
            0.011 * solar,
            month + 1.5 * clear * sky.warmth + 0.05 * noise(9),
            soil_moisture.clamp(3.0, 60.0),
            (-4.0 * month).max(0.0),
            (smog - 1.5 * wind + 1.5 * noise(10)).max(1.0),
            12.45 + 0.9 * (solar / 1_050.0) + 0.01 * noise(11),
        ];
        std::array::from_fn(|index| round(values[index], METRICS[index].digits))
    }
}

/// `value` with `digits` decimals; never a negative zero.
fn round(value: f64, digits: i32) -> f64 {
    let scale = [1.0, 10.0, 100.0][digits.clamp(0, 2) as usize];
    (value * scale).round() / scale + 0.0
}
