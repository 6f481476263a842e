//! Where users go: their places, and at most one trip in each slot of time.

use super::super::random::{CounterStream, below, high, low, unit};
use super::super::signal::{cell, wave};

/// Length of a slot.
pub(super) const SLOT_MS: u64 = 7_200_000;

const HOME_STREAM: u64 = 200;
const PLACE_STREAM: u64 = 201;
const CHOICE_STREAM: u64 = 202;
const TRIP_STREAM: u64 = 203;

/// Places of a user: the first is home.
const PLACES: u32 = 4;
/// Part of a stretch that is driven; the rest of it is a halt.
const MOVING_PART: f64 = 0.8;
/// Largest distance from the straight way, as a part of its length.
const BEND_MOST: f64 = 0.12;

/// A point of the plane, in metres from the middle of the town.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spot {
    pub(super) east: f64,
    pub(super) north: f64,
}

/// A way to travel.
#[derive(Debug, PartialEq)]
pub(super) struct Mode {
    pub(super) name: &'static str,
    /// Longest way for which it is taken.
    metres_most: f64,
    /// Metres from one halt to the next.
    stretch_metres: f64,
    /// Time from one departure to the next, halts included.
    stretch_ms: u64,
}

/// On foot, by bicycle, by car; mean speeds of 1.2, 3.75 and 9 m/s.
const MODES: [Mode; 3] = [
    Mode {
        name: "walk",
        metres_most: 1_500.0,
        stretch_metres: 120.0,
        stretch_ms: 100_000,
    },
    Mode {
        name: "bike",
        metres_most: 5_000.0,
        stretch_metres: 300.0,
        stretch_ms: 80_000,
    },
    Mode {
        name: "drive",
        metres_most: f64::MAX,
        stretch_metres: 810.0,
        stretch_ms: 90_000,
    },
];

/// A way from one place to another.
#[derive(Debug, Clone)]
pub(super) struct Trip {
    pub(super) from: Spot,
    pub(super) to: Spot,
    pub(super) mode: &'static Mode,
    /// Since the start of the stream.
    pub(super) departure_ms: u64,
    stretches: u64,
    bend: f64,
}

impl Trip {
    /// When it ends, since the start of the stream.
    pub(super) fn arrival_ms(&self) -> u64 {
        self.departure_ms + self.stretches * self.mode.stretch_ms
    }

    /// Halts on the way.
    pub(super) fn halts(&self) -> u64 {
        self.stretches - 1
    }

    /// Length of the straight way.
    pub(super) fn metres(&self) -> f64 {
        distance(self.from, self.to)
    }

    /// Where the traveller is.
    pub(super) fn spot(&self, now_ms: u64) -> Spot {
        if now_ms <= self.departure_ms {
            return self.from;
        }
        if now_ms >= self.arrival_ms() {
            return self.to;
        }
        let spent_ms = now_ms - self.departure_ms;
        let (stretch, into_ms) = (
            spent_ms / self.mode.stretch_ms,
            spent_ms % self.mode.stretch_ms,
        );
        let part = into_ms as f64 / (self.mode.stretch_ms as f64 * MOVING_PART);
        let part = part.min(1.0);
        let eased = part * part * (3.0 - 2.0 * part);
        let done = (stretch as f64 + eased) / self.stretches as f64;
        let (east, north) = (
            self.to.east - self.from.east,
            self.to.north - self.from.north,
        );
        let aside = self.bend * wave(done / 2.0);
        Spot {
            east: self.from.east + east * done - north * aside,
            north: self.from.north + north * done + east * aside,
        }
    }
}

/// Places and trips of all users.
pub(super) struct Trips {
    homes: CounterStream,
    places: CounterStream,
    choices: CounterStream,
    draws: CounterStream,
    radius_metres: f64,
}

impl Trips {
    /// Users who live within `radius_metres` of the middle.
    pub(super) fn new(seed: u64, radius_metres: f64) -> Self {
        Trips {
            homes: CounterStream::new(seed, HOME_STREAM),
            places: CounterStream::new(seed, PLACE_STREAM),
            choices: CounterStream::new(seed, CHOICE_STREAM),
            draws: CounterStream::new(seed, TRIP_STREAM),
            radius_metres,
        }
    }

    /// Where `user` is when `slot` begins.
    pub(super) fn place(&self, user: u64, slot: u64) -> Spot {
        let choice = below(high(self.choices.draw(cell(user, slot))), PLACES);
        let home = spot_around(self.homes.draw(user), self.radius_metres);
        if choice == 0 {
            return home;
        }
        // The further places lie, the fewer they are: near shops, work, relatives.
        let reach = self.radius_metres * [0.06, 0.3, 1.0][choice as usize - 1];
        let draw = self.places.draw(cell(user, u64::from(choice)));
        let away = spot_around(draw, reach);
        Spot {
            east: home.east + away.east,
            north: home.north + away.north,
        }
    }

    /// The trip of `user` in `slot`, unless the place at its end is that at its start.
    pub(super) fn at(&self, user: u64, slot: u64) -> Option<Trip> {
        const NEAR_METRES: f64 = 50.0;
        let (from, to) = (self.place(user, slot), self.place(user, slot + 1));
        let metres = distance(from, to);
        if metres < NEAR_METRES {
            return None;
        }
        let mode = MODES.iter().find(|mode| metres <= mode.metres_most)?;
        // Ways are at most 4 radii of 30 km, which take less than a slot by car.
        let stretches = (metres / mode.stretch_metres).ceil().max(1.0) as u64;
        let room_ms = SLOT_MS.saturating_sub(stretches * mode.stretch_ms) / 1_000;
        let draw = self.draws.draw(cell(user, slot));
        // A slot has less than 2^32 seconds.
        let wait_ms = u64::from(below(high(draw), room_ms as u32)) * 1_000;
        Some(Trip {
            from,
            to,
            mode,
            departure_ms: slot * SLOT_MS + wait_ms,
            stretches,
            bend: BEND_MOST * (2.0 * unit(low(draw)) - 1.0),
        })
    }
}

/// A point within `reach` metres of the middle, by one draw.
fn spot_around(draw: u64, reach: f64) -> Spot {
    let (turn, away) = (unit(high(draw)), reach * unit(low(draw)).sqrt());
    Spot {
        east: away * wave(turn),
        north: away * wave(turn + 0.25),
    }
}

fn distance(from: Spot, to: Spot) -> f64 {
    let (east, north) = (to.east - from.east, to.north - from.north);
    (east * east + north * north).sqrt()
}
