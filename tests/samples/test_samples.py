"""Each sample is diagnosed as expected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.runs import analyze

from .expectation import Expectation, all_expectations, discrepancies

ALL = "PIPEDIAG_ALL_SAMPLES"
"""Set by `make test-samples`, and by `.ci/run`: all of them take 17 minutes on two cores."""


def mark(expected: Expectation) -> list[pytest.MarkDecorator]:
    jax = [pytest.mark.jax] if "jax" in expected.needs else []
    return [pytest.mark.tensorflow, pytest.mark.verdict, *jax]


PARAMETERS = [
    pytest.param(expected, id=expected.name, marks=mark(expected))
    for expected in all_expectations()
]


@pytest.mark.parametrize("expected", PARAMETERS)
def test_sample_is_diagnosed_as_expected(expected: Expectation, tmp_path: Path) -> None:
    if not (expected.in_every_run or os.environ.get(ALL)):
        pytest.skip("runs in `make test-samples`")
    if missing := expected.missing_modules:
        pytest.skip(f"needs {', '.join(missing)}")
    session = analyze(
        expected.script,
        tmp_path / "report",
        0,
        # Fewer than by default, with which `benchmarks.diagnosis --budget 0` runs the samples.
        options=("--steps", "60"),
        exit_status=expected.exit_status,
        # Running on after the windows only pays where something later is to be seen; a slow machine
        # takes longer than the default for what is left of the training.
        variables={"PIPEDIAG_LOOK_AHEAD_S": "30" if expected.looks_ahead else "0"},
    )
    assert discrepancies(expected, session) == []
