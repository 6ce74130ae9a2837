"""Quick samples in each environment that is asked for: verdict, loop, rules, and trials made."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from pipediag.session.model import Session
from tests.samples.expectation import SAMPLES, Expectation, discrepancies, read_expectation

from . import environments
from .conftest import ASKED
from .environments import Environment, NotMadeError, chosen, interpreter

LIMIT_S = 300
TRIALS_S = "20"
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


@pytest.mark.timeout(LIMIT_S + environments.LIMIT_S)
@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_sample(environment: Environment, sample: str, tmp_path: Path) -> None:
    if sample in environment.loses:
        pytest.skip("a part of it is lost there: docs/faq.md says which")
    expected = read_expectation(SAMPLES / f"{sample}.expect.toml")
    if not environment.times_its_pipelines:
        bottleneck = (*expected.verdict.bottleneck, "inconclusive")
        expected = replace(expected, verdict=replace(expected.verdict, bottleneck=bottleneck))
    session, said = analysed(environment, expected, tmp_path / "report")
    assert [*discrepancies(expected, session), *untried(expected, session)] == [], said


def analysed(environment: Environment, expected: Expectation, output: Path) -> tuple[Session, str]:
    budget = TRIALS_S if expected.trials.confirmed else "0"
    options = ["--budget", budget, "--steps", "60", "--timeout", "200"]
    python = str(interpreter(environment))
    done = subprocess.run(
        [python, "-m", "pipediag", "analyze", *options, "-o", str(output), str(expected.script)],
        cwd=SAMPLES.parent,
        env={**os.environ, "PIPEDIAG_LOOK_AHEAD_S": "0"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    said = done.stderr[-4000:]
    assert done.returncode in expected.exit_status, said
    stored = (output / "session.json").read_text(encoding="utf-8")
    return Session.model_validate_json(stored), said


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
