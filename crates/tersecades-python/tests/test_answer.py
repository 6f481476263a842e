"""Answers against Polars and pyarrow on the same data."""

import math
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
import tersecades as tc

AGGREGATES = {
    "n": (tc.count(), pl.len()),
    "valued": (tc.count("rtt_us"), pl.col("rtt_us").count()),
    "total": (tc.sum("rtt_us"), pl.col("rtt_us").sum()),
    "least": (tc.min("rtt_us"), pl.col("rtt_us").min()),
    "most": (tc.max("load"), pl.col("load").max()),
    "mean": (tc.mean("rtt_us"), pl.col("rtt_us").mean()),
    "spread": (tc.stddev("load"), pl.col("load").std()),
    "p90": (tc.quantile("rtt_us", 0.9), pl.col("rtt_us").quantile(0.9, "linear")),
    "middle": (tc.median("load"), pl.col("load").median()),
    "hosts": (tc.count_distinct("host"), pl.col("host").n_unique()),
    "failures": (tc.count_if("failed"), pl.col("failed").sum()),
    "slow": (
        tc.sum("rtt_us").filter(tc.col("load") > 50),
        pl.col("rtt_us").filter(pl.col("load") > 50).sum(),
    ),
    "earliest": (tc.min("region"), pl.col("region").min()),
    "bits": (tc.bit_and("rtt_us"), pl.col("rtt_us").bitwise_and()),
    "some_bits": (tc.bit_or("rtt_us"), pl.col("rtt_us").bitwise_or()),
    "odd_bits": (tc.bit_xor("rtt_us"), pl.col("rtt_us").bitwise_xor()),
    "kinds": (tc.mean_distinct("rtt_us"), pl.col("rtt_us").unique().mean()),
    "all": (tc.bool_and("failed"), pl.col("failed").all()),
}


def close(left: object, right: object) -> bool:
    """Whether two values are equal, floats to nine digits."""
    if isinstance(left, float) and isinstance(right, (int, float)):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return left == right


def assert_same(ours: pl.DataFrame, theirs: pl.DataFrame) -> None:
    """Compares two tables row by row."""
    assert ours.columns == theirs.columns
    assert ours.height == theirs.height
    for row, (left, right) in enumerate(zip(ours.rows(), theirs.rows(), strict=True)):
        assert all(map(close, left, right)), f"row {row}: {left} is not {right}"


@pytest.mark.parametrize("threads", [1, 3])
def test_tumbling_windows(probes: pa.Table, threads: int) -> None:
    ours = (
        tc.from_arrow(probes)
        .filter(tc.col("region") != "west")
        .window(tc.tumble("10s"))
        .group_by("region")
        .agg(**{name: ours for name, (ours, _) in AGGREGATES.items()})
        .threads(threads)
        .to_polars()
    )
    start = pl.col("timestamp").dt.truncate("10s")
    theirs = (
        pl.DataFrame(probes)
        .filter(pl.col("region") != "west")
        .group_by(window_start=start, region="region")
        .agg(**{name: theirs for name, (_, theirs) in AGGREGATES.items()})
        .with_columns(window_end=pl.col("window_start") + pl.duration(seconds=10))
        .sort("window_start", "region")
        .select(ours.columns)
    )
    assert_same(ours, theirs)


