from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.callsites import script_files
from pipediag.capture.pipelines import later_code
from tests.capture.captured import Captured, captured, write_script

Capturing = Callable[..., Captured]


@pytest.fixture(scope="module")
def capturing(tmp_path_factory: pytest.TempPathFactory) -> Capturing:
    """Writes a script, runs it under pipediag once, and returns what was captured."""

    def run(text: str, variables: dict[str, str] | None = None, **settings: Any) -> Captured:
        script = write_script(tmp_path_factory.mktemp("captured"), text)
        return captured(script, variables or {}, **settings)

    return run


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the modules of other tests out of the script's files."""
    own = str(tmp_path)
    monkeypatch.setattr(
        later_code, "script_files", lambda: [one for one in script_files() if own in one]
    )
