from __future__ import annotations

from typing import Any

import pytest

from tests.capture.captured import Captured
from tests.capture.conftest import Capturing


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, capturing: Capturing) -> Captured:
    """What was captured of the module's `SCRIPT`."""
    return capturing(request.module.SCRIPT)


@pytest.fixture(scope="module")
def results(run: Captured) -> Any:
    return run.results
