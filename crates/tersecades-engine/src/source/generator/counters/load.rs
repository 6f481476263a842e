//! How busy machines are, and what their counters read then.
//!
//! Values are whole hundredths of percents or whole bytes and operations; an average has two more
//! digits. All of them are made as integers, so that `min <= average <= max` holds exactly.

use super::super::grid::Clock;
use super::super::quantile::exp;
use super::super::random::{Chance, CounterStream, below, high, low, unit};
use super::super::signal::{Drift, bell, cell, wave};
use super::ACTIVE_PERCENT;

const CLASS_STREAM: u64 = 120;
const CELL_STREAM: u64 = 121;
const DRIFT_STREAM: u64 = 122;
const BURST_STREAM: u64 = 123;
const MEMORY_STREAM: u64 = 124;

/// Draws of one report of one machine.
const DRAWS: u64 = 16;
/// Reports that lack samples, and how many they lack at most.
const GAP_SHARE: f64 = 0.01;
const GAP_SAMPLES: u32 = 5;

/// One counter that machines report.
pub(super) struct Counter {
    pub(super) name: &'static str,
    source: Source,
    /// Units of `min_value` and `max_value` in 1.
    scale: f64,
    /// Part of the average by which samples of one interval spread.
    spread: f64,
}

/// What a counter follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Processor,
    Memory,
    Network,
    Disk,
}

const fn counter(name: &'static str, source: Source, scale: f64, spread: f64) -> Counter {
    Counter {
        name,
        source,
        scale,
        spread,
    }
}

/// Every counter, in the order of the rows.
pub(super) const COUNTERS: &[Counter] = &[
    counter("cpu_percent", Source::Processor, 100.0, 0.25),
    counter("memory_percent", Source::Memory, 100.0, 0.01),
    counter("network_in_bytes", Source::Network, 1.0, 0.6),
    counter("network_out_bytes", Source::Network, 1.0, 0.6),
    counter("disk_read_bytes", Source::Disk, 1.0, 0.8),
    counter("disk_write_bytes", Source::Disk, 1.0, 0.8),
    counter("disk_read_ops", Source::Disk, 1.0, 0.5),
    counter("disk_write_ops", Source::Disk, 1.0, 0.5),
];

/// How a machine spends its days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Next to nothing, all day.
    Idle,
    /// The same, all day.
    Steady,
    /// Busy by day, quiet by night.
    Daily,
    /// Quiet, with busy hours that follow no clock.
    Bursty,
}

/// Loads of all machines.
pub(super) struct Load {
    classes: CounterStream,
    cells: CounterStream,
    drift: Drift,
    bursts: Drift,
    memory: Drift,
    gap: Chance,
    clock: Clock,
    samples: u32,
}

/// What one machine does in one interval.
pub(super) struct Activity {
    vm: u64,
    /// Counter of the first draw of the report.
    draw: u64,
    class: Class,
    /// Processor load in percent.
    cpu_percent: f64,
    memory_percent: f64,
    samples: u32,
}

