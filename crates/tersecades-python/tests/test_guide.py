"""The README and the guide: their programs run, and print what they say."""

import doctest
import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import tersecades as tc

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_print_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # What the command line has made before, in the README.
    tc.generate("pingmesh", rows=20_000, seed=7).write_parquet("probes.parquet")
    names: dict[str, Any] = {}
    printed = ""
    blocks = BLOCK.findall(page.read_text())
    assert blocks
    for language, content in blocks:
        if language == "python":
            output = io.StringIO()
            with redirect_stdout(output):
                exec(compile(content, page.name, "exec"), names)
            printed = output.getvalue()
        else:
            same = doctest.OutputChecker().check_output(content, printed, FLAGS)
            assert same, f"{page.name} says\n{content}\nbut it is\n{printed}"
