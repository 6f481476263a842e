"""Polars: its streaming engine over a data frame with clusters as Enum, or the Parquet file."""

import functools
import os

import pingmesh

options = pingmesh.arguments()
os.environ["POLARS_MAX_THREADS"] = str(options.threads)

import polars as pl
from polars import col

data = pingmesh.Data(options.data, options.tag)
if options.input == "parquet":
    scan = functools.partial(pl.scan_parquet, data.parquet)
else:
    frame = pl.from_arrow(data.read(data.stream)).with_columns(
        col("src_cluster", "dst_cluster").cast(pl.String).cast(pl.Enum(data.clusters))
    )
    scan = frame.lazy
switches = pl.from_arrow(data.read(data.switches))
assert pl.thread_pool_size() == options.threads

rtt = col("rtt_us")
failures = (col("error_code") != 0) & (rtt >= pingmesh.FAILURE_RTT_US)


def window(size_ms):
    return (col("timestamp") - col("timestamp") % size_ms).alias("window")


def count_failures(keys, size_ms, slide_ms):
    """Windows of one size as they are; of several slides by copying each row into all of them."""
    rows = scan().filter(failures).select(window(slide_ms), *keys)
    if size_ms > slide_ms:
        starts = pl.LazyFrame({"back": range(0, size_ms, slide_ms)})
        rows = rows.join(starts, how="cross").with_columns(window=col("window") - col("back"))
    return rows.group_by("window", *keys).agg(pl.len()).collect(engine="streaming")


def count_switch_pairs():
    table = switches.lazy()
    return (
        scan()
        .filter(failures)
        .select(window(pingmesh.WINDOW_MS), "src_ip", "dst_ip")
        .join(table, left_on="src_ip", right_on="ip")
        .join(table, left_on="dst_ip", right_on="ip", suffix="_dst")
        .group_by("window", "tor_id", "tor_id_dst")
        .agg(pl.len())
        .collect(engine="streaming")
    )


def quantiles():
    values = [rtt.quantile(at, "linear").alias(name) for at, name in ((0.5, "p50"), (0.99, "p99"))]
    rows = scan().select(window(ten), *pairs, "rtt_us")
    return rows.group_by("window", *pairs).agg(values).collect(engine="streaming")


def sum_above(least_us):
    rows = scan().filter((col("error_code") == 0) & (rtt >= least_us))
    return rows.select(pl.len(), rtt.cast(pl.Int64).sum()).collect(engine="streaming")


def moments():
    return (
        scan()
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
    "q3": quantiles,
    "q4": lambda: sum_above(pingmesh.SLOW_RTT_US),
    "q4_wide": lambda: sum_above(pingmesh.FAILURE_RTT_US),
    "q5": moments,
}
pingmesh.measure("polars", data, queries, options)
