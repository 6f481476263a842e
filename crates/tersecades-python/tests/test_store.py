"""Stores: rows that last, queried as they are and followed as they arrive."""

import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
import tersecades as tc

ROWS = 20_000
COLUMNS = "host TEXT, ts TIMESTAMP(3), n BIGINT"


def table(rows: range) -> pa.Table:
    return pa.table(
        {
            "host": [f"host {n % 3}" for n in rows],
            "ts": pa.array(list(rows), pa.timestamp("ms")),
            "n": list(rows),
        }
    )


def test_rows_that_are_ingested_are_queried_by_later_processes(tmp_path: Path) -> None:
    with tc.Store.create(tmp_path / "s", COLUMNS, time="ts", buffer_rows=3_000) as store:
        assert store.ingest(table(range(5_000))) == 5_000
        assert store.ingest(tc.from_arrow(table(range(5_000, ROWS)))) == ROWS - 5_000
        assert store.rows == ROWS
    with pytest.raises(tc.InvalidArgument, match="closed"):
        _ = store.rows
    store = tc.Store.open(tmp_path / "s", read_only=True)
    out = store.query(
        "SELECT host, count(*) AS rows, sum(n) AS total FROM history GROUP BY host ORDER BY host"
    )
    assert out.to_pylist() == [
        {
            "host": f"host {host}",
            "rows": len(range(host, ROWS, 3)),
            "total": sum(range(host, ROWS, 3)),
        }
        for host in range(3)
    ]
    with pytest.raises(tc.InvalidArgument):
        store.ingest(table(range(1)))


def test_a_primary_key_keeps_the_last_row(tmp_path: Path) -> None:
    columns = "host TEXT NOT NULL, n BIGINT"
    with tc.Store.create(tmp_path / "s", columns, primary_key=["host"]) as store:
        store.ingest(pa.table({"host": ["a", "b"], "n": [1, 2]}))
        store.ingest(pa.table({"host": ["a"], "n": [3]}))
        with pytest.raises(tc.Error, match="may be null"):
            store.add_column("w BIGINT, x BIGINT NOT NULL")
        store.add_column("w BIGINT")
        out = store.query("SELECT host, n, w FROM history ORDER BY host").to_pylist()
        assert out == [{"host": "a", "n": 3, "w": None}, {"host": "b", "n": 2, "w": None}]


