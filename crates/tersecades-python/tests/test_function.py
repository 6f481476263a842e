"""Functions of Python over whole columns."""

from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import tersecades as tc

NUMBERS = pa.table({"n": [1, None, 3, 4], "word": ["b", "a", None, "a"]})


@pytest.mark.parametrize(
    "twice",
    [
        lambda n: pc.multiply(n, 2),
        lambda n: n.to_numpy(zero_copy_only=False) * 2,
        lambda n: pl.Series(n) * 2,
        lambda n: n.to_pandas() * 2,
        lambda n: [None if v is None else v * 2 for v in n.to_pylist()],
        lambda n: pa.chunked_array([pc.multiply(n, 2)]),
    ],
)
def test_results_of_every_library(twice: Any) -> None:
    doubled = tc.udf(twice, return_type="float64")
    out = tc.from_arrow(NUMBERS).filter(tc.col("n").is_not_null()).select(d=doubled("n"))
    assert out.to_pylist() == [{"d": 2.0}, {"d": 6.0}, {"d": 8.0}]


def test_functions_filter_group_and_are_aggregated() -> None:
    stream = tc.from_arrow(NUMBERS)
    even = tc.udf(lambda n: pc.equal(pc.bit_wise_and(n, 1), 0), return_type="bool")
    assert stream.filter(even("n")).select("n").to_pylist() == [{"n": 4}]
    assert stream.filter(~even("n")).select("n").to_pylist() == [{"n": 1}, {"n": 3}]
    upper = tc.udf(pc.utf8_upper, return_type="string")
    grouped = stream.group_by(upper("word").alias("key")).agg(n=tc.count())
    assert grouped.to_pylist() == [
        {"key": "A", "n": 2},
        {"key": "B", "n": 1},
        {"key": None, "n": 1},
    ]
    both = tc.udf(lambda a, b: pc.add(a, b), return_type="int64")
    assert stream.agg(total=tc.sum(both("n", tc.col("n") * 2))).to_pylist() == [{"total": 24}]


def test_whole_columns_are_given_and_each_text_once() -> None:
    calls: list[int] = []

    @tc.udf(return_type="int64")
    def length(texts: pa.Array) -> Any:
        calls.append(len(texts))
        return pc.utf8_length(texts)

    words = pa.array(["a", "bb"] * 50_000).dictionary_encode()
    out = tc.from_arrow(pa.table({"word": words})).agg(total=tc.sum(length("word")))
    assert out.to_pylist() == [{"total": 150_000}]
    assert sum(calls) < 100


@pytest.mark.parametrize("threads", [1, 3])
def test_aggregates_get_whole_groups(threads: int) -> None:
    @tc.udaf(return_type="float64")
    def weighted(values: pa.Array, weights: pa.Array) -> Any:
        total = pc.sum(weights).as_py()
        return pc.sum(pc.multiply(values, weights)).as_py() / total if total else None

    random = np.random.default_rng(3)
    rows = 50_000
    frame = pl.DataFrame(
        {
            "timestamp": pl.Series(np.sort(random.integers(0, 60_000, rows))).cast(
                pl.Datetime("ms")
            ),
            "key": random.integers(0, 20, rows),
            "value": random.random(rows),
            "weight": random.integers(1, 9, rows),
        }
    )
    ours = (
        tc.from_arrow(frame)
        .window(tc.hop("20s", every="10s"))
        .group_by("key")
        .agg(mean=weighted("value", "weight"), n=tc.count())
        .threads(threads)
        .to_polars()
    )
    product = (pl.col("value") * pl.col("weight")).sum() / pl.col("weight").sum()
    start = pl.col("timestamp").dt.truncate("10s")
    frames = [frame.with_columns(window_start=start - pl.duration(seconds=s)) for s in (0, 10)]
    theirs = (
        pl.concat(frames)
        .group_by("window_start", "key")
        .agg(mean=product, n=pl.len())
        .sort("window_start", "key")
    )
    assert ours["n"].to_list() == theirs["n"].to_list()
    assert np.allclose(ours["mean"], theirs["mean"])


