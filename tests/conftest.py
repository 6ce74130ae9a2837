"""The order of the tests: what fails fast comes first."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.probe import MakeProbe, Probe


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pure tests first, then those that start TensorFlow, then those that start a browser."""
    items.sort(key=_cost)


def _cost(item: pytest.Item) -> int:
    if item.get_closest_marker("browser"):
        return 2
    if item.get_closest_marker("tensorflow") or item.get_closest_marker("jax"):
        return 1
    return 0


@pytest.fixture
def make_probe(tmp_path: Path) -> MakeProbe:
    """Writes files, a text or a dict of texts by name, and returns the probe that runs them."""
    directory = tmp_path / "work"
    directory.mkdir()

    def make(
        files: str | dict[str, str],
        *arguments: str,
        flags: tuple[str, ...] = (),
        stdin: str = "",
    ) -> Probe:
        texts = {"probe.py": files} if isinstance(files, str) else files
        for name, text in texts.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(dedent(text))
        return Probe(directory, arguments or ("probe.py",), flags, stdin)

    return make
