//! The two queries of the paper, on any stream of probes.

use std::sync::Arc;
use std::time::Duration;

use tersecades::prelude::{Expression, LookupTable, Stream, Window, col, count, hop};

/// Name of the result column that both queries rank by.
pub(crate) const PROBES: &str = "probes";

/// How far out of order probes may be.
pub(crate) const LATENESS: Duration = Duration::from_secs(3);

/// What both queries count, and where.
pub(crate) const MEANING: &str =
    "failed probes of 100 µs and more, in windows of 60 s that start every 10 s";

fn windows() -> Window {
    hop(Duration::from_secs(60), Duration::from_secs(10))
}

fn failed() -> Expression {
    col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100))
}

/// C2cProbeCount: failed probes between each pair of clusters.
pub(crate) fn clusters(probes: Stream) -> Stream {
    probes
        .filter(failed())
        .window(windows())
        .group_by(["src_cluster", "dst_cluster"])
        .aggregate([count().alias(PROBES)])
}

/// T2tProbeCount: failed probes between each pair of racks, whose switches `racks` names.
pub(crate) fn racks(probes: Stream, racks: &Arc<LookupTable>) -> Stream {
    probes
        .filter(failed())
        .lookup_join(racks, ("src_ip", "ip"), &[("tor_id", "src_tor")])
        .lookup_join(racks, ("dst_ip", "ip"), &[("tor_id", "dst_tor")])
        .window(windows())
        .group_by(["src_tor", "dst_tor"])
        .aggregate([count().alias(PROBES)])
}
