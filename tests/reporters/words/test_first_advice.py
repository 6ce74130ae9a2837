"""What to change first, what that buys and why to believe it."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.reporters.words.first_advice import first_advice
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.session.trials import Trial, TrialBlock
from pipediag.vocabulary import BASE
from tests import factories
from tests.reporters import trial_sessions

GAIN = RunGain(
    speedup=1.5, ci95=(1.4, 1.6), before_s=30.0, after_s=20.0, basis="measured", scope="run"
)


def session(finding: Finding, **overrides: Any) -> Session:
    return factories.make_session(findings=[finding], **overrides)


def parts(made: Session) -> tuple[list[tuple[str, str, bool]], str]:
    found = first_advice(made)
    assert found is not None
    gains = [(g.of_what, g.text.replace("\xa0", " "), g.measured) for g in found.gains]
    return gains, found.proof.replace("\xa0", " ")


def block(arm: str, number: int, rate: float, first_step_ms: float | None = None) -> TrialBlock:
    return TrialBlock(
        arm=arm,
        round=number,
        examples_per_s=rate,
        batches=1,
        duration_ms=1.0,
        first_step_ms=first_step_ms,
    )


def tried(trial: Trial, *blocks: TrialBlock) -> Session:
    finding = factories.make_finding(edit=trial_sessions.PARALLEL, trial=trial, for_run=GAIN)
    return session(finding, trials=trial_sessions.make_run(blocks=list(blocks)))


def test_what_a_trial_measured_for_the_step_and_the_run() -> None:
    edit = trial_sessions.PARALLEL.id
    blocks = [block(BASE, 0, 100.0), block(edit, 0, 200.0)]
    blocks += [block(BASE, 1, 400.0), block(edit, 1, 800.0), block(BASE, 2, 9000.0)]

    gains, proof = parts(tried(trial_sessions.CONFIRMED, *blocks))

    assert gains == [
        ("a step", "1.94x [1.88, 2.01]", True),
        ("the run", "1.50x [1.40, 1.60] (30.0 s to 20.0 s)", True),
    ]
    # The ratio of geometric means is the speed-up, and a round without the edit is none.
    assert proof == (
        "Base and change alternated in the running training loop, 8 pairs of blocks: 200 against "
        "400 examples per second."
    )


def test_of_an_epoch_the_wait_is_told_which_makes_the_ratio() -> None:
    edit = trial_sessions.PARALLEL.id
    epochs = trial_sessions.CONFIRMED.model_copy(update={"basis": "epoch"})
    blocks = [block(BASE, 0, 100.0, 500.0), block(edit, 0, 110.0, 20.0)]

    gains, proof = parts(tried(epochs, *blocks))

    assert gains[0][0] == "an epoch"
    assert "500 ms against 20.0 ms until an epoch's first step is done, then 100 against" in proof
    _, untold = parts(tried(epochs, block(BASE, 0, 100.0), block(edit, 0, 110.0)))
    assert untold.endswith("8 pairs of blocks.")


def test_without_rates_the_proof_has_none() -> None:
    _, proof = parts(tried(trial_sessions.CONFIRMED))
    assert proof.endswith("in the running training loop, 8 pairs of blocks.")


def test_an_estimate_is_none_of_the_loop() -> None:
    made = trial_sessions.pipeline_only()
    gains, proof = parts(made)
    assert gains == [("a step", "4.16x", False)]
    assert "with the pipeline alone, without training" in proof


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({"speedup_at_most": 2.4}, "2.40x at most"),
    ],
)
def test_what_was_not_tried_is_predicted_and_says_why(known: dict[str, Any], text: str) -> None:
    finding = factories.make_finding(trial=trial_sessions.UNTRIED, **known)
    gains, proof = parts(session(finding))
    assert gains == [("a step", text, False)]
    assert proof == (
        "Not proven yet: no trial was made of it. The map calls a random function, which can't be "
        "replayed."
    )


def test_of_another_part_of_the_run_only_the_run_is_told() -> None:
    gain = GAIN.model_copy(update={"basis": "at most", "ci95": None, "scope": "epoch"})
    finding = factories.make_finding(part="epoch_end", for_run=gain)
    gains, _ = parts(session(finding))
    assert gains == [("an epoch", "1.50x at most (30.0 s to 20.0 s)", False)]


def test_right_results_have_no_gain() -> None:
    wrong = factories.make_finding(
        subject="correctness", trial=trial_sessions.REFUTED, for_run=GAIN
    )
    gains, _ = parts(session(wrong))
    assert gains == []


@pytest.mark.parametrize("trial", [trial_sessions.REFUTED, trial_sessions.UNDECIDED])
def test_what_its_trial_left_open_or_refuted_is_not_advised(trial: Trial) -> None:
    assert first_advice(session(factories.make_finding(trial=trial))) is None
