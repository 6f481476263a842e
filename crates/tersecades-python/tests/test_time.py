"""Time: partitions, clocks, updates, windows that wait, and state that is taken along."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
import tersecades as tc


def at(*seconds: int, **columns: list[object]) -> pa.Table:
    """Rows at these seconds."""
    times = pa.array([second * 1_000 for second in seconds], pa.timestamp("ms"))
    return pa.table({"timestamp": times, **columns})


def counts(stream: tc.Stream) -> tc.Table:
    """Rows of each ten seconds."""
    return stream.window(tc.tumble("10s")).agg(n=tc.count()).collect()


def test_partitions_are_in_order_by_themselves() -> None:
    parts = [tc.from_arrow(at(1, 2, 50, 51)), tc.from_arrow(at(3, 4, 5))]
    together = counts(tc.from_partitions(parts))
    assert [row["n"] for row in together.to_pylist()] == [5, 2]
    assert together.metrics is not None and together.metrics.late_rows == 0
    with pytest.raises(tc.SchemaMismatch):
        tc.from_partitions([parts[0], tc.from_arrow(pa.table({"n": [1]}))])
    with pytest.raises(tc.InvalidArgument):
        tc.from_partitions([])


def test_rows_come_in_order_of_time_and_late_ones_are_counted() -> None:
    stream = tc.from_arrow(at(5, 1, 9, 3, 20, 2, 17), event_time="timestamp", lateness="6s")
    ordered = stream.in_order().collect()
    seconds = [row["timestamp"].second for row in ordered.to_pylist()]
    # Twenty has come, so that fourteen is the least that still counts.
    assert seconds == [1, 3, 5, 9, 17, 20]
    assert ordered.metrics is not None and ordered.metrics.late_rows == 1
    with pytest.raises(tc.Error):
        tc.from_arrow(pa.table({"n": [1]})).in_order()


def test_partitions_may_be_queries() -> None:
    parts = [tc.from_arrow(at(1, 2, 50, 51)), tc.from_arrow(at(3, 4, 5, 6))]
    even = [
        part.with_columns(second=tc.col("timestamp").cast("int64") / 1_000).filter(
            tc.col("second") != 4.0
        )
        for part in parts
    ]
    together = counts(tc.from_partitions(even, event_time="timestamp"))
    assert [row["n"] for row in together.to_pylist()] == [5, 2]


def test_an_idle_partition_lets_the_others_go_on() -> None:
    clock = tc.TestClock("1d")

    def silent() -> Iterator[pa.RecordBatch]:
        yield at(1).to_batches()[0]
        for _ in range(100):
            clock.advance("1s")
            yield pa.record_batch({"timestamp": pa.array([], pa.timestamp("ms"))})

    def flowing() -> Iterator[pa.RecordBatch]:
        for second in range(100):
            yield at(second).to_batches()[0]

    parts = [tc.from_batches(silent()), tc.from_batches(flowing())]
    stream = tc.from_partitions(parts).idle_timeout("5s").clock(clock)
    running = stream.window(tc.tumble("10s")).agg(n=tc.count()).stream()
    first = next(running)
    assert first.to_pylist()[0]["n"] == 11
    assert running.metrics.rows < 50


def test_ingestion_and_processing_time() -> None:
    clock = tc.TestClock("100s")

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1, 2]})
        clock.advance("10s")
        yield pa.record_batch({"n": [3]})
        clock.advance("30s")
        yield pa.record_batch({"n": pa.array([], pa.int64())})
        raise AssertionError("the clock has closed the windows before")

    arrived = tc.from_batches(batches()).processing_time().clock(clock)
    running = arrived.window(tc.tumble("10s")).agg(total=tc.sum("n")).stream()
    assert [next(running).to_pylist()[0]["total"] for _ in range(2)] == [3, 3]

    fixed = tc.from_arrow(pa.table({"n": [1, 2]})).ingestion_time().clock(tc.TestClock("7s"))
    row = fixed.window(tc.tumble("5s")).agg(n=tc.count()).to_pylist()[0]
    assert row["window_start"] == datetime(1970, 1, 1, 0, 0, 5) and row["n"] == 2


def test_rows_of_the_future_do_not_move_the_watermark() -> None:
    rows = tc.from_arrow(at(1, 10_000, 2, 11))
    lost = counts(rows)
    assert lost.metrics is not None and lost.metrics.late_rows == 2
    clock = tc.TestClock("60s")
    kept = counts(rows.future_limit("1m").clock(clock))
    assert [row["n"] for row in kept.to_pylist()] == [2, 1, 1]
    assert kept.metrics is not None and kept.metrics.future_rows == 1


def test_results_are_updated() -> None:
    rows = tc.from_arrow(at(1, 12, 2, 25), event_time="timestamp")
    windows = rows.window(tc.tumble("10s"))
    strict = windows.agg(n=tc.count()).to_pylist()
    assert [row["n"] for row in strict] == [1, 1, 1] and "change" not in strict[0]
    patient = windows.allowed_lateness("1m").agg(n=tc.count()).to_pylist()
    changes = [(row["n"], row["change"]) for row in patient]
    assert (1, "insert") in changes and (2, "update") in changes
    last = {row["window_start"]: row["n"] for row in patient}
    assert list(last.values()) == [2, 1, 1]
    early = windows.emit(every="2s").agg(n=tc.count()).to_pylist()
    assert len(early) >= 3 and {row["change"] for row in early} <= {"insert", "update"}
    assert windows.emit("final").agg(n=tc.count()).to_pylist() == strict
    assert windows.emit("update").agg(n=tc.count()).to_pylist()[-1]["n"] == 1
    with pytest.raises(tc.InvalidArgument, match="emit"):
        windows.emit()


def test_groups_of_the_whole_stream_are_running_totals() -> None:
    rows = tc.from_arrow(at(1, 12, 25), event_time="timestamp")
    totals = rows.group_by().emit(every="10s").agg(n=tc.count())
    assert totals.columns == ["n", "change"]
    changes = [(row["n"], row["change"]) for row in totals.to_pylist()]
    assert changes == [(1, "insert"), (2, "update"), (3, "update")]
    with pytest.raises(tc.Unsupported, match="allowed lateness"):
        rows.group_by().allowed_lateness("1m").agg(n=tc.count()).collect()


def test_sessions_that_were_joined_are_taken_back() -> None:
    arrived = pa.concat_tables([at(1, 30), at(12), at(70)])
    rows = tc.from_arrow(arrived, event_time="timestamp")
    sessions = rows.window(tc.session("20s")).allowed_lateness("1m")
    changes = sessions.emit("update").agg(n=tc.count()).to_pylist()
    there: dict[tuple[object, object], int] = {}
    for row in changes:
        name = (row["window_start"], row["window_end"])
        if row["change"] == "delete":
            assert there.pop(name) == row["n"]
        else:
            assert (name in there) == (row["change"] == "update")
            there[name] = row["n"]
    assert list(there.values()) == [3, 1]
    assert "delete" in {row["change"] for row in changes}


def test_windows_of_so_many_rows_come_while_they_fill() -> None:
    arrived = pa.concat_tables([at(5), at(1), at(9)])
    rows = tc.from_arrow(arrived, event_time="timestamp")
    windows = rows.window(tc.count_window(2))
    changes = windows.emit("update").agg(n=tc.count()).to_pylist()
    expected = [(1, "insert"), (1, "delete"), (2, "insert"), (1, "insert")]
    assert [(row["n"], row["change"]) for row in changes] == expected
    withdrawn = [{**row, "change": "insert"} for row in changes if row["change"] == "delete"]
    assert withdrawn == changes[:1]
    untimed = tc.from_arrow(arrived).window(tc.count_window(2)).emit("update")
    assert untimed.agg(n=tc.count()).columns[-2:] == ["n", "change"]
    with pytest.raises(tc.Unsupported, match="allowed lateness"):
        windows.allowed_lateness("1m").agg(n=tc.count()).collect()


def test_late_rows_by_window() -> None:
    rows = tc.from_arrow(at(1, 25, 3, 4, 12), event_time="timestamp")
    metrics = counts(rows).metrics
    assert metrics is not None
    late = metrics.late_by_window().to_pylist()
    epoch = datetime(1970, 1, 1)
    assert late == [
        {
            "window_start": epoch + timedelta(seconds=start),
            "window_end": epoch + timedelta(seconds=start + 10),
            "late_rows": count,
        }
        for start, count in ((0, 2), (10, 1))
    ]


def test_late_rows_whole() -> None:
    rows = tc.from_arrow(at(1, 25, 3, host=["a", "b", "c"]), event_time="timestamp")
    windows = rows.keep_late(whole=True).window(tc.tumble("10s")).agg(n=tc.count())
    late = windows.collect().late
    assert late is not None
    assert late.to_pylist() == [{"timestamp": datetime(1970, 1, 1, 0, 0, 3), "host": "c"}]


def test_why_windows_are_open() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for second in (1, 12, 13):
            yield at(second).to_batches()[0]

    stream = tc.from_batches(batches(), event_time="timestamp", lateness="1s")
    running = stream.window(tc.tumble("10s")).agg(n=tc.count()).stream()
    next(running)
    waiting = running.why_open().to_pylist()
    assert len(waiting) == 1
    assert waiting[0]["behind_by"] == timedelta(seconds=9)
    assert "is open" in waiting[0]["reason"]


def test_a_run_goes_on_from_a_snapshot(probes: pa.Table) -> None:
    batches = probes.to_batches(max_chunksize=1_000)

    def grouped(batches: list[pa.RecordBatch]) -> tc.Stream:
        windows = tc.from_batches(batches).window(tc.tumble("7s"))
        return windows.group_by("region").agg(n=tc.count(), p90=tc.quantile("rtt_us", 0.9))

    first = grouped(batches).stream()
    rows = [row for _ in range(40) for row in next(first).to_pylist()]
    while ready := first.take_ready():
        rows += ready.to_pylist()
    state = first.snapshot()
    rest = grouped(batches[first.metrics.batches :])
    rows += [row for table in rest.stream(snapshot=state) for row in table.to_pylist()]
    assert rows == grouped(batches).to_pylist()
    with pytest.raises(tc.Corrupt):
        rest.stream(snapshot=state[:-3])
    with pytest.raises(tc.Corrupt, match="another query"):
        rest.sort("n").stream(snapshot=state)


def test_streams_merge_by_time(probes: pa.Table) -> None:
    frame = pl.DataFrame(probes).with_row_index("row")
    even, odd = (frame.filter(pl.col("row") % 2 == rest) for rest in range(2))
    merged = tc.from_arrow(even).merge(tc.from_arrow(odd)).to_polars()
    assert merged["timestamp"].is_sorted()
    assert sorted(merged["row"]) == list(range(frame.height))


def test_versions_of_a_table(probes: pa.Table) -> None:
    frame = pl.DataFrame(probes).select("timestamp", "host").head(5_000)
    versions = pl.DataFrame(
        {
            "host": pl.Series([host for host in range(300) for _ in range(3)], dtype=pl.Int32),
            "since": pl.Series([0, 3_000, 9_000] * 300).cast(pl.Datetime("ms")),
            "owner": [f"{host}-{version}" for host in range(300) for version in range(3)],
        }
    )
    ours = tc.from_arrow(frame).versioned_lookup(versions.reverse(), "host", "since").to_polars()
    theirs = frame.join_asof(
        versions.sort("since"), left_on="timestamp", right_on="since", by="host"
    )
    assert ours["owner"].to_list() == theirs["owner"].to_list()


def test_dates_are_event_times() -> None:
    days = pa.array([date(2024, 1, 1), date(2024, 1, 10), date(2024, 1, 3)])
    rows = pa.table({"id": [0, 1, 2], "k": ["a"] * 3, "day": days})
    stream = tc.from_arrow(rows, event_time="day", lateness="1d")
    counted = stream.window(tc.tumble("2d")).agg(n=tc.count()).collect()
    starts = [row["window_start"] for row in counted.to_pylist()]
    assert starts == [datetime(2023, 12, 31), datetime(2024, 1, 10)]
    assert counted.metrics is not None and counted.metrics.late_rows == 1
    joined = stream.asof_join(tc.from_arrow(rows, event_time="day"), "k").collect()
    assert [(row["id"], row["id_right"]) for row in joined.to_pylist()] == [(0, 0), (1, 1)]
    lasted = [row["lasted"] for row in stream.changes("id").to_pylist()]
    assert lasted == [9 * 86_400, -7 * 86_400]


def test_dates_that_are_computed_are_event_times() -> None:
    times = pa.array([datetime(2024, 1, day, 5) for day in (1, 10, 3, 12)], pa.timestamp("ms"))
    rows = tc.from_arrow(pa.table({"at": times, "id": [0, 1, 2, 3]}))
    days = rows.select("id", day=tc.col("at").cast("date")).event_time("day", "2d")
    ordered = days.in_order()
    assert [row["id"] for row in ordered.to_pylist()] == [0, 1, 3]
    counted = ordered.window(tc.tumble("1d")).agg(n=tc.count()).to_pylist()
    assert [row["window_start"].day for row in counted] == [1, 10, 12]


def test_groups_take_the_event_time_that_is_said_behind_them() -> None:
    stream = tc.from_arrow(at(1, 4, 12, 27, 31), event_time="timestamp")
    groups = stream.window(tc.tumble("10s")).agg(last=tc.max("timestamp"))
    counted = groups.event_time("last").window(tc.tumble("5s")).agg(n=tc.count()).to_pylist()
    assert [row["window_start"].second for row in counted] == [0, 10, 25, 30]
    with pytest.raises(tc.InvalidArgument):
        groups.event_time("nothing")


def test_windows_are_shifted_to_both_sides() -> None:
    rows = at(0, 6, 7, 13)
    for offset in ("7s", "-3s", timedelta(seconds=-3), "-13s"):
        windows = tc.from_arrow(rows).window(tc.tumble("10s", offset=offset)).agg(n=tc.count())
        starts = [(row["window_start"].second, row["n"]) for row in windows.to_pylist()]
        assert starts == [(57, 2), (7, 2)]


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_runs_go_on_over_all_rows_whatever_they_are_of(tmp_path: Path, steps: int) -> None:
    count = 5_000
    times = pa.array([n * 7 % 60_000 for n in range(count)], pa.timestamp("ms"))
    rows = pa.table({"timestamp": times, "k": [n % 3 for n in range(count)]})
    path = tmp_path / "rows.csv"
    tc.from_arrow(rows).write_csv(path)
    window = tc.tumble("10s")
    file = tc.read_csv(path, event_time="timestamp", lateness="1m", batch_rows=500)
    batches = rows.to_batches(max_chunksize=500)
    memory = tc.from_batches(batches, event_time="timestamp", lateness="1m")
    for stream in (file, memory):
        for query in (
            stream.window(window).group_by("k").agg(n=tc.count()),
            stream.filter(tc.col("k") > 0).window(window).agg(n=tc.count()),
            stream.join(memory, "k").agg(n=tc.count()),
            tc.sql("SELECT k, count(*) AS n FROM s WHERE k < 2 GROUP BY k", s=stream),
        ):
            first = query.stream()
            for _ in range(steps):
                first.step()
            taken = []
            while (ready := first.take_ready()) is not None:
                taken += ready.to_pylist()
            again = query.stream(snapshot=first.snapshot(), from_first=True)
            rest = [row for table in again for row in table.to_pylist()]
            assert taken + rest == query.to_pylist()
    kept = memory.cache().agg(n=tc.count())
    first = kept.stream()
    with pytest.raises(tc.Unsupported, match="not passed over"):
        kept.stream(snapshot=first.snapshot(), from_first=True)


@pytest.mark.parametrize(
    "literal",
    [
        "TIMESTAMPTZ '1970-01-01 00:00:00Z'",
        "TIMESTAMPTZ '1970-01-01 02:00:00+02'",
        "CAST('1970-01-01 01:00:00+01:00' AS TIMESTAMPTZ)",
        "'1970-01-01T00:00:00Z'",
        "TIMESTAMP '1970-01-01 01:00:00'",
    ],
)
def test_a_literal_with_a_zone_is_an_instant_beside_any_column(literal: str) -> None:
    hours = pa.array([-3_600_000, 0, 3_600_000], pa.timestamp("ms", "Europe/Berlin"))
    rows = tc.from_arrow(pa.table({"at": hours, "row": [0, 1, 2]}))
    between = f"at BETWEEN {literal} AND {literal}"
    for condition in (f"at = {literal}", f"at IN ({literal})", between):
        assert tc.sql(f"SELECT row FROM t WHERE {condition}", t=rows).to_pylist() == [{"row": 1}]


def test_windows_are_shown_in_the_zone_of_their_time() -> None:
    zoned = pa.timestamp("s", "Europe/Berlin")
    rows = pa.table({"ts": pa.array([0, 86_400, 172_800], zoned), "v": [1, 2, 3]})
    stream = tc.from_arrow(rows, event_time="ts")
    window = tc.tumble("1d")
    counts = stream.window(window).agg(n=tc.count())
    grouped = "GROUP BY tumble(ts, INTERVAL '1 day')"
    for result in (
        counts,
        counts.window(tc.tumble("2d")).agg(n=tc.sum("n")),
        stream.process(window, lambda rows: rows),
        stream.window_join(stream, window, "v"),
        tc.sql(f"SELECT window_start, window_end FROM s {grouped}", s=stream),
    ):
        schema = result.to_arrow().schema
        assert [schema.field(name).type for name in ("window_start", "window_end")] == [zoned] * 2