def test_a_run_with_aggregates_is_given_up_midway() -> None:
    @tc.udaf(return_type="float64")
    def mean(values: pa.Array) -> Any:
        return pc.mean(values).as_py()

    rows = 200_000
    table = pa.table(
        {
            "timestamp": pa.array(range(rows), pa.timestamp("ms")),
            "key": np.arange(rows) % 50,
            "value": np.arange(rows) % 1_000,
        }
    )
    batches = table.to_batches(max_chunksize=2_000)
    flow = tc.from_arrow(pa.Table.from_batches(batches)).keep(bytes="1GB").stream()
    while flow.step():
        pass
    kept = flow.retained()
    for results in (0, 1, 3):
        run = (
            kept.window(tc.tumble("10s"))
            .group_by("key")
            .agg(mean=mean("value"))
            .threads(3)
            .stream()
        )
        for _ in range(results):
            assert len(next(run)) == 50
        del run


def test_what_a_function_raises_comes_out(capsys: Any) -> None:
    class Broken(Exception):
        pass

    @tc.udf(return_type="int64")
    def broken(_: pa.Array) -> Any:
        raise Broken("inside")

    with pytest.raises(Broken, match="inside"):
        tc.from_arrow(NUMBERS).select(b=broken("n")).threads(2).collect()


def test_wrong_results_are_refused() -> None:
    short = tc.udf(lambda n: n[:1], return_type="int64", name="short")
    with pytest.raises(tc.SchemaMismatch, match="short returned 1"):
        tc.from_arrow(NUMBERS).select(s=short("n")).collect()
    text = tc.udf(lambda n: np.array(["x"] * len(n)), return_type="int64")
    with pytest.raises(tc.Error):
        tc.from_arrow(NUMBERS).select(s=text("n")).collect()
    assert repr(short) == "Function(short)"


def called(name: str, function: Any) -> Any:
    function.__name__ = name
    return function


@pytest.mark.parametrize(
    ("returned", "promised", "value"),
    [
        ([1.0, 1.5, 2.0], "int64", "1.5"),
        ([1.0, -1e300, 2.0], "float32", "-1e300"),
        ([1.0, float("nan"), 2.0], "int64", "NaN"),
        ([1, 300, 2], "uint8", "300"),
        ([1, 2, 0], "bool", "2"),
        (["1", "x", "2"], "int64", "x"),
        (pa.array([0, 1, 2], pa.timestamp("us")), "timestamp[ms]", "1970-01-01T00:00:00.000001"),
        ([0.0, 0.125, 1.0], "decimal(10, 2)", "0.125"),
        (pa.array([1.0, 1.5, 1.0]).dictionary_encode(), "int64", "1.5"),
        (["1", "1e300", "2"], "float32", "1e300"),
    ],
)
def test_what_the_promised_type_does_not_hold_is_refused(
    returned: Any, promised: str, value: str
) -> None:
    table = pa.table({"n": [1, 2, 3], "timestamp": pa.array([1, 2, 3], pa.timestamp("s"))})
    stream = tc.from_arrow(table)
    given = pa.array(returned)
    row = tc.udf(lambda n: given, return_type=promised, name="given")
    group = tc.udaf(lambda n: given[n[0].as_py() - 1].as_py(), return_type=promised, name="given")
    told = f"given returned {value}, which .* does not hold"

    def fold(_: pa.Table | None, rows: pa.Table) -> dict[str, Any]:
        return {"r": given[rows["n"][0].as_py() - 1].as_py()}

    def rows_of(_: pa.Table) -> pa.Table:
        return pa.table({"r": given})

    refused = [
        stream.select(r=row("n")),
        stream.group_by("n").agg(r=group("n")),
        stream.reduce("n", called("given", fold), schema={"r": promised}),
        stream.process(tc.tumble("10s"), called("given", rows_of), schema={"r": promised}),
    ]
    for query in refused:
        with pytest.raises(tc.SchemaMismatch, match=told):
            query.collect()


def test_what_the_promised_type_holds_is_kept() -> None:
    def returned(values: Any, promised: str) -> list[Any]:
        given = tc.udf(lambda n: pa.array(values), return_type=promised)
        rows = tc.from_arrow(pa.table({"n": [1, 2]})).select(r=given("n"))
        return [row["r"] for row in rows.to_pylist()]

    assert returned([1.0, -0.0], "int8") == [1, 0]
    assert returned([1, None], "float32") == [1.0, None]
    assert returned([0.1, float("inf")], "float32") == [np.float32(0.1), float("inf")]
    assert returned([1, 0], "bool") == [True, False]
    assert returned([0.25, 0.1], "decimal(10, 2)") == [Decimal("0.25"), Decimal("0.10")]
    assert returned([1, 2], "string") == ["1", "2"]
    assert returned([None, None], "date") == [None, None]
    zoned = pa.array([1, 2_000_000], pa.timestamp("us", "Europe/Berlin"))
    assert len(returned(zoned, "timestamp[us]")) == 2
