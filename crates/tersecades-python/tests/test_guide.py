"""The guide: its programs run, and print what it says."""

import doctest
import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guide"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda page: page.stem)
def test_programs_print_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
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
