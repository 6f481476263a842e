"""The queries through the Python package: written with its builder, and in SQL.

Both take turns on the same rows, encoded once and kept in memory. What is timed goes from the text
of the query to its result in memory, as planning and what Python adds are part of the price.
"""

import gc
import json
import statistics
import time

import pyarrow as pa
import tersecades as tc

import front_end_queries
import pingmesh
from recording import engine_arguments

LATENESS = "3s"


def checksum(table, clusters):
    """As our own bench computes it: without the end of windows, times as numbers."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        if name != "window_end":
            columns[name] = column
    return pingmesh.checksum(pa.table(columns), clusters)


def main():
    options = engine_arguments(repetitions=7).parse_args()
    path = options.data
    probes = tc.read_ipc(path, event_time="timestamp", lateness=LATENESS).cache()
    probes = probes.event_time("timestamp", LATENESS)
    switches = tc.read_ipc(path.with_name("tor.arrow")).collect()
    clusters = path.with_name("clusters.txt").read_text().split()
    names = options.queries.split(",") if options.queries else list(front_end_queries.BUILDER)
    build = front_end_queries.BUILDER
    ways = {
        "python": lambda name: build[name](probes, switches).collect(),
        "sql": lambda name: front_end_queries.by_sql(name, probes, switches).collect(),
    }
    rows = probes.agg(n=tc.count()).to_pylist()[0]["n"]
    seconds = {(way, name): [] for name in names for way in ways}
    sums = {}
    for repetition in range(options.repetitions + 1):
        for (way, name), times in seconds.items():
            gc.collect()
            start = time.perf_counter()
            result = ways[way](name)
            elapsed = time.perf_counter() - start
            if repetition:
                times.append(elapsed)
            else:
                sums[way, name] = checksum(result.to_arrow(), clusters)
            del result
    with open(options.output, "w") as output:
        for (way, name), times in seconds.items():
            rate = rows / statistics.median(times)
            line = {"engine": way, "query": name, "threads": 1, "rows": rows, "rows_per_s": rate}
            output.write(json.dumps(line | {"checksum": sums[way, name]}) + "\n")


if __name__ == "__main__":
    main()
