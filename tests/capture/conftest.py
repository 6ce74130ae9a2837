from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.capture.captured import Captured, captured, write_script

Capturing = Callable[..., Captured]


@pytest.fixture(scope="module")
def capturing(tmp_path_factory: pytest.TempPathFactory) -> Capturing:
    """Writes a script, runs it under pipediag once, and returns what was captured."""

    def run(text: str, variables: dict[str, str] | None = None, **settings: Any) -> Captured:
        script = write_script(tmp_path_factory.mktemp("captured"), text)
        return captured(script, variables or {}, **settings)

    return run
