"""The plugin for pytest: a fixture `pipediag`, and a marker for quiet machines.

Every pytest imports this module where pipediag is installed, so it imports nothing but pytest. The
rest is imported by the first test that uses the fixture or the marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pipediag.pytest_plugin.measurements import Measurements

REPORTS = "reports/pytest"
WAIT_S = "600"
"""Own choice: ten measurements, one after the other."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a project can set for all of its tests."""
    parser.addini(
        "pipediag_reports",
        f"where pipediag writes the report of a test that did not pass (default: {REPORTS})",
        default=REPORTS,
    )
    parser.addini(
        "pipediag_wait_s",
        "seconds that a test waits while another process measures, before it is skipped "
        f"(default: {WAIT_S})",
        default=WAIT_S,
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "pipediag_quiet(max_percent=25): skip the test where other programs use more of the CPUs",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need a quiet machine on a busy one."""
    marker = item.get_closest_marker("pipediag_quiet")
    if marker is None:
        return
    from pipediag.pytest_plugin.measurements import reason_to_skip

    reason = reason_to_skip(marker)
    if reason is not None:
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def pipediag(request: pytest.FixtureRequest) -> Measurements:
    """Measure a training, and check it against limits as `pipediag check` does."""
    from pipediag.pytest_plugin.measurements import measurements_of

    return measurements_of(request.node)
