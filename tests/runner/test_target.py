from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.runner.target import check_script


@pytest.fixture(autouse=True)
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"def f(:\n", "script.py:1: not valid Python"),
        (b"x = 1\n  y = 2\n", "script.py:2: not valid Python: unexpected indent"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "script.py"),
        (b"x = '\xff'\n", "script.py"),
        (b"print 'old'\n", "script.py:1"),
    ],
)
def test_what_is_not_python_is_refused_with_its_line(content: bytes, words: str) -> None:
    Path("script.py").write_bytes(content)

    with pytest.raises(PipediagError) as refusal:
        check_script("script.py")

    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_missing_file() -> None:
    with pytest.raises(PipediagError, match=r"cannot run nothing\.py: No such file"):
        check_script("nothing.py")


def test_directory_without_a_main_module() -> None:
    Path("data").mkdir()

    with pytest.raises(PipediagError, match=r"holds no __main__\.py"):
        check_script("data")


def test_pipe() -> None:
    os.mkfifo("pipe")

    with pytest.raises(PipediagError, match="not a regular file"):
        check_script("pipe")


def test_what_python_can_run_is_accepted() -> None:
    Path("script").write_text("print('no suffix needed')")
    Path("application").mkdir()
    Path("application/__main__.py").write_text("")
    with zipfile.ZipFile("archive.pyz", "w") as archive:
        archive.writestr("__main__.py", "")

    for path in ("script", "application", "archive.pyz"):
        assert check_script(path) is None


def test_a_warning_of_the_compiler_is_left_to_the_script(
    recwarn: pytest.WarningsRecorder,
) -> None:
    Path("script.py").write_text("assert (1, 'always true')\n")

    check_script("script.py")

    assert len(recwarn) == 0