/// What a counter says about one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    pub(super) samples: u32,
    pub(super) average: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Load {
    /// Loads of machines that take `samples` samples an interval.
    pub(super) fn new(seed: u64, clock: Clock, samples: u32) -> Self {
        Load {
            classes: CounterStream::new(seed, CLASS_STREAM),
            cells: CounterStream::new(seed, CELL_STREAM),
            drift: Drift::new(seed, DRIFT_STREAM, 30),
            bursts: Drift::new(seed, BURST_STREAM, 45),
            memory: Drift::new(seed, MEMORY_STREAM, 240),
            gap: Chance::new(GAP_SHARE),
            clock,
            samples,
        }
    }

    /// How `vm` spends its days.
    pub(super) fn class(&self, vm: u64) -> Class {
        match below(high(self.classes.draw(vm * DRAWS)), 10) {
            0..3 => Class::Idle,
            3..6 => Class::Steady,
            6..9 => Class::Daily,
            _ => Class::Bursty,
        }
    }

    /// Whether the processor of `vm` is never idle.
    pub(super) fn is_active(&self, vm: u64) -> bool {
        self.class(vm) != Class::Idle
    }

    /// What `vm` does at `step`.
    pub(super) fn activity(&self, vm: u64, step: u64) -> Activity {
        let class = self.class(vm);
        let traits = self.classes.draw(vm * DRAWS + 1);
        let (level, phase) = (unit(high(traits)), unit(low(traits)));
        let drift = self.drift.at(vm, step);
        let draw = cell(vm, step).wrapping_mul(DRAWS);
        let noise = bell(self.cells.draw(draw));
        let cpu_percent = match class {
            Class::Idle => 0.4 + level + 0.1 * noise,
            Class::Steady => 15.0 + 60.0 * level + 2.0 * drift + 0.3 * noise,
            Class::Daily => {
                let day = 0.5 + 0.5 * wave(self.clock.day(step) - 0.35 + 0.1 * phase);
                10.0 + 20.0 * level + 55.0 * day * day + 4.0 * drift + 1.5 * noise
            }
            Class::Bursty => {
                let burst = (self.bursts.at(vm, step) - 0.2).max(0.0);
                8.0 + 4.0 * level + 100.0 * burst + 2.0 * noise
            }
        };
        let (least, most) = match class {
            Class::Idle => (0.1, 0.9 * ACTIVE_PERCENT),
            _ => (1.2 * ACTIVE_PERCENT, 98.0),
        };
        let memory_percent = 10.0 + 70.0 * phase + 8.0 * self.memory.at(vm, step);
        let sampling = self.cells.draw(draw.wrapping_add(1));
        let gap = match self.gap.decide(high(sampling)) {
            true => 1 + below(low(sampling), GAP_SAMPLES),
            false => 0,
        };
        Activity {
            vm,
            draw,
            class,
            cpu_percent: cpu_percent.clamp(least, most),
            memory_percent,
            samples: self.samples.saturating_sub(gap).max(1),
        }
    }

    /// What counter number `index` reads; a `lost` network reads zero.
    pub(super) fn read(&self, activity: &Activity, index: usize, lost: bool) -> Reading {
        let counter = &COUNTERS[index];
        let place = index as u64;
        if lost && counter.source == Source::Network {
            return Reading {
                samples: activity.samples,
                average: 0.0,
                least: 0.0,
                most: 0.0,
            };
        }
        let draw = self.cells.draw(activity.draw.wrapping_add(2 + place));
        let average = match counter.source {
            Source::Processor => activity.cpu_percent,
            Source::Memory => activity.memory_percent,
            Source::Network | Source::Disk => {
                self.traffic(activity, place) * (1.0 + 0.15 * bell(draw))
            }
        };
        // Beyond processor and memory one unit of activity always leaves a trace.
        let least_average = if counter.scale > 1.0 { 0.1 } else { 2.0 };
        let average = average.max(least_average);
        let spread = counter.spread * (0.5 + 0.5 * unit(high(draw)));
        settle(average, spread, counter.scale, activity.samples, low(draw))
    }

    /// Bytes or operations a second of one counter of a machine.
    fn traffic(&self, activity: &Activity, place: u64) -> f64 {
        let peak = unit(high(self.classes.draw(activity.vm * DRAWS + 2 + place)));
        // 4 kB/s to 9 MB/s for bytes, a few to some thousands for operations.
        let largest = match place {
            2..=5 => 4_000.0 * exp(7.7 * peak),
            _ => 3.0 * exp(6.9 * peak),
        };
        let part = activity.cpu_percent / 100.0;
        match activity.class {
            Class::Idle => (0.000_5 * largest).max(3.0),
            _ => largest * part,
        }
    }
}

/// Rounds an average and the ends around it, which keep their order.
fn settle(average: f64, spread: f64, scale: f64, samples: u32, bits: u32) -> Reading {
    const FINER: f64 = 100.0;
    let most_possible = if scale > 1.0 { 100.0 } else { f64::MAX };
    let mut least = (average * (1.0 - spread) * scale).floor().max(0.0);
    let mut most = (average * (1.0 + 2.0 * spread) * scale).ceil();
    most = most.min(most_possible * scale);
    let mut fine = (average * scale * FINER).round();
    if samples == 1 {
        least = (average * scale).round();
        most = least;
        fine = least * FINER;
    } else if bits.is_multiple_of(64) {
        // A machine that did nothing else for the whole interval.
        most = least.max((fine / FINER).ceil());
    }
    fine = fine.clamp(least * FINER, most * FINER);
    Reading {
        samples,
        average: fine / (FINER * scale),
        least: least / scale,
        most: most / scale,
    }
}
