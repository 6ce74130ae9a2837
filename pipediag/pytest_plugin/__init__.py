"""The plugin for pytest: a fixture `pipediag`, and a marker for quiet machines.

Every pytest beside an installed pipediag imports this module, so it imports nothing else of it, and
no library. All else is imported by the first test that asks for the fixture or has the marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pipediag.pytest_plugin.measurements import Measurements

REPORTS = "reports/pytest"
WAIT_S = "600"
"""Own choice: ten measurements that take turns on one machine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """What a project can set for all of its tests."""
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
    """Let `--strict-markers` and `pytest --markers` know of the marker."""
    config.addinivalue_line(
        "markers",
        "pipediag_quiet(max_percent=25): skip the test where other programs use more of the CPUs",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is to be measured on a quiet machine alone, before pytest asks what to skip."""
    marker = item.get_closest_marker("pipediag_quiet")
    if marker is None:
        return
    from pipediag.pytest_plugin.quietness import most_percent, why_not_now

    reason = why_not_now(most_percent(marker))
    if reason is not None:
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def pipediag(request: pytest.FixtureRequest) -> Measurements:
    """Measures a training, and holds it against limits as `pipediag check` does."""
    from pipediag.pytest_plugin.measurements import measurements_of

    return measurements_of(request.node)
