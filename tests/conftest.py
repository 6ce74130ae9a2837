"""The order of the tests: what fails fast comes first."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import settings

from tests.probe import MakeProbe, Probe

# A timing never decides a test: by default an example that takes 200 ms fails.
# The same examples each time: what is green stays green until something is changed.
settings.register_profile("pipediag", deadline=None, derandomize=True, max_examples=40)
# For a look further afield: pytest --hypothesis-profile=search
settings.register_profile("search", deadline=None, max_examples=1_000)
settings.load_profile("pipediag")

MARKS = ("tensorflow", "verdict", "faults", "jax")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what runs in its background so, and children inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without the mark that is asked for: to import them all takes long."""
    mark = (config.option.markexpr.split() or [""])[0]
    if collection_path.suffix != ".py" or mark not in MARKS:
        return None
    return f"mark.{mark}" not in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pure tests first, then those that start TensorFlow, then those that start a browser."""
    items.sort(key=_cost)


def _cost(item: pytest.Item) -> int:
    if item.get_closest_marker("browser"):
        return 2
    if item.get_closest_marker("tensorflow") or item.get_closest_marker("jax"):
        return 1
    return 0


@pytest.fixture(autouse=True)
def _pure_tests_do_without_tensorflow(request: pytest.FixtureRequest) -> Iterator[None]:
    """Its import takes ten seconds and more, and stays with every test that follows."""
    before = "tensorflow" in sys.modules
    yield
    if not any(map(request.node.get_closest_marker, ("tensorflow", "jax", "faults"))):
        assert ("tensorflow" in sys.modules) == before, "mark the test, or give it a stand-in"


@pytest.fixture
def make_probe(tmp_path: Path) -> MakeProbe:
    """Writes files, a text or a dict of texts by name, and returns the probe that runs them."""
    directory = tmp_path / "work"
    directory.mkdir()

    def make(
        files: str | dict[str, str], *arguments: str, flags: tuple[str, ...] = (), stdin: str = ""
    ) -> Probe:
        texts = {"probe.py": files} if isinstance(files, str) else files
        for name, text in texts.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(dedent(text))
        return Probe(directory, arguments or ("probe.py",), flags, stdin)

    return make
