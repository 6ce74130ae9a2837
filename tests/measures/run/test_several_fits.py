"""A training that was stopped in a later call of the same `fit`, on spans made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.measures.run.ledger import RunBounds, measure_run
from pipediag.session.ledger import Run
from pipediag.session.recorded_loops import RecordedSeam
from pipediag.session.timeline import Span, Timeline
from pipediag.vocabulary import SpanKind
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, SCRIPT


def span(id: int, kind: SpanKind, start_ms: int, end_ms: int, name: str = "") -> Span:
    return Span(id, kind, start_ms * MS, end_ms * MS, name, SCRIPT, 20)


def ledger() -> Run:
    """Folds of 2 epochs of 20 steps of 10 ms, each epoch after a wait of 100 ms within a step.

    Two whole folds were seen, and the first epoch of the third.
    """
    spans = [span(1, "script", 0, 2800)]
    seams = []
    for fold in range(3):
        begin = 500 + 1000 * fold
        spans.append(span(10 * fold + 2, "fit", begin, min(begin + 700, 2800), "fit"))
        for epoch in range(2 if fold < 2 else 1):
            start = begin + 350 * epoch
            spans.append(span(10 * fold + 3 + epoch, "steps", start, start + 300, "loop1"))
            seams.append(RecordedSeam((start - 50) * MS, start * MS, None, 110 * MS))
    keras = replace(make_recorded_loop().keras, epochs=2, steps_per_epoch=20)  # type: ignore[type-var]
    loop = make_recorded_loop(
        keras=keras, planned_steps=40, fill_ns=100 * MS, epoch_seams=seams[1:]
    )
    window = make_window("baseline", make_block(40))
    recording = make_recording(loops=[loop], windows=[window])
    bounds = RunBounds(0, 2800 * MS, "stopped")
    run = measure_run(Timeline(spans), recording, bounds)
    assert isinstance(run, Run)
    return run


def test_folds_that_were_over_are_in_the_whole_beside_the_one_that_is_carried_on() -> None:
    run = ledger()
    # Two folds and the whole third: 3 x 40 steps of 10 ms.
    assert run.seconds_of("steps") == pytest.approx(1.2)
    assert run.epochs_planned == 2
    assert run.epochs_seen == pytest.approx(1.0)


def test_so_are_the_waits_and_ends_of_their_epochs() -> None:
    run = ledger()
    assert run.seconds_of("epoch_start") == pytest.approx(6 * 0.1)
    # 50 ms after each epoch of the two folds, and so in the third, of which none was seen.
    assert run.seconds_of("epoch_end") == pytest.approx(6 * 0.05)
