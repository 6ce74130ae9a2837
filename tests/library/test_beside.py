"""The program's half of a measurement, with a companion that does not do its part."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.library import beside
from pipediag.library.beside import Beside
from pipediag.session.settings import RunSettings


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Beside:
    monkeypatch.setattr(beside, "_START", "import time; time.sleep(600)")
    settings = RunSettings("train.py", (), False, str(tmp_path), call="watch")
    return Beside(settings, tmp_path, budget_s=0.0)


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_session_that_does_not_come_is_given_up(
    stuck: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "SESSION_LIMIT_S", 0.2)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    began = time.monotonic()
    with pytest.raises(PipediagError, match="was not done after 0 s, and was ended"):
        stuck.finish()
    assert time.monotonic() - began < 60
    assert not is_there(stuck.process.pid)
    assert len(os.listdir("/proc/self/fd")) < before  # noqa: PTH208


def test_what_is_abandoned_is_gone(stuck: Beside) -> None:
    assert is_there(stuck.process.pid)
    stuck.abandon()
    assert not is_there(stuck.process.pid)
