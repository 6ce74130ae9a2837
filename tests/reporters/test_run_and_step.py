"""The run's ledger and the step in words."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.reporters.words import run
from pipediag.reporters.words.step import (
    SelfCheck,
    free_input,
    self_checks,
)
from pipediag.session.ledger import RunGain
from pipediag.session.loops import Ceiling
from pipediag.session.model import Session
from tests import factories, records
from tests.factories import make_session
from tests.reporters import trial_sessions


def gain(**overrides: object) -> RunGain:
    values = {
        "speedup": 1.5,
        "before_s": 24.6,
        "after_s": 16.4,
        "basis": "measured",
        "scope": "run",
    }
    return RunGain.model_validate({**values, **overrides})


def test_parts_come_in_the_order_of_a_run_with_their_places() -> None:
    parts = run.parts_of(factories.make_run().parts)
    assert [part.name for part in parts] == ["startup", "before_training", "steps", "epoch_end"]
    assert [part.seconds for part in parts] == [2.5, 2.5, 5.0, 10.0]
    assert [part.basis for part in parts] == ["measured", "measured", "projected", "projected"]
    assert [row.what for row in parts[1].rows] == ["in `parse`"]


def test_what_the_percents_are_of() -> None:
    def whole(**overrides: object) -> str:
        return run.whole(factories.make_run(**overrides)).replace("\u00a0", " ")

    assert whole() == "20.0 s, 10 epochs, projected from 8.00 s that were seen"
    assert whole(projected_total_s=None, epochs_planned=None) == "8.00 s"
    over = {"projected_total_s": None, "epochs_planned": 100, "epochs_seen": 12.0}
    assert whole(**over) == "8.00 s, 12 epochs"
    failed = whole(**over, projected_missing="It did not come to its end.")
    assert failed == "8.00 s, 12 epochs begun"
    assert whole(scope="epoch") == "an epoch, 20.0 s"
    assert run.title(factories.make_run(scope="1000_steps")).startswith("1,000 steps")


@pytest.mark.parametrize(
    ("scope", "once_s", "ending"),
    [
        ("run", 0.6, "16.4 s, with 0.60 s more once to trace and compile)"),
        ("run", -2.0, "16.4 s, with 2.00 s less once to trace and compile)"),
        ("epoch", 0.6, "16.4 s, and 0.60 s more once to trace and compile)"),
        ("run", 0.01, "16.4 s)"),
        ("run", None, "16.4 s)"),
    ],
)
def test_what_is_traced_once_more_stands_behind_its_seconds(
    scope: str, once_s: float | None, ending: str
) -> None:
    words = run.gain(gain(scope=scope, once_s=once_s))
    assert words is not None
    assert words.replace("\u00a0", " ").endswith(ending)


def with_ceiling(speedup: float | None) -> Session:
    ceiling = Ceiling(speedup_if_input_free=speedup, next_bottleneck="device_compute")
    return make_session(ceiling=ceiling)


def test_free_input_is_one_upper_bound_with_what_limits_then() -> None:
    assert free_input(with_ceiling(3.33)) == "at most 3.3x; then device compute limits"


def checks(**overrides: Any) -> list[SelfCheck]:
    return self_checks(factories.make_session(**overrides))


def test_three_pairs_with_how_far_they_are_apart() -> None:
    time = factories.make_loop_time(total_s=20.0, unexplained_s=4.0)
    loop, base, ledger = checks(
        loops=[factories.make_loop(time=time)],
        steps=records.make_steps(mean_ms=10.0),
        trials=trial_sessions.make_run(base_step_ms=10.5),
        run=factories.make_run(total_s=8.0, pipediag_s=1.5),
        wall_s=9.4,
    )
    assert (loop.word, loop.off) == ("differ", "+25\xa0%")
    assert (loop.here, loop.there) == (
        "16.0\xa0s by the steps' mean, waits and epochs' ends",
        "20.0\xa0s in the loop",
    )
    assert (base.word, base.off) == ("agree", "+5.0\xa0%")
    assert (base.here[:7], base.there[:7]) == ("10.0\xa0ms", "10.5\xa0ms")
    assert (ledger.word, ledger.off) == ("agree", "-1.1\xa0%")
    assert (ledger.here[:6], ledger.there[:6]) == ("9.50\xa0s", "9.40\xa0s")
    assert all(check.means for check in (loop, base, ledger))


def test_what_can_not_be_compared_has_a_reason_and_no_figure() -> None:
    loop, base, ledger = checks(
        loops=[factories.make_loop(time=None, time_missing="no-time-reason")],
        trials=None,
        trials_missing="no-trials-reason",
        run=None,
        run_missing="no-run-reason",
    )
    assert [check.means for check in (loop, base, ledger)] == [
        "no-time-reason",
        "no-trials-reason",
        "no-run-reason",
    ]
    assert {(c.here, c.off_percent, c.word) for c in (loop, base, ledger)} == {
        ("", None, "not compared")
    }
