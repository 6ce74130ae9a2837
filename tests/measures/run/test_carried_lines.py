"""Lines of the script at an epoch's end, in a run that is carried on; spans made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.measures.loop_time import PAUSES
from pipediag.measures.run.ledger import RunBounds, measure_run
from pipediag.session.ledger import Run
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.timeline import SeenLine, SeenLines, Span, Timeline
from tests.recordings import (
    make_block,
    make_plan,
    make_recorded_loop,
    make_recording,
    make_window,
)
from tests.records import MS, SCRIPT

KEEPS = SeenLine(SCRIPT, 41, "keeps", importing=False, ns=150 * MS)


def ledger(loop: RecordedLoop, *calls: Span, line: SeenLine = KEEPS) -> Run:
    """Two epochs of 200 ms, and 200 ms after the first, 150 of them in one line."""
    spans = [
        Span(1, "script", 0, 600 * MS),
        *calls,
        Span(3, "steps", 0, 200 * MS, "loop1"),
        Span(4, "steps", 400 * MS, 600 * MS, "loop1"),
    ]
    seen = [SeenLines(200 * MS, 400 * MS, (line,))]
    operations = [*make_plan()[:2], replace(make_plan()[2], cardinality=20)]
    window = make_window("baseline", make_block(40))
    recording = make_recording(loops=[loop], windows=[window], operations=operations)
    run = measure_run(Timeline(spans, seen), recording, RunBounds(0, 600 * MS, "stopped"))
    assert isinstance(run, Run)
    return run


def seconds_in_line(run: Run) -> float:
    return sum(part.seconds for part in run.parts if part.line == 41)


def test_a_line_that_a_fit_comes_to_after_each_epoch_is_carried_on_and_not_counted_twice() -> None:
    keras = replace(make_recorded_loop().keras, epochs=10, steps_per_epoch=20)  # type: ignore[type-var]
    loop = make_recorded_loop(keras=keras, planned_steps=200, fill_ns=0)
    run = ledger(loop, Span(2, "fit", 0, 600 * MS, "fit", SCRIPT, 20))
    assert run.seconds_of("epoch_end") == pytest.approx(10 * 0.2)
    assert seconds_in_line(run) == pytest.approx(10 * 0.15)


def test_in_the_one_epoch_of_a_loop_without_a_known_end_the_line_is_named() -> None:
    run = ledger(make_recorded_loop(kind="eager", planned_steps=None, keras=None))
    assert run.scope == "epoch"
    assert run.seconds_of("epoch_end") == pytest.approx(0.2)
    assert seconds_in_line(run) == pytest.approx(0.15)


def test_letting_go_of_an_iterator_that_was_slow_once_is_not_carried_on() -> None:
    keras = replace(make_recorded_loop().keras, epochs=10, steps_per_epoch=20)  # type: ignore[type-var]
    loop = make_recorded_loop(keras=keras, planned_steps=200, fill_ns=0)
    fit = Span(2, "fit", 0, 600 * MS, "fit", SCRIPT, 20)
    lets_go = replace(KEEPS, line=20, function="<module>")
    run = ledger(loop, fit, line=lets_go)
    assert run.seconds_of("epoch_end") == pytest.approx(0.2)
    assert [one for one in run.not_seen if one == PAUSES]
    assert not [one for one in ledger(loop, fit).not_seen if one == PAUSES]
