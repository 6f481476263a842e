"""Bytewax: filters run on batches of Arrow, then each row is a tuple through keyed steps.

Batches come from memory or from the Parquet file. Its clock is the time of the rows, as late as in
our queries; the clock of the machine is held still, or results would depend on its speed.
"""

from datetime import datetime, timedelta, timezone

import bytewax.operators as op
import bytewax.operators.windowing as windowing
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, cluster_main

import pingmesh

BATCH_ROWS = 8192
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
STILL = datetime(2026, 1, 1, tzinfo=timezone.utc)
LATENESS = timedelta(seconds=3)
SLIDE = timedelta(milliseconds=pingmesh.WINDOW_MS)
WIDE = timedelta(milliseconds=pingmesh.WIDE_WINDOW_MS)

options = pingmesh.arguments()
data = pingmesh.Data(options.data, options.tag)
kept = None
if options.input == "memory":
    kept = data.read(data.stream).to_batches(max_chunksize=BATCH_ROWS)
switches = data.read(data.switches).to_pydict()
rack_of = dict(zip(switches["ip"], switches["tor_id"], strict=True))


def batches():
    return kept or pq.ParquetFile(data.parquet).iter_batches(BATCH_ROWS)


def failures(batch):
    slow = pc.greater_equal(batch["rtt_us"], pingmesh.FAILURE_RTT_US)
    return batch.filter(pc.and_(pc.not_equal(batch["error_code"], 0), slow))


def answered(least_us):
    def rows(batch):
        slow = pc.greater_equal(batch["rtt_us"], least_us)
        return batch.filter(pc.and_(pc.equal(batch["error_code"], 0), slow))

    return rows


def every(batch):
    return batch


def whole(batch):
    """One key for all rows."""
    return ["all"] * batch.num_rows


def pair(batch):
    names = [batch[name].cast(pa.string()) for name in ("src_cluster", "dst_cluster")]
    return pc.binary_join_element_wise(*names, "|").to_pylist()


def racks(batch):
    """`source|target`, and nothing for an address that no switch has."""
    ends = zip(batch["src_ip"].to_pylist(), batch["dst_ip"].to_pylist(), strict=True)
    found = [(rack_of.get(source), rack_of.get(target)) for source, target in ends]
    return [None if None in ends else f"{ends[0]}|{ends[1]}" for ends in found]


def run(filtered, key, step):
    """What `step` makes of `(key, (time, round trip))` of the rows that `filtered` leaves."""

    def records(batch):
        batch = filtered(batch)
        times = batch["timestamp"].cast(pa.timestamp("ms", "UTC")).to_pylist()
        values = zip(times, batch["rtt_us"].to_pylist(), strict=True)
        keyed = zip(key(batch), values, strict=True)
        return [record for record in keyed if record[0] is not None]

    found = []
    flow = Dataflow("query")
    rows = op.flat_map("rows", op.input("batches", flow, TestingSource(batches())), records)
    op.output("results", step(rows), TestingSink(found))
    cluster_main(flow, [], 0, worker_count_per_proc=options.threads)
    return found


def windows(start, folded, merged, size=SLIDE):
    """A step that folds the rows of each window, a slide apart from the next."""
    clock = windowing.EventClock(
        lambda row: row[0], LATENESS, now_getter=lambda: STILL, to_system_utc=lambda _: None
    )
    windower = windowing.SlidingWindower(length=size, offset=SLIDE, align_to=EPOCH)
    if size == SLIDE:
        windower = windowing.TumblingWindower(length=size, align_to=EPOCH)

    def step(rows):
        out = windowing.fold_window(
            "windows", rows, clock, windower, start, folded, merged, ordered=False
        )
        return out.down

    return step


def columns(rows):
    listed = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(listed, names=[str(index) for index in range(len(listed))])


def counted(key, size=SLIDE, of=str):
    step = windows(int, lambda count, _: count + 1, lambda left, right: left + right, size)
    found = run(failures, key, step)
    return columns(
        [(at * pingmesh.WINDOW_MS, *map(of, key.split("|")), n) for key, (at, n) in found]
    )


def interpolated(values, fraction):
    place = (len(values) - 1) * fraction
    low = int(place)
    above = values[min(low + 1, len(values) - 1)]
    return values[low] + (above - values[low]) * (place - low)


def quantiles():
    def gathered(values, row):
        values.append(row[1])
        return values

    rows = []
    for key, (at, values) in run(every, pair, windows(list, gathered, list.__add__)):
        values.sort()
        both = [float(interpolated(values, fraction)) for fraction in (0.5, 0.99)]
        rows.append((at * pingmesh.WINDOW_MS, *key.split("|"), *both))
    return columns(rows)


def above(least_us):
    def total(rows):
        return op.fold_final("sum", rows, lambda: (0, 0), lambda s, row: (s[0] + 1, s[1] + row[1]))

    ((_, sums),) = run(answered(least_us), whole, total)
    return columns([sums])


def moments():
    def folded(sums, row):
        count, total, low, high, squares = sums
        value = row[1]
        low, high = min(low, value), max(high, value)
        return count + 1, total + value, low, high, squares + value * value

    def merged(left, right):
        low, high = min(left[2], right[2]), max(left[3], right[3])
        return left[0] + right[0], left[1] + right[1], low, high, left[4] + right[4]

    rows = []
    step = windows(lambda: (0, 0, 1 << 62, 0, 0), folded, merged)
    for _, (at, (count, total, low, high, squares)) in run(every, whole, step):
        # Whole numbers to the last step: nothing cancels.
        stddev = (squares * count - total * total) ** 0.5 / count
        rows.append((at * pingmesh.WINDOW_MS, count, total, low, high, total / count, stddev))
    return columns(rows)


queries = {
    "q1": lambda: counted(pair),
    "q1_hop": lambda: counted(pair, WIDE),
    "q2": lambda: counted(racks, of=int),
    "q3": quantiles,
    "q4": lambda: above(pingmesh.SLOW_RTT_US),
    "q4_wide": lambda: above(pingmesh.FAILURE_RTT_US),
    "q5": moments,
}
pingmesh.measure("bytewax", data, queries, options)
