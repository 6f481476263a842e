//! How a Pingmesh row is drawn: the immutable tables and one pass per group of columns.
//!
//! ```text
//! draw of the row   high half             low half
//! 0 SRC_CLUSTER     weighted choice of the source's cluster
//! 1 DST_CLUSTER     weighted choice of the target's cluster
//! 2 SERVERS         source in its cluster target in its cluster
//! 3 DELAY           late or not           how much
//! 4 OUTCOME         error, tail or body   quantile of the body
//! 5 DETAIL          which error           | size of the tail value
//! 6 TIMEOUT         which timer           noise on top
//! 7 FAULT           dropped or slowed
//! ```
//! Draws 5 to 7 are computed only where they are needed; the others never notice.

use std::ops::Range;

use tersecades_columnar::error::Result;

use super::super::quantile::{LogNormal, exp, exponential, ln, pareto};
use super::super::random::{AliasTable, Chance, CounterStream, below, high, low};
use super::super::topology::Topology;
use super::PingmeshOptions;
use super::batch::EndpointBlock;
use super::options::millis_u32;

const SRC_CLUSTER: u64 = 0;
const DST_CLUSTER: u64 = 1;
const SERVERS: u64 = 2;
const DELAY: u64 = 3;
const OUTCOME: u64 = 4;
const DETAIL: u64 = 5;
const TIMEOUT: u64 = 6;
const FAULT: u64 = 7;

/// Streams of the seed; the topology draws from 1 to 3.
const ROW_STREAM: u64 = 0;
const BUSY_SRC_STREAM: u64 = 16;
const BUSY_DST_STREAM: u64 = 17;
const FAULT_STREAM: u64 = 18;

/// Connection timed out: the one error that comes with retransmission times.
pub(super) const TIMED_OUT: i32 = 10_060;
/// Socket error codes and their weights: timed out, refused, reset, host unreachable, host not
/// found, access denied.
const ERRORS: [(i32, f64); 6] = [
    (TIMED_OUT, 0.55),
    (10_061, 0.20),
    (10_054, 0.12),
    (10_065, 0.08),
    (11_001, 0.04),
    (5, 0.01),
];
/// After one, two and three lost SYN packets (3 s, doubling), in microseconds, and their weights.
const TIMERS: [(u32, f64); 3] = [(3_000_000, 0.7), (9_000_000, 0.2), (21_000_000, 0.1)];
/// Noise on top of a timer, in microseconds.
const TIMER_NOISE_US: u32 = 50_000;

/// The heavy tail starts where two bytes end.
pub(super) const TAIL_FLOOR_US: u32 = 1 << 16;
/// Pareto shape of the heavy tail: finite mean, infinite variance.
const TAIL_SHAPE: f64 = 1.3;
/// No round trip is recorded as longer than this.
const RTT_US_MAX: u32 = 2_000_000_000;
/// Mean lateness of late rows, as a part of the most there is.
const LATE_MEAN_PART: f64 = 0.25;

/// Everything a row depends on besides its number.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) topology: Topology,
    pub(super) fault: Option<Fault>,
    rows: CounterStream,
    busy_src: AliasTable,
    busy_dst: AliasTable,
    delay: Delay,
    body: LogNormal,
    error: Chance,
    error_or_tail: Chance,
    errors: AliasTable,
    timers: AliasTable,
}

/// A rack whose switch is bad for a while.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) servers: Range<u32>,
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
    drop: Chance,
    rtt_factor: u32,
}

#[derive(Debug, Clone, Copy)]
struct Delay {
    jitter_ms: u32,
    late: Chance,
    late_ms: u32,
}

/// The choice among `choices` by their weights.
fn weights<T, const N: usize>(choices: &[(T, f64); N]) -> AliasTable {
    AliasTable::new(&choices.each_ref().map(|(_, weight)| *weight))
}

impl Model {
    /// The model of checked options.
    pub(super) fn new(options: &PingmeshOptions) -> Result<Self> {
        let seed = options.seed;
        let topology = Topology::new(options.topology, seed)?;
        let busy = |stream| zipf(options, CounterStream::new(seed, stream));
        let error_or_tail = options.error_share + (1.0 - options.error_share) * options.tail_share;
        Ok(Model {
            fault: Fault::new(options, &topology),
            topology,
            rows: CounterStream::new(seed, ROW_STREAM),
            busy_src: busy(BUSY_SRC_STREAM),
            busy_dst: busy(BUSY_DST_STREAM),
            delay: Delay {
                jitter_ms: millis_u32("jitter_max", options.jitter_max)?,
                late: Chance::new(options.late_share),
                late_ms: millis_u32("late_max", options.late_max)?,
            },
            body: LogNormal::new(options.rtt_median_us, options.rtt_sigma),
            error: Chance::new(options.error_share),
            error_or_tail: Chance::new(error_or_tail),
            errors: weights(&ERRORS),
            timers: weights(&TIMERS),
        })
    }

    /// Draws the servers at both ends; a server probes itself only if its cluster has no other.
    pub(super) fn draw_servers(&self, first_row: u64, src: &mut [u32], dst: &mut [u32]) {
        let mut src_clusters = self.rows.lane(first_row, SRC_CLUSTER);
        let mut dst_clusters = self.rows.lane(first_row, DST_CLUSTER);
        let mut places = self.rows.lane(first_row, SERVERS);
        for (src, dst) in src.iter_mut().zip(dst) {
            let place = places.next_draw();
            let src_cluster = self.busy_src.pick(src_clusters.next_draw());
            let dst_cluster = self.busy_dst.pick(dst_clusters.next_draw());
            *src = self.topology.server_in(src_cluster, high(place));
            *dst = self.topology.server_in(dst_cluster, low(place));
            if src == dst {
                *dst = self.neighbour(dst_cluster, *dst);
            }
        }
    }

