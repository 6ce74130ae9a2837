"""What `import pipediag` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pipediag
from pipediag import _PLACES

LOADED = """
import sys
before = set(sys.modules)
import pipediag
dir(pipediag)
print(*sorted(name for name in set(sys.modules) - before if name != "pipediag"))
"""


def test_the_package_brings_nothing_along() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", _PLACES)
def test_each_name_is_there_and_listed(name: str) -> None:
    assert getattr(pipediag, name).__name__ == name
    assert name in dir(pipediag)


def test_another_name_is_told_as_python_tells_it() -> None:
    with pytest.raises(AttributeError, match="module 'pipediag' has no attribute 'nothing'"):
        pipediag.nothing  # type: ignore[attr-defined]  # noqa: B018
