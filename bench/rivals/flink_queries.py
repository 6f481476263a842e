"""Flink SQL: from the Parquet file to a CSV file; it keeps no table in memory.

In batch mode a query has its final rows alone. Streaming mode runs those queries whose windows
close once, the others would tell every change of a row.
"""

import pathlib
import tempfile

import pyarrow as pa
import pyarrow.csv as csv

import pingmesh
from flink_session import peak_mib, session

options = pingmesh.arguments()
data = pingmesh.Data(options.data, options.tag)
streaming = options.mode == "streaming"
flink = session(options.threads, streaming)


def create(name, columns, path):
    source = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{path.resolve()}'"
    flink.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({source})")


create(
    "probes",
    "`timestamp` BIGINT, src_ip INT, src_cluster STRING, dst_ip INT, dst_cluster STRING, "
    "rtt_us INT, error_code INT, ts AS TO_TIMESTAMP_LTZ(`timestamp`, 3), "
    "WATERMARK FOR ts AS ts - INTERVAL '3' SECOND",
    data.parquet,
)
create("tor", "ip INT, tor_id INT", data.folder / "tor.parquet")

FAILURES = f"error_code <> 0 AND rtt_us >= {pingmesh.FAILURE_RTT_US}"
SLIDE = f"INTERVAL '{pingmesh.WINDOW_MS // 1000}' SECOND"
TUMBLE = f"TUMBLE(TABLE probes, DESCRIPTOR(ts), {SLIDE})"
WIDE = f"INTERVAL '{pingmesh.WIDE_WINDOW_MS // 1000}' SECOND"
HOP = f"HOP(TABLE probes, DESCRIPTOR(ts), {SLIDE}, {WIDE})"
# A window's start has no zone; the format of SQL text has whole seconds.
START = "UNIX_TIMESTAMP(DATE_FORMAT(window_start, 'yyyy-MM-dd HH:mm:ss')) * 1000"
BOUNDS = "window_start, window_end"
PAIR = "src_cluster, dst_cluster"
TEN = f"`timestamp` - MOD(`timestamp`, {pingmesh.WINDOW_MS})"


def pairs(windows):
    groups = f"GROUP BY {BOUNDS}, {PAIR}"
    return f"SELECT {START}, {PAIR}, count(*) FROM {windows} WHERE {FAILURES} {groups}"


def above(least_us):
    where = f"error_code = 0 AND rtt_us >= {least_us}"
    return f"SELECT count(*), sum(CAST(rtt_us AS BIGINT)) FROM probes WHERE {where}"


COUNTED = "w BIGINT, s STRING, d STRING, n BIGINT"
TOTALS = "n BIGINT, s BIGINT"
# Name to text and columns of the answer; whole numbers are widened where sums of INT would wrap.
TEXTS = {
    "q1": (pairs(TUMBLE), COUNTED),
    "q1_hop": (pairs(HOP), COUNTED),
    "q2": (
        f"SELECT f.w, a.tor_id, b.tor_id, count(*) FROM (SELECT {TEN} AS w, src_ip, dst_ip "
        f"FROM probes WHERE {FAILURES}) f JOIN tor a ON f.src_ip = a.ip "
        "JOIN tor b ON f.dst_ip = b.ip GROUP BY f.w, a.tor_id, b.tor_id",
        "w BIGINT, s INT, d INT, n BIGINT",
    ),
    "q3": (
        f"SELECT {START}, {PAIR}, percentile(rtt_us, 0.5), percentile(rtt_us, 0.99) "
        f"FROM {TUMBLE} GROUP BY {BOUNDS}, {PAIR}",
        "w BIGINT, s STRING, d STRING, p50 DOUBLE, p99 DOUBLE",
    ),
    "q4": (above(pingmesh.SLOW_RTT_US), TOTALS),
    "q4_wide": (above(pingmesh.FAILURE_RTT_US), TOTALS),
    "q5": (
        f"SELECT {START}, count(*), sum(CAST(rtt_us AS BIGINT)), min(rtt_us), max(rtt_us), "
        "avg(CAST(rtt_us AS DOUBLE)), stddev_pop(CAST(rtt_us AS DOUBLE)) "
        f"FROM {TUMBLE} GROUP BY {BOUNDS}",
        "w BIGINT, n BIGINT, s BIGINT, lo INT, hi INT, m DOUBLE, sd DOUBLE",
    ),
}
CLOSE_ONCE = ("q1", "q1_hop", "q3", "q5")
runs = iter(range(1_000_000))


def run(name, folder):
    """The folder of the files of one answer."""
    text, columns = TEXTS[name]
    at = next(runs)
    target = pathlib.Path(folder) / str(at)
    into = f"'connector' = 'filesystem', 'format' = 'csv', 'path' = '{target}'"
    flink.execute_sql(f"CREATE TABLE answer_{at} ({columns}) WITH ({into})")
    flink.execute_sql(f"INSERT INTO answer_{at} {text}").wait()
    return target


def table(target):
    """An answer as a table; parts that are not finished have names with a dot before them."""
    files = [
        file
        for file in target.rglob("*")
        if file.is_file() and file.stat().st_size and not file.name.startswith((".", "_"))
    ]
    named = csv.ReadOptions(autogenerate_column_names=True)
    parts = [csv.read_csv(file, named) for file in files]
    return pa.concat_tables(parts, promote_options="permissive")


with tempfile.TemporaryDirectory() as folder:
    queries = {
        name: lambda name=name: run(name, folder)
        for name in (CLOSE_ONCE if streaming else TEXTS)
    }
    engine = "flink_streaming" if streaming else "flink"
    pingmesh.measure(engine, data, queries, options, table, peak_mib)
