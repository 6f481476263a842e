"""Polars: its streaming engine over a data frame in memory, clusters as Enum, one thread."""

import os

os.environ["POLARS_MAX_THREADS"] = "1"

import polars as pl
from polars import col

import pingmesh

options = pingmesh.arguments()
data = pingmesh.Data(options.data)
frame = pl.from_arrow(data.read(data.stream)).with_columns(
    col("src_cluster", "dst_cluster").cast(pl.String).cast(pl.Enum(data.clusters))
)
switches = pl.from_arrow(data.read(data.switches))
assert pl.thread_pool_size() == 1

rtt = col("rtt_us")
failures = (col("error_code") != 0) & (rtt >= pingmesh.FAILURE_RTT_US)


def window(size_ms):
    return (col("timestamp") - col("timestamp") % size_ms).alias("window")


def count_failures(keys, size_ms, slide_ms):
    """Windows of one size as they are; of several slides by copying each row into all of them."""
    rows = frame.lazy().filter(failures).select(window(slide_ms), *keys)
    if size_ms > slide_ms:
        starts = pl.LazyFrame({"back": range(0, size_ms, slide_ms)})
        rows = rows.join(starts, how="cross").with_columns(window=col("window") - col("back"))
    return rows.group_by("window", *keys).agg(pl.len()).collect(engine="streaming")


def count_switch_pairs():
    table = switches.lazy()
    return (
        frame.lazy()
        .filter(failures)
        .select(window(pingmesh.WINDOW_MS), "src_ip", "dst_ip")
        .join(table, left_on="src_ip", right_on="ip")
        .join(table, left_on="dst_ip", right_on="ip", suffix="_dst")
        .group_by("window", "tor_id", "tor_id_dst")
        .agg(pl.len())
        .collect(engine="streaming")
    )


def sum_above(least_us):
    rows = frame.lazy().filter((col("error_code") == 0) & (rtt >= least_us))
    return rows.select(pl.len(), rtt.cast(pl.Int64).sum()).collect(engine="streaming")


def moments():
    return (
        frame.lazy()
        .select(window(pingmesh.WINDOW_MS), "rtt_us")
        .group_by("window")
        .agg(
            pl.len(),
            rtt.cast(pl.Int64).sum().alias("sum"),
            rtt.min().alias("min"),
            rtt.max().alias("max"),
            rtt.mean().alias("mean"),
            rtt.std(ddof=0).alias("stddev"),
        )
        .collect(engine="streaming")
    )


ten, sixty = pingmesh.WINDOW_MS, pingmesh.WIDE_WINDOW_MS
pairs, sources = ["src_cluster", "dst_cluster"], ["src_cluster"]
queries = {
    "q1": lambda: count_failures(pairs, ten, ten),
    "q1_hop": lambda: count_failures(pairs, sixty, ten),
    "q1_tumble60": lambda: count_failures(pairs, sixty, sixty),
    "q1_hop_1000": lambda: count_failures(sources, sixty, ten),
    "q1_tumble60_1000": lambda: count_failures(sources, sixty, sixty),
    "q2": count_switch_pairs,
    "q4": lambda: sum_above(pingmesh.SLOW_RTT_US),
    "q4_wide": lambda: sum_above(pingmesh.FAILURE_RTT_US),
    "q5": moments,
}
pingmesh.measure("polars", data, queries, options)
