from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.reader import read
from tests.trace.builder import TraceBuilder


@pytest.mark.parametrize("late", [1, 4_095, 4_096, 40_000])
def test_every_name_has_its_first_event(late: int, tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start in range(late):
        line.event("usual", start, start + 1)
    for start in range(late, late + 2):
        line.event("late", start, start + 1)
    [read_line] = read(builder.save(tmp_path)).host_lines

    found = {read_line.plane.names[key]: index for key, index in read_line.first_events.items()}

    assert found == {"usual": 0, "late": late}
