"""Steps with functions of Python, and how streams are kept and encoded."""

from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import tersecades as tc


def test_a_function_folds_rows_by_key(probes: pa.Table) -> None:
    rows = probes.select(["timestamp", "host", "rtt_us"]).slice(0, 20_000)

    def widest(state: pa.Table | None, rows: pa.Table) -> dict[str, object]:
        values = [value for value in rows["rtt_us"].to_pylist() if value is not None]
        if state is not None:
            values += [value for value in state.to_pylist()[0].values() if value is not None]
        return {"least": min(values, default=None), "most": max(values, default=None)}

    columns = {"least": "int64", "most": "int64"}
    ours = tc.from_arrow(rows).reduce("host", widest, schema=columns).to_polars()
    theirs = pl.DataFrame(rows).group_by("host").agg(
        least=pl.col("rtt_us").min(), most=pl.col("rtt_us").max()
    )
    assert ours.equals(theirs.sort("host"))


def test_a_function_gets_the_rows_of_each_window(probes: pa.Table) -> None:
    rows = probes.select(["timestamp", "region", "host"]).slice(0, 20_000)

    def busiest(rows: pa.Table) -> pa.Table:
        counted = rows.group_by("region").aggregate([([], "count_all")])
        return counted.rename_columns({"count_all": "n"}).sort_by("region")

    window = tc.tumble("10s")
    columns = pa.schema({"region": pa.string(), "n": pa.int64()})
    ours = tc.from_arrow(rows).process(window, busiest, schema=columns)
    theirs = tc.from_arrow(rows).window(window).group_by("region").agg(n=tc.count())
    assert ours.to_pylist() == theirs.to_pylist()
    same = tc.from_arrow(rows).process(window, lambda rows: rows)
    assert same.drop("window_start", "window_end").to_arrow().num_rows == 20_000


def test_functions_that_break_their_word_are_errors() -> None:
    times = pa.array([0, 1_000], pa.timestamp("ms"))
    stream = tc.from_arrow(pa.table({"timestamp": times, "n": [1, 2]}))
    window = tc.tumble("10s")
    with pytest.raises(tc.SchemaMismatch, match="no column `m`"):
        stream.process(window, lambda rows: rows, schema={"m": "int64"}).collect()
    with pytest.raises(tc.SchemaMismatch, match="more columns"):
        stream.process(window, lambda rows: rows, schema={"n": "int64"}).collect()
    with pytest.raises(ZeroDivisionError):
        stream.process(window, lambda rows: 1 / 0).collect()  # type: ignore[arg-type,return-value]
    with pytest.raises(tc.SchemaMismatch, match="one of"):
        nothing = pa.table({"m": pa.array([], pa.int64())})
        stream.reduce("n", lambda state, rows: nothing, schema={"m": "int64"}).collect()


def test_a_stream_is_read_once_and_queried_often(probes: pa.Table) -> None:
    read = 0

    class Batches:
        def __iter__(self) -> "pa.RecordBatchReader":
            nonlocal read
            read += 1
            return iter(probes.to_batches())

    stream = tc.from_batches(Batches()).filter(tc.col("region") != "west")
    cached = stream.cache()
    before = read
    expected = probes.filter(pc.not_equal(probes["region"], "west"))
    assert cached.to_arrow().equals(expected)
    assert cached.agg(n=tc.count()).to_pylist() == [{"n": expected.num_rows}]
    assert cached.window(tc.tumble("1m")).agg(n=tc.count()).to_pylist()
    assert read == before
    metrics = cached.agg(total=tc.sum("rtt_us")).collect().metrics
    assert metrics is not None
    column = next(column for column in metrics.columns if column["name"] == "rtt_us")
    assert 0 < column["encoded_bytes"] < column["raw_bytes"]


def test_streams_without_a_time_are_cached() -> None:
    table = pa.table({"n": range(100_000), "text": ["a", "b"] * 50_000})
    assert tc.from_arrow(table).cache().to_arrow().equals(table)


