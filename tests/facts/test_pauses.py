"""How long TensorFlow may pause as it frees an iterator, and what that is of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.facts.promise import promised
from pipediag.facts.run import pauses_of_run, sleeps_on_s
from pipediag.facts.run_gain import with_pauses_left_out
from pipediag.session.edits import Edit, SetOptions, SetParameters
from pipediag.session.findings import Patch
from pipediag.session.ledger import PAUSE
from pipediag.session.model import Session
from pipediag.session.trials import Trial, TrialRun
from tests.factories import make_finding, make_keras, make_loop, make_session
from tests.ledgers import make_gain, make_part, make_run
from tests.records import SCRIPT, make_pipeline


def trained(epochs: int | None = 20, **values: Any) -> Session:
    """100 s: 20 epochs of 4 s, and 20 s before them."""
    loop = make_loop(iterators=values.pop("iterators", 2), keras=values.pop("keras", make_keras()))
    seen = values.pop("seen", 2.0)
    run = make_run(
        make_part("startup", 20.0),
        epochs_planned=epochs,
        epochs_seen=seen,
        projected_total_s=values.pop("projected_s", 100.0),
    )
    return make_session(loops=[loop], run=run, pipeline=make_pipeline(**values))


@pytest.mark.parametrize(
    ("life_s", "rest_s"), [(0.0, 0.06), (0.25, 0.11), (2.0, 0.6), (11.0, 9.52), (60.0, 21.96)]
)
def test_the_tuning_thread_sleeps_twice_as_long_each_time(life_s: float, rest_s: float) -> None:
    assert sleeps_on_s(life_s) == pytest.approx(rest_s, abs=0.02)


def test_it_sleeps_a_minute_at_most() -> None:
    assert max(sleeps_on_s(1000.0 + second) for second in range(120)) <= 60.0


def test_each_epoch_with_an_iterator_of_its_own_may_pause() -> None:
    pauses = pauses_of_run(trained())
    assert (pauses.epochs, pauses.life_s, pauses.rest_s) == (20, pytest.approx(4.0), 100.0)
    # It wakes after 5.16 s; an epoch takes 3.8 to 4.2 s.
    assert pauses.longest_s == pytest.approx((0.96, 1.36))


@pytest.mark.parametrize(
    "session",
    [
        trained(epochs=1),
        trained(iterators=1),
        trained(iterators=1, seen=0.4, keras=make_keras(steps_per_epoch=600)),
        trained(iterators=1, seen=0.4, keras=None),
        trained(autotune_enabled=False),
        trained(epochs=100),
        make_session(run=None),
    ],
)
def test_others_do_not(session: Session) -> None:
    assert pauses_of_run(session) is None


def test_of_a_fit_no_end_of_an_epoch_need_be_seen() -> None:
    assert pauses_of_run(trained(iterators=1, seen=0.4)) is not None


@pytest.mark.parametrize("planned", [100, None])
def test_a_run_that_is_over_had_the_epochs_that_it_had(planned: int | None) -> None:
    """As where EarlyStopping ends it after 20 of 100, or in a loop of the script's own."""
    pauses = pauses_of_run(trained(planned, seen=20.0, projected_s=None))
    assert (pauses.epochs, pauses.life_s) == (20, pytest.approx(4.0))


def test_a_pause_that_was_seen_is_no_part_of_the_rest() -> None:
    session = trained()
    loop = session.diagnosed_loop()
    row = make_part("epoch_end", 5.0, what=PAUSE, file=SCRIPT, line=20, loop_id=loop.id)
    run = make_run(make_part("startup", 20.0), row, epochs_planned=20)
    pauses = pauses_of_run(session.but(run=run))
    assert (pauses.life_s, pauses.rest_s) == (pytest.approx(3.75), pytest.approx(95.0))


def freed(count: int, paused: int, speedup: float = 1.0) -> Trial | None:
    steps = Trial(
        state="refuted", reason=None, speedup=speedup, ci95=(0.98 * speedup, 1.02 * speedup)
    )
    run = TrialRun(
        loop_id="loop_0",
        consumer="training",
        budget_s=90.0,
        used_s=30.0,
        iterators_freed=count,
        iterators_paused=paused,
    )
    return with_pauses_left_out(trained(), steps, run)


@pytest.mark.parametrize(
    ("paused", "speedup", "gain"),
    [
        # 20 pauses of 1.16 s beside 100 s.
        (20, 1.0, 1.232),
        (10, 1.0, 1.116),
        (0, 1.0, 1.0),
        # Its steps take 80 s without, and 100 s with the change.
        (20, 0.8, 123.2 / 120.0),
    ],
)
def test_the_run_gains_what_its_iterators_pause(paused: int, speedup: float, gain: float) -> None:
    trial = freed(20, paused, speedup)
    assert (trial.basis, trial.speedup) == ("pauses", pytest.approx(gain, abs=2e-3))
    assert trial.ci95[0] < trial.ci95[1]
    assert freed(5, 5) is None


def test_a_promise_is_as_unsure_as_it_is_how_many_iterators_pause() -> None:
    gain = make_gain(2.0, ci95=(1.9, 2.1))
    trial = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(1.9, 2.1))
    edit = Edit("calls", "", (SetParameters("map_0", {"num_parallel_calls": 4}),))
    found = make_finding(part="steps", edit=edit, trial=trial, for_run=gain)
    given = {"findings": [found], "patch": Patch(edits=["calls"], diff="--- a\n")}

    assert promised(trained(epochs=1).but(**given)).ci95 == (1.9, 2.1)
    no_pauses = replace(edit, changes=(SetOptions({"autotune.enabled": False}),))
    without = {**given, "findings": [found.but(edit=no_pauses)]}
    assert promised(trained().but(**without)).ci95 == (1.9, 2.1)
    # 20 pauses of up to 1.36 s now, and of 0.7 s after epochs of 2 s.
    promise = promised(trained().but(**given))
    assert promise.speedup == 2.0
    assert promise.ci95 == pytest.approx((1.55, 2.55), abs=0.01)


def test_pauses_that_came_need_not_come_with_the_change_or_without() -> None:
    trial = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(2.0, 2.0))
    edit = Edit("calls", "", (SetParameters("map_0", {"num_parallel_calls": 4}),))
    found = make_finding(part="steps", edit=edit, trial=trial, for_run=make_gain(2.0))
    row = make_part("epoch_end", 20.0, what=PAUSE)
    session = make_session(
        run=make_run(row), findings=[found], patch=Patch(edits=["calls"], diff="--- a\n")
    )
    assert promised(session).ci95 == pytest.approx((2.0, 80.0 / 30.0))
