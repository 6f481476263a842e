"""Data in and out: every library, every type, every layout."""

from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tersecades as tc

EVERY_TYPE = pa.table(
    {
        "bool": pa.array([True, None, False]),
        "int8": pa.array([-128, None, 127], pa.int8()),
        "uint8": pa.array([0, None, 255], pa.uint8()),
        "int16": pa.array([-(2**15), None, 2**15 - 1], pa.int16()),
        "uint32": pa.array([0, None, 2**32 - 1], pa.uint32()),
        "int64": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
        "uint64": pa.array([0, None, 2**64 - 1], pa.uint64()),
        "float32": pa.array([1.5, None, float("inf")], pa.float32()),
        "float64": pa.array([-0.0, None, 1e300], pa.float64()),
        "text": pa.array(["", None, "ünï"]),
        "large": pa.array(["", None, "ünï"], pa.large_string()),
        "view": pa.array(["", None, "a text of more than twelve bytes"], pa.string_view()),
        "codes": pa.array(["a", None, "a"]).dictionary_encode(),
        "binary": pa.array([b"", None, b"\x00\xff"]),
        "day": pa.array([date(1969, 12, 31), None, date(2100, 1, 1)]),
        "at_s": pa.array([datetime(1969, 1, 1), None, datetime(2100, 1, 1)], pa.timestamp("s")),
        "at_ns": pa.array([1, None, -1], pa.timestamp("ns")),
        "zoned": pa.array(
            [datetime(2024, 1, 1, tzinfo=timezone.utc), None, None],
            pa.timestamp("us", "Europe/Vienna"),
        ),
        "price": pa.array([Decimal("-1.25"), None, Decimal("1e30")], pa.decimal128(38, 2)),
    }
)


def test_every_type_comes_back_as_it_went_in() -> None:
    back = tc.from_arrow(EVERY_TYPE).to_arrow()
    assert back.column_names == EVERY_TYPE.column_names
    assert back.to_pylist() == EVERY_TYPE.to_pylist()


RARE_TYPES = pa.table(
    {
        "date64": pa.array([0, None, 4_102_444_800_000], pa.int64()).cast(pa.date64()),
        "nothing": pa.nulls(3),
        "fixed": pa.array([b"abc", None, b"xyz"], pa.binary(3)),
        "half": pa.array(np.array([1.5, 0.25, -2.0], dtype="float16"), pa.float16()),
    }
)


@pytest.mark.parametrize("suffix", [None, "arrow", "parquet"])
def test_rare_types_become_those_that_hold_their_values(suffix: str | None, tmp_path: Any) -> None:
    stream = tc.from_arrow(RARE_TYPES)
    if suffix is not None:
        path = tmp_path / f"rare.{suffix}"
        if suffix == "parquet":
            pq.write_table(RARE_TYPES, path)
            stream = tc.read_parquet(path)
        else:
            with pa.ipc.new_file(path, RARE_TYPES.schema) as file:
                file.write_table(RARE_TYPES)
            stream = tc.read_ipc(path)
    back = stream.to_arrow()
    day = back.schema.field("date64").type
    assert day in (pa.timestamp("ms"), pa.date32())
    assert [str(time)[:10] for time in back["date64"].to_pylist()] == [
        "1970-01-01",
        "None",
        "2100-01-01",
    ]
    assert back["nothing"].to_pylist() == [None] * 3
    assert back["fixed"].to_pylist() == [b"abc", None, b"xyz"]
    assert back["half"].to_pylist() == [1.5, 0.25, -2.0]
    groups = stream.group_by("fixed", "nothing", "date64")
    grouped = groups.agg(s=tc.sum("half"), n=tc.count("nothing"))
    assert [(row["fixed"], row["s"], row["n"]) for row in grouped.to_pylist()] == [
        (b"abc", 1.5, 0),
        (b"xyz", -2.0, 0),
        (None, 0.25, 0),
    ]
    kept = stream.cache()
    assert kept.filter(tc.col("half") > 1).to_pylist() == back.slice(0, 1).to_pylist()
    late = "nothing IS NULL AND date64 > DATE '2000-01-01'"
    rows = tc.sql(f"SELECT fixed, half FROM stream WHERE {late}")
    assert rows.to_pylist() == [{"fixed": b"xyz", "half": -2.0}]
    assert kept.join(stream, on="fixed", how="semi").to_arrow().num_rows == 2


@pytest.mark.parametrize("start", [1, 3, 7, 8, 9])
def test_sliced_arrays_keep_their_rows(start: int) -> None:
    wide = pa.concat_tables([EVERY_TYPE] * 5, promote_options="default").combine_chunks()
    piece = wide.slice(start, 5)
    assert tc.from_arrow(piece).to_pylist() == piece.to_pylist()


