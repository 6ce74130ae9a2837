from __future__ import annotations

import pytest

from pipediag.reporters import trials
from pipediag.session.record import Interval
from pipediag.session.trials import Trial
from tests import factories
from tests.reporters import trial_sessions


def test_prediction_and_measurement_stand_side_by_side() -> None:
    known = trials.outcome(factories.make_finding(trial=trial_sessions.CONFIRMED))

    assert str(known).replace("\xa0", " ") == (
        "confirmed: predicted 2.00x, measured 1.94x [1.88, 2.01] over 8 block pairs"
    )


def test_a_prediction_that_nobody_tried_and_nothing_at_all() -> None:
    assert str(trials.outcome(factories.make_finding())) == "not tried: predicted 2.00x"
    assert trials.outcome(factories.make_finding(predicted_speedup=None)) is None


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
            factories.make_finding("small", predicted_speedup=1.1),
            factories.make_finding("none", predicted_speedup=None),
            factories.make_finding("large", predicted_speedup=3.0),
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
