//! Pingmesh rows as plain columns, and their way into Arrow.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, TimestampMillisecondArray,
    UInt32Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::Result;

use super::super::topology::Topology;

/// Columns of generated rows, all of one length; reuse one value to avoid allocations.
///
/// Regions and clusters are codes into the names of the stream's
/// [`Topology`](super::super::topology::Topology).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PingmeshRows {
    /// When the probe was sent, in milliseconds since 1970 UTC.
    pub timestamp: Vec<i64>,
    /// Address of the probing server.
    pub src_ip: Vec<u32>,
    /// Region of the probing server.
    pub src_region: Vec<i32>,
    /// Cluster of the probing server.
    pub src_cluster: Vec<i32>,
    /// Address of the probed server.
    pub dst_ip: Vec<u32>,
    /// Region of the probed server.
    pub dst_region: Vec<i32>,
    /// Cluster of the probed server.
    pub dst_cluster: Vec<i32>,
    /// Round-trip time in microseconds.
    pub rtt_us: Vec<u32>,
    /// 0 for success, else the socket's error code.
    pub error_code: Vec<i32>,
}

/// Mutable columns of consecutive rows.
pub(super) struct Block<'a> {
    pub(super) timestamp: &'a mut [i64],
    pub(super) src: EndpointBlock<'a>,
    pub(super) dst: EndpointBlock<'a>,
    pub(super) rtt_us: &'a mut [u32],
    pub(super) error_code: &'a mut [i32],
}

/// The columns of one end of the probes of a [`Block`].
pub(super) struct EndpointBlock<'a> {
    pub(super) ip: &'a mut [u32],
    pub(super) region: &'a mut [i32],
    pub(super) cluster: &'a mut [i32],
}

impl PingmeshRows {
    /// Rows held.
    pub fn len(&self) -> usize {
        self.timestamp.len()
    }

    /// True when no row is held.
    pub fn is_empty(&self) -> bool {
        self.timestamp.is_empty()
    }

    /// `rows` rows of zeros.
    pub(super) fn zeroed(rows: usize) -> Self {
        PingmeshRows {
            timestamp: vec![0; rows],
            src_ip: vec![0; rows],
            src_region: vec![0; rows],
            src_cluster: vec![0; rows],
            dst_ip: vec![0; rows],
            dst_region: vec![0; rows],
            dst_cluster: vec![0; rows],
            rtt_us: vec![0; rows],
            error_code: vec![0; rows],
        }
    }

    /// Makes every column `rows` long; what the kept rows hold is not specified.
    pub(super) fn resize(&mut self, rows: usize) {
        self.timestamp.resize(rows, 0);
        for column in [&mut self.src_ip, &mut self.dst_ip, &mut self.rtt_us] {
            column.resize(rows, 0);
        }
        let codes = [
            &mut self.src_region,
            &mut self.src_cluster,
            &mut self.dst_region,
            &mut self.dst_cluster,
            &mut self.error_code,
        ];
        for column in codes {
            column.resize(rows, 0);
        }
    }

    /// The rows of `range`, which must lie inside.
    pub(super) fn block(&mut self, range: Range<usize>) -> Block<'_> {
        let src = EndpointBlock {
            ip: &mut self.src_ip[range.clone()],
            region: &mut self.src_region[range.clone()],
            cluster: &mut self.src_cluster[range.clone()],
        };
        let dst = EndpointBlock {
            ip: &mut self.dst_ip[range.clone()],
            region: &mut self.dst_region[range.clone()],
            cluster: &mut self.dst_cluster[range.clone()],
        };
        Block {
            timestamp: &mut self.timestamp[range.clone()],
            src,
            dst,
            rtt_us: &mut self.rtt_us[range.clone()],
            error_code: &mut self.error_code[range],
        }
    }

    /// The rows as an Arrow batch of [`schema`].
    ///
    /// # Errors
    /// `Corrupt` if Arrow refuses the columns: their lengths differ, or a code has no name in
    /// `topology`.
    ///
    /// # Cost
    /// No column is copied; one pass over the four code columns checks them.
    pub fn into_batch(self, topology: &Topology) -> Result<RecordBatch> {
        let (regions, clusters) = (topology.region_names(), topology.cluster_names());
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::new(self.timestamp.into(), None)),
            Arc::new(UInt32Array::new(self.src_ip.into(), None)),
            named(self.src_region, regions)?,
            named(self.src_cluster, clusters)?,
            Arc::new(UInt32Array::new(self.dst_ip.into(), None)),
            named(self.dst_region, regions)?,
            named(self.dst_cluster, clusters)?,
            Arc::new(UInt32Array::new(self.rtt_us.into(), None)),
            Arc::new(Int32Array::new(self.error_code.into(), None)),
        ];
        Ok(RecordBatch::try_new(schema(), columns)?)
    }
}

fn named(codes: Vec<i32>, names: &Arc<StringArray>) -> Result<ArrayRef> {
    let codes = Int32Array::new(codes.into(), None);
    let names = Arc::clone(names);
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
        codes, names,
    )?))
}

/// Schema of a Pingmesh stream.
///
/// # Source
/// TerseCades (ATC 2018), section 5.1 and Table 1, with the addresses that its T2tProbeCount
/// query needs and the regions that Pingmesh (SIGCOMM 2015) partitions by.
pub fn schema() -> SchemaRef {
    let name = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = [
        (
            "timestamp",
            DataType::Timestamp(TimeUnit::Millisecond, None),
        ),
        ("src_ip", DataType::UInt32),
        ("src_region", name()),
        ("src_cluster", name()),
        ("dst_ip", DataType::UInt32),
        ("dst_region", name()),
        ("dst_cluster", name()),
        ("rtt_us", DataType::UInt32),
        ("error_code", DataType::Int32),
    ];
    let fields = fields.map(|(name, data_type)| Field::new(name, data_type, false));
    Arc::new(Schema::new(fields.to_vec()))
}
