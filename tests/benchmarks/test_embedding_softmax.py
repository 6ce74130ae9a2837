"""What the table of softmaxes says, and that both kinds of step run; nothing is timed here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import tests
from benchmarks.embedding_softmax import Row, line, markdown
from benchmarks.softmax_arms import SOFTMAXES, SoftmaxPlan

ROW = Row(30_000, {"full": [60.0, 80.0], "sampled": [6.0, 8.0]})


def test_a_line_has_the_ratio_with_its_interval() -> None:
    assert line(ROW) == "   30,000     70.00      7.00  10.00x [10.00, 10.00]"
    assert markdown([ROW], "Example CPU").endswith(
        "| 30,000 | 70.00 | 7.00 | 10.00x [10.00, 10.00] |\n"
    )


@pytest.mark.tensorflow
def test_steps_of_both_run() -> None:
    plan = SoftmaxPlan(classes=700, dim=4, drawn=16, rounds=2, block_s=0.0)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.softmax_arms", json.dumps(asdict(plan))],
        cwd=Path(tests.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    _, *blocks = map(json.loads, done.stdout.splitlines())
    assert sorted(block["arm"] for block in blocks) == sorted([*SOFTMAXES, *SOFTMAXES])