def test_libraries_in_and_out(probes: pa.Table) -> None:
    few = probes.slice(0, 1_000)
    frame, pandas = pl.DataFrame(few), few.to_pandas()
    rows = few.to_pylist()
    assert tc.from_arrow(frame).to_pylist() == rows
    assert tc.from_arrow(pandas).select("host").to_pandas()["host"].tolist() == few[
        "host"
    ].to_pylist()
    assert tc.from_arrow(few).to_polars().rows() == frame.rows()
    relation = duckdb.sql("SELECT host, region FROM few WHERE host < 10")
    assert relation is not None
    assert tc.from_arrow(relation).to_pylist() == relation.to_arrow_table().to_pylist()
    arrays = tc.from_arrow(few).select("host", "timestamp").to_numpy()
    assert arrays["host"].dtype == np.int32
    assert arrays["timestamp"].dtype == np.dtype("datetime64[ms]")
    assert len(arrays["host"]) == 1_000
    assert isinstance(tc.from_arrow(few).to_pandas(), pd.DataFrame)


def test_results_are_arrow_streams(probes: pa.Table) -> None:
    stream = tc.from_arrow(probes).window(tc.tumble("1m")).agg(n=tc.count())
    table = stream.collect()
    assert pa.table(table) == table.to_arrow() == stream.to_arrow()
    assert pa.RecordBatchReader.from_stream(stream).read_all() == table.to_arrow()
    assert pl.DataFrame(table)["n"].sum() == probes.num_rows
    assert pa.schema(stream.schema) == table.to_arrow().schema
    assert sum(len(batch) for batch in table.to_batches()) == len(table) == table.num_rows


def test_an_empty_table_has_its_columns() -> None:
    empty = tc.from_arrow(EVERY_TYPE.slice(0, 0)).to_arrow()
    assert empty.num_rows == 0
    assert empty.column_names == EVERY_TYPE.column_names


def test_a_stream_can_run_again_and_a_reader_cannot(probes: pa.Table) -> None:
    stream = tc.from_arrow(probes)
    assert len(stream.collect()) == len(stream.collect()) == probes.num_rows
    reader = tc.from_arrow(probes.to_reader(max_chunksize=1_000))
    assert len(reader.collect()) == probes.num_rows
    with pytest.raises(tc.InvalidArgument, match="earlier run"):
        reader.collect()


def test_a_reader_at_its_end_is_no_table_without_rows(probes: pa.Table) -> None:
    reader = probes.to_reader(max_chunksize=1_000)
    assert tc.sql("SELECT count(*) AS n FROM reader").to_pylist() == [{"n": probes.num_rows}]
    with pytest.raises(tc.InvalidArgument, match="earlier run"):
        tc.sql("SELECT count(*) AS n FROM reader").to_pylist()
    with pytest.raises(tc.InvalidArgument, match="earlier run"):
        tc.from_arrow(reader).to_pylist()
    rest = probes.to_reader(max_chunksize=1_000)
    rest.read_next_batch()
    assert len(tc.from_arrow(rest).collect()) == probes.num_rows - 1_000


