"""Running: one window after the other, without Python's lock, until Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pyarrow as pa
import pytest
import tersecades as tc


def endless() -> Iterator[pa.RecordBatch]:
    """A second of event time a batch, for ever."""
    for second in range(10**9):
        at = pa.array([second * 1_000] * 100, pa.timestamp("ms"))
        yield pa.record_batch({"timestamp": at, "n": pa.array(range(100))})


def test_windows_come_out_while_rows_come_in() -> None:
    stream = tc.from_batches(endless()).window(tc.tumble("2s")).agg(n=tc.count())
    running = stream.stream()
    assert iter(running) is running
    for _ in range(3):
        assert next(running).to_pylist()[0]["n"] == 200
    assert running.metrics.rows < 5_000
    assert running.state_bytes > 0
    assert running.schema.names == ["window_start", "window_end", "n"]


def busy(work: str) -> tc.Stream:
    """A query that gives nothing for ever."""
    if work == "python":
        return tc.from_batches(endless()).filter(tc.col("n") < 0)
    probes = tc.generate("pingmesh", rows=10**12)
    few = tc.generate("pingmesh", rows=100)
    match work:
        case "join":
            return few.join(probes.filter(tc.col("rtt_us") < 0), on="src_ip")
        case "join in a join":
            return few.join(few.join(probes, on="src_ip", how="semi"), on="src_ip")
        case "pairs":
            return probes.join(few, how="cross", where=tc.col("rtt_us") < 0)
        case "sort":
            return probes.top_k(3, "rtt_us").sort("src_ip")
        case "hop":
            apart = pa.table({"n": range(0, 10**9, 10**6)})
            few = tc.from_arrow(apart, event_time="n")
            hops = few.window(tc.hop("100s", every="1ms"))
            return hops.agg(n=tc.count()).filter(tc.col("n") < 0)
        case "threads":
            return probes.threads(2).agg(n=tc.count())
        case _:
            return probes.filter(tc.col("rtt_us") < 0)


@pytest.mark.parametrize(
    "work", ["filter", "python", "join", "join in a join", "pairs", "sort", "hop", "threads"]
)
def test_control_c_stops_promptly(work: str) -> None:
    stream = busy(work)
    began: list[float] = []

    def press() -> None:
        time.sleep(0.3)
        began.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        stream.collect()
    thread.join()
    assert time.monotonic() - began[0] < 2


def test_other_threads_run_meanwhile() -> None:
    stream = tc.generate("pingmesh", rows=400_000).filter(tc.col("rtt_us") < 0)
    counted = 0
    done = threading.Event()

    def work() -> None:
        stream.collect()
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    assert counted > 3


def test_late_rows_are_counted_and_kept() -> None:
    seconds = [1, 2, 30, 3, 31]
    table = pa.table({"timestamp": pa.array([s * 1_000 for s in seconds], pa.timestamp("ms"))})
    counts = (
        tc.from_arrow(table, lateness=timedelta(seconds=5))
        .window(tc.tumble("10s"))
        .agg(n=tc.count())
    )
    counted = counts.collect()
    assert counted.metrics is not None and counted.metrics.late_rows == 1
    assert counted.late is None
    late = counts.keep_late().collect().late
    assert late is not None
    assert [row["timestamp"].second for row in late.to_pylist()] == [3]
    patient = tc.from_arrow(table, lateness="30s").window(tc.tumble("10s"))
    assert [row["n"] for row in patient.agg(n=tc.count()).to_pylist()] == [3, 2]


def test_what_is_kept_answers_further_queries() -> None:
    probes = tc.generate("pingmesh", rows=100_000, lateness="3s")
    running = probes.keep(bytes="64MiB").filter(tc.col("rtt_us") < 0).stream()
    for _ in running:
        pass
    kept = running.retained()
    assert len(kept.collect()) == 100_000
    assert len(kept.filter(tc.col("error_code") != 0).collect()) > 0
    with pytest.raises(tc.InvalidArgument, match="keep"):
        probes.stream().retained()


@pytest.mark.parametrize("standing", [False, True])
def test_threads_take_turns_at_one_run(standing: bool) -> None:
    def slow() -> Iterator[pa.RecordBatch]:
        for n in range(300):
            time.sleep(0.001)
            yield pa.record_batch({"n": [n]})

    stream = tc.from_batches(slow())
    running = stream.standing({"all": stream}) if standing else stream.stream()
    taken: list[list[int]] = [[] for _ in range(3)]
    raised: list[BaseException] = []

    def take(to: list[int]) -> None:
        try:
            for found in running:
                table = found[1] if isinstance(found, tuple) else found
                to.extend(row["n"] for row in table.to_pylist())
                assert running.metrics is not None
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=take, args=(to,)) for to in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == []
    assert sorted(n for to in taken for n in to) == list(range(300))
    assert all(to == sorted(to) for to in taken)
    assert sum(bool(to) for to in taken) > 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_fork_runs_on_threads_of_its_own() -> None:
    script = '''
import os
import signal
import tersecades as tc

def counted():
    return tc.generate("pingmesh", rows=200_000).threads(3).agg(n=tc.count()).collect().to_pylist()

before = counted()
child = os.fork()
if child == 0:
    signal.alarm(30)
    os._exit(counted() != before)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
'''
    forking = [sys.executable, "-W", "ignore", "-c", script]
    subprocess.run(forking, check=True, timeout=60)


def test_control_c_ends_waiting_for_a_turn() -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        began.set()
        may_end.wait()
        yield pa.record_batch({"n": [2]})

    running = tc.from_batches(slow()).stream()
    next(running)
    taken: list[tc.Table] = []
    thread = threading.Thread(target=lambda: taken.extend(running))
    thread.start()
    began.wait()
    press = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        next(running)
    press.join()
    may_end.set()
    thread.join()
    assert [table.to_pylist() for table in taken] == [[{"n": 2}]]
    assert next(running, None) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_a_function_of_a_run_does_not_wait_for_it(threads: int) -> None:
    running: list[tc.Running] = []

    def asks(n: pa.Array) -> pa.Array:
        assert running[0].metrics is not None
        return n

    batches = [pa.record_batch({"n": [n]}) for n in range(100)]
    asked = tc.udf(asks, return_type="int64")(tc.col("n"))
    stream = tc.from_batches(batches).threads(threads).select(n=asked).agg(n=tc.sum("n"))
    running.append(stream.stream())
    with pytest.raises(tc.InvalidArgument, match="cannot wait for it"):
        next(running[0])


def test_limits_are_kept() -> None:
    windows = tc.generate("pingmesh", rows=200_000).window(tc.tumble("1h"))
    by_host = windows.group_by("src_ip", "dst_ip").agg(n=tc.count())
    with pytest.raises(tc.LimitExceeded) as caught:
        by_host.memory_limit("64KiB").collect()
    assert caught.value.hint


def test_explain_and_shows(capsys: pytest.CaptureFixture[str]) -> None:
    probes = tc.generate("pingmesh", rows=50_000, event_time="timestamp", lateness="3s")
    out = (
        probes.filter(tc.col("error_code") != 0)
        .window(tc.tumble("1s"))
        .group_by("src_cluster")
        .agg(n=tc.count())
    )
    plan = str(out.explain())
    assert "error_code <> 0" in plan
    analyzed = str(out.explain(analyze=True))
    assert "50000 rows" in analyzed and "skipped by statistics" in analyzed
    assert "src_cluster" in repr(out) and "n" in out._repr_html_()
    out.show(3)
    shown = capsys.readouterr().out
    assert "window_start" in shown and "more row" in shown
    table = out.collect()
    assert "<table>" in table._repr_html_()
    assert "window_start" in repr(table)


def test_html_is_escaped() -> None:
    table = tc.from_arrow(pa.table({"<b>": ["<script>"]})).collect()
    assert "<script>" not in table._repr_html_() and "<b>" not in table._repr_html_()


def test_queries_stand_together_and_answer_as_each_does_alone() -> None:
    probes = tc.generate("pingmesh", rows=200_000, event_time="timestamp", lateness="3s")
    probes = probes.keep("1h")
    second = probes.window(tc.tumble("1s"))
    queries = {
        "failures": probes.filter(tc.col("error_code") != 0)
        .window(tc.hop("4s", every="1s"))
        .group_by("src_cluster")
        .agg(n=tc.count()),
        "worst": second.agg(rtt=tc.max("rtt_us")),
    }
    running = probes.standing(queries)
    found: dict[str, list[dict[str, object]]] = {name: [] for name in queries}
    order = []
    for name, table in running:
        found[name].extend(table.to_pylist())
        order.append(name)
    for name, query in queries.items():
        assert found[name] == query.collect().to_pylist(), name
    assert order.index("worst") < len(order) - order[::-1].index("failures"), "in turns"
    assert {name: it.rows for name, it in running.metrics.items()} == dict.fromkeys(
        queries, 200_000
    )
    assert running.retained().agg(n=tc.count()).to_pylist() == [{"n": 200_000}]


def test_a_query_over_another_stream_cannot_stand_by() -> None:
    probes = tc.generate("pingmesh", rows=100)
    other = tc.generate("pingmesh", rows=100).agg(n=tc.count())
    with pytest.raises(tc.InvalidArgument, match="another stream"):
        probes.standing({"other": other})
    with pytest.raises(tc.InvalidArgument, match="is kept"):
        probes.standing({"own": probes.agg(n=tc.count())}).retained()


def overflowing() -> tc.Stream:
    """Rows of which the third leaves the range, each a batch."""
    times = pa.array([0, 12, 13, 30], pa.timestamp("s"))
    rows = pa.table({"timestamp": times, "v": [1, 2, 2**63 - 1, 3]})
    batches = [rows.slice(at, 1).to_batches()[0] for at in range(rows.num_rows)]
    return tc.from_batches(batches)


def test_a_run_that_failed_says_so_and_gives_no_snapshot() -> None:
    rows = overflowing().threads(1)
    windows = rows.filter(tc.col("v") * 10 > 0).window(tc.tumble("10s"))
    running = windows.agg(n=tc.count()).stream()
    assert running.step() and running.step()
    # The error waits until what came before it is taken.
    assert running.step()
    first = running.take_ready()
    assert first is not None and first.to_pylist()[0]["n"] == 1
    for refused in (running.step, running.step, running.snapshot, running.why_open):
        with pytest.raises(tc.LimitExceeded, match="leaves the range"):
            refused()
    with pytest.raises(tc.LimitExceeded):
        next(running)
    assert list(running) == []


def test_queries_that_stand_together_end_with_the_first_error() -> None:
    stream = overflowing()
    windows = stream.window(tc.tumble("10s"))
    bad = stream.filter(tc.col("v") * 10 > 0).window(tc.tumble("10s"))
    running = stream.standing({"good": windows.agg(n=tc.count()), "bad": bad.agg(n=tc.count())})
    found = []
    with pytest.raises(tc.LimitExceeded, match="in the query `bad`"):
        for name, table in running:
            found.append((name, table.to_pylist()[0]["n"]))
    assert found == [("good", 1), ("bad", 1)]
    assert list(running) == []
