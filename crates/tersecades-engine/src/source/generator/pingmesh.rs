//! Seeded Pingmesh: servers of a large data centre probe each other without end.
//!
//! Rows come in the order in which a collector receives them. A row's timestamp is its arrival
//! minus a delay (jitter for all, seconds for a few), so the stream is out of order as real ones
//! are. Round-trip times have a log-normal body, a heavy tail, and retransmission timers where a
//! probe timed out. If asked for, one switch goes bad for a while; [`Pingmesh::truth`] says which.
//!
//! ```text
//! for each block of 1,024 rows, one pass per group of columns:
//!   servers    -> scratch     (weighted cluster, uniform server)
//!   describe   -> ip, region, cluster of both ends
//!   arrival    -> timestamp   (a fixed rate, in whole milliseconds)
//!   delay      -> timestamp
//!   outcome    -> rtt_us, error_code
//!   fault      -> rtt_us, error_code, only where the block meets the fault's interval
//! ```
//! The passes keep each loop small enough to stay in registers and let the processor overlap
//! their cache misses; a 1,024-row block of all columns is 40 KiB.

mod batch;
mod kind;
mod model;
mod options;

#[cfg(test)]
mod tests;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use super::topology::Topology;
use super::truth::InjectedFault;
use batch::Block;
pub use batch::{PingmeshRows, schema};
pub use kind::KIND;
use model::{Fault, Model, TAIL_FLOOR_US, TIMED_OUT};
pub use options::PingmeshOptions;

/// Rows that one round of passes handles.
const BLOCK_ROWS: usize = 1024;

/// A stream of probes; see the [module](self).
#[derive(Debug)]
pub struct Pingmesh {
    options: PingmeshOptions,
    model: Model,
    next_row: u64,
    summary: PingmeshSummary,
    src_servers: Box<[u32; BLOCK_ROWS]>,
    dst_servers: Box<[u32; BLOCK_ROWS]>,
}

/// Counts over the rows that a [`Pingmesh`] has generated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PingmeshSummary {
    /// All rows.
    pub rows: u64,
    /// Rows with an error code.
    pub errors: u64,
    /// Rows whose error is a time-out.
    pub timeouts: u64,
    /// Rows without error whose round trip needs more than two bytes.
    pub tail: u64,
    /// Rows later than the jitter allows.
    pub late: u64,
    /// Rows through the bad switch while it was bad.
    pub faulty: u64,
}

impl Pingmesh {
    /// The stream that `options` describe, at its first row.
    ///
    /// # Errors
    /// `InvalidArgument` as [`PingmeshOptions::validate`].
    ///
    /// # Cost
    /// About 1 MB and a few milliseconds with the default topology.
    pub fn new(options: PingmeshOptions) -> Result<Self> {
        options.validate()?;
        Ok(Pingmesh {
            model: Model::new(&options)?,
            options,
            next_row: 0,
            summary: PingmeshSummary::default(),
            src_servers: Box::new([0; BLOCK_ROWS]),
            dst_servers: Box::new([0; BLOCK_ROWS]),
        })
    }

    /// The options it was made with.
    pub fn options(&self) -> &PingmeshOptions {
        &self.options
    }

    /// Regions, clusters, racks and servers, with the names that codes stand for.
    pub fn topology(&self) -> &Topology {
        &self.model.topology
    }

