"""What the scripts of the rivals share: the reference input, timing, and checksums of answers."""

import gc
import json
import pathlib
import statistics
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recording import engine_arguments, spread

WINDOW_MS = 10_000
WIDE_WINDOW_MS = 60_000
FAILURE_RTT_US = 100
SLOW_RTT_US = 1_000

MIX = [np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)]


class Data:
    """The folder that gen_pingmesh.py has filled."""

    def __init__(self, folder, tag="10m"):
        self.folder = pathlib.Path(folder)
        self.stream = self.folder / f"pingmesh_{tag}.arrow"
        self.parquet = self.folder / f"pingmesh_{tag}.parquet"
        self.switches = self.folder / "tor.arrow"
        self.clusters = (self.folder / "clusters.txt").read_text().split()
        self.rows = json.loads((self.folder / f"pingmesh_{tag}.json").read_text())["rows"]

    def read(self, path):
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def mix(values):
    """The finalizer of SplitMix64."""
    values = values + MIX[0]
    values = (values ^ (values >> np.uint64(30))) * MIX[1]
    values = (values ^ (values >> np.uint64(27))) * MIX[2]
    return values ^ (values >> np.uint64(31))


def row_hash(columns):
    """`rows:mix` of integer columns, whatever the order of rows."""
    with np.errstate(over="ignore"):
        hashes = np.zeros(len(columns[0]), np.uint64)
        for column in columns:
            hashes = mix(hashes ^ column.astype(np.int64).view(np.uint64))
        return f"{len(hashes)}:{int(hashes.sum(dtype=np.uint64)):016x}"


def checksum(table, clusters):
    """The same as bench/src/query/answer.rs; a table of one row has two totals."""
    # Hundredths of both quantiles; of a mean hundredths, of a standard deviation tenths.
    scales = iter((100, 100) if table.num_columns == 5 else (100, 10))
    columns = []
    for column in table.columns:
        column = column.combine_chunks()
        if pa.types.is_floating(column.type):
            columns.append(np.rint(np.asarray(column) * next(scales)).astype(np.int64))
        elif pa.types.is_integer(column.type):
            columns.append(np.asarray(column).astype(np.int64))
        else:
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            names = column.cast(pa.string())
            columns.append(np.asarray(pc.index_in(names, value_set=pa.array(clusters))))
    if table.num_rows == 1:
        return f"{columns[0][0]}:{columns[1][0]}"
    return row_hash(columns)


def arguments():
    """What our own bench is given, and what differs among the rivals."""
    parser = engine_arguments(repetitions=7)
    parser.add_argument("--input", choices=["memory", "parquet"], default="memory")
    parser.add_argument("--tag", default="10m", help="size in the names of the files")
    parser.add_argument("--mode", choices=["batch", "streaming"], default="batch", help="of Flink")
    return parser.parse_args()


def measure(engine, data, queries, options, as_arrow=lambda result: result, peak_mib=lambda: 0):
    """Runs the queries in turn, one more time than is timed, and writes JSON lines.

    What a query returns is its result in the engine's own form, which `as_arrow` turns into a table
    outside the timed part. `peak_mib` is the memory of processes that the engine has beside this.
    """
    if options.queries:
        wanted = options.queries.split(",")
        queries = {name: query for name, query in queries.items() if name in wanted}
    seconds = {name: [] for name in queries}
    checksums = {}
    for repetition in range(options.repetitions + 1):
        for name, query in queries.items():
            gc.collect()
            start = time.perf_counter()
            result = query()
            elapsed = time.perf_counter() - start
            if repetition == 0:
                checksums[name] = checksum(to_table(as_arrow(result)), data.clusters)
            else:
                seconds[name].append(elapsed)
            del result
    lines = []
    for name, times in seconds.items():
        rows_per_s = data.rows / statistics.median(times)
        line = {"engine": engine, "query": name, "threads": options.threads, "rows": data.rows}
        line |= {"input": options.input, "rows_per_s": rows_per_s, "spread": spread(times)}
        line |= {"checksum": checksums[name], "peak_mib": peak_mib()}
        lines.append(json.dumps(line))
        print(f"  {name:<20} {rows_per_s / 1e6:11.3f} M rows/s   {checksums[name]}", flush=True)
    if options.output:
        options.output.write_text("".join(line + "\n" for line in lines))


def to_table(result):
    return result if isinstance(result, pa.Table) else result.to_arrow()
