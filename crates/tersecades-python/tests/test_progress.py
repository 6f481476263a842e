"""Long work shows how far it is: on a terminal, in a notebook, and nowhere else."""

import os
import pty
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tersecades as tc

WORK = """
import time, pyarrow as pa, tersecades as tc
def slow():
    for second in range(12):
        time.sleep(0.1)
        yield pa.record_batch({"n": [second]})
tc.progress(%s)
tc.from_batches(slow()).agg(n=tc.count()).collect()
"""


def slow() -> Iterator[pa.RecordBatch]:
    """More than a second of batches."""
    for second in range(12):
        time.sleep(0.1)
        yield pa.record_batch({"n": [second]})


def on_a_terminal(code: str) -> str:
    """What a program writes to its terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4_096):
            shown += part
    except OSError:
        pass
    os.close(ours)
    assert child.wait() == 0, shown
    return shown.decode()


def test_a_terminal_shows_a_bar_unless_told() -> None:
    assert "rows" in on_a_terminal(WORK % True)
    assert "rows" not in on_a_terminal(WORK % False)


def test_a_pipe_stays_silent() -> None:
    done = subprocess.run([sys.executable, "-c", WORK % True], capture_output=True, check=True)
    assert done.stdout == done.stderr == b""


def test_a_notebook_shows_a_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            assert raw
            shown.append(bundle["text/plain"])

    def display(bundle: dict[str, str], display_id: bool, raw: bool) -> Handle:
        assert display_id and raw and bundle
        return Handle()

    shell = type("ZMQInteractiveShell", (), {})()
    package: Any = types.ModuleType("IPython")
    package.get_ipython = lambda: shell
    module: Any = types.ModuleType("IPython.display")
    module.display = display
    package.display = module
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    tc.from_batches(slow()).agg(n=tc.count()).collect()
    assert any("rows" in text for text in shown)
    # The line goes when the work is done.
    assert shown[-1] == ""


QOS = """
import pyarrow as pa, tersecades as tc
data = pa.table({"v": [float(n %% 997) for n in range(300_000)]})
tc.progress(%s)
query = "SELECT v * 2 AS w, sum(v) AS s FROM data GROUP BY v * 2"
tc.qos(data, [query] * 40, columns=["v"], tolerances=[0.01, 1.0], keys=["w"])
"""


def test_a_terminal_shows_how_many_queries_have_run() -> None:
    assert "running queries" in on_a_terminal(QOS % True)
    assert on_a_terminal(QOS % False) == ""


def test_qos_draws_its_loss(tmp_path: Path) -> None:
    data = pa.table({"v": [float(n % 97) for n in range(5_000)], "k": list(range(5_000))})
    path = tmp_path / "loss.svg"
    query = "SELECT k FROM data WHERE v > 50"
    found = tc.qos(data, {"above": query}, columns=["v"], tolerances=[0.01, 8.0], plot=path)
    drawn = path.read_text()
    assert drawn == found["svg"] and drawn.startswith("<svg")
    assert "above" in drawn and drawn.count("<circle") == len(found["settings"]) == 3
