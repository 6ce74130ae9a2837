from __future__ import annotations

from typing import Any

import pytest

from pipediag.gate.config import GateConfig
from pipediag.gate.confirmed_speedup import confirmed_speedup_checks
from pipediag.gate.result import Check
from pipediag.session.edits import Edit
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.patches import Patch
from pipediag.session.trials import Combined, Trial, TrialRun
from tests.factories import make_finding, make_session

AN_EDIT = Edit("missing-cache:map_0", "a cache", ())

CONFIG = GateConfig(max_confirmed_speedup_left=1.2)


def only(session: Session, config: GateConfig = CONFIG) -> Check:
    (check,) = confirmed_speedup_checks([session], config)
    return check


def confirmed(speedup: float, **overrides: Any) -> Finding:
    trial = Trial(
        state="confirmed",
        reason=None,
        speedup=speedup,
        ci95=(speedup - 0.1, speedup + 0.1),
        blocks=8,
    )
    return make_finding("missing-cache", trial=trial, **overrides)


def together(speedup: float, low: float, high: float) -> Session:
    combined = Combined(findings=["cache"], speedup=speedup, ci95=(low, high))
    return make_session(combined=combined, findings=[confirmed(1.9)])


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(1.3, 1.7, "fail"), (1.1, 1.7, "inconclusive"), (1.05, 1.2, "pass")],
)
def test_all_confirmed_edits_together_are_held_against_it(
    low: float, high: float, outcome: str
) -> None:
    check = only(together((low + high) / 2, low, high))
    assert (check.outcome, check.interval, check.limit) == (outcome, (low, high), 1.2)


def test_it_says_what_to_change_and_where() -> None:
    check = only(together(1.5, 1.3, 1.7))

    assert (check.file, check.line) == ("train.py", 12)
    assert check.sentence == (
        "Confirmed speed-up left by missing-cache: 1.50x (95 % interval 1.30 to 1.70x), over the "
        "limit of 1.2x."
    )


DIFF = "--- a/train.py\n+++ b/train.py\n@@ -1 +1,2 @@\n data = data.map(f)\n+data = data.cache()\n"


def test_it_fails_with_the_change_that_makes_up_for_it() -> None:
    session = together(1.5, 1.3, 1.7).model_copy(update={"patch": Patch(diff=DIFF)})
    assert only(session).diff == DIFF


def test_a_later_run_may_have_the_change() -> None:
    first = together(1.5, 1.3, 1.7)
    later = first.model_copy(update={"patch": Patch(diff=DIFF)})
    (check,) = confirmed_speedup_checks([first, later, later], CONFIG)
    assert (check.outcome, check.diff) == ("fail", DIFF)


def test_what_is_within_its_limit_wants_no_change() -> None:
    session = together(1.1, 1.05, 1.15).model_copy(update={"patch": Patch(diff=DIFF)})
    assert only(session).diff is None


def test_alone_the_largest_counts() -> None:
    check = only(make_session(findings=[confirmed(1.4), confirmed(2.0)]))
    assert (check.value, check.outcome) == (2.0, "fail")


def test_what_is_about_results_is_not_about_speed() -> None:
    check = only(make_session(findings=[confirmed(2.0, subject="correctness")], trials=a_run()))
    assert check.outcome == "pass"


def a_run() -> TrialRun:
    return TrialRun(loop_id="loop_0", consumer="training", budget_s=60.0, used_s=20.0)


def test_where_trials_confirmed_nothing_nothing_is_left() -> None:
    check = only(make_session(trials=a_run(), findings=[make_finding(edit=AN_EDIT)]))
    assert (check.value, check.outcome) == (1.0, "pass")


def test_where_there_was_something_to_try_and_no_trial_nothing_is_known() -> None:
    check = only(make_session(trials_missing="No budget.", findings=[make_finding(edit=AN_EDIT)]))
    assert check.outcome == "inconclusive"
    assert check.sentence == "Confirmed speed-up left was not measured: No budget."


def test_where_there_was_nothing_to_try_nothing_is_left() -> None:
    assert only(make_session(findings=[])).outcome == "pass"


def test_without_the_limit_nothing_is_asked() -> None:
    assert confirmed_speedup_checks([make_session()], GateConfig()) == []
