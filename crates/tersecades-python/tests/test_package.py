"""The package itself: documentation that runs, types that hold, an import that is quick."""

import doctest
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tersecades as tc

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def documented() -> Iterator[tuple[str, Any]]:
    """The package, every public name and every public method."""
    yield "tersecades", tc
    for name in tc.__all__:
        thing = getattr(tc, name)
        if name.startswith("__"):
            continue
        yield name, thing
        if inspect.isclass(thing) and not issubclass(thing, tc.Error):
            for method in vars(thing):
                if not method.startswith("_"):
                    yield f"{name}.{method}", getattr(thing, method)


@pytest.mark.parametrize("name, thing", list(documented()))
def test_everything_is_documented_and_examples_run(name: str, thing: Any) -> None:
    assert thing.__doc__ and thing.__doc__.split("\n\n")[0].strip().endswith(".")
    test = doctest.DocTestParser().get_doctest(thing.__doc__, {}, name, None, 0)
    result = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test)
    assert result.failed == 0


def test_every_aggregate_of_the_engine_has_its_function() -> None:
    for name in tc.aggregates():
        assert callable(getattr(tc, name)), name


def test_every_generator_of_the_engine_makes_a_stream() -> None:
    for name, (summary, parameters) in tc.generators().items():
        assert summary and parameters
        defaults: dict[str, Any] = dict(parameters)
        assert len(tc.generate(name, rows=500, **defaults).collect()) == 500
    with pytest.raises(tc.InvalidArgument, match="generators"):
        tc.generate("weathr")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with what this one sees."""
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False
    )


def test_the_stubs_are_what_is_there() -> None:
    checked = run(
        "-m",
        "mypy.stubtest",
        "tersecades",
        "--ignore-disjoint-bases",
        "--mypy-config-file",
        str(ROOT / "pyproject.toml"),
    )
    assert checked.returncode == 0, checked.stdout


def test_examples_and_tests_are_typed() -> None:
    files = [str(path) for path in sorted(HERE.glob("*.py"))]
    checked = run("-m", "mypy", "--strict", "--no-error-summary", *files)
    assert checked.returncode == 0, checked.stdout


def test_importing_loads_no_other_library() -> None:
    heavy = "pyarrow, polars, pandas, numpy".split(", ")
    code = f"import sys, tersecades; print([m for m in {heavy} if m in sys.modules])"
    assert run("-c", code).stdout.strip() == "[]"
