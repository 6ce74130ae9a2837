from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.capture.watching import loop_choice as module
from tests.capture.watching.clocks import FakeDiagnosis, Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(module, "Diagnosis", FakeDiagnosis)
    return Stage(tmp_path)