class Batches:
    """An iterable that begins anew."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for start in range(3):
            yield pa.record_batch({"n": [start, start + 1]})


def test_batches_of_python() -> None:
    expected = [{"n": n} for n in [0, 1, 1, 2, 2, 3]]
    again = tc.from_batches(Batches())
    assert again.to_pylist() == again.to_pylist() == expected
    listed = tc.from_batches([pl.DataFrame({"n": [1]}), pl.DataFrame({"n": [2]})])
    assert listed.to_pylist() == listed.to_pylist() == [{"n": 1}, {"n": 2}]
    once = tc.from_batches(iter(Batches()))
    assert once.to_pylist() == expected
    with pytest.raises(tc.InvalidArgument, match="earlier run"):
        once.collect()


def test_no_batches_need_a_schema() -> None:
    with pytest.raises(tc.InvalidArgument, match="schema="):
        tc.from_batches([])
    schema = pa.schema({"n": pa.int64()})
    assert tc.from_batches([], schema=schema).to_arrow().schema.names == ["n"]


def test_what_python_raises_comes_out_as_it_is() -> None:
    class Broken(Exception):
        pass

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        raise Broken("no more")

    with pytest.raises(Broken, match="no more"):
        tc.from_batches(batches()).collect()


def test_batches_of_other_columns_are_refused() -> None:
    batches = [pa.record_batch({"n": [1]}), pa.record_batch({"m": [1]})]
    with pytest.raises(tc.SchemaMismatch, match="other columns"):
        tc.from_batches(batches).collect()


@pytest.mark.parametrize("data", [1, "text", [1, 2], {"a": [1]}, pa.array([1, 2])])
def test_what_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(tc.SchemaMismatch) as caught:
        tc.from_arrow(data)
    assert caught.value.hint


def test_types_without_an_encoding_are_named() -> None:
    nested = pa.table({"list": [[1], [2]]})
    with pytest.raises(tc.Unsupported, match="list"):
        tc.from_arrow(nested).collect()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "ipc", "json"])
def test_files_there_and_back(probes: pa.Table, tmp_path: Any, suffix: str) -> None:
    endings = {"ipc": "arrow", "json": "jsonl"}
    path = tmp_path / f"probes.{endings.get(suffix, suffix)}"
    stream = tc.from_arrow(probes).select("timestamp", "region", "rtt_us", "failed")
    counted = getattr(stream, f"write_{suffix}")(path)
    assert counted.rows == probes.num_rows
    back = getattr(tc, f"read_{suffix}")(path, event_time="timestamp", lateness="1s")
    windows = [
        source.window(tc.tumble("1m")).agg(n=tc.count(), total=tc.sum("rtt_us"))
        for source in (stream, back)
    ]
    ours, theirs = (table.to_pylist() for table in windows)
    assert [(row["n"], row["total"]) for row in ours] == [
        (row["n"], row["total"]) for row in theirs
    ]


def test_many_files_are_one_table(tmp_path: Any) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        tc.from_arrow(pa.table({"n": [day * 10]})).write(tmp_path / f"day={day}" / "a.parquet")
    both = [{"n": 10, "day": 1}, {"n": 20, "day": 2}]
    assert tc.read_parquet(tmp_path).to_pylist() == both
    files = sorted(tmp_path.glob("*/*.parquet"))
    assert tc.read_parquet(str(tmp_path / "*" / "*.parquet")).to_pylist() == both
    listed = tc.read_parquet([str(files[1]), str(files[0])]).select("n").to_pylist()
    assert listed == [{"n": 20}, {"n": 10}]


def test_the_format_asked_for_is_read(tmp_path: Any) -> None:
    path = tmp_path / "numbers.dat"
    path.write_text("n\n1\n")
    assert tc.read_csv(path).to_pylist() == [{"n": 1}]


def test_csv_options(tmp_path: Any) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("a;b\n1;x\nbad;y\n3;-\n")
    stream = tc.read_csv(path, delimiter=";", types={"a": "int16"}, on_error="skip")
    table = stream.collect()
    assert table.to_pylist() == [{"a": 1, "b": "x"}, {"a": 3, "b": None}]
    assert table.metrics is not None and table.metrics.rejected_rows == 1
    with pytest.raises(tc.InvalidArgument, match="delimiter"):
        tc.read_csv(path, delimitre=";")  # type: ignore[call-arg]


def test_bad_rows_are_kept_wherever_a_file_is_read(tmp_path: Any) -> None:
    for day, text in ((1, b"k,n\na,1\nb,x\n"), (2, b"k,n\na,3\nc\nb,\xff\n")):
        (tmp_path / f"day{day}.csv").write_bytes(text)
    letters = tc.DeadLetters()
    rows = tc.read_csv(tmp_path / "*.csv", types={"n": "int64"}, on_error=letters)
    names = tc.from_arrow(pa.table({"k": ["a", "b"], "name": ["Ada", "Ben"]}))
    joined = rows.join(names, "k").group_by("name").agg(n=tc.sum("n"))
    assert joined.to_pylist() == [{"name": "Ada", "n": 4}]
    assert len(letters) == 3 and repr(letters) == "DeadLetters(3 rows)"
    bad = letters.take().to_arrow()
    assert [name.endswith("day1.csv") for name in bad["file"].to_pylist()] == [True, False, False]
    assert bad["line"].to_pylist() == [3, 3, 4]
    assert bad["column"].to_pylist() == ["n", None, "n"]
    assert bad["original"].to_pylist() == [b"b,x", b"c", b"b,\xff"]
    assert len(letters) == 0 and letters.take().to_pylist() == []
    with pytest.raises(tc.InvalidArgument, match="nothing to do with a bad row"):
        tc.read_csv(tmp_path / "day1.csv", on_error="dead_letter")  # type: ignore[arg-type]


def test_categories_of_any_type_are_their_values() -> None:
    for values in ([3, 1, None, 3], [0.5, -1.0, None, 0.5], [True, False, None, True]):
        column = pa.array(values).dictionary_encode()
        assert tc.from_arrow(pa.table({"c": column})).to_arrow()["c"].to_pylist() == values
        total = tc.from_arrow(pa.table({"c": column})).group_by("c").agg(n=tc.count()).to_pylist()
        assert sum(row["n"] for row in total) == 4 and len(total) == 3


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_of_seconds_are_times_in_parquet_too(tmp_path: Path, zone: str | None) -> None:
    times = [datetime(2024, 5, 1), None, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)]
    table = pa.table({"at": pa.array(times, pa.timestamp("s")).cast(pa.timestamp("s", zone))})
    path = tmp_path / "seconds.parquet"
    tc.from_arrow(table).write_parquet(path)
    millis = table.cast(pa.schema({"at": pa.timestamp("ms", zone)}))
    assert pq.read_table(path).equals(millis)
    assert tc.read_parquet(path).to_arrow().equals(millis)
    far = pa.table({"at": pa.array([2**62], pa.timestamp("s"))})
    with pytest.raises(tc.LimitExceeded, match="beyond"):
        tc.from_arrow(far).write_parquet(path)
