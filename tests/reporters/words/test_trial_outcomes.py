from __future__ import annotations

from typing import get_args

import pytest

from pipediag.reporters.words import trial_outcomes as trials
from pipediag.session.record import Interval
from pipediag.session.trials import Trial
from pipediag.vocabulary import EffectOnResults, TrialState
from tests import factories
from tests.reporters import trial_sessions


def test_prediction_and_measurement_stand_side_by_side() -> None:
    known = trials.outcome(factories.make_finding(trial=trial_sessions.CONFIRMED))

    assert str(known).replace("\xa0", " ") == (
        "confirmed: measured 1.94x [1.88, 2.01] over 8 block pairs"
    )


def test_a_gain_on_a_condition_is_given_with_it() -> None:
    finding = factories.make_finding(trial=trial_sessions.CONFIRMED)
    finding = finding.model_copy(update={"condition": "if the data stays the same"})
    assert str(trials.outcome(finding)).endswith("if the data stays the same")


def test_a_prediction_that_nobody_tried_and_nothing_at_all() -> None:
    assert str(trials.outcome(factories.make_finding())) == "not tried: at most 2.00x"
    assert trials.outcome(factories.make_finding(speedup_at_most=None)) is None


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ((0.98, 1.02), "This advice does nothing here."),
        ((0.8, 0.9), "This change makes it slower here."),
        ((1.005, 1.02), "This change buys less than 3% here."),
    ],
)
def test_a_refutation_says_what_the_advice_does_here(bounds: Interval, sentence: str) -> None:
    trial = Trial(state="refuted", reason=None, speedup=sum(bounds) / 2, ci95=bounds, blocks=8)

    known = trials.outcome(factories.make_finding(trial=trial))

    assert known is not None
    assert known.says == sentence


def test_an_undecided_trial_says_what_kept_it() -> None:
    known = trials.outcome(factories.make_finding(trial=trial_sessions.UNDECIDED))

    assert known is not None
    assert known.says == trial_sessions.UNDECIDED.reason


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
    assert trials.change_and_effect(session, trial_sessions.PARALLEL.id) == (
        "16 parallel calls on the map in line 12"
    )


def test_a_caveat_is_said_once_and_only_of_a_measurement() -> None:
    edit, caveat = trial_sessions.CACHE, trial_sessions.CACHE.caveat
    trial = trial_sessions.CACHED.model_copy(update={"caveats": [caveat, "And another."]})

    assert trials.caveats(factories.make_finding(edit=edit, trial=trial)) == (
        "Measured once the cache is filled. And another."
    )
    assert trials.caveats(factories.make_finding(edit=edit)) is None


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


@pytest.mark.parametrize(
    ("step", "alone", "bounds", "sentence"),
    [
        (
            4.16,
            14.0,
            (11.2, 18.9),
            "The pipeline alone became 11 to 19 times as fast, and the rest of the training step "
            "then leaves no more.",
        ),
        (
            1.0,
            4.0,
            (3.9, 4.1),
            "The pipeline alone became 3.90 to 4.10 times as fast; the rest of the training step, "
            "which is longer, leaves nothing of that.",
        ),
        (
            2.0,
            2.0,
            (1.9, 2.1),
            "The pipeline alone became 1.90 to 2.10 times as fast; training was not run for this, "
            "and may gain less.",
        ),
        (
            0.39,
            0.0037,
            (0.0034, 0.004),
            "The pipeline alone took 250 to 294 times as long; training was not run for this.",
        ),
    ],
)
def test_an_estimate_says_what_it_is_made_of(
    step: float, alone: float, bounds: Interval, sentence: str
) -> None:
    finding = trial_sessions.pipeline_only().findings[0]
    trial = finding.trial.model_copy(
        update={
            "speedup": step,
            "ci95": (step, step),
            "pipeline_speedup": alone,
            "pipeline_ci95": bounds,
        }
    )

    known = trials.outcome(finding.model_copy(update={"trial": trial}))

    assert known is not None
    assert known.numbers == f"estimated {step:.2f}x"
    assert known.says == sentence


@pytest.mark.parametrize("effect", get_args(EffectOnResults))
def test_every_effect_on_results_is_put_in_words(effect: EffectOnResults) -> None:
    finding = factories.make_finding(effect_on_results=effect, edit=trial_sessions.CACHE)
    session = factories.make_session(findings=[finding])
    assert trials.effect(finding)
    named = trials.change_and_effect(session, trial_sessions.CACHE.id)
    assert ("(" in named.removeprefix(trial_sessions.CACHE.label)) == (effect != "same results")


@pytest.mark.parametrize(("at_most", "held"), [(1.5, False), (2.5, True), (None, True)])
def test_a_bound_that_did_not_hold_is_said_so(at_most: float | None, held: bool) -> None:
    finding = factories.make_finding(speedup_at_most=at_most, trial=trial_sessions.CONFIRMED)
    assert (trials.missed(finding) is None) == held


def test_an_estimate_refutes_no_prediction_and_no_trial_none() -> None:
    estimated = trial_sessions.pipeline_only().findings[0]
    assert trials.missed(estimated) is None
    assert trials.missed(factories.make_finding()) is None
