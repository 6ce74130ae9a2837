"""Each sample is diagnosed as expected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipediag.session.model import Session

from .expectation import SAMPLES, Expectation, all_expectations, discrepancies

EXPECTATIONS = all_expectations()
LIMIT_S = 240
ALL = "PIPEDIAG_ALL_SAMPLES"
"""Set by `make test-samples`: all of them take ten minutes, and `make test` has twelve."""

# Fewer steps than by default, with which `benchmarks.diagnosis --budget 0` runs the samples.
QUICK = ("--budget", "0", "--steps", "60")


def mark(expected: Expectation) -> list[pytest.MarkDecorator]:
    jax = [pytest.mark.jax] if "jax" in expected.needs else []
    return [pytest.mark.tensorflow, pytest.mark.verdict, *jax]


PARAMETERS = [
    pytest.param(expected, id=expected.name, marks=mark(expected)) for expected in EXPECTATIONS
]


@pytest.mark.parametrize("expected", PARAMETERS)
def test_sample_is_diagnosed_as_expected(expected: Expectation, tmp_path: Path) -> None:
    if not (expected.in_every_run or os.environ.get(ALL)):
        pytest.skip("runs in `make test-samples`")
    if missing := expected.missing_modules:
        pytest.skip(f"needs {', '.join(missing)}")
    output = tmp_path / "report"
    command = [sys.executable, "-m", "pipediag", "analyze", *QUICK]
    # Running on after the windows only pays where something later is to be seen; a slow machine
    # takes longer than the default for what is left of the training.
    environment = {**os.environ, "PIPEDIAG_LOOK_AHEAD_S": "30" if expected.looks_ahead else "0"}
    done = subprocess.run(
        [*command, "--timeout", "120", "-o", str(output), str(expected.script)],
        cwd=SAMPLES.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode in expected.exit_status, done.stderr[-4000:]
    session = Session.model_validate_json((output / "session.json").read_text(encoding="utf-8"))
    assert discrepancies(expected, session) == [], done.stderr[-4000:]
