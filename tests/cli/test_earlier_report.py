from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.cli.earlier_report import say_since
from pipediag.session.store import save_session
from tests.comparison.sides import run_of


def test_after_an_edit_before_and_after_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier, now = tmp_path / "train.1", tmp_path / "train"
    earlier.mkdir()
    save_session(run_of(20.0), earlier)

    say_since(earlier, run_of(10.0), now)

    first, *between, last = capsys.readouterr().err.splitlines()
    assert first == f"pipediag: the earlier report is kept in {earlier}. Since then:"
    assert "  Step: 20 to 10 ms, -50.0 %" in between
    assert f"pipediag compare {earlier} {now} (--format html" in last


@pytest.mark.parametrize("content", [None, "{"])
def test_what_can_not_be_read_is_only_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    if content is not None:
        (tmp_path / "session.json").write_text(content)
    say_since(tmp_path, run_of(10.0), tmp_path / "now")
    assert capsys.readouterr().err == f"pipediag: the earlier report is kept in {tmp_path}\n"