    /// Schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        schema()
    }

    /// Rows in the whole stream.
    pub fn rows_hint(&self) -> Option<u64> {
        Some(self.options.rows)
    }

    /// Number of the next row, from 0.
    pub fn position(&self) -> u64 {
        self.next_row
    }

    /// Goes on at row number `row` (at the end, if the stream is shorter).
    pub fn seek(&mut self, row: u64) {
        self.next_row = row.min(self.options.rows);
    }

    /// Counts over the rows generated so far.
    pub fn summary(&self) -> PingmeshSummary {
        self.summary
    }

    /// The table `ip`, `tor_id` for the T2tProbeCount query.
    ///
    /// # Errors
    /// `Corrupt` if Arrow refuses the batch, which would be a bug.
    pub fn tor_table(&self) -> Result<RecordBatch> {
        self.model
            .topology
            .tor_table(self.options.tor_missing_share)
    }

    /// The faults that the stream meets before its last row.
    pub fn truth(&self) -> Vec<InjectedFault> {
        let end_ms = self.arrival_ms(self.options.rows);
        let met = self
            .model
            .fault
            .iter()
            .filter(|fault| fault.from_ms < end_ms);
        met.map(|fault| self.describe_fault(fault)).collect()
    }

    fn describe_fault(&self, fault: &Fault) -> InjectedFault {
        let topology = &self.model.topology;
        let server = topology.servers()[fault.servers.start as usize];
        InjectedFault {
            kind: "tor_bad",
            tor_id: topology.tor_of(fault.servers.start),
            region: topology
                .region_names()
                .value(usize::from(server.region))
                .to_owned(),
            cluster: topology
                .cluster_names()
                .value(usize::from(server.cluster))
                .to_owned(),
            from_ms: fault.from_ms,
            to_ms: fault.to_ms,
            drop_share: self.options.fault_drop_share,
            rtt_factor: self.options.fault_rtt_factor,
        }
    }

    /// Replaces `out` by the next `rows` rows, fewer at the end; gives how many there are.
    ///
    /// # Cost
    /// No allocation once `out` has held as many rows.
    pub fn fill(&mut self, rows: usize, out: &mut PingmeshRows) -> usize {
        let rows = self.rows_left(rows);
        out.resize(rows);
        self.overwrite(out);
        rows
    }

    /// The next `rows` rows as a batch, fewer at the end, `None` after it.
    ///
    /// All batches share one array of names per kind of name. `rows` of 0 counts as 1.
    ///
    /// # Errors
    /// `Corrupt` if Arrow refuses the batch, which would be a bug.
    pub fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        let rows = self.rows_left(rows.max(1));
        if rows == 0 {
            return Ok(None);
        }
        let mut columns = PingmeshRows::zeroed(rows);
        self.overwrite(&mut columns);
        columns.into_batch(&self.model.topology).map(Some)
    }

    fn rows_left(&self, wanted: usize) -> usize {
        let left = self.options.rows - self.next_row;
        usize::try_from(left).map_or(wanted, |left| left.min(wanted))
    }

    /// Generates as many rows as `out` holds.
    fn overwrite(&mut self, out: &mut PingmeshRows) {
        let rows = out.len();
        for start in (0..rows).step_by(BLOCK_ROWS) {
            let end = rows.min(start + BLOCK_ROWS);
            self.fill_block(out.block(start..end));
        }
    }

    fn fill_block(&mut self, mut block: Block<'_>) {
        let (first_row, rows) = (self.next_row, block.timestamp.len());
        let (src, dst) = (&mut self.src_servers[..rows], &mut self.dst_servers[..rows]);
        self.model.draw_servers(first_row, src, dst);
        self.model.describe(src, &mut block.src);
        self.model.describe(dst, &mut block.dst);
        self.write_arrivals(block.timestamp);
        self.summary.late += self.model.delay(first_row, block.timestamp);
        self.model
            .draw_outcomes(first_row, block.rtt_us, block.error_code);
        if let Some(fault) = self.fault_met(rows) {
            self.summary.faulty += self.apply(&fault, &mut block);
        }
        self.next_row += rows as u64;
        self.summary.count(&block);
    }

    /// When row number `row` reaches the stream.
    fn arrival_ms(&self, row: u64) -> i64 {
        // `validate` checked that rows * 1000 and the sum fit.
        let after_ms = row * 1000 / self.options.rows_per_second;
        self.options.start_ms.saturating_add_unsigned(after_ms)
    }

    /// Arrival times without a division per row.
    fn write_arrivals(&self, timestamps: &mut [i64]) {
        let rate = self.options.rows_per_second;
        let (step_ms, step_rest) = ((1000 / rate) as i64, 1000 % rate);
        let mut now_ms = self.arrival_ms(self.next_row);
        let mut rest = self.next_row * 1000 % rate;
        for timestamp in timestamps {
            *timestamp = now_ms;
            rest += step_rest;
            let carry = rest >= rate;
            rest -= if carry { rate } else { 0 };
            now_ms += step_ms + i64::from(carry);
        }
    }

    /// The fault, if one of the next `rows` rows can lie in its interval.
    fn fault_met(&self, rows: usize) -> Option<Fault> {
        let last_ms = self.arrival_ms(self.next_row + rows as u64);
        let first_ms = self.arrival_ms(self.next_row) - self.model.delay_ms_max();
        let fault = self.model.fault.as_ref()?;
        (fault.from_ms <= last_ms && first_ms < fault.to_ms).then(|| fault.clone())
    }

    /// Strikes the rows that meet `fault`; gives their number.
    fn apply(&self, fault: &Fault, block: &mut Block<'_>) -> u64 {
        let ends = self.src_servers.iter().zip(self.dst_servers.iter());
        let results = block.rtt_us.iter_mut().zip(&mut *block.error_code);
        let mut struck = 0;
        let rows = (self.next_row..)
            .zip(&*block.timestamp)
            .zip(ends)
            .zip(results);
        for (((row, timestamp), (src, dst)), (rtt, code)) in rows {
            let through = fault.servers.contains(src) || fault.servers.contains(dst);
            if through && (fault.from_ms..fault.to_ms).contains(timestamp) {
                self.model.strike(fault, row, rtt, code);
                struck += 1;
            }
        }
        struck
    }
}

impl PingmeshSummary {
    /// Adds what can be told from the finished rows of `block`.
    fn count(&mut self, block: &Block<'_>) {
        self.rows += block.error_code.len() as u64;
        for (rtt, code) in block.rtt_us.iter().zip(&*block.error_code) {
            self.errors += u64::from(*code != 0);
            self.timeouts += u64::from(*code == TIMED_OUT);
            self.tail += u64::from(*code == 0 && *rtt >= TAIL_FLOOR_US);
        }
    }
}
