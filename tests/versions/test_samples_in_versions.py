"""Quick samples in each environment that is asked for: verdict, loop, rules, and trials made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.runs import analyze
from pipediag.session.model import Session
from tests.samples.expectation import SAMPLES, Expectation, discrepancies, read_expectation

from . import environments
from .conftest import ASKED
from .environments import Environment, NotMadeError, chosen, interpreter

TRIALS_S = 20
"""That a trial is made is what counts, not what it finds."""
ENVIRONMENTS = chosen(os.environ[ASKED])
SAMPLE_NAMES = environments.QUICK_SAMPLES if os.environ[ASKED] else environments.BRIEF_SAMPLES


@pytest.fixture(scope="module", params=ENVIRONMENTS, ids=lambda environment: environment.name)
def environment(request: pytest.FixtureRequest) -> Environment:
    try:
        interpreter(request.param)
    except NotMadeError as reason:
        pytest.skip(str(reason))
    return request.param


@pytest.mark.timeout(300 + environments.LIMIT_S)
@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_sample(environment: Environment, sample: str, tmp_path: Path) -> None:
    if sample in environment.loses:
        pytest.skip("a part of it is lost there: docs/faq.md says which")
    expected = read_expectation(SAMPLES / f"{sample}.expect.toml")
    if not environment.times_its_pipelines:
        bottleneck = (*expected.verdict.bottleneck, "inconclusive")
        expected = replace(expected, verdict=replace(expected.verdict, bottleneck=bottleneck))
    session = analyze(
        expected.script,
        tmp_path / "report",
        TRIALS_S if expected.trials.confirmed else 0,
        options=("--steps", "60"),
        exit_status=expected.exit_status,
        python=str(interpreter(environment)),
        variables={"PIPEDIAG_LOOK_AHEAD_S": "0"},
    )
    assert [*discrepancies(expected, session), *untried(expected, session)] == []


def untried(expected: Expectation, session: Session) -> list[str]:
    """Return a sentence where none of the rules that trials are to confirm was tried.

    What an edit gains is the machine's, so that a trial counts whatever it found.
    """
    rules = expected.trials.confirmed
    trials = {one.rule: one.trial for one in session.findings if one.rule in rules}
    if not rules or any(trial.state != "not_tried" for trial in trials.values()):
        return []
    reasons = {rule: trial.reason for rule, trial in trials.items()}
    return [f"none of {rules} was tried: {reasons}"]
