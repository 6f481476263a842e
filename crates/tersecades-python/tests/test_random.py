"""Random streams, windows and joins against the rules written out in Python."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import tersecades as tc
from hypothesis import given
from hypothesis import strategies as st

EPOCH = datetime(1970, 1, 1)

TEXTS = st.none() | st.sampled_from(["", "a", "b", "ab", "süd", "北", "a\x00", "𝄞"])
NUMBERS = st.none() | st.integers(-3, 3) | st.integers(-(2**40), 2**40)


@dataclass
class Row:
    """A row of a stream; times are seconds."""

    time: int | None
    key: str | None
    number: int | None


ROWS = st.lists(
    st.builds(Row, st.none() | st.integers(-60, 120), TEXTS, NUMBERS), max_size=60
)

SCHEMA = pa.schema(
    {"timestamp": pa.timestamp("ms"), "key": pa.string(), "number": pa.int64()}
)


def time(seconds: int | None) -> datetime | None:
    """A time as tables have it."""
    return None if seconds is None else EPOCH + timedelta(seconds=seconds)


def stream(rows: list[Row], batch_rows: int, lateness: int = 0) -> tc.Stream:
    """The rows, in batches of a size."""

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(rows), batch_rows):
            part = rows[start : start + batch_rows]
            columns = [
                [time(row.time) for row in part],
                [row.key for row in part],
                [row.number for row in part],
            ]
            arrays = [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types)]
            yield pa.record_batch(arrays, schema=SCHEMA)

    made = tc.from_batches(list(batches()), schema=SCHEMA)
    return made.event_time("timestamp", f"{lateness}s")


@dataclass
class Windows:
    """A kind of window, and which of them hold a time."""

    size: int
    slide: int
    offset: int

    def window(self) -> tc.Window:
        """As the package writes it."""
        offset = f"{self.offset}s"
        return tc.hop(f"{self.size}s", every=f"{self.slide}s", offset=offset)

    def holding(self, at: int) -> list[int]:
        """Starts of the windows with a time."""
        last = (at - self.offset) // self.slide * self.slide + self.offset
        return [start for start in range(last, at - self.size, -self.slide)]


WINDOWS = st.builds(Windows, st.integers(1, 40), st.integers(1, 20), st.integers(0, 7))


def in_order(key: str | None) -> tuple[bool, bytes]:
    """Text by its bytes, null last."""
    return key is None, (key or "").encode()


@given(
    rows=ROWS,
    windows=WINDOWS,
    lateness=st.integers(0, 30),
    batch_rows=st.integers(1, 70),
    threads=st.integers(1, 3),
    kept=st.booleans(),
)
def test_windows_by_the_rules(
    rows: list[Row], windows: Windows, lateness: int, batch_rows: int, threads: int, kept: bool
) -> None:
    groups: dict[tuple[int, str | None], list[int | None]] = {}
    newest: int | None = None
    late = untimed = 0
    for row in rows:
        if row.time is None:
            untimed += 1
            continue
        holding = windows.holding(row.time)
        watermark = None if newest is None else newest - lateness
        open_ = [s for s in holding if watermark is None or s + windows.size > watermark]
        late += bool(holding) and not open_
        for start in open_:
            groups.setdefault((start, row.key), []).append(row.number)
        newest = row.time if newest is None else max(newest, row.time)
    expected = []
    for start, key in sorted(groups, key=lambda group: (group[0], in_order(group[1]))):
        numbers = [number for number in groups[start, key] if number is not None]
        expected.append(
            {
                "window_start": time(start),
                "window_end": time(start + windows.size),
                "key": key,
                "n": len(groups[start, key]),
                "total": sum(numbers) if numbers else None,
                "least": min(numbers, default=None),
                "kinds": len(set(numbers)),
            }
        )
    source = stream(rows, batch_rows, lateness).threads(threads)
    source = source.keep(bytes="1GiB") if kept else source
    table = (
        source.window(windows.window())
        .group_by("key")
        .agg(
            n=tc.count(),
            total=tc.sum("number"),
            least=tc.min("number"),
            kinds=tc.count_distinct("number"),
        )
        .collect()
    )
    assert table.to_pylist() == expected
    assert table.metrics is not None
    assert (table.metrics.late_rows, table.metrics.untimed_rows) == (late, untimed)


@given(rows=ROWS, gap=st.integers(1, 20), batch_rows=st.integers(1, 70))
def test_sessions_by_the_rules(rows: list[Row], gap: int, batch_rows: int) -> None:
    by_key: dict[str | None, list[int]] = {}
    for row in rows:
        if row.time is not None:
            by_key.setdefault(row.key, []).append(row.time)
    expected = set()
    for key, times in by_key.items():
        times.sort()
        start, last, count = times[0], times[0], 0
        for at in [*times, None]:
            if at is None or at - last >= gap:
                expected.add((time(start), time(last + gap), key, count))
                start, count = (at, 0) if at is not None else (start, 0)
            last, count = (at, count + 1) if at is not None else (last, count)
    # No row is late: a session has closed only when nothing can join it.
    source = stream(rows, batch_rows, lateness=1_000)
    out = source.window(tc.session(f"{gap}s")).group_by("key").agg(n=tc.count())
    found = [tuple(row.values()) for row in out.to_pylist()]
    assert set(found) == expected and len(found) == len(expected)


def pairs(left: list[Row], right: list[Row], how: str) -> list[tuple[Any, Any]]:
    """Places of the rows that a join by key gives, in its order."""
    found: list[tuple[Any, Any]] = []
    for i, one in enumerate(left):
        same = [j for j, other in enumerate(right) if one.key == other.key]
        of_row = [] if one.key is None else same
        match how:
            case "semi":
                found += [(i, None)] if of_row else []
            case "anti":
                found += [] if of_row else [(i, None)]
            case _:
                found += [(i, j) for j in of_row]
                found += [(i, None)] if not of_row and how in ("left", "full") else []
    if how in ("right", "full"):
        taken = {j for _, j in found if j is not None}
        found += [(None, j) for j in range(len(right)) if j not in taken]
    return found


@given(
    left=ROWS,
    right=ROWS,
    how=st.sampled_from(["inner", "left", "right", "full", "semi", "anti"]),
    batch_rows=st.integers(1, 70),
)
def test_joins_by_the_rules(
    left: list[Row], right: list[Row], how: Any, batch_rows: int
) -> None:
    streams = stream(left, batch_rows), stream(right, 71 - batch_rows)
    others = streams[1].select("key", other="number")
    joined = streams[0].join(others, on="key", how=how).select("number", *(
        ["other"] if how not in ("semi", "anti") else []
    ))
    expected: list[tuple[Any, ...]] = []
    for i, j in pairs(left, right, how):
        number = None if i is None else left[i].number
        other = None if j is None else right[j].number
        expected.append((number,) if how in ("semi", "anti") else (number, other))
    assert [tuple(row.values()) for row in joined.to_pylist()] == expected


@given(left=ROWS, right=ROWS, bounds=st.tuples(st.integers(-20, 20), st.integers(0, 20)))
def test_interval_joins_by_the_rules(
    left: list[Row], right: list[Row], bounds: tuple[int, int]
) -> None:
    lower, upper = bounds[0], bounds[0] + bounds[1]
    numbered = [
        [Row(row.time, row.key, place) for place, row in enumerate(rows)] for rows in (left, right)
    ]
    streams = [stream(rows, 9, lateness=1_000) for rows in numbered]
    others = streams[1].rename({"number": "other"})
    joined = streams[0].interval_join(others, "key", f"{lower}s", f"{upper}s")
    found = [(row["number"], row["other"]) for row in joined.to_pylist()]
    expected = [
        (i, j)
        for i, one in enumerate(left)
        for j, other in enumerate(right)
        if one.key is not None
        and one.key == other.key
        and one.time is not None
        and other.time is not None
        and lower <= other.time - one.time <= upper
    ]
    assert sorted(found) == sorted(expected)


@given(left=ROWS, right=ROWS, direction=st.sampled_from(["backward", "forward"]))
def test_joins_as_of_by_the_rules(left: list[Row], right: list[Row], direction: Any) -> None:
    numbered = [
        [Row(row.time, row.key, place) for place, row in enumerate(rows)] for rows in (left, right)
    ]
    streams = [stream(rows, 9, lateness=1_000) for rows in numbered]
    others = streams[1].rename({"number": "other"})
    joined = streams[0].asof_join(others, on="key", direction=direction)
    expected: dict[int, int | None] = {}
    for i, one in enumerate(left):
        if one.time is None:
            continue
        best: tuple[int, int] | None = None
        for j, other in enumerate(right):
            if other.time is None or one.key is None or one.key != other.key:
                continue
            apart = one.time - other.time if direction == "backward" else other.time - one.time
            # Of several at one time the last to arrive counts backward, the first forward.
            limit = apart + 1 if best is None else best[0] + (direction == "backward")
            if 0 <= apart < limit:
                best = (apart, j)
        expected[i] = None if best is None else best[1]
    found = {row["number"]: row["other"] for row in joined.to_pylist()}
    assert found == expected


@given(rows=ROWS, batch_rows=st.integers(1, 70))
def test_text_and_nulls_survive_every_way(rows: list[Row], batch_rows: int) -> None:
    source = stream(rows, batch_rows)
    plain = source.to_arrow()
    assert plain["key"].to_pylist() == [row.key for row in rows]
    assert source.cache().to_arrow().equals(plain)
    assert source.sort("key").to_arrow()["key"].to_pylist() == sorted(
        (row.key for row in rows), key=in_order
    )
    kinds = source.select("key").distinct().to_arrow()["key"].to_pylist()
    assert kinds == list(dict.fromkeys(row.key for row in rows))
    asked = tc.sql("SELECT number, key FROM source WHERE key IS NULL OR key <> 'a'")
    expected = [(row.number, row.key) for row in rows if row.key != "a"]
    assert [tuple(row.values()) for row in asked.to_pylist()] == expected
