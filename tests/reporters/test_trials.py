"""The outcome of trials in words, and the number that heads a report."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from pipediag.reporters.words import trials
from pipediag.session.findings import LeftOut, Patch
from pipediag.session.ledger import RunGain
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


@pytest.mark.parametrize(
    ("step", "alone", "bounds", "part"),
    [
        (4.16, 14.0, (11.2, 18.9), "11 to 19 times as fast, and the rest of the training step"),
        (1.0, 4.0, (3.9, 4.1), "3.90 to 4.10 times as fast; the rest of the training step"),
        (2.0, 2.0, (1.9, 2.1), "training was not run for this, and may gain less."),
        (0.39, 0.0037, (0.0034, 0.004), "250 to 294 times as long; training was not run"),
    ],
)
def test_an_estimate_says_what_it_is_made_of(
    step: float, alone: float, bounds: Interval, part: str
) -> None:
    finding = trial_sessions.pipeline_only().findings[0]
    figures = {"speedup": step, "ci95": (step, step)}
    figures |= {"pipeline_speedup": alone, "pipeline_ci95": bounds}
    trial = finding.trial.model_copy(update=figures)
    known = trials.outcome(finding.model_copy(update={"trial": trial}))
    assert known is not None
    assert known.numbers == f"estimated {step:.2f}x"
    assert part in (known.says or "")


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


def plain(text: object) -> str:
    return str(text).replace("\xa0", " ")


def test_the_combination_with_its_interval_and_its_changes() -> None:
    assert plain(trials.headline(trial_sessions.everything_tried())) == (
        "Measured: 3.10x [2.90, 3.30] with 2 changes: 16 parallel calls on the map in line 12; "
        "batch(128) in line 13 (changes a hyper-parameter, so retune)"
    )


def test_a_change_that_the_patch_goes_without_is_named() -> None:
    left = LeftOut(edit=trial_sessions.BATCH.id, reason="The run does not gain.")
    patch = Patch(edits=[trial_sessions.PARALLEL.id], diff="", left_out=[left])
    line = trials.headline(trial_sessions.everything_tried().model_copy(update={"patch": patch}))
    assert line is not None
    assert line.changes == (
        "16 parallel calls on the map in line 12",
        "batch(128) in line 13 (changes a hyper-parameter, so retune), not in the patch",
    )


def test_the_only_confirmed_change_needs_no_combination() -> None:
    assert plain(trials.headline(trial_sessions.lost_child())) == (
        "Measured: 1.94x [1.88, 2.01] with 1 change: 16 parallel calls on the map in line 12"
    )


def test_a_gain_of_steps_that_are_little_of_the_loop_is_not_called_the_loops() -> None:
    loop = factories.make_loop(time=factories.make_loop_time())
    session = trial_sessions.lost_child().model_copy(update={"loops": [loop]})
    assert plain(trials.headline(session)).startswith(
        "Measured: 1.94x [1.88, 2.01] in the steps, which are 15 % of the loop, with 1 change"
    )


def test_a_gain_in_steps_of_an_evaluation_is_not_called_the_trainings() -> None:
    edit = replace(trial_sessions.PARALLEL, loop_id="loop-2")
    tried = trial_sessions.lost_child()
    findings = [
        one.model_copy(update={"edit": edit})
        if one.edit is not None and one.edit.id == edit.id
        else one
        for one in tried.findings
    ]
    assert "in the steps of the evaluation, with 1 change" in plain(
        trials.headline(tried.model_copy(update={"findings": findings}))
    )


def test_what_comes_from_the_pipeline_alone_is_an_estimate() -> None:
    assert plain(trials.headline(trial_sessions.pipeline_only())) == (
        "Estimated: 4.16x from the pipeline alone, without training, with 1 change: 16 parallel "
        "calls on the map in line 12"
    )


def test_what_right_results_cost_is_no_refutation() -> None:
    wrong = factories.make_finding(
        edit=trial_sessions.CACHE, trial=trial_sessions.REFUTED, subject="correctness"
    )
    assert str(trials.headline(factories.make_session(findings=[wrong]))) == (
        "1 change tried: 1 measured for its price."
    )


@pytest.mark.parametrize(("steps_percent", "leads"), [(69.0, True), (70.0, False)])
def test_where_steps_are_little_of_the_run_its_gain_is_the_number(
    steps_percent: float, leads: bool
) -> None:
    gain = RunGain(
        speedup=1.14, ci95=(1.1, 1.2), before_s=20.0, after_s=17.5, basis="measured", scope="run"
    )
    session = trial_sessions.everything_tried()
    assert session.combined is not None
    combined = session.combined.model_copy(update={"for_run": gain})
    run = factories.make_run(parts=[factories.make_part("steps", steps_percent / 5.0)])
    line = trials.headline(session.model_copy(update={"combined": combined, "run": run}))
    assert line is not None
    assert (line.number == "1.14x") is leads
    assert "1.14x [1.10, 1.20] for the run (20.0 s to 17.5 s)" in plain(line)
