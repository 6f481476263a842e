"""One exception class for each kind of error, with message, place and hint."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tersecades as tc

KINDS = {
    tc.InvalidArgument: ValueError,
    tc.SchemaMismatch: TypeError,
    tc.Corrupt: Exception,
    tc.Unsupported: NotImplementedError,
    tc.LimitExceeded: Exception,
    tc.Io: OSError,
    tc.Interrupted: Exception,
    tc.Internal: RuntimeError,
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_errors_of_the_package_and_of_python(kind: type[tc.Error]) -> None:
    assert issubclass(kind, tc.Error)
    assert issubclass(kind, KINDS[kind])
    assert kind.__module__ == "tersecades" and kind.__doc__


def test_the_nearest_name_is_the_hint(probes: pa.Table) -> None:
    with pytest.raises(tc.InvalidArgument) as caught:
        tc.from_arrow(probes).filter(tc.col("rt_us") > 1).collect()
    error = caught.value
    assert "rt_us" in str(error.message) and "rtt_us" in str(error.hint)
    assert str(error.hint) in str(error)


def test_files_are_named(tmp_path: Any) -> None:
    with pytest.raises(tc.Io) as missing:
        tc.read_parquet(tmp_path / "missing.parquet")
    assert "missing.parquet" in str(missing.value.file)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 this is no Parquet file PAR1")
    with pytest.raises(tc.Corrupt) as corrupt:
        tc.read_parquet(broken)
    assert "broken.parquet" in str(corrupt.value.file)


def test_rows_and_columns_are_named(tmp_path: Any) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("a,b\n1,2\n3,x\n")
    with pytest.raises(tc.Error) as caught:
        tc.read_csv(path, types={"b": "int64"}).collect()
    assert caught.value.row == 3 and caught.value.column == "b"


@pytest.mark.parametrize("wrong", ["", "10", "ten seconds", "-1s", "1.5ns", 10, None])
def test_durations_say_how_they_are_written(wrong: Any) -> None:
    with pytest.raises(tc.InvalidArgument) as caught:
        tc.tumble(wrong)
    assert '"10s"' in str(caught.value.hint)


def test_lengths_are_read() -> None:
    assert repr(tc.tumble("1h30m")) == "tumble 5400s"
    assert repr(tc.tumble("1.5 seconds")) == "tumble 1.5s"
    assert repr(tc.tumble("250ms")) == "tumble 250ms"


def test_no_windows_of_no_length(probes: pa.Table) -> None:
    with pytest.raises(tc.InvalidArgument):
        tc.from_arrow(probes).window(tc.tumble("0s")).agg(n=tc.count()).collect()


def test_what_is_no_aggregate_is_refused(probes: pa.Table) -> None:
    windows = tc.from_arrow(probes).window(tc.tumble("1s"))
    with pytest.raises(tc.InvalidArgument, match="aggregate"):
        windows.agg(n="count")  # type: ignore[arg-type]
    with pytest.raises(tc.InvalidArgument, match="median"):
        tc.aggregate("mediann", "rtt_us")


@pytest.mark.parametrize("raised", [ValueError("inside"), KeyboardInterrupt()])
def test_what_a_reader_raises_comes_out(raised: BaseException) -> None:
    def batches() -> Any:
        yield pa.record_batch({"n": [1]})
        raise raised

    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), batches())
    with pytest.raises(type(raised)):
        tc.from_arrow(reader).collect()


def test_a_run_that_failed_says_what_was_raised_again() -> None:
    def batches() -> Any:
        yield pa.record_batch({"n": [1]})
        raise ZeroDivisionError("inside")

    running = tc.from_batches(batches()).agg(n=tc.count()).stream()
    with pytest.raises(ZeroDivisionError, match="inside"):
        while running.step():
            pass
    with pytest.raises(tc.Interrupted, match="ZeroDivisionError.*: inside") as again:
        running.step()
    assert "[exception" not in str(again.value)
    assert "[exception" not in str(again.value.message)


def test_rows_without_an_event_time_say_so() -> None:
    rows = pa.table({"ts": pa.array([0, 1], pa.timestamp("s")), "v": [1, 2]})
    stream = tc.from_arrow(rows)
    window = tc.tumble("2s")
    for query in (
        lambda: stream.window(window).agg(n=tc.count()).collect(),
        lambda: stream.process(window, lambda rows: rows),
    ):
        with pytest.raises(tc.InvalidArgument, match="no event time") as caught:
            query()
        assert "event_time=" in str(caught.value.hint)
    one_text = tc.udf(lambda v: "text", return_type="int64")
    with pytest.raises(tc.SchemaMismatch, match="single value"):
        stream.select(x=one_text("v")).collect()


def test_an_event_time_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    rows = pa.table({"ts": pa.array([0, 1], pa.timestamp("ms")), "k": ["a", "b"]})
    stream = tc.from_arrow(rows)
    read = {
        "parquet": tc.read_parquet,
        "csv": tc.read_csv,
        "jsonl": tc.read_json,
        "arrow": tc.read_ipc,
    }
    opened: list[Callable[..., object]] = []
    for suffix, reader in read.items():
        stream.write(tmp_path / f"rows.{suffix}")
        opened.append(partial(reader, tmp_path / f"rows.{suffix}"))
    opened += [
        partial(tc.from_arrow, rows),
        partial(tc.from_batches, rows.to_batches()),
        partial(tc.from_partitions, [stream]),
    ]
    for opens in opened:
        opens(event_time="ts", lateness="1s")
        with pytest.raises(tc.InvalidArgument, match="unknown column `tss`") as caught:
            opens(event_time="tss")
        assert caught.value.column == "tss" and "`ts`" in str(caught.value.hint)
        with pytest.raises(tc.InvalidArgument, match="unknown column `zz`"):
            opens(event_time=tc.col("ts") + tc.col("zz"))
        with pytest.raises(tc.SchemaMismatch, match="event time `k` is Utf8"):
            opens(event_time="k")
        with pytest.raises(tc.InvalidArgument, match="no event time"):
            opens(lateness="1s")
    with pytest.raises(tc.InvalidArgument, match="unknown column `tss`"):
        stream.event_time("tss")
    with pytest.raises(tc.InvalidArgument, match="unknown column `tss`"):
        stream.select("k").event_time("tss")
    # What a step computes is the event time of the steps behind it.
    later = stream.select("k", later=tc.col("ts")).event_time("later")
    assert [row["k"] for row in later.in_order().to_pylist()] == ["a", "b"]
    assert len(later.asof_join(later, "k").collect()) == 2
    with pytest.raises(tc.SchemaMismatch, match="event time `text` is Utf8"):
        stream.select(text=tc.col("k")).event_time("text")
    with pytest.raises(tc.InvalidArgument, match="unknown column `zz`"):
        tc.generate("pingmesh", rows=10, event_time="zz")


def test_numbers_of_rows_are_not_below_zero(probes: pa.Table) -> None:
    stream = tc.from_arrow(probes)
    for refused in (
        lambda: stream.limit(-1),
        lambda: stream.limit(1, offset=-1),
        lambda: stream.top_k(-3, "rtt_us"),
        lambda: stream.lag("rtt_us", -1),
        lambda: stream.limit(2**70),
        lambda: stream.threads(-1),
        lambda: stream.show(-1),
        lambda: tc.count_window(-2),
        lambda: tc.generate("pingmesh", rows=-1),
    ):
        with pytest.raises(ValueError, match="is no number of this kind") as caught:
            refused()
        assert isinstance(caught.value, tc.Error)
        assert caught.value.hint == f"give a whole number from 0 to {2**64 - 1}"
    with pytest.raises(TypeError):
        stream.limit("3")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["empty.csv", "blank.csv", "empty.jsonl", "blank.jsonl"])
def test_a_file_without_rows_has_the_columns_that_are_declared(name: str, tmp_path: Any) -> None:
    path = tmp_path / name
    path.write_text("\n\n" if name.startswith("blank") else "")
    read = tc.read_csv if name.endswith("csv") else tc.read_json
    table = read(path, types={"a": "int64", "b": "utf8"}).to_arrow()
    assert (table.column_names, table.num_rows) == (["a", "b"], 0)
    with pytest.raises(tc.Error, match="no first row"):
        read(path).to_arrow()
