from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.hosts import framework_of
from tests.trace.builder import TraceBuilder


@pytest.mark.parametrize(
    ("names", "framework"),
    [
        (["EagerExecute", "Iterator::Root"], "tensorflow"),
        (["Iterator::Root", "PjitFunction(train_step)"], "jax"),
        (["ProfilerStep#3", "aten::mm"], "pytorch"),
        ([], "tensorflow"),
    ],
)
def test_the_framework_shows_in_what_the_host_did(
    tmp_path: Path, names: list[str], framework: str
) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start, name in enumerate(names):
        line.event(name, start, start + 1)
    assert framework_of(builder.events(tmp_path)) == framework
