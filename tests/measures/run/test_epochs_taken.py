"""How many epochs a run had that was seen to its end, on spans made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.run.amounts import steps_of
from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.epochs_taken import epochs_taken
from pipediag.measures.run.steady import SteadyStep
from tests.measures.run.runs import (
    FIT_LINE,
    Written,
    fit_loop,
    ledger,
    ns,
    own_loop,
    recording_of,
)


def fits(count: int, epochs: int) -> Written:
    """So many calls of one `fit`, each with so many epochs of 2 s."""
    run, now = Written(), 1.0
    run.span("script", 0.0, 2.0 + count * (3.0 * epochs + 1.0))
    for _ in range(count):
        run.span("fit", now, now + 3.0 * epochs, "fit", FIT_LINE)
        for epoch in range(epochs):
            run.epoch(now + 3.0 * epoch, now + 3.0 * epoch + 0.5, now + 3.0 * epoch + 2.5)
        now += 3.0 * epochs + 1.0
    return run


@pytest.mark.parametrize(
    ("count", "taken", "given", "of_loop", "planned"),
    [
        (1, 12, 100, {}, 100),  # as with EarlyStopping
        (5, 4, 4, {}, 20),
        (5, 4, 4, {"planned_rounds": 5}, 20),
        (2, 3, 4, {"planned_rounds": 5}, 20),  # a loop around it that broke off
    ],
)
def test_a_run_that_is_over_had_the_epochs_that_were_seen(
    count: int, taken: int, given: int, of_loop: dict[str, Any], planned: int
) -> None:
    run = fits(count, taken)
    end_ns = run.timeline.spans[0].end_ns
    assert end_ns is not None
    found = ledger(run, recording_of(fit_loop(epochs=given, **of_loop)), end_ns / 1e9)

    assert (found.epochs_seen, found.epochs_planned) == (count * taken, planned)
    assert found.epochs == count * taken


def test_what_interrupts_steps_ends_no_epoch() -> None:
    """As a callback that predicts every so many batches; an epoch has 200 steps of 10 ms."""
    step = SteadyStep(ns(0.01))
    each_half = [ns(0.5)] * 12
    loop = fit_loop(epochs=10)
    assert epochs_taken(Epochs(each_half, [], {}), loop, step) == 3.0
    assert epochs_taken(Epochs([ns(0.5)] * 2, [], {}), loop, step) == 1.0
    assert epochs_taken(Epochs([ns(2.0)] * 3, [], {}), loop, step) == 3.0
    unknown = fit_loop(epochs=2, steps_per_epoch=None)
    assert epochs_taken(Epochs(each_half, [], {}), unknown, step) == 2.0
    assert epochs_taken(Epochs(each_half, [], {}, trainings=3), unknown, None) == 6.0


@pytest.mark.parametrize("fits", [1, 2])
def test_a_slow_first_epoch_is_no_measure_of_the_others(fits: int) -> None:
    """As of files that are cold on disk: it takes 60 s, with the baseline in it, all others 5 s."""
    step = SteadyStep(ns(0.3))
    stretches = [ns(60.0), *[ns(5.0)] * 19]
    loop = fit_loop(epochs=20 // fits, steps=20 * 200)
    last = stretches[20 - 20 // fits :]
    before_ns = {steps_of(loop): sum(stretches) - sum(last)}
    epochs = Epochs(last, [], {}, before_ns, before_count=20 - len(last), trainings=fits)

    assert epochs_taken(epochs, loop, step) == 20.0


def test_with_steps_interrupted_they_are_counted_where_the_first_epoch_was_slow() -> None:
    """Four stretches an epoch, and EarlyStopping far below the plan."""
    stretches = [*[ns(15.0)] * 4, *[ns(1.25)] * 4 * 11]
    loop = fit_loop(epochs=100, steps=12 * 200)

    assert epochs_taken(Epochs(stretches, [], {}), loop, SteadyStep(ns(0.3))) == 12.0


def test_what_was_counted_long_before_a_kill_interrupts_no_steps() -> None:
    loop = fit_loop(epochs=100, steps=200)

    assert epochs_taken(Epochs([ns(2.0)] * 50, [], {}), loop, SteadyStep(ns(0.01))) == 50.0


def test_a_loop_of_its_own_has_as_many_as_were_seen() -> None:
    assert epochs_taken(Epochs([7] * 5, [], {}), own_loop(), None) == 5.0
    assert epochs_taken(Epochs([], [], {}), own_loop(), None) is None
