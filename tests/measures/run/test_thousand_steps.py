"""A loop of which nothing says how long it is, nor its epochs; spans made by hand."""

from __future__ import annotations

import pytest

from pipediag.measures.run.ledger import RunBounds, measure_run
from pipediag.session.ledger import Run
from pipediag.session.recorded_loops import RecordedSeam
from pipediag.session.timeline import Span, Timeline
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, SCRIPT


def test_waits_within_steps_come_as_often_as_they_came() -> None:
    # 20 steps of 10 ms and a wait of 100 ms, twice; the second wait is not the training's first.
    spans = [
        Span(1, "script", 0, 600 * MS),
        Span(2, "fit", 0, 600 * MS, "fit", SCRIPT, 20),
        Span(3, "steps", 0, 300 * MS, "loop1"),
        Span(4, "steps", 300 * MS, 600 * MS, "loop1"),
    ]
    loop = make_recorded_loop(
        keras=None,
        planned_steps=None,
        fill_ns=100 * MS,
        epoch_seams=[RecordedSeam(300 * MS, 300 * MS, None, 110 * MS)],
    )
    recording = make_recording(loops=[loop], windows=[make_window("baseline", make_block(40))])
    run = measure_run(Timeline(spans), recording, RunBounds(0, 600 * MS, "stopped"))
    assert isinstance(run, Run)
    assert run.scope == "1000_steps"
    assert run.seconds_of("steps") == pytest.approx(10.0)
    # One in 40 steps, as it was seen.
    assert run.seconds_of("epoch_start") == pytest.approx(0.1 * 1000 / 40)
    (start,) = [part for part in run.parts if part.part == "epoch_start"]
    # It came once: a tenth of it is in doubt.
    assert start.ci95_percent == pytest.approx((100 * 2.25 / 12.25, 100 * 2.75 / 12.75))
