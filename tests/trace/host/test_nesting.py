from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from pipediag.trace.host.nesting import TOP, nested_events
from tests.trace.builder import TraceBuilder


def test_each_event_knows_what_is_around_it_and_what_time_is_its_own(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    line.event("a", 0, 100).event("b", 10, 50).event("c", 20, 30).event("noise", 40, 45)
    line.event("b", 50, 60).event("a", 100, 110).event("c", 100, 105)
    read_line = builder.events(tmp_path).host_lines[0]
    chosen = [key for key, name in read_line.used_names.items() if name != "noise"]
    nesting = nested_events(read_line, chosen)
    assert [read_line.event_name(index) for index in nesting.indices] == list("abcbac")
    assert nesting.parents.tolist() == [TOP, 0, 1, 0, TOP, 4]
    owners, spans = nesting.alone()
    pieces = {place: sorted(spans[owners == place].tolist()) for place in range(6)}
    assert pieces == {
        0: [[0, 10], [60, 100]],
        1: [[10, 20], [30, 50]],
        2: [[20, 30]],
        3: [[50, 60]],
        4: [[105, 110]],
        5: [[100, 105]],
    }


def test_nothing_chosen(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("a", 0, 1)
    nesting = nested_events(builder.events(tmp_path).host_lines[0], [])
    owners, spans = nesting.alone()
    assert (len(nesting.indices), len(owners), len(spans)) == (0, 0, 0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12))
def test_around_an_event_is_the_last_one_before_it_that_has_not_ended(
    events: list[tuple[int, int]],
) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start, length in events:
        line.event("a", start, start + length)
    with TemporaryDirectory() as directory:
        read_line = builder.events(Path(directory)).host_lines[0]
        nesting = nested_events(read_line, read_line.used_names)
        for place, (start, _) in enumerate(nesting.spans.tolist()):
            open_ones = [at for at in range(place) if nesting.spans[at, 1] > start]
            assert nesting.parents[place] == max(open_ones, default=TOP)
