"""How many epochs a run had that was seen to its end, on spans made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.run.amounts import SteadyStep, steps_of
from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.ledger import epochs_taken
from tests.measures.run.runs import (
    FIT_LINE,
    Written,
    fit_loop,
    ledger,
    ns,
    own_loop,
    recording_of,
)


def fits(*taken: int) -> Written:
    """Calls of one `fit`, each with so many epochs of 2 s."""
    run, now = Written(), 1.0
    run.span("script", 0.0, 1.0 + sum(3.0 * epochs + 1.0 for epochs in taken))
    for epochs in taken:
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
    run = fits(*[taken] * count)
    end_ns = run.timeline.spans[0].end_ns
    assert end_ns is not None
    found = ledger(run, recording_of(fit_loop(epochs=given, **of_loop)), end_ns / 1e9)

    assert (found.epochs_seen, found.epochs_planned) == (count * taken, planned)
    assert found.epochs == count * taken


@pytest.mark.parametrize("steps_per_epoch", [200, None])
def test_calls_that_were_given_more_than_the_first_had_all_of_them(
    steps_per_epoch: int | None,
) -> None:
    """As of `for rate, count in [(1e-3, 5), (1e-4, 9)]: model.fit(..., epochs=count)`."""
    loop = fit_loop(epochs=5, steps_per_epoch=steps_per_epoch, planned_rounds=2)
    found = ledger(fits(5, 9), recording_of(loop), 45.0)

    assert (found.epochs_seen, found.epochs_planned) == (14.0, 14)


def test_what_interrupts_steps_ends_no_epoch() -> None:
    """As a callback that predicts every so many batches; an epoch has 200 steps of 10 ms."""
    step = SteadyStep(ns(0.01))
    each_half = [ns(0.5)] * 12
    loop = fit_loop(epochs=10)
    assert epochs_taken(Epochs(each_half, [], {}), loop, step) == 3.0
    assert epochs_taken(Epochs([ns(0.5)] * 2, [], {}), loop, step) == 1.0
    assert epochs_taken(Epochs([ns(2.0)] * 3, [], {}), loop, step) == 3.0
    unknown = fit_loop(epochs=2, steps_per_epoch=None)
    assert epochs_taken(Epochs(each_half, [], {}, first_count=12), unknown, step) == 2.0
    thrice = Epochs(each_half, [], {}, trainings=3, first_count=4)
    assert epochs_taken(thrice, unknown, None) == 6.0


@pytest.mark.parametrize("calls", [1, 2])
def test_a_slow_first_epoch_is_no_measure_of_the_others(calls: int) -> None:
    """As of files that are cold on disk: it takes 60 s, with the baseline in it, all others 5 s."""
    step = SteadyStep(ns(0.3))
    stretches = [ns(60.0), *[ns(5.0)] * 19]
    loop = fit_loop(epochs=20 // calls, steps=20 * 200)
    last = stretches[20 - 20 // calls :]
    before_ns = {steps_of(loop): sum(stretches) - sum(last)}
    epochs = Epochs(last, [], {}, before_ns, before_count=20 - len(last), trainings=calls)

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