def test_a_stream_is_kept_once_and_followed_while_it_flows(tmp_path: Path) -> None:
    batches = [table(range(first, first + 500)) for first in range(0, ROWS, 500)]
    rows = tc.from_arrow(pa.concat_tables(batches))
    expected = {"rows": ROWS, "total": ROWS * (ROWS - 1) // 2}
    for _ in range(2):
        path = tmp_path / "s"
        if path.exists():
            store = tc.Store.open(path)
        else:
            store = tc.Store.create(path, COLUMNS, time="ts", durability="os", buffer_rows=3_000)
        feeding = store.keep(rows, "numbers")
        out = store.follow().agg(rows=tc.count(), total=tc.sum("n")).to_pylist()
        assert out == [expected]
        assert feeding.finish() == ROWS
        store.close()


FEEDER = """
import sys, time
import pyarrow as pa
import tersecades as tc

path, rows = sys.argv[1], int(sys.argv[2])
with tc.Store.open(path) as store:
    for first in range(0, rows, 500):
        numbers = range(first, first + 500)
        columns = {
            "host": [f"host {n % 3}" for n in numbers],
            "ts": pa.array(list(numbers), pa.timestamp("ms")),
            "n": list(numbers),
        }
        store.ingest(pa.table(columns))
        print(first, flush=True)
        time.sleep(0.01)
"""


def test_a_store_is_followed_that_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "s"
    tc.Store.create(path, COLUMNS, time="ts", buffer_rows=3_000).close()
    command = [sys.executable, "-c", FEEDER, str(path), str(ROWS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as feeder:
        assert feeder.stdout is not None
        assert feeder.stdout.readline()
        store = tc.Store.open(path, read_only=True)
        windows = store.follow().window(tc.tumble("1s")).agg(rows=tc.count(), total=tc.sum("n"))
        found = [row for batch in windows.stream() for row in pa.table(batch).to_pylist()]
        feeder.stdout.read()
    assert feeder.returncode == 0
    assert [(row["rows"], row["total"]) for row in found] == [
        (1_000, sum(range(first, first + 1_000))) for first in range(0, ROWS, 1_000)
    ]
    assert store.follow().agg(rows=tc.count()).to_pylist() == [{"rows": ROWS}]


FOLLOWER = """
import os, pickle, sys
import pyarrow as pa
import tersecades as tc

path, kept = sys.argv[1:]
state, found = pickle.load(open(kept, "rb")) if os.path.exists(kept) else (None, [])
rows = tc.Store.open(path, read_only=True).follow()
windows = rows.window(tc.tumble("100ms")).agg(rows=tc.count(), total=tc.sum("n"))
running = windows.stream(snapshot=state)
goes_on, steps = True, 0
while goes_on:
    goes_on, steps = running.step(), steps + 1
    if goes_on and steps % 3 == 0:
        while (ready := running.take_ready()) is not None:
            found += pa.table(ready).to_pylist()
        state = (running.snapshot(), found)
        with open(kept + ".new", "wb") as file:
            pickle.dump(state, file)
        os.replace(kept + ".new", kept)
while (ready := running.take_ready()) is not None:
    found += pa.table(ready).to_pylist()
with open(kept, "wb") as file:
    pickle.dump((None, found), file)
"""


def test_a_follower_that_is_killed_is_taken_over(tmp_path: Path) -> None:
    path, kept = tmp_path / "s", tmp_path / "kept"
    store = tc.Store.create(path, COLUMNS, key=["host"], time="ts", buffer_rows=700, level_ratio=2)
    store.ingest(table(range(1_000)))
    command = [sys.executable, "-c", FOLLOWER, str(path), str(kept)]
    random = Random(7)
    first = 1_000
    for _ in range(8):
        with subprocess.Popen(command) as follower:
            for _ in range(random.randrange(10, 60)):
                store.ingest(table(range(first, first + 50)))
                first += 50
                time.sleep(0.01)
            follower.kill()
        store.ingest(table(range(first, first + 150)))
        first += 150
        store.compact()
    store.close()
    subprocess.run(command, check=True)
    with open(kept, "rb") as file:
        _, found = pickle.load(file)
    assert [(row["rows"], row["total"]) for row in found] == [
        (len(numbers), sum(numbers))
        for numbers in (range(start, min(start + 100, first)) for start in range(0, first, 100))
    ]


def test_closing_a_store_ends_the_queries_that_follow_it(tmp_path: Path) -> None:
    store = tc.Store.create(tmp_path / "s", COLUMNS, time="ts")
    store.ingest(table(range(100)))
    running = store.follow().agg(rows=tc.count()).stream()
    found: list[dict[str, int]] = []

    def follow() -> None:
        for batch in running:
            found.extend(pa.table(batch).to_pylist())

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    store.ingest(table(range(100, 250)))
    store.close()
    thread.join(60)
    assert found == [{"rows": 250}]


def test_a_store_that_is_closed_under_a_stream_is_closed_with_it(tmp_path: Path) -> None:
    store = tc.Store.create(tmp_path / "s", COLUMNS, time="ts")
    held = store.follow()
    store.ingest(table(range(100)))
    store.close()
    with pytest.raises(tc.InvalidArgument, match="closed"):
        store.ingest(table(range(1)))
    reader = tc.Store.open(tmp_path / "s", read_only=True)
    found: list[dict[str, int]] = []

    def follow() -> None:
        found.extend(reader.follow().agg(rows=tc.count()).to_pylist())

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive(), "nobody has closed the store"
    del held
    thread.join(60)
    assert found == [{"rows": 100}]
    with tc.Store.open(tmp_path / "s") as again:
        assert again.rows == 100


def test_a_store_is_closed_while_other_threads_use_it(tmp_path: Path) -> None:
    # A deadlock would hold the lock of the interpreter, so that no thread could tell.
    code = """
import pathlib
path = pathlib.Path(sys.argv[1])
for attempt in range(5):
    store = tc.Store.create(path.with_name(f"t{attempt}"), "x BIGINT", buffer_rows=2_000)
    store.ingest(pa.table({"x": range(1_500)}))
    def use():
        try:
            while store.rows == 1_500:
                pass
        except tc.InvalidArgument:
            pass
    threads = [threading.Thread(target=use) for _ in range(3)]
    [thread.start() for thread in threads]
    store.close()
    [thread.join() for thread in threads]
"""
    words = [sys.executable, "-c", FLOWS + code, str(tmp_path / "s")]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b""), done


def test_a_store_with_a_primary_key_is_not_followed(tmp_path: Path) -> None:
    columns = "host TEXT NOT NULL, n BIGINT"
    with tc.Store.create(tmp_path / "s", columns, primary_key=["host"]) as store:
        with pytest.raises(tc.Unsupported, match="primary key") as raised:
            store.follow()
        assert "arg_max" in str(raised.value)


FLOWS = """
import sys, threading, time
import pyarrow as pa, tersecades as tc
def rows(forever=True):
    while forever:
        time.sleep(0.01)
        yield pa.record_batch({"x": pa.array([1], pa.int64())})
store = tc.Store.create(sys.argv[1], "x BIGINT NOT NULL", durability="os")
"""


@pytest.mark.parametrize(
    "ending",
    [
        "kept = store.keep(tc.from_batches(rows()), 'g'); time.sleep(0.1); del kept",
        "store.keep(tc.from_batches(rows()), 'g')",
        "kept = store.keep(tc.from_batches(rows()), 'g'); time.sleep(0.1); store.close()",
        "kept = store.keep(tc.from_batches(rows()), 'g'); time.sleep(0.1); sys.exit(0)",
        "kept = store.keep(tc.from_batches(rows()), 'g'); kept.stop(); kept.stop()",
    ],
)
def test_a_program_that_keeps_a_stream_without_end_ends(tmp_path: Path, ending: str) -> None:
    for attempt in range(2):
        words = [sys.executable, "-c", FLOWS + ending, str(tmp_path / f"s{attempt}")]
        done = subprocess.run(words, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b""), done


def test_stopping_a_stream_that_gives_nothing_can_be_interrupted(tmp_path: Path) -> None:
    code = """
import queue, signal, os
waiting = queue.Queue()
def silent():
    yield pa.record_batch({"x": pa.array([1], pa.int64())})
    waiting.get()
kept = store.keep(tc.from_batches(silent()), "g")
time.sleep(0.1)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    kept.stop()
except KeyboardInterrupt:
    print("interrupted")
    waiting.put(None)
"""
    words = [sys.executable, "-c", FLOWS + code, str(tmp_path / "s")]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"interrupted\n"), done


def test_rows_are_deleted_by_their_primary_keys(tmp_path: Path) -> None:
    with tc.Store.create(tmp_path / "s", "k BIGINT NOT NULL, v TEXT", primary_key="k") as store:
        store.ingest(pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]}))
        assert store.delete(pa.table({"k": [1, 3, 9]})) == 3
        assert store.query("SELECT * FROM history").to_pylist() == [{"k": 2, "v": "b"}]
    with tc.Store.create(tmp_path / "every", "k BIGINT") as store:
        with pytest.raises(tc.InvalidArgument, match="primary key"):
            store.delete(pa.table({"k": [1]}))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions take no notes")
def test_what_fails_midway_says_how_many_rows_are_written(tmp_path: Path) -> None:
    good, bad = pa.record_batch({"k": [1, 2, 3]}), pa.record_batch({"k": [None, 5]})
    schema = pa.schema([("k", pa.int64())])
    store = tc.Store.create(tmp_path / "s", "k BIGINT NOT NULL")
    for first, expected in [(good, ["the first 3 rows are written"]), (bad, [])]:
        batches = [first, bad.cast(schema)]
        with pytest.raises(tc.SchemaMismatch, match="null") as failed:
            store.ingest(pa.RecordBatchReader.from_batches(schema, batches))
        assert getattr(failed.value, "__notes__", []) == expected
    assert store.query("SELECT count(*) AS n FROM history").to_pylist() == [{"n": 3}]
