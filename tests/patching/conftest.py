"""The folder of the scripts in these tests holds nothing, whatever the machine has there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.patching import workspace
from tests.patching.scripts import SCRIPT


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    found = workspace._python_files
    own = Path(SCRIPT).parent

    def python_files(folder: Path) -> list[str]:
        return [] if folder == own else found(folder)

    monkeypatch.setattr(workspace, "_python_files", python_files)
