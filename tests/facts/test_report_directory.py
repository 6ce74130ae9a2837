"""Where a report goes that was given no `-o`, and how one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.facts.names import as_typed, default_directory


@pytest.mark.parametrize(
    ("script", "module", "expected"),
    [
        ("train.py", False, "reports/train"),
        ("deep/er/train.v2.py", False, "reports/train.v2"),
        ("package.train", True, "reports/package.train"),
        ("application/", False, "reports/application"),
    ],
)
def test_it_goes_by_the_script(script: str, module: bool, expected: str) -> None:
    assert default_directory(script, module=module) == Path(expected)


def test_a_directory_goes_by_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "application").mkdir()
    monkeypatch.chdir(tmp_path / "application")
    assert default_directory(".", module=False) == Path("reports/application")


@pytest.mark.parametrize("script", ["nul\0.py", "loop"])
def test_a_name_that_is_no_path_here_goes_by_its_stem(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session from elsewhere may name anything."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    assert default_directory(script, module=False) == Path("reports") / Path(script).stem


@pytest.mark.parametrize("path", ["reports/train", "/elsewhere/report", "../report"])
def test_a_path_that_is_not_below_here_or_short_already_stays(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_typed(Path(path)) == Path(path)


def test_a_path_below_here_is_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_typed(Path.cwd() / "reports/train") == Path("reports/train")