    fn neighbour(&self, cluster: u32, server: u32) -> u32 {
        let first = self.topology.server_in(cluster, 0);
        let last = self.topology.server_in(cluster, u32::MAX);
        if server == last { first } else { server + 1 }
    }

    /// Writes what a row says about `servers`.
    pub(super) fn describe(&self, servers: &[u32], block: &mut EndpointBlock<'_>) {
        let places = self.topology.servers();
        let columns = block
            .ip
            .iter_mut()
            .zip(&mut *block.region)
            .zip(&mut *block.cluster);
        for (server, ((ip, region), cluster)) in servers.iter().zip(columns) {
            let place = places[*server as usize];
            *ip = place.ip;
            *region = i32::from(place.region);
            *cluster = i32::from(place.cluster);
        }
    }

    /// Subtracts a delay from each arrival time in `timestamps`; gives the number of late rows.
    pub(super) fn delay(&self, first_row: u64, timestamps: &mut [i64]) -> u64 {
        let Delay {
            jitter_ms, late, ..
        } = self.delay;
        let mut delays = self.rows.lane(first_row, DELAY);
        let mut late_rows = 0;
        for timestamp in timestamps {
            let draw = delays.next_draw();
            let mut delay_ms = below(low(draw), jitter_ms + 1);
            if late.decide(high(draw)) {
                delay_ms = self.delay.late_ms(low(draw));
                late_rows += 1;
            }
            *timestamp -= i64::from(delay_ms);
        }
        late_rows
    }

    /// The longest delay between the timestamp and the arrival of a row.
    pub(super) fn delay_ms_max(&self) -> i64 {
        i64::from(self.delay.late_ms.max(self.delay.jitter_ms))
    }

    /// Draws round-trip times and error codes as they are without faults.
    pub(super) fn draw_outcomes(&self, first_row: u64, rtts: &mut [u32], codes: &mut [i32]) {
        let mut outcomes = self.rows.lane(first_row, OUTCOME);
        for ((row, rtt), code) in (first_row..).zip(rtts).zip(codes) {
            let draw = outcomes.next_draw();
            // A float to integer cast saturates, so a wild sigma cannot wrap round.
            *rtt = (self.body.at(low(draw)) as u32).clamp(1, RTT_US_MAX);
            *code = 0;
            if self.error_or_tail.decide(high(draw)) {
                let is_error = self.error.decide(high(draw));
                (*rtt, *code) = self.exception(row, is_error, *rtt);
            }
        }
    }

    /// Round-trip time and error code of a row outside the body, whose time would be `body_us`.
    fn exception(&self, row: u64, is_error: bool, body_us: u32) -> (u32, i32) {
        let detail = self.rows.row_draw(row, DETAIL);
        if !is_error {
            let tail_us = pareto(low(detail), f64::from(TAIL_FLOOR_US), TAIL_SHAPE);
            return ((tail_us as u32).clamp(TAIL_FLOOR_US, RTT_US_MAX), 0);
        }
        match chosen(&ERRORS, &self.errors, detail) {
            TIMED_OUT => (self.timeout_us(row), TIMED_OUT),
            answer => (body_us, answer),
        }
    }

    /// Makes one row, which goes through the bad switch meanwhile, show it.
    pub(super) fn strike(&self, fault: &Fault, row: u64, rtt: &mut u32, code: &mut i32) {
        if fault.drop.decide(high(self.rows.row_draw(row, FAULT))) {
            *rtt = self.timeout_us(row);
            *code = TIMED_OUT;
        } else {
            *rtt = rtt.saturating_mul(fault.rtt_factor).min(RTT_US_MAX);
        }
    }

    fn timeout_us(&self, row: u64) -> u32 {
        let draw = self.rows.row_draw(row, TIMEOUT);
        chosen(&TIMERS, &self.timers, draw) + below(low(draw), TIMER_NOISE_US)
    }
}

impl Delay {
    /// Beyond the jitter, exponential, cut at the most there is.
    fn late_ms(self, bits: u32) -> u32 {
        let room_ms = self.late_ms.saturating_sub(self.jitter_ms + 1);
        let beyond = exponential(bits, f64::from(self.late_ms) * LATE_MEAN_PART);
        self.jitter_ms + 1 + (beyond as u32).min(room_ms)
    }
}

impl Fault {
    /// A switch chosen by the seed, if the options ask for a fault.
    fn new(options: &PingmeshOptions, topology: &Topology) -> Option<Self> {
        let at_ms = i64::try_from(options.fault_at?.as_millis()).ok()?;
        let length_ms = i64::try_from(options.fault_duration.as_millis()).ok()?;
        let draw = CounterStream::new(options.seed, FAULT_STREAM).draw(0);
        let per_rack = options.topology.servers_per_rack;
        let first = below(high(draw), topology.tors()) * per_rack;
        Some(Fault {
            servers: first..first + per_rack,
            from_ms: options.start_ms + at_ms,
            to_ms: options.start_ms + at_ms + length_ms,
            drop: Chance::new(options.fault_drop_share),
            rtt_factor: options.fault_rtt_factor,
        })
    }
}

fn chosen<T: Copy, const N: usize>(choices: &[(T, f64); N], table: &AliasTable, draw: u64) -> T {
    choices[table.pick(draw) as usize].0
}

/// The cluster of rank `k` (ranks are shuffled) weighs `k^-skew`.
fn zipf(options: &PingmeshOptions, stream: CounterStream) -> AliasTable {
    let ranks = stream.permutation(options.topology.clusters);
    let weight = |rank: u32| exp(-options.cluster_skew * ln(f64::from(rank) + 1.0));
    AliasTable::new(&ranks.into_iter().map(weight).collect::<Vec<f64>>())
}
