"""The plugin for pytest: a fixture `pipediag`.

Every pytest imports this module where pipediag is installed, so it imports nothing but pytest. The
rest is imported by the first test that uses the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pipediag.pytest_plugin.measurements import Measurements


@pytest.fixture
def pipediag(request: pytest.FixtureRequest) -> Measurements:
    """Measure a training, and check it against limits as `pipediag check` does."""
    from pipediag.pytest_plugin.measurements import measurements_of

    return measurements_of(request.node)
