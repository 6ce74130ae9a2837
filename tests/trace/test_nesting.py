from __future__ import annotations

from pathlib import Path

from pipediag.trace.nesting import nested_events
from tests.trace.builder import TraceBuilder


def test_each_event_knows_what_is_around_it_and_what_time_is_its_own(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    line.event("a", 0, 100).event("b", 10, 50).event("c", 20, 30).event("noise", 40, 45)
    line.event("b", 50, 60).event("a", 100, 110).event("c", 100, 105)
    read_line = builder.events(tmp_path).host_lines[0]
    chosen = [key for key, name in read_line.used_names.items() if name != "noise"]
    named = [
        (
            read_line.event_name(event.index),
            None if event.parent is None else read_line.event_name(event.parent.index),
            event.alone,
        )
        for event in nested_events(read_line, chosen)
    ]
    assert named == [
        ("a", None, [(0, 10), (60, 100)]),
        ("b", "a", [(10, 20), (30, 50)]),
        ("c", "b", [(20, 30)]),
        ("b", "a", [(50, 60)]),
        ("a", None, [(105, 110)]),
        ("c", "a", [(100, 105)]),
    ]


def test_nothing_chosen(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("a", 0, 1)
    assert nested_events(builder.events(tmp_path).host_lines[0], []) == []
