"""Where a report goes that was given no `-o`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.facts.report_directory import default_directory


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