def test_hopping_windows(probes: pa.Table) -> None:
    ours = (
        tc.from_arrow(probes)
        .window(tc.hop("60s", every="20s"))
        .agg(n=tc.count(), total=tc.sum("rtt_us"))
        .to_polars()
    )
    millis = pl.col("timestamp").cast(pl.Int64)
    frames = []
    for back in range(3):
        start = ((millis // 20_000 - back) * 20_000).cast(pl.Datetime("ms"))
        frames.append(pl.DataFrame(probes).with_columns(window_start=start))
    theirs = (
        pl.concat(frames)
        .group_by("window_start")
        .agg(n=pl.len(), total=pl.col("rtt_us").sum())
        .with_columns(window_end=pl.col("window_start") + pl.duration(seconds=60))
        .sort("window_start")
        .select(ours.columns)
    )
    assert_same(ours, theirs)


def test_projection_and_filter(probes: pa.Table) -> None:
    ours = (
        tc.from_arrow(probes)
        .with_columns(ms=tc.col("rtt_us") / 1_000, twice=tc.col("host") * 2 + 1)
        .filter((tc.col("ms") > 2.5) | tc.col("load").is_null())
        .select("timestamp", "ms", "twice", parity=tc.col("host") % 2)
        .to_polars()
    )
    theirs = (
        pl.DataFrame(probes)
        .with_columns(
            ms=pl.col("rtt_us") / 1_000, twice=pl.col("host").cast(pl.Int64) * 2 + 1
        )
        .filter((pl.col("ms") > 2.5) | pl.col("load").is_null())
        .select("timestamp", "ms", "twice", parity=pl.col("host").cast(pl.Int64) % 2)
    )
    assert_same(ours, theirs)


def test_a_window_over_a_window(probes: pa.Table) -> None:
    ours = (
        tc.from_arrow(probes)
        .window(tc.tumble("1s"))
        .group_by("region")
        .agg(n=tc.count())
        .window(tc.tumble("1m"))
        .group_by("region")
        .agg(busiest=tc.max("n"))
        .to_polars()
    )
    theirs = (
        pl.DataFrame(probes)
        .group_by(pl.col("timestamp").dt.truncate("1s"), "region")
        .agg(n=pl.len())
        .group_by(window_start=pl.col("timestamp").dt.truncate("1m"), region="region")
        .agg(busiest=pl.col("n").max())
        .with_columns(window_end=pl.col("window_start") + pl.duration(minutes=1))
        .sort("window_start", "region")
        .select(ours.columns)
    )
    assert_same(ours, theirs)


def test_lookup(probes: pa.Table) -> None:
    owners = pl.DataFrame({"id": range(0, 300, 2), "owner": [f"o{n}" for n in range(150)]})
    owners = owners.with_columns(pl.col("id").cast(pl.Int32))
    ours = (
        tc.from_arrow(probes)
        .lookup(owners, on=("host", "id"), columns={"owner": "host_owner"})
        .select("timestamp", "host", "host_owner")
        .to_polars()
    )
    theirs = (
        pl.DataFrame(probes)
        .join(owners, left_on="host", right_on="id", how="inner", maintain_order="left")
        .select("timestamp", "host", host_owner="owner")
    )
    assert_same(ours, theirs)


def test_the_whole_stream(probes: pa.Table) -> None:
    ours = (
        tc.from_arrow(probes)
        .group_by("region", "failed")
        .agg(**{name: ours for name, (ours, _) in AGGREGATES.items()})
        .to_polars()
    )
    theirs = (
        pl.DataFrame(probes)
        .group_by("region", "failed")
        .agg(**{name: theirs for name, (_, theirs) in AGGREGATES.items()})
        .sort("region", "failed")
        .select(ours.columns)
    )
    assert_same(ours, theirs)
    assert tc.from_arrow(probes).agg(n=tc.count()).to_pylist() == [{"n": 200_000}]


def test_order_limits_and_unions(probes: pa.Table) -> None:
    frame = pl.DataFrame(probes).with_row_index("row")
    stream = tc.from_arrow(frame)
    ours = stream.sort("region", tc.col("rtt_us").desc(nulls_first=True), "row").limit(1_000, 500)
    theirs = frame.sort(
        "region", "rtt_us", "row", descending=[False, True, False], nulls_last=[True, False, True]
    )
    assert_same(ours.to_polars(), theirs.slice(500, 1_000))
    best = stream.top_k(5, "load", "row", descending=True).to_polars()
    assert_same(best, frame.drop_nulls("load").top_k(5, by=["load", "row"]))
    hosts = stream.select("host", "failed").distinct().to_polars()
    assert_same(hosts, frame.select("host", "failed").unique(maintain_order=True))
    halves = stream.filter(tc.col("row") < 100_000), stream.filter(tc.col("row") >= 100_000)
    assert_same(halves[0].union(halves[1]).to_polars(), frame)
    windows = stream.window(tc.tumble("5m")).group_by("host").agg(n=tc.count())
    best = windows.top_k(3, tc.col("n").desc(), "host").to_polars()
    start = pl.col("timestamp").dt.truncate("5m")
    theirs = frame.group_by(window_start=start, host="host").agg(n=pl.len())
    theirs = theirs.sort("window_start", "n", "host", descending=[False, True, False])
    theirs = theirs.group_by("window_start", maintain_order=True).head(3)
    assert_same(best.drop("window_end"), theirs)


@pytest.mark.parametrize(
    ("how", "theirs"),
    [
        ("inner", "inner"),
        ("left", "left"),
        ("right", "right"),
        ("full", "full"),
        ("semi", "semi"),
        ("anti", "anti"),
    ],
)
def test_joins(probes: pa.Table, how: Any, theirs: Any) -> None:
    frame = pl.DataFrame(probes).head(2_000).select("host", "rtt_us").with_row_index("row")
    others = pl.DataFrame({"host": [1, 1, 2, 500, None], "owner": ["a", "b", "c", "d", "e"]})
    others = others.with_columns(pl.col("host").cast(pl.Int32))
    left, right = tc.from_arrow(frame), tc.from_arrow(others)
    ours = left.join(right, on="host", how=how).to_polars()
    expected = frame.join(others, on="host", how=theirs)
    shown = [name for name in ("row", "rtt_us", "owner") if name in expected.columns]
    keys = pl.all()
    same = ours.select(shown).sort(keys), expected.select(shown).sort(keys)
    assert_same(*same)


def test_joins_in_time(probes: pa.Table) -> None:
    frame = pl.DataFrame(probes).select("timestamp", "host", "rtt_us").head(5_000)
    left, right = frame.filter(pl.col("host") < 150), frame.filter(pl.col("host") >= 100)
    streams = tc.from_arrow(left), tc.from_arrow(right.rename({"rtt_us": "later_us"}))
    joined = streams[0].asof_join(streams[1], on="host", tolerance="30s").to_polars()
    theirs = left.join_asof(
        right.rename({"rtt_us": "later_us"}), on="timestamp", by="host", tolerance="30s"
    )
    assert joined["later_us"].to_list() == theirs["later_us"].to_list()
    close = streams[0].interval_join(streams[1], "host", "-1s", "1s").to_polars()
    pairs = left.join(right.rename({"rtt_us": "later_us"}), on="host")
    apart = (pl.col("timestamp_right") - pl.col("timestamp")).dt.total_milliseconds().abs()
    assert close.height == pairs.filter(apart <= 1_000).height
    windows = streams[0].window_join(streams[1], tc.tumble("10s"), on="host").to_polars()
    starts = [pl.col(name).dt.truncate("10s") for name in ("timestamp", "timestamp_right")]
    assert windows.height == pairs.filter(starts[0] == starts[1]).height


def test_joins_in_time_take_further_conditions(probes: pa.Table) -> None:
    frame = pl.DataFrame(probes).select("timestamp", "host", "rtt_us").head(3_000)
    left = frame.filter(pl.col("host") < 150).with_row_index("id")
    right = frame.filter(pl.col("host") >= 100).rename({"rtt_us": "later_us"})
    streams = tc.from_arrow(left), tc.from_arrow(right)
    slower: dict[str, Any] = {"where": tc.col("later_us") > tc.col("rtt_us"), "suffix": "_other"}
    close = streams[0].interval_join(streams[1], "host", "-1s", "1s", how="left", **slower)
    pairs = left.join(right, on="host").filter(pl.col("later_us") > pl.col("rtt_us"))
    apart = (pl.col("timestamp_right") - pl.col("timestamp")).dt.total_milliseconds().abs()
    paired = pairs.filter(apart <= 1_000)
    alone = left.height - paired["id"].n_unique()
    rows = close.to_polars()
    assert "timestamp_other" in rows.columns
    assert rows.height == paired.height + alone
    assert rows["later_us"].null_count() == alone > 0
    window = streams[0].window_join(streams[1], tc.tumble("10s"), "host", "left", **slower)
    starts = [pl.col(name).dt.truncate("10s") for name in ("timestamp", "timestamp_right")]
    paired = pairs.filter(starts[0] == starts[1])
    assert window.to_polars()["later_us"].count() == paired.height
    with pytest.raises(tc.Unsupported, match="as-of"):
        streams[0].asof_join(streams[1], on="host", **slower).collect()


def test_joins_say_what_they_need() -> None:
    one = tc.from_arrow(pa.table({"a": [1]}))
    with pytest.raises(tc.InvalidArgument, match="cross"):
        one.join(one)
    with pytest.raises(tc.InvalidArgument, match="no join"):
        one.join(one, on="a", how="outer")  # type: ignore[arg-type]
    crossed = one.join(one, how="cross", suffix="_too")
    assert crossed.to_pylist() == [{"a": 1, "a_too": 1}]


def test_rows_before(probes: pa.Table) -> None:
    frame = pl.DataFrame(probes).head(3_000).select("timestamp", "host", "failed")
    lagged = tc.from_arrow(frame).lag("failed", 2, by=["host"], name="before").to_polars()
    before = frame.select(before=pl.col("failed").shift(2).over("host"))
    assert lagged["before"].to_list() == before["before"].to_list()
    changed = tc.from_arrow(frame).changes(["failed"], by=["host"]).to_polars()
    previous = pl.col("failed").shift(1).over("host")
    flips = frame.filter((pl.col("failed") != previous) & previous.is_not_null())
    seen = changed.filter(pl.col("previous_failed").is_not_null())
    assert seen["timestamp"].to_list() == flips["timestamp"].to_list()


def test_a_computed_key_does_not_hide_what_an_aggregate_reads() -> None:
    rows = tc.from_arrow(pa.table({"x": [10, 11, 20]}))
    tens = rows.group_by((tc.col("x") % 10).alias("x"))
    with pytest.raises(tc.Error, match="hides the column"):
        tens.agg(total=tc.sum("x"))
    with pytest.raises(tc.Error, match="hides the column"):
        tens.agg(n=tc.count().filter(tc.col("x") > 10))
    assert tens.agg(n=tc.count()).to_polars()["n"].sort().to_list() == [1, 2]


def test_computed_keys(probes: pa.Table) -> None:
    ours = (
        tc.from_arrow(probes)
        .window(tc.tumble("5m"))
        .group_by((tc.col("host") % 7).alias("shard"))
        .agg(total=tc.sum("rtt_us"))
        .to_polars()
    )
    theirs = (
        pl.DataFrame(probes)
        .group_by(
            window_start=pl.col("timestamp").dt.truncate("5m"),
            shard=pl.col("host").cast(pl.Int64) % 7,
        )
        .agg(total=pl.col("rtt_us").sum())
        .with_columns(window_end=pl.col("window_start") + pl.duration(minutes=5))
        .sort("window_start", "shard")
        .select(ours.columns)
    )
    assert_same(ours, theirs)


def test_sql_sees_streams_and_tables_by_name() -> None:
    probes = pa.table({"host": ["a", "b", "a"], "rtt": [10, 20, 30]})
    names = pa.table({"id": ["a", "b"], "label": ["first", "second"]})
    by_name = tc.sql(
        "SELECT label, sum(rtt) AS total FROM probes JOIN names ON host = id "
        "GROUP BY label ORDER BY label"
    )
    assert by_name.to_pylist() == [
        {"label": "first", "total": 40},
        {"label": "second", "total": 20},
    ]
    given = tc.sql("SELECT count(*) AS n FROM t WHERE rtt > 10", t=tc.from_arrow(probes))
    assert given.to_pylist() == [{"n": 2}]
    assert names.num_rows == 2


def test_sql_and_the_builder_answer_alike() -> None:
    probes = tc.generate("pingmesh", rows=50_000, event_time="timestamp", lateness="3s")
    built = (
        probes.filter((tc.col("error_code") != 0) & (tc.col("rtt_us") >= 100))
        .window(tc.tumble("10s"))
        .group_by("src_cluster", "dst_cluster")
        .agg(n=tc.count())
    )
    asked = tc.sql(
        "SELECT window_start, window_end, src_cluster, dst_cluster, count(*) AS n "
        "FROM TUMBLE(TABLE probes, DESCRIPTOR(timestamp), INTERVAL '10' SECOND) "
        "WHERE error_code <> 0 AND rtt_us >= 100 "
        "GROUP BY window_start, window_end, src_cluster, dst_cluster",
        probes=probes,
    )
    assert asked.to_pylist() == built.to_pylist()


def test_sql_looks_up_in_small_tables(probes: pa.Table) -> None:
    frame = pl.DataFrame(probes).select("timestamp", "host", "rtt_us")
    owners = pl.DataFrame({"id": [*range(250), None], "owner": [f"o{n % 7}" for n in range(251)]})
    owners = owners.with_columns(pl.col("id").cast(pl.Int32))
    query = (
        "SELECT owner, count(*) AS n, sum(rtt_us) AS total FROM rows JOIN owners ON host = id "
        "WHERE owner <> 'o3' AND host <> 5 GROUP BY owner ORDER BY owner"
    )
    frame = frame.filter(pl.col("host") != 5)
    joined = frame.join(owners.filter(pl.col("owner") != "o3"), left_on="host", right_on="id")
    theirs = joined.group_by("owner").agg(n=pl.len(), total=pl.col("rtt_us").sum()).sort("owner")
    rows = tc.from_arrow(probes)
    plan = str(tc.sql(query, rows=rows, owners=owners).explain())
    assert 0 <= plan.find("host <> 5") < plan.find("lookup"), plan
    assert_same(tc.sql(query, rows=rows, owners=owners).to_polars(), theirs)
    # A key that comes twice is joined with both of its rows.
    twice = pl.concat([owners, owners.head(3)])
    assert "lookup" not in str(tc.sql(query, rows=rows, owners=twice).explain())
    joined = frame.join(twice.filter(pl.col("owner") != "o3"), left_on="host", right_on="id")
    theirs = joined.group_by("owner").agg(n=pl.len(), total=pl.col("rtt_us").sum()).sort("owner")
    assert_same(tc.sql(query, rows=rows, owners=twice).to_polars(), theirs)


def test_sessions_counts_and_calendars() -> None:
    times = pa.array([0, 4_000, 90_000_000], pa.timestamp("ms"))
    rows = tc.from_arrow(pa.table({"time": times, "v": [1, 2, 3]}), event_time="time")
    sums = [
        rows.window(window).agg(total=tc.sum("v")).to_pylist()
        for window in (tc.session("5s"), tc.count_window(2), tc.calendar("day"))
    ]
    totals = [[row["total"] for row in result] for result in sums]
    assert totals == [[3, 3], [3, 3], [3, 3]]
