"""Tests within tests: their library gives sessions made up here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# Tests within tests forget what they import, and NumPy can't be imported twice.
import pipediag.cli.common
import pipediag.gate.evaluation
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
def own_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
