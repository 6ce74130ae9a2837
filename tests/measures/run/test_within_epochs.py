"""A loop of the script's own that calls `predict` in its steps, on spans made by hand."""

from __future__ import annotations

import pytest

from pipediag.session.recorded_loops import RecordedLoop
from tests.measures.run.runs import Written, fit_loop, ledger, own_loop, recording_of, row, rows
from tests.recordings import make_recorded_operation


def predicting(every: int = 1) -> Written:
    """Two epochs of twenty steps of 100 ms: a wait of 10 ms, then 30 ms; every so many `predict`.

    That takes 50 ms more and interrupts its step 10 ms after its begin.
    """
    run = Written()
    run.span("script", 0.0, 100.0)
    now = 1.0
    for _ in range(2):
        run.span("iterator", now, now + 0.1, "loop1")
        now, begun = now + 0.1, None
        for number in range(20):
            handed = now + 0.01
            if begun is None:
                run.span("first_batch", now, handed, "loop1")
                begun = handed
            now = handed + 0.03
            if number % every == 0:
                run.steps(begun, handed + 0.01)
                begun = None
                run.span("evaluation", handed + 0.01, handed + 0.06, "predict", 33)
                now += 0.05
        if begun is not None:
            run.steps(begun, now)
        now += 0.2
    run.timeline.spans[0] = run.span("script", 0.0, now)
    run.timeline.spans.pop()
    return run


def seconds(run: Written, loop: RecordedLoop) -> dict[tuple[str, str | None], float]:
    end = run.timeline.spans[0].end_ns
    assert end is not None
    return rows(ledger(run, recording_of(loop, windows=[]), end / 1e9))


def test_the_rest_of_a_step_that_predicts_is_no_end_of_an_epoch() -> None:
    assert seconds(predicting(), own_loop(steps=40)) == {
        ("before_training", None): 1.0,
        ("epoch_start", "making the iterator"): 0.2,
        # The first wait of each epoch.
        ("epoch_start", None): 0.02,
        # Forty times 30 ms, and the waits in between; what follows the last `predict` of an epoch
        # is not told from its end.
        ("steps", None): pytest.approx(38 * 0.04 + 2 * 0.01),
        ("evaluation", "`predict`"): 2.0,
        ("epoch_end", None): pytest.approx(0.2 + 0.02),
        ("after_training", None): pytest.approx(0.2 + 0.02),
    }


def test_its_epochs_are_what_its_iterators_are() -> None:
    root = make_recorded_operation("op3", "batch", cardinality=20)
    recording = recording_of(own_loop(steps=40), operations=[root])
    report = ledger(predicting(), recording, 60.0, "stopped")

    assert (report.scope, report.epochs_seen) == ("epoch", 1.0)
    assert row(report, "evaluation", "`predict`").seconds == pytest.approx(1.0)
    assert row(report, "epoch_start").seconds == pytest.approx(0.01)


def test_what_comes_every_ten_steps_is_the_end_of_a_round() -> None:
    found = seconds(predicting(every=10), own_loop(steps=40))

    assert found["epoch_end", None] > 0.2 + 0.04
    assert found["epoch_start", None] > 0.02


def test_keras_tells_of_its_epochs_itself() -> None:
    run = predicting()
    run.span("fit", 0.5, 6.0, "fit", 20)
    found = seconds(run, fit_loop(steps=40))

    assert found["epoch_start", None] == pytest.approx(0.4)
