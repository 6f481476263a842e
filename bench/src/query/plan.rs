//! The queries, and what they answer on the reference input.

use std::sync::Arc;
use std::time::Duration;

use tersecades_engine::aggregate::{call, count, quantile};
use tersecades_engine::expression::col;
use tersecades_engine::plan::LookupTable;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Window, hop, tumble};

use super::answer::Reduction;

/// Rows of the reference input, for which checksums are known.
pub(crate) const REFERENCE_ROWS: usize = 10_000_000;

/// A query of the bench.
#[derive(Debug)]
pub(crate) struct Query {
    /// Its name, here and in the scripts of the rivals.
    pub(crate) name: &'static str,
    /// What it does with the stream and the table of switches.
    pub(crate) plan: fn(Stream, &Arc<LookupTable>) -> Stream,
    /// How its answer becomes a checksum.
    pub(crate) reduction: Reduction,
    /// The checksum over the reference input, on which independent engines agree.
    pub(crate) checksum: &'static str,
}

/// Every query, in the order they take turns.
///
/// `_1000` groups by the source alone, hence by fewer than a thousand groups.
pub(crate) const QUERIES: &[Query] = &[
    Query {
        name: "q1",
        plan: |stream, _| pairs(stream, tumble(seconds(10))),
        reduction: Reduction::Rows,
        checksum: "50944:80bd4aa3fda3dc0a",
    },
    Query {
        name: "q1_hop",
        plan: |stream, _| pairs(stream, hop(seconds(60), seconds(10))),
        reduction: Reduction::Rows,
        checksum: "178602:a2a58c41a5e0c765",
    },
    Query {
        name: "q1_tumble60",
        plan: |stream, _| pairs(stream, tumble(seconds(60))),
        reduction: Reduction::Rows,
        checksum: "29370:da1eee285edff495",
    },
    Query {
        name: "q1_hop_1000",
        plan: |stream, _| sources(stream, hop(seconds(60), seconds(10))),
        reduction: Reduction::Rows,
        checksum: "3199:ef26fe61081bf4e9",
    },
    Query {
        name: "q1_tumble60_1000",
        plan: |stream, _| sources(stream, tumble(seconds(60))),
        reduction: Reduction::Rows,
        checksum: "599:ea962375c8382851",
    },
    Query {
        name: "q2",
        plan: switch_pairs,
        reduction: Reduction::Rows,
        checksum: "91429:7587f6f231c6fa11",
    },
    Query {
        name: "q3",
        plan: quantiles,
        reduction: Reduction::Quantiles,
        checksum: "415145:1b0329fbadc40894",
    },
    Query {
        name: "q4",
        plan: |stream, _| sum_above(stream, 1_000),
        reduction: Reduction::Totals,
        checksum: "396519:81944731364",
    },
    Query {
        name: "q4_wide",
        plan: |stream, _| sum_above(stream, 100),
        reduction: Reduction::Totals,
        checksum: "9292513:84641417025",
    },
    Query {
        name: "q4_tumble",
        plan: |stream, _| {
            let sum = [count(), call("sum", col("rtt_us"))];
            answered(stream, 1_000)
                .window(tumble(seconds(10)))
                .aggregate(sum)
        },
        reduction: Reduction::Rows,
        checksum: "11:8738c34f96c669bd",
    },
    Query {
        name: "q5",
        plan: moments,
        reduction: Reduction::Rows,
        checksum: "11:6e7d7bc962e99b93",
    },
];

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Failed probes that took 100 us and more.
fn failures(stream: Stream) -> Stream {
    stream.filter(col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100)))
}

/// C2cProbeCount of the paper.
fn pairs(stream: Stream, window: Window) -> Stream {
    failures(stream)
        .window(window)
        .group_by(["src_cluster", "dst_cluster"])
        .aggregate([count()])
}

fn sources(stream: Stream, window: Window) -> Stream {
    failures(stream)
        .window(window)
        .group_by(["src_cluster"])
        .aggregate([count()])
}

/// T2tProbeCount of the paper; probes from and to unknown addresses are left out.
fn switch_pairs(stream: Stream, switches: &Arc<LookupTable>) -> Stream {
    failures(stream)
        .lookup_join(switches, ("src_ip", "ip"), &[("tor_id", "src_tor")])
        .lookup_join(switches, ("dst_ip", "ip"), &[("tor_id", "dst_tor")])
        .window(tumble(seconds(10)))
        .group_by(["src_tor", "dst_tor"])
        .aggregate([count()])
}

/// Exact quantiles of every pair of clusters, over all rows.
fn quantiles(stream: Stream, _: &Arc<LookupTable>) -> Stream {
    let of_rtt = |fraction| quantile(col("rtt_us"), fraction);
    stream
        .window(tumble(seconds(10)))
        .group_by(["src_cluster", "dst_cluster"])
        .aggregate([of_rtt(0.5).alias("p50"), of_rtt(0.99).alias("p99")])
}

/// Answered probes that took `least_us` and more.
fn answered(stream: Stream, least_us: i64) -> Stream {
    stream.filter(col("error_code").eq(0).and(col("rtt_us").gt_eq(least_us)))
}

fn sum_above(stream: Stream, least_us: i64) -> Stream {
    answered(stream, least_us).aggregate([count(), call("sum", col("rtt_us"))])
}

fn moments(stream: Stream, _: &Arc<LookupTable>) -> Stream {
    let of_rtt = |name| call(name, col("rtt_us"));
    let calls = ["sum", "min", "max", "mean", "stddev_population"].map(of_rtt);
    stream
        .window(tumble(seconds(10)))
        .aggregate(std::iter::once(count()).chain(calls))
}