def test_how_a_stream_is_kept(probes: pa.Table, tmp_path: Path) -> None:
    def bytes_of(stream: tc.Stream) -> int:
        running = stream.keep(bytes="1GiB").agg(n=tc.count()).stream()
        for _ in running:
            pass
        assert running.retained().to_arrow().equals(probes)
        return sum(column["encoded_bytes"] for column in running.metrics.columns)

    stream = tc.from_arrow(probes)
    hot, cold, rows = (bytes_of(s) for s in (stream, stream.tier("cold"), stream.layout("row")))
    assert cold < hot < rows
    table = tc.CostTable.shipped()
    table.save(tmp_path / "costs.txt")
    assert tc.CostTable.load(tmp_path / "costs.txt") == table
    assert bytes_of(stream.costs(table)) == hot
    with pytest.raises(tc.InvalidArgument, match="hot or cold"):
        stream.tier("warm")  # type: ignore[arg-type]
    with pytest.raises(tc.Io):
        tc.CostTable.load(tmp_path / "nothing.txt")


def test_costs_are_measured() -> None:
    measured = tc.CostTable.measure("200ms")
    assert measured != tc.CostTable.shipped() and str(measured)


def test_kept_rows_may_be_shortened(probes: pa.Table) -> None:
    kept = tc.from_arrow(probes).keep(bytes="1GiB").agg(n=tc.count())
    with pytest.raises(tc.LimitExceeded):
        kept.memory_limit("500KiB").collect()
    metrics = kept.memory_limit("2MiB", on_limit="shorten").collect().metrics
    assert metrics is not None and metrics.rows == 200_000
    spilled = kept.memory_limit("2MiB", on_limit="spill").collect().metrics
    assert spilled is not None and spilled.spilled_bytes > 0 and spilled.shortened_rows == 0


def test_the_results_of_all_windows_are_sorted_together(probes: pa.Table) -> None:
    windows = tc.from_arrow(probes).window(tc.tumble("1m")).agg(n=tc.count())
    each = windows.sort(tc.col("n").desc()).to_polars()
    whole = windows.sort(tc.col("n").desc(), whole=True).to_polars()
    assert each["window_start"].is_sorted() and whole["n"].is_sorted(descending=True)
    best = windows.top_k(2, "n", descending=True, whole=True).to_polars()
    assert best["n"].to_list() == whole["n"].head(2).to_list()


@pytest.mark.parametrize(
    "scheme", ["gcd(linear)", "gcd(patched(linear))", "patched(gcd(linear))", "gcd(gcd(linear))"]
)
def test_nulls_are_one_group_whatever_lies_in_their_holes(scheme: str) -> None:
    values = [72, None, 68, None, 70, None] * 300
    ones = pa.array([1] * len(values), pa.int32())
    rows = pa.table({"a": pa.array(values, pa.int32()), "b": ones, "s": ["x"] * len(values)})
    stream = tc.from_arrow(rows).encoding("a", scheme)
    expected = [(68, 300), (70, 300), (72, 300), (None, 900)]
    for keys in (["a"], ["a", "b"], ["b", "a"], ["a", "s"], ["a", "b", "s"]):
        groups = stream.group_by(*keys).agg(n=tc.count()).to_pylist()
        assert sorted(((g["a"], g["n"]) for g in groups), key=str) == sorted(expected, key=str)
        assert {g.get("b", 1) for g in groups} == {1}


def test_sums_and_means_of_the_largest_decimals() -> None:
    most = Decimal("9" * 38)

    def of(*values: Decimal) -> tc.Stream:
        return tc.from_arrow(pa.table({"d": pa.array(values, pa.decimal128(38, 0))}))

    least = Decimal("-" + "9" * 38)
    assert of(most, most, least, least).agg(s=tc.sum("d")).to_pylist() == [{"s": Decimal(0)}]
    assert of(most, most, most, most).agg(m=tc.mean("d")).to_pylist() == [{"m": 1e38}]
    assert of(least, least, least).agg(m=tc.mean("d")).to_pylist() == [{"m": -1e38}]
    with pytest.raises(tc.LimitExceeded):
        of(most, most, most, least).agg(s=tc.sum("d")).collect()
