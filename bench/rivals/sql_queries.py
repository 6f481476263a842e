"""The queries as SQL, for engines that speak it; the few functions that differ are arguments."""

import pingmesh

FAILURES = f"error_code <> 0 AND rtt_us >= {pingmesh.FAILURE_RTT_US}"
BACKWARD = range(0, pingmesh.WIDE_WINDOW_MS, pingmesh.WINDOW_MS)


def start(size_ms):
    return f"(timestamp - timestamp % {size_ms})"


def texts(
    quantile,
    stream="probes",
    switches="tor",
    count="count(*)",
    total="sum(rtt_us)",
    stddev="stddev_pop(rtt_us)",
    offsets="(VALUES " + ", ".join(f"({back})" for back in BACKWARD) + ") AS o(back)",
):
    """Name to text; `quantile` makes the call for a fraction."""
    ten, pair = start(pingmesh.WINDOW_MS), "src_cluster, dst_cluster"
    failures = f"FROM {stream} WHERE {FAILURES}"

    def tumble(keys, size_ms):
        return f"SELECT {start(size_ms)} AS w, {keys}, {count} AS n {failures} GROUP BY w, {keys}"

    def hop(keys):
        rows = f"(SELECT {ten} AS w0, {keys} {failures}) AS f CROSS JOIN {offsets}"
        return f"SELECT w0 - back AS w, {keys}, {count} AS n FROM {rows} GROUP BY w, {keys}"

    def above(least_us):
        where = f"error_code = 0 AND rtt_us >= {least_us}"
        return f"SELECT {count} AS n, {total} AS s FROM {stream} WHERE {where}"

    return {
        "q1": tumble(pair, pingmesh.WINDOW_MS),
        "q1_hop": hop(pair),
        "q2": f"SELECT w, a.tor_id AS s, b.tor_id AS d, {count} AS n FROM "
        f"(SELECT {ten} AS w, src_ip, dst_ip {failures}) AS f "
        f"JOIN {switches} AS a ON f.src_ip = a.ip JOIN {switches} AS b ON f.dst_ip = b.ip "
        "GROUP BY w, s, d",
        "q3": f"SELECT {ten} AS w, {pair}, {quantile(0.5)} AS p50, {quantile(0.99)} AS p99 "
        f"FROM {stream} GROUP BY w, {pair}",
        "q4": above(pingmesh.SLOW_RTT_US),
        "q4_wide": above(pingmesh.FAILURE_RTT_US),
        "q5": f"SELECT {ten} AS w, {count} AS n, {total} AS s, min(rtt_us) AS lo, "
        f"max(rtt_us) AS hi, avg(rtt_us) AS m, {stddev} AS sd FROM {stream} GROUP BY w",
    }
