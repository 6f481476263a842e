"""Random expressions against the rules written out in Python."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tersecades as tc
from hypothesis import given
from hypothesis import strategies as st

Row = dict[str, Any]


@dataclass
class Case:
    """An expression, and what it means for a row."""

    expression: tc.Expr
    meaning: Callable[[Row], Any]


def compare(name: str, left: Case, right: Case) -> Case:
    """A comparison, unknown when a side is null."""
    operators: dict[str, Callable[[Any, Any], Any]] = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
    }
    operator = operators[name]

    def meaning(row: Row) -> Any:
        a, b = left.meaning(row), right.meaning(row)
        return None if a is None or b is None else operator(a, b)

    return Case(operator(left.expression, right.expression), meaning)


def both(left: Case, right: Case) -> Case:
    """AND of three values."""

    def meaning(row: Row) -> Any:
        values = (left.meaning(row), right.meaning(row))
        return False if False in values else None if None in values else True

    return Case(left.expression & right.expression, meaning)


def either(left: Case, right: Case) -> Case:
    """OR of three values."""

    def meaning(row: Row) -> Any:
        values = (left.meaning(row), right.meaning(row))
        return True if True in values else None if None in values else False

    return Case(left.expression | right.expression, meaning)


def opposite(inner: Case) -> Case:
    """NOT of three values."""

    def meaning(row: Row) -> Any:
        value = inner.meaning(row)
        return None if value is None else not value

    return Case(~inner.expression, meaning)


def column(name: str) -> Case:
    """The value of a column."""
    return Case(tc.col(name), lambda row: row[name])


def sum_of(left: Case, right: Case) -> Case:
    """A sum, null when a side is."""

    def meaning(row: Row) -> Any:
        a, b = left.meaning(row), right.meaning(row)
        return None if a is None or b is None else a + b

    return Case(left.expression + right.expression, meaning)


INTEGERS = st.integers(-20, 20)
WORDS = st.sampled_from(["", "a", "ab", "b", "ä", "zz"])
CONSTANTS = INTEGERS.map(lambda value: Case(tc.lit(value), lambda row: value))
NUMBERS = st.recursive(
    st.sampled_from(["x", "y"]).map(column) | CONSTANTS,
    lambda inner: st.builds(sum_of, inner, inner),
    max_leaves=3,
)
OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


def one_of(words: list[str]) -> Case:
    """Whether the text is in a list."""

    def meaning(row: Row) -> Any:
        return None if row["word"] is None else row["word"] in words

    return Case(tc.col("word").is_in(words), meaning)


CONDITIONS = st.recursive(
    st.builds(compare, OPERATORS, st.sampled_from(["x", "y"]).map(column), NUMBERS)
    | st.lists(WORDS, min_size=1, max_size=3).map(one_of)
    | st.sampled_from(["x", "word"]).map(
        lambda name: Case(tc.col(name).is_null(), lambda row: row[name] is None)
    ),
    lambda inner: st.builds(both, inner, inner)
    | st.builds(either, inner, inner)
    | inner.map(opposite),
    max_leaves=6,
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"x": st.none() | INTEGERS, "y": INTEGERS, "word": st.none() | WORDS}
    ),
    max_size=40,
)
SCHEMA = pa.schema({"x": pa.int64(), "y": pa.int32(), "word": pa.string()})


@given(ROWS, CONDITIONS)
def test_filters_follow_three_valued_logic(rows: list[Row], condition: Case) -> None:
    stream = tc.from_arrow(pa.Table.from_pylist(rows, SCHEMA))
    expected = [row for row in rows if condition.meaning(row) is True]
    assert stream.filter(condition.expression).to_pylist() == expected


@given(ROWS, NUMBERS)
def test_sums_are_computed_for_each_row(rows: list[Row], number: Case) -> None:
    stream = tc.from_arrow(pa.Table.from_pylist(rows, SCHEMA))
    expected = [{"sum": number.meaning(row)} for row in rows]
    assert stream.select(sum=number.expression + 0).to_pylist() == expected


MOMENT = datetime(2024, 5, 1, 12, 30, 0, 250_000)


@pytest.mark.parametrize(
    "constant",
    [
        MOMENT,
        MOMENT.replace(tzinfo=timezone.utc),
        MOMENT.replace(tzinfo=timezone.utc).astimezone(timezone(timedelta(hours=2))),
        np.datetime64(MOMENT, "ms"),
        pd.Timestamp(MOMENT),
        MOMENT.isoformat(),
    ],
)
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_compare_whatever_their_unit(constant: Any, unit: str) -> None:
    times = [MOMENT - timedelta(milliseconds=1), MOMENT, MOMENT + timedelta(days=1)]
    stream = tc.from_arrow(pa.table({"at": pa.array(times, pa.timestamp(unit))}))
    assert stream.filter(tc.col("at") >= constant).to_pylist() == [
        {"at": time} for time in stream.to_arrow()["at"].to_pylist()[1:]
    ]


@pytest.mark.parametrize("year", [1, 1600, 2023, 2024, 2025, 2300, 9999])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_times_of_numpy_reach_as_far_as_their_unit(year: int, unit: str) -> None:
    stream = tc.from_arrow(pa.table({"at": pa.array([datetime(2024, 1, 1)], pa.timestamp(unit))}))
    for constant in [np.datetime64(f"{year:04}", "Y"), np.datetime64(f"{year:04}-01", "us")]:
        count = len(stream.filter(tc.col("at") <= constant).to_pylist())
        assert count == (2024 <= year)
        assert len(stream.filter(tc.col("at").is_in([constant])).to_pylist()) == (year == 2024)


@pytest.mark.parametrize("constant", [np.datetime64(10**15, "Y"), np.datetime64(1, "ps")])
def test_times_of_numpy_that_no_column_holds_are_refused(constant: Any) -> None:
    for use in (tc.lit, tc.col("at").__lt__, tc.col("at").__radd__):
        with pytest.raises(tc.InvalidArgument, match="no time of 64 bits"):
            use(constant)
    with pytest.raises(tc.InvalidArgument, match="no time of 64 bits"):
        constant >= tc.col("at")


@pytest.mark.parametrize(
    "missing", [np.datetime64("NaT"), np.datetime64("NaT", "D"), pd.NaT, pd.NA, None]
)
def test_what_is_missing_in_numpy_and_pandas_is_null(missing: Any) -> None:
    stream = tc.from_arrow(pa.table({"at": pa.array([datetime(2024, 1, 1)], pa.timestamp("us"))}))
    assert stream.filter(tc.col("at") >= missing).to_pylist() == []
    assert stream.filter(tc.col("at").is_in([missing])).to_pylist() == []
    nothing = tc.lit(missing).cast("timestamp[us]")
    assert stream.select(at=nothing).to_pylist() == [{"at": None}]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_numpy_may_stand_on_the_left(unit: str) -> None:
    times = [datetime(2024, 1, day) for day in (1, 2, 3)]
    table = pa.table({"at": pa.array(times, pa.timestamp(unit)), "n": [1, 2, 3]})
    stream = tc.from_arrow(table)
    second: Any = np.datetime64("2024-01-02").astype(f"datetime64[{unit}]")
    assert [row["n"] for row in stream.filter(second <= tc.col("at")).to_pylist()] == [2, 3]
    two: Any = np.int16(2)
    assert [row["n"] for row in stream.filter(two == tc.col("n")).to_pylist()] == [2]
    assert stream.limit(1).select(n=two - tc.col("n")).to_pylist() == [{"n": 1}]


@pytest.mark.parametrize(
    "other", [[1], {1}, object(), timedelta(1), Decimal("NaN"), 1j, np.array([1, 2])]
)
def test_operators_refuse_what_is_no_constant(other: Any) -> None:
    for use in (operator.eq, operator.ne, operator.lt, operator.add, operator.and_):
        with pytest.raises(tc.InvalidArgument):
            use(tc.col("n"), other)
        with pytest.raises(tc.InvalidArgument):
            use(other, tc.col("n"))


def test_booleans_of_numpy_are_booleans() -> None:
    stream = tc.from_arrow(pa.table({"flag": [True, False]}))
    assert stream.select(on=np.True_).to_pylist() == [{"on": True}, {"on": True}]
    assert stream.filter(tc.col("flag") == np.False_).to_pylist() == [{"flag": False}]


def test_constants_of_every_kind() -> None:
    table = pa.table(
        {
            "day": [date(2024, 5, 1), date(2024, 5, 2)],
            "price": [Decimal("1.25"), Decimal("2.50")],
            "raw": [b"\x00", b"\xff"],
            "flag": [True, False],
            "small": pa.array([1, 2], pa.int8()),
        }
    )
    stream = tc.from_arrow(table)
    second = table.to_pylist()[1]
    for condition in [
        tc.col("day") > date(2024, 5, 1),
        tc.col("price") == Decimal("2.5"),
        tc.col("price") > 2,
        tc.col("raw") == b"\xff",
        tc.col("flag") == False,  # noqa: E712
        ~tc.col("flag"),
        tc.col("small") == np.int64(2),
        tc.col("day").is_in([date(2024, 5, 2)]),
        tc.col("small").between(2, 3),
    ]:
        assert stream.filter(condition).to_pylist() == [second], condition


def test_division_gives_fractions_and_div_cuts() -> None:
    stream = tc.from_arrow(pa.table({"n": [7, -7, 0]}))
    out = stream.select(half=tc.col("n") / 2, cut=tc.col("n").div(2), by=14 / tc.col("n"))
    assert out.to_pylist() == [
        {"half": 3.5, "cut": 3, "by": 2.0},
        {"half": -3.5, "cut": -3, "by": -2.0},
        {"half": 0.0, "cut": 0, "by": None},
    ]


def test_an_expression_is_no_truth_value() -> None:
    with pytest.raises(TypeError, match="& |"):
        bool(tc.col("a") > 1)
    with pytest.raises(TypeError):
        1 < tc.col("a") < 3  # noqa: B015


def test_nonsense_is_refused_with_a_hint() -> None:
    with pytest.raises(tc.InvalidArgument) as caught:
        tc.col("a").cast("int63")
    assert "int8 to int64" in str(caught.value.hint)
    with pytest.raises(tc.InvalidArgument, match="list"):
        tc.col("a").is_in("text")
    with pytest.raises(tc.InvalidArgument, match="object"):
        tc.col("a") + object()  # type: ignore[operator]
