"""The outcome of trials in words."""

from __future__ import annotations

from typing import get_args

import pytest

from pipediag.reporters.words import trials
from pipediag.session.record import Interval
from pipediag.session.trials import Trial
from pipediag.vocabulary import EffectOnResults, TrialState
from tests import factories
from tests.reporters import trial_sessions


def test_what_was_not_tried_in_the_order_of_the_session() -> None:
    session = factories.make_session(
        findings=[
            factories.make_finding("small", speedup_at_most=1.1),
            factories.make_finding("none", speedup_at_most=None),
            factories.make_finding("large", speedup_at_most=3.0),
            factories.make_finding("tried", trial=trial_sessions.REFUTED),
            factories.make_finding("fine", status="pass"),
        ]
    )
    assert [finding.rule for finding in trials.not_tried(session)] == ["small", "large"]


def test_a_change_is_called_by_its_label_and_one_without_a_finding_by_its_id() -> None:
    session = trial_sessions.everything_tried()
    assert trials.change(session, trial_sessions.BATCH.id) == "batch(128) in line 13"
    assert trials.change(session, "gone:map_9") == "gone:map_9"
    assert trials.change(session, trial_sessions.PARALLEL.id, with_effect=True) == (
        "16 parallel calls on the map in line 12"
    )


@pytest.mark.parametrize(
    ("speedup", "bounds", "numbers"),
    [
        (0.88, (0.85, 0.91), "costs 12 % speed, measured 0.88x [0.85, 0.91]"),
        (1.0, (0.98, 1.02), "costs no speed that could be measured, measured 1.00x [0.98, 1.02]"),
        (1.2, (1.1, 1.3), "costs nothing, and is faster, measured 1.20x [1.10, 1.30]"),
    ],
)
@pytest.mark.parametrize("state", ["confirmed", "refuted", "inconclusive"])
def test_a_trial_of_what_mends_results_tells_its_price(
    state: TrialState, speedup: float, bounds: Interval, numbers: str
) -> None:
    trial = Trial(state=state, reason="Open.", speedup=speedup, ci95=bounds, blocks=8)
    known = trials.outcome(factories.make_finding(subject="correctness", trial=trial))
    assert known is not None
    assert known.state is None
    assert str(known).replace("\xa0", " ") == f"price: {numbers} over 8 block pairs"


def test_an_estimate_says_what_it_is_made_of() -> None:
    known = trials.outcome(trial_sessions.pipeline_only().findings[0])
    assert known is not None
    assert known.numbers.startswith("estimated 4.2x")
    assert "The pipeline alone ran 14x" in (known.says or "")


@pytest.mark.parametrize("effect", get_args(EffectOnResults))
def test_every_effect_on_results_is_put_in_words(effect: EffectOnResults) -> None:
    finding = factories.make_finding(effect_on_results=effect, edit=trial_sessions.CACHE)
    session = factories.make_session(findings=[finding])
    assert trials.effect(finding)
    named = trials.change(session, trial_sessions.CACHE.id, with_effect=True)
    assert ("(" in named.removeprefix(trial_sessions.CACHE.label)) == (effect != "same results")


@pytest.mark.parametrize(("at_most", "held"), [(1.5, False), (2.5, True), (None, True)])
def test_a_bound_that_did_not_hold_is_said_so(at_most: float | None, held: bool) -> None:
    finding = factories.make_finding(speedup_at_most=at_most, trial=trial_sessions.CONFIRMED)
    assert (trials.missed(finding) is None) == held


def test_outcomes_are_counted_once_for_each_edit() -> None:
    wrong = factories.make_finding(
        edit=trial_sessions.CACHE, trial=trial_sessions.REFUTED, subject="correctness"
    )
    assert trials.counted_outcomes(factories.make_session(findings=[wrong])) == (
        "1 change tried: 1 measured for its price"
    )
    assert trials.counted_outcomes(trial_sessions.everything_tried()).endswith(
        "3 confirmed, 1 refuted, 1 inconclusive"
    )
