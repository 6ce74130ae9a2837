from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.runner.probe import Probe

MakeProbe = Callable[..., Probe]


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
