"""Work on text in the step's graph, by the types of its operations."""

from __future__ import annotations

from pathlib import Path

from pipediag.trace.host.text_work import TextTimes
from pipediag.trace.summary import summarise_events
from tests.trace.builder import TraceBuilder, add_graph_call, add_steps


def times(path: Path, *operations: tuple[str, str, int, int]) -> TextTimes | None:
    """Of two steps of a microsecond; each operation is a thread, `scope/name:Type`, and a span."""
    builder = TraceBuilder()
    host = builder.host()
    training = host.line("python")
    add_steps(training, 0, 1000, 2000)
    add_graph_call(training, 0, 1000)
    add_graph_call(training, 1000, 2000)
    for thread, name, start, end in operations:
        line = host.line(thread)
        line.event("ExecutorState::Process", start, end, id=7)
        line.event(name, start, end)
    return summarise_events(builder.events(path)).text


def test_operations_on_text_are_told_from_the_rest_by_type(tmp_path: Path) -> None:
    found = times(
        tmp_path,
        ("tf_Compute/1", "f/words/Split:StringSplitV2", 100, 300),
        ("tf_Compute/1", "f/dense/MatMul:MatMul", 300, 600),
        ("tf_Compute/1", "f/words/Find:LookupTableFindV2", 600, 700),
    )
    assert found == TextTimes(300, {"StringSplitV2": 200, "LookupTableFindV2": 100})


def test_what_runs_at_once_counts_once_in_the_total(tmp_path: Path) -> None:
    found = times(
        tmp_path,
        ("tf_Compute/1", "f/Split:StringSplitV2", 100, 300),
        ("tf_Compute/2", "f/Find:LookupTableFindV2", 200, 400),
        ("tf_Compute/2", "g/Find:LookupTableFindV2", 1900, 2500),
    )
    assert found == TextTimes(400, {"StringSplitV2": 200, "LookupTableFindV2": 300})


def test_without_any_the_total_is_nothing(tmp_path: Path) -> None:
    assert times(tmp_path, ("tf_Compute/1", "f/MatMul:MatMul", 100, 300)) == TextTimes(0, {})
