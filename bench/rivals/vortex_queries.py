"""Vortex: filters on its compressed arrays in memory; numpy groups what is left, on one thread.

It has no windows and no group-by, so it runs the queries whose work is the filter.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import vortex as vx
import vortex.expr as ve

import pingmesh

options = pingmesh.arguments()
data = pingmesh.Data(options.data, options.tag)
vx.set_worker_threads(options.threads)


def load():
    """Compressed arrays, as Vortex lays out a file of its own."""
    path = data.folder / "pingmesh_10m.vortex"
    if not path.exists():
        table = data.read(data.stream)
        for name in ("src_cluster", "dst_cluster"):
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, table.column(at).cast(pa.string()))
        vx.io.write(table, str(path))
    return vx.open(str(path)).scan(batch_size=1 << 20).read_all()


stream = load()


def survivors(failed, least_us, columns):
    error, rtt = ve.column("error_code"), ve.column("rtt_us")
    zero, least = ve.literal(vx.int_(32), 0), ve.literal(vx.uint(32), least_us)
    wanted = ve.not_eq(error, zero) if failed else ve.eq(error, zero)
    keep = stream.apply(ve.and_(wanted, ve.gt_eq(rtt, least)))
    return stream.apply(ve.select(columns, ve.root())).filter(keep).to_arrow_table()


def count_pairs():
    names = ["timestamp", "src_cluster", "dst_cluster"]
    table = survivors(True, pingmesh.FAILURE_RTT_US, names)
    clusters = pa.array(data.clusters)
    n = len(clusters)

    def places(name):
        texts = table.column(name).cast(pa.string())
        return pc.index_in(texts, value_set=clusters).to_numpy().astype(np.int64)

    windows = table.column("timestamp").to_numpy() // pingmesh.WINDOW_MS
    keys = (windows * n + places("src_cluster")) * n + places("dst_cluster")
    keys, counts = np.unique(keys, return_counts=True)
    starts = keys // (n * n) * pingmesh.WINDOW_MS
    return pa.table([starts, keys // n % n, keys % n, counts], names=["window", "src", "dst", "n"])


def sum_above(least_us):
    rtt = survivors(False, least_us, ["rtt_us"]).column("rtt_us")
    return pa.table([[len(rtt)], [pc.sum(rtt).as_py()]], names=["n", "sum"])


queries = {
    "q1": count_pairs,
    "q4": lambda: sum_above(pingmesh.SLOW_RTT_US),
    "q4_wide": lambda: sum_above(pingmesh.FAILURE_RTT_US),
}
pingmesh.measure("vortex", data, queries, options)
