"""What makes steps faster, in all of the run: figures small enough to check."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pipediag.facts import run_gain as facts
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.session.trials import Combined, Trial
from tests import factories


def session(**overrides: Any) -> Session:
    return factories.make_session(**{"run": factories.make_run(), **overrides})


def finding(**overrides: Any) -> Finding:
    values = {"status": "fail", "speedup_at_most": None}
    return factories.make_finding(**{**values, **overrides})


def test_what_makes_the_steps_faster_leaves_the_rest_as_it_is() -> None:
    trial = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(1.0, 5.0))

    parts = [
        factories.make_part("startup", 15.0, ci95=(75.0, 75.0)),
        factories.make_part("steps", 5.0, loop_id="loop_0", ci95=(25.0, 25.0)),
    ]

    gain = facts.gain_for_run(session(run=factories.make_run(parts=parts)), finding(trial=trial))

    assert gain is not None
    assert (gain.before_s, gain.after_s, gain.basis) == (20.0, 17.5, "measured")
    assert gain.speedup == pytest.approx(20.0 / 17.5)
    assert gain.ci95 == pytest.approx((1.0, 20.0 / 16.0))


def test_how_long_the_part_is_may_be_off_as_well_as_its_trial() -> None:
    trial = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(1.6, 2.5))
    parts = [
        factories.make_part("startup", 10.0, ci95=(50.0, 50.0)),
        factories.make_part("steps", 10.0, loop_id="loop_0", ci95=(40.0, 60.0)),
    ]

    gain = facts.gain_for_run(session(run=factories.make_run(parts=parts)), finding(trial=trial))

    assert gain is not None
    below = math.hypot(20 / 15 - 20 / 16.25, 20 / 15 - 18 / 14)
    above = math.hypot(20 / 14 - 20 / 15, 22 / 16 - 20 / 15)
    assert gain.ci95 == pytest.approx((20 / 15 - below, 20 / 15 + above))


def test_a_bound_is_called_that() -> None:
    limit = facts.gain_for_run(session(), finding(speedup_at_most=5.0))

    assert limit is not None
    assert (limit.after_s, limit.basis) == (16.0, "at most")


def test_nothing_known_gives_no_gain() -> None:
    known = finding(speedup_at_most=2.0)

    assert facts.gain_for_run(session(), finding()) is None
    assert facts.gain_for_run(session(run=None), known) is None
    assert facts.gain_for_run(session(), known.model_copy(update={"subject": "quality"})) is None


def test_steps_of_another_loop_get_no_faster() -> None:
    parts = [
        factories.make_part("steps", 5.0, loop_id="loop_0", line=20),
        factories.make_part("steps", 15.0, loop_id="loop_1", line=30),
    ]

    gain = facts.gain_for_run(
        session(run=factories.make_run(parts=parts)), finding(speedup_at_most=5.0)
    )

    assert gain is not None
    assert gain.after_s == 16.0


def test_all_changes_together_are_the_runs_gain_too() -> None:
    combined = Combined(findings=["a"], speedup=5.0, ci95=None)

    gain = facts.gain_of_all(session(), combined)

    assert gain is not None
    assert gain.after_s == 16.0
    assert facts.gain_of_all(session(run=None), combined) is None
    assert facts.gain_of_all(session(), combined.model_copy(update={"speedup": None})) is None


def test_half_a_second_of_steps_can_get_faster_and_none_can_not() -> None:
    def gain(steps_s: float, **overrides: Any) -> RunGain | None:
        steps = [factories.make_part("steps", steps_s, loop_id="loop_0")] if steps_s else []
        rest = factories.make_part("evaluation", 20.0 - steps_s)
        run = factories.make_run(parts=[*steps, rest])
        return facts.gain_for_run(session(run=run), finding(**overrides))

    tried = Trial(state="confirmed", reason=None, speedup=2.0)
    for known in ({"trial": tried}, {"speedup_at_most": 2.0}, {"speedup_at_most": 2.0}):
        half = gain(0.5, **known)
        assert half is not None
        assert half.after_s == 19.75
        assert gain(0.0, **known) is None


def test_a_run_of_nothing_but_steps_gets_as_much_faster_as_they_do() -> None:
    run = factories.make_run(parts=[factories.make_part("steps", 20.0, loop_id="loop_0")])
    tried = Trial(state="confirmed", reason=None, speedup=2.0)

    for known in ({"trial": tried}, {"speedup_at_most": 2.0}):
        gain = facts.gain_for_run(session(run=run), finding(**known))
        assert gain is not None
        assert gain.speedup == 2.0


def test_changes_of_steps_that_the_ledger_does_not_hold_gain_nothing() -> None:
    run = factories.make_run(parts=[factories.make_part("evaluation", 20.0)])
    combined = Combined(findings=["a"], speedup=5.0, ci95=None)

    assert facts.gain_of_all(session(run=run), combined) is None
