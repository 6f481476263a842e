"""NumPy: plain arrays with clusters as codes, queries written by hand; a floor, not an engine."""

import numpy as np
import pyarrow as pa

import pingmesh

options = pingmesh.arguments()
data = pingmesh.Data(options.data, options.tag)


def load():
    columns = {}
    for name, column in zip((table := data.read(data.stream)).column_names, table.columns):
        coded = pa.types.is_dictionary(column.type)
        parts = [np.asarray(part.indices if coded else part) for part in column.chunks]
        columns[name] = np.concatenate(parts)
    return columns


stream = load()
time, rtt, error = (stream[name] for name in ("timestamp", "rtt_us", "error_code"))
clusters = len(data.clusters)
switches = data.read(data.switches)
addresses, racks = (np.asarray(switches.column(at).combine_chunks()) for at in (0, 1))
first = int(addresses.min())
# Rack 0 stands for unknown addresses.
rack_of = np.zeros(int(addresses.max()) - first + 2, np.int64)
rack_of[addresses - first] = racks


def failures():
    return np.flatnonzero((error != 0) & (rtt >= pingmesh.FAILURE_RTT_US))


def counted(starts, left, right, count):
    """Rows of each window and pair; `count` is above all names."""
    keys = (starts // pingmesh.WINDOW_MS * count + left) * count + right
    keys, rows = np.unique(keys, return_counts=True)
    starts = keys // (count * count) * pingmesh.WINDOW_MS
    return pa.table([starts, keys // count % count, keys % count, rows], names=list("wsdn"))


def pairs(copies):
    rows = failures()
    starts = time[rows] - time[rows] % pingmesh.WINDOW_MS
    left, right = (stream[name][rows].astype(np.int64) for name in ("src_cluster", "dst_cluster"))
    if copies > 1:
        starts = (starts[:, None] - np.arange(copies) * pingmesh.WINDOW_MS).ravel()
        left, right = np.repeat(left, copies), np.repeat(right, copies)
    return counted(starts, left, right, clusters)


def switch_pairs():
    rows = failures()

    def rack(name):
        at = stream[name][rows].astype(np.int64) - first
        return rack_of[np.where((at >= 0) & (at < len(rack_of)), at, len(rack_of) - 1)]

    left, right = rack("src_ip"), rack("dst_ip")
    known = (left > 0) & (right > 0)
    starts = time[rows] - time[rows] % pingmesh.WINDOW_MS
    return counted(starts[known], left[known], right[known], 1 << 14)


def quantiles():
    pair = stream["src_cluster"].astype(np.int64) * clusters + stream["dst_cluster"]
    keys = time // pingmesh.WINDOW_MS * clusters * clusters + pair
    order = np.lexsort((rtt, keys))
    keys, values = keys[order], rtt[order].astype(np.float64)
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    counts = np.diff(np.r_[starts, len(keys)])
    results = []
    for fraction in (0.5, 0.99):
        place = (counts - 1) * fraction
        low = np.floor(place).astype(np.int64)
        below, above = values[starts + low], values[starts + np.minimum(low + 1, counts - 1)]
        results.append(below + (above - below) * (place - low))
    keys = keys[starts]
    windows = keys // (clusters * clusters) * pingmesh.WINDOW_MS
    names = [keys // clusters % clusters, keys % clusters]
    return pa.table([windows, *names, *results], names=list("wsdpq"))


def above(least_us):
    rows = (error == 0) & (rtt >= least_us)
    return pa.table([[int(rows.sum())], [int(rtt[rows].sum(dtype=np.int64))]], names=list("ns"))


def moments():
    windows = time // pingmesh.WINDOW_MS
    first_window = int(windows.min())
    at = windows - first_window
    counts = np.bincount(at)
    sums = np.bincount(at, weights=rtt.astype(np.float64)).astype(np.int64)
    means = sums / counts
    stddev = np.sqrt(np.bincount(at, weights=(rtt - means[at]) ** 2) / counts)
    low, high = np.full(len(counts), 2**62), np.zeros(len(counts), np.int64)
    np.minimum.at(low, at, rtt)
    np.maximum.at(high, at, rtt)
    starts = (np.arange(len(counts)) + first_window) * pingmesh.WINDOW_MS
    return pa.table([starts, counts, sums, low, high, means, stddev], names=list("wnslhmd"))


queries = {
    "q1": lambda: pairs(1),
    "q1_hop": lambda: pairs(pingmesh.WIDE_WINDOW_MS // pingmesh.WINDOW_MS),
    "q2": switch_pairs,
    "q3": quantiles,
    "q4": lambda: above(pingmesh.SLOW_RTT_US),
    "q4_wide": lambda: above(pingmesh.FAILURE_RTT_US),
    "q5": moments,
}
pingmesh.measure("numpy", data, queries, options)
