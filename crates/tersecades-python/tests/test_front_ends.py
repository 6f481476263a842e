"""The queries of the paper's stream: Python's builder, SQL, Polars and DuckDB answer alike."""

import importlib
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
import tersecades as tc

RIVALS = Path(__file__).parents[3] / "bench" / "rivals"

START = pl.col("timestamp").dt.truncate("10s").alias("window_start")
FAILED = (pl.col("error_code") != 0) & (pl.col("rtt_us") >= 100)
PAIR = ["window_start", "src_cluster", "dst_cluster"]


@pytest.fixture(scope="module")
def queries() -> Any:
    """What the benches run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RIVALS))
        return importlib.import_module("front_end_queries")


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Probes of a few seconds' disorder, every third failing."""
    made = tc.generate("pingmesh", rows=200_000, seed=11, error_share=0.3, rate=4_000, clusters=24)
    return made.to_arrow()


@pytest.fixture(scope="module")
def switches(rows: pa.Table) -> pa.Table:
    """Switches of most addresses."""
    addresses = pl.concat([pl.DataFrame(rows)[side] for side in ("src_ip", "dst_ip")])
    table = pl.DataFrame({"ip": addresses.unique().sort()}).with_row_index("at")
    table = table.filter(pl.col("at") % 50 != 0)
    return table.select("ip", tor_id=(pl.col("at") // 20).cast(pl.Int32)).to_arrow()


def by_polars(query: str, rows: pl.DataFrame, switches: pl.DataFrame) -> pl.DataFrame:
    """The answer of Polars, without the windows' ends."""
    failed = rows.filter(FAILED)
    rtt = pl.col("rtt_us")
    if query == "q1":
        return failed.group_by(START, *PAIR[1:]).agg(c=pl.len())
    if query == "q1_hop":
        hops = [
            failed.with_columns(window_start=START - pl.duration(seconds=10 * n)) for n in range(6)
        ]
        return pl.concat(hops).group_by(PAIR).agg(c=pl.len())
    if query == "q2":
        for side in ("src", "dst"):
            named = switches.rename({"tor_id": f"{side}_tor"})
            failed = failed.join(named, left_on=f"{side}_ip", right_on="ip")
        return failed.group_by(START, "src_tor", "dst_tor").agg(c=pl.len())
    if query == "q3":
        quantiles = {
            name: rtt.quantile(at, "linear") for name, at in (("p50", 0.5), ("p99", 0.99))
        }
        return rows.group_by(START, *PAIR[1:]).agg(**quantiles)
    if query in ("q4", "q4_wide"):
        least = 1_000 if query == "q4" else 100
        slow = rows.filter((pl.col("error_code") == 0) & (rtt >= least))
        return slow.select(c=pl.len(), s=rtt.cast(pl.Int64).sum())
    return rows.group_by(START).agg(
        c=pl.len(),
        s=rtt.cast(pl.Int64).sum(),
        lo=rtt.min(),
        hi=rtt.max(),
        m=rtt.mean(),
        sd=rtt.std(ddof=0),
    )


FAILED_SQL = "error_code <> 0 AND rtt_us >= 100"
START_SQL = "time_bucket(INTERVAL '10 seconds', timestamp)"

DUCKDB = {
    "q1": f"SELECT {START_SQL} AS w, src_cluster, dst_cluster, count(*) FROM rows "
    f"WHERE {FAILED_SQL} GROUP BY ALL",
    "q1_hop": f"SELECT {START_SQL} - to_seconds(10 * n) AS w, src_cluster, dst_cluster, count(*) "
    f"FROM rows, range(6) AS hops(n) WHERE {FAILED_SQL} GROUP BY ALL",
    "q2": f"SELECT {START_SQL} AS w, a.tor_id AS s, b.tor_id AS d, count(*) FROM rows "
    "JOIN switches AS a ON src_ip = a.ip JOIN switches AS b ON dst_ip = b.ip "
    f"WHERE {FAILED_SQL} GROUP BY ALL",
    "q3": f"SELECT {START_SQL} AS w, src_cluster, dst_cluster, quantile_cont(rtt_us, 0.5), "
    "quantile_cont(rtt_us, 0.99) FROM rows GROUP BY ALL",
    "q4": "SELECT count(*), sum(rtt_us) FROM rows WHERE error_code = 0 AND rtt_us >= 1000",
    "q4_wide": "SELECT count(*), sum(rtt_us) FROM rows WHERE error_code = 0 AND rtt_us >= 100",
    "q5": f"SELECT {START_SQL} AS w, count(*), sum(rtt_us), min(rtt_us), max(rtt_us), avg(rtt_us), "
    "stddev_pop(rtt_us) FROM rows GROUP BY ALL",
}


def by_duckdb(query: str, rows: pa.Table, switches: pa.Table) -> pl.DataFrame:
    """The answer of DuckDB, without the windows' ends."""
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        connection.register("switches", switches)
        return pl.DataFrame(connection.sql(DUCKDB[query]).to_arrow_table())


def values(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Rows in one order, times in microseconds, numbers as numbers of Python."""

    def plain(value: object) -> object:
        return int(value) if isinstance(value, Decimal) else value

    times = frame.select(
        pl.col(name).cast(pl.Datetime("us")).cast(pl.Int64) if kind.is_temporal() else pl.col(name)
        for name, kind in frame.schema.items()
    )
    return sorted(tuple(map(plain, row)) for row in times.rows())


def assert_close(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> None:
    """Compares rows, floats to nine digits."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for left, right in zip(one, other, strict=True):
            same = left == right or math.isclose(left, right, rel_tol=1e-9)
            assert same, f"{one} is not {other}"


@pytest.mark.parametrize("query", ["q1", "q1_hop", "q2", "q3", "q4", "q4_wide", "q5"])
@pytest.mark.parametrize("kept", [False, True], ids=["passing", "kept"])
def test_all_front_ends_answer_alike(
    queries: Any, rows: pa.Table, switches: pa.Table, query: str, kept: bool
) -> None:
    probes = tc.from_arrow(rows, event_time="timestamp", lateness="5s")
    probes = probes.cache() if kept else probes
    built = queries.BUILDER[query](probes, switches).collect()
    asked = queries.by_sql(query, probes, switches).collect()
    assert built.metrics.late_rows == 0
    answers = [table.to_polars() for table in (built, asked)]
    answers = [answer.drop("window_end", strict=False) for answer in answers]
    frames = pl.DataFrame(rows), pl.DataFrame(switches)
    answers += [by_polars(query, *frames), by_duckdb(query, rows, switches)]
    first, *others = map(values, answers)
    assert len(first) >= 1
    for other in others:
        assert_close(first, other)
