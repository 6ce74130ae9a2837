"""Tests within tests: their library gives sessions made up here, on a machine that is quiet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# Tests within tests forget what they import, and NumPy can't be imported twice.
import pipediag.cli.common
import pipediag.gate.evaluation
import pipediag.gate.limits
import pipediag.library.analysis
import pipediag.pytest_plugin.measurements
import pipediag.reporters.html
import pipediag.rules.registry  # noqa: F401
from pipediag.library.result import Result
from pipediag.session.model import Session
from tests.factories import make_session


@dataclass
class Library:
    """In the place of `pipediag.analyze` and `pipediag.analyze_input`."""

    session: Session | BaseException
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def measuring(self, name: str) -> Callable[..., Result]:
        def measure(*arguments: Any, **how: Any) -> Result:
            self.calls.append((name, arguments, how))
            if isinstance(self.session, BaseException):
                raise self.session
            return Result(self.session, None)

        return measure


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    fake = Library(make_session())
    for name in ("analyze", "analyze_input"):
        monkeypatch.setattr(f"pipediag.library.analysis.{name}", fake.measuring(name))
    return fake


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[float | None], None]:
    """Says what other programs use of the CPUs: nothing at first. The lock is this test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def used(percent: float | None) -> None:
        name = "pipediag.pytest_plugin.measurements.others_percent"
        monkeypatch.setattr(name, lambda *_: percent)

    used(0.0)
    return used
