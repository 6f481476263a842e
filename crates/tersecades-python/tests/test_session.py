"""Statements of SQL: what lasts between them, whose tables they read, and how they are stopped."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
import tersecades as tc


def reader(*values: int) -> pa.RecordBatchReader:
    """Rows that can be had once."""
    return pa.table({"v": list(values)}).to_reader()


def test_what_statements_create_lasts() -> None:
    rows = pa.table({"v": [1, 2, 3]})
    done = tc.sql("CREATE OR REPLACE TABLE lasting AS SELECT v * 2 AS v FROM rows").to_pylist()
    assert done == [{"done": "table lasting: 3 rows"}]
    assert rows.num_rows == 3
    assert tc.sql("SELECT sum(v) AS total FROM lasting").to_pylist() == [{"total": 12}]
    with pytest.raises(tc.InvalidArgument, match="there is a table `lasting` already"):
        tc.sql("CREATE TABLE lasting AS SELECT 1 AS v")
    # Another session knows nothing of it, and the other way round.
    session = tc.Session()
    with pytest.raises(tc.InvalidArgument, match="unknown table `lasting`"):
        session.sql("SELECT * FROM lasting")
    session.sql("CREATE TABLE apart AS SELECT 1 AS v")
    assert session.tables == ["apart"] and repr(session) == 'Session(tables=["apart"])'
    with pytest.raises(tc.InvalidArgument, match="unknown table `apart`"):
        tc.sql("SELECT * FROM apart")


def test_streams_have_their_watermark_and_come_in_order() -> None:
    session = tc.Session()
    times = pa.array([1_000, 9_000, 4_000, 30_000, 2_000], pa.timestamp("ms"))
    session.register("arrived", pa.table({"ts": times, "v": [1, 2, 3, 4, 5]}))
    session.sql(
        "CREATE STREAM probes AS SELECT * FROM arrived "
        "WATERMARK FOR ts AS ts - INTERVAL '6' SECOND"
    )
    windows = session.sql("SELECT sum(v) AS n FROM probes GROUP BY tumble(ts, INTERVAL '10 s')")
    assert windows.to_pylist() == [{"n": 6}, {"n": 4}]
    ordered = session.sql("SELECT v FROM IN_ORDER(TABLE probes)").collect()
    assert [row["v"] for row in ordered.to_pylist()] == [1, 3, 2, 4]
    assert ordered.metrics is not None and ordered.metrics.late_rows == 1
    # The same by the names that `register` takes.
    arrived = pa.table({"ts": times, "v": [1, 2, 3, 4, 5]})
    session.register("named", arrived, event_time="ts", lateness="6s")
    again = session.sql("SELECT v FROM IN_ORDER(TABLE named)").to_pylist()
    assert [row["v"] for row in again] == [1, 3, 2, 4]
    with pytest.raises(tc.InvalidArgument, match="the event time `tss` is no column"):
        session.register("wrong", arrived, event_time="tss")
    with pytest.raises(tc.InvalidArgument, match="lateness without event_time"):
        session.register("wrong", arrived, lateness="6s")
    with pytest.raises(tc.InvalidArgument, match="no table"):
        session.register("wrong", 5)  # type: ignore[arg-type]


def test_statements_without_rows_and_with_them() -> None:
    session = tc.Session()
    session.register("t", pa.table({"v": [1, 2]}))
    assert session.sql("SET threads = 2").to_pylist() == [{"done": "threads = 2"}]
    assert session.sql("SHOW TABLES").to_pylist() == [{"table_name": "t"}]
    assert session.sql("DESCRIBE t").to_pylist() == [{"column_name": "v", "column_type": "Int64"}]
    assert session.sql("SUMMARIZE t").columns[0] == "column_name"
    assert "t" in str(session.sql("EXPLAIN SELECT v FROM t").to_pylist())
    both = session.sql("CREATE TABLE u AS SELECT v + 1 AS w FROM t; SELECT sum(w) AS n FROM u")
    assert both.to_pylist() == [{"n": 5}]
    with pytest.raises(tc.InvalidArgument, match="rows that nobody would see"):
        session.sql("SELECT 1; SELECT 2")
    with pytest.raises(tc.InvalidArgument, match="no statement"):
        session.sql(" ;; ")
    # What ran before a statement that fails stays.
    with pytest.raises(tc.InvalidArgument, match="unknown table"):
        session.sql("CREATE TABLE x AS SELECT 1 AS v; SELECT * FROM y")
    assert session.tables == ["t", "u", "x"]


def test_only_tables_of_the_statement_are_read() -> None:
    v, rows, unused = reader(1), reader(5, 6), reader(9)
    found = tc.sql("WITH unused AS (SELECT v FROM rows) SELECT sum(v) AS v FROM unused")
    assert found.to_pylist() == [{"v": 11}]
    # Names of columns, aliases and common table expressions leave the variables as they were.
    assert v.read_all().num_rows == 1
    assert unused.read_all().num_rows == 1
    assert rows.read_all().num_rows == 0


def test_tables_of_a_statement_are_given_found_and_forgotten() -> None:
    Probes = pa.table({"v": [1]})
    assert Probes.num_rows == 1
    for name in ("Probes", "probes", '"Probes"'):
        assert tc.sql(f"SELECT v FROM {name}").to_pylist() == [{"v": 1}]
    given = pa.table({"v": [2]})
    assert tc.sql("SELECT v FROM probes", probes=given).to_pylist() == [{"v": 2}]
    assert tc.sql("SELECT v FROM elsewhere", elsewhere=given).to_pylist() == [{"v": 2}]
    with pytest.raises(tc.InvalidArgument, match="unknown table `elsewhere`"):
        tc.sql("SELECT v FROM elsewhere")
    name = "no table"
    with pytest.raises(tc.InvalidArgument, match="unknown table `name`"):
        tc.sql("SELECT v FROM name")
    assert name == "no table"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT (SELECT count(*) FROM endless WHERE rtt_us < 0) AS n",
        "CREATE TABLE never AS SELECT max(rtt_us) AS worst FROM endless",
    ],
)
def test_control_c_stops_what_runs_before_there_is_a_stream(statement: str) -> None:
    endless = tc.generate("pingmesh", rows=10**12)
    assert endless.columns
    began: list[float] = []

    def press() -> None:
        time.sleep(0.3)
        began.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        tc.sql(statement)
    thread.join()
    assert time.monotonic() - began[0] < 2


def test_statements_run_within_statements_and_beside_them() -> None:
    session = tc.Session()
    session.register("t", pa.table({"v": [1, 2]}))

    @tc.udf(return_type=pa.int64())
    def total(column: pa.Array) -> pa.Array:
        inner = session.sql("SELECT sum(v) AS n FROM t").to_pylist()[0]["n"]
        return pa.array([inner] * len(column))

    mapped = tc.from_arrow(pa.table({"v": [7]})).with_columns(n=total(tc.col("v")))
    session.sql("CREATE TABLE outer_one AS SELECT n FROM mapped", mapped=mapped)
    assert session.sql("SELECT n FROM outer_one").to_pylist() == [{"n": 3}]

    def create(number: int) -> None:
        session.sql(f"CREATE TABLE t{number} AS SELECT {number} AS v")

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {f"t{number}" for number in range(8)} <= set(session.tables)


def test_tables_that_use_the_session_are_registered() -> None:
    # A deadlock would hold the lock of the interpreter, so that no thread could tell.
    code = """
