"""The queries of the paper's stream as Python's builder writes them, and as SQL does.

Both take the stream `probes` and the table `switches` (`ip`, `tor_id`). Columns come in one order:
the window's start and end, keys, aggregates.
"""

import tersecades as tc

WINDOW = "10s"
WIDE_WINDOW = "60s"

FAILED = "error_code <> 0 AND rtt_us >= 100"


def failures(probes):
    return probes.filter((tc.col("error_code") != 0) & (tc.col("rtt_us") >= 100))


def pairs(probes, window):
    return failures(probes).window(window).group_by("src_cluster", "dst_cluster").agg(c=tc.count())


def switch_pairs(probes, switches):
    rows = failures(probes)
    for side in ("src", "dst"):
        rows = rows.lookup(switches, on=(f"{side}_ip", "ip"), columns={"tor_id": f"{side}_tor"})
    return rows.window(tc.tumble(WINDOW)).group_by("src_tor", "dst_tor").agg(c=tc.count())


def percentiles(probes):
    by_pair = probes.window(tc.tumble(WINDOW)).group_by("src_cluster", "dst_cluster")
    return by_pair.agg(p50=tc.quantile("rtt_us", 0.5), p99=tc.quantile("rtt_us", 0.99))


def sum_above(probes, least_us):
    rows = probes.filter((tc.col("error_code") == 0) & (tc.col("rtt_us") >= least_us))
    return rows.agg(c=tc.count(), s=tc.sum("rtt_us"))


def moments(probes):
    rtt = tc.col("rtt_us")
    return probes.window(tc.tumble(WINDOW)).agg(
        c=tc.count(),
        s=rtt.sum(),
        lo=rtt.min(),
        hi=rtt.max(),
        m=rtt.mean(),
        sd=tc.stddev_population("rtt_us"),
    )


BUILDER = {
    "q1": lambda probes, _: pairs(probes, tc.tumble(WINDOW)),
    "q1_hop": lambda probes, _: pairs(probes, tc.hop(WIDE_WINDOW, every=WINDOW)),
    "q2": switch_pairs,
    "q3": lambda probes, _: percentiles(probes),
    "q4": lambda probes, _: sum_above(probes, 1_000),
    "q4_wide": lambda probes, _: sum_above(probes, 100),
    "q5": lambda probes, _: moments(probes),
}

TEN = "TUMBLE(TABLE probes, DESCRIPTOR(timestamp), INTERVAL '10' SECOND)"
SIXTY = "HOP(TABLE probes, DESCRIPTOR(timestamp), INTERVAL '10' SECOND, INTERVAL '60' SECOND)"
KEYS = "window_start, window_end, src_cluster, dst_cluster"

SQL = {
    "q1": f"SELECT {KEYS}, count(*) AS c FROM {TEN} WHERE {FAILED} GROUP BY {KEYS}",
    "q1_hop": f"SELECT {KEYS}, count(*) AS c FROM {SIXTY} WHERE {FAILED} GROUP BY {KEYS}",
    "q2": "SELECT window_start, window_end, a.tor_id AS s, b.tor_id AS d, count(*) AS c "
    "FROM probes JOIN switches AS a ON src_ip = a.ip JOIN switches AS b ON dst_ip = b.ip "
    f"WHERE {FAILED} GROUP BY tumble(timestamp, INTERVAL '10 seconds'), a.tor_id, b.tor_id",
    "q3": f"SELECT {KEYS}, percentile_cont(0.5) WITHIN GROUP (ORDER BY rtt_us) AS p50, "
    f"percentile_cont(0.99) WITHIN GROUP (ORDER BY rtt_us) AS p99 FROM {TEN} GROUP BY {KEYS}",
    "q4": "SELECT count(*) AS c, sum(rtt_us) AS s FROM probes "
    "WHERE error_code = 0 AND rtt_us >= 1000",
    "q4_wide": "SELECT count(*) AS c, sum(rtt_us) AS s FROM probes "
    "WHERE error_code = 0 AND rtt_us >= 100",
    "q5": f"SELECT window_start, window_end, count(*) AS c, sum(rtt_us) AS s, min(rtt_us) AS lo, "
    f"max(rtt_us) AS hi, avg(rtt_us) AS m, stddev_pop(rtt_us) AS sd FROM {TEN} "
    "GROUP BY window_start, window_end",
}


def by_sql(query, probes, switches):
    """The stream of a query in SQL."""
    return tc.sql(SQL[query], probes=probes, switches=switches)
