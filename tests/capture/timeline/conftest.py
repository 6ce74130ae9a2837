from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.timeline.stage import TimelineStage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TimelineStage:
    return TimelineStage(tmp_path, monkeypatch)