import threading
import pyarrow as pa, tersecades as tc
session = tc.Session()
class Asks:
    def __arrow_c_stream__(self, requested_schema=None):
        thread = threading.Thread(target=lambda: session.tables)
        thread.start()
        thread.join()
        table = pa.table({"v": [len(session.tables)]})
        return table.__arrow_c_stream__(requested_schema)
session.register("a", Asks())
session.register("b", Asks())
print(session.sql("SELECT v FROM b").to_pylist(), session.tables)
"""
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"[{'v': 1}] ['a', 'b']\n"), done


def test_streams_kept_in_a_store_are_there_when_the_session_ends(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    times = pa.array(range(0, 5_000, 1_000), pa.timestamp("ms"))
    with tc.Session() as session:
        session.register("arrived", pa.table({"ts": times, "v": range(5)}))
        session.sql(
            "CREATE STREAM live AS SELECT * FROM arrived "
            f"WATERMARK FOR ts AS ts - INTERVAL '2' SECOND KEEP ALL INTO '{folder}'"
        )
    with tc.Store.open(folder, read_only=True) as store:
        assert store.query("SELECT count(*) AS n FROM history").to_pylist() == [{"n": 5}]


def test_streams_kept_by_statements_are_there_when_python_ends(tmp_path: Path) -> None:
    script = f"""
import pyarrow as pa, tersecades as tc
arrived = tc.generate("pingmesh", rows=300_000, event_time="timestamp")
tc.sql(
    "CREATE STREAM live AS SELECT * FROM arrived "
    "WATERMARK FOR timestamp AS timestamp - INTERVAL '3' SECOND KEEP ALL INTO '{tmp_path / "kept"}'"
)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    with tc.Store.open(tmp_path / "kept", read_only=True) as store:
        assert store.query("SELECT count(*) AS n FROM history").to_pylist() == [{"n": 300_000}]
