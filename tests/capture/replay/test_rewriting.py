"""Functions of the script that run the code of a patched file, and their own again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.capture.replay.rewriting import Rewritten
from pipediag.session.edits import RewriteCall

OWN = "def rows(count):\n    for row in range(count):\n        yield row + 1\n"
PATCHED = "def rows(count):\n    for row in range(count):\n        yield row + 2\n"
Rows = Callable[[int], Iterator[int]]


def rows_of(path: Path) -> Rows:
    path.write_text(OWN, encoding="utf-8")
    names: dict[str, Rows] = {}
    exec(compile(OWN, str(path), "exec"), names)
    return names["rows"]


def test_functions_run_the_patched_code_while_they_are_told_to(tmp_path: Path) -> None:
    path = tmp_path / "data.py"
    rows = rows_of(path)
    rewritten = Rewritten([RewriteCall("op", str(path), 3, "rows")], {str(path): PATCHED})

    assert rewritten
    with rewritten.patched():
        assert list(rows(2)) == [2, 3]
    assert list(rows(2)) == [1, 2]
    rewritten.use(patched=True)
    assert list(rows(2)) == [2, 3]


def test_functions_that_the_patched_file_adds_are_defined(tmp_path: Path) -> None:
    path = tmp_path / "data.py"
    rows = rows_of(path)
    text = "def more(row):\n    return row + 3\n\n\n" + PATCHED.replace("row + 2", "more(row)")
    rewritten = Rewritten([RewriteCall("op", str(path), 3, "Data.rows")], {str(path): text})

    with rewritten.patched():
        assert list(rows(2)) == [3, 4]
    assert list(rows(2)) == [1, 2]


@pytest.mark.parametrize(
    ("line", "function", "text"),
    [
        (3, "other", PATCHED),
        (30, "rows", PATCHED),
        (3, "rows", None),
        (3, "rows", PATCHED + PATCHED),
        (3, "rows", PATCHED.replace("rows", "others")),
    ],
)
def test_a_function_that_is_not_found_is_refused(
    tmp_path: Path, line: int, function: str, text: str | None
) -> None:
    path = tmp_path / "data.py"
    rows = rows_of(path)
    files = {} if text is None else {str(path): text}

    with pytest.raises(NotReplayableError):
        Rewritten([RewriteCall("op", str(path), line, function)], files)
    assert list(rows(1)) == [1]
