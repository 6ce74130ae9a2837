"""The order of the tests: what fails fast comes first."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pure tests first, then those that start TensorFlow, then those that start a browser."""
    items.sort(key=_cost)


def _cost(item: pytest.Item) -> int:
    if item.get_closest_marker("browser"):
        return 2
    if item.get_closest_marker("tensorflow") or item.get_closest_marker("jax"):
        return 1
    return 0
