"""What the table of duplicate ids says, and that both kinds of step run; nothing is timed here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import tests
from benchmarks.duplicate_arms import LOOKUPS, DuplicatesPlan, drawn, repeated_percent
from benchmarks.embedding_duplicates import Row, line, markdown

ROW = Row(10_000, 128, "sgd", 92.04, {"all": [6.0, 8.0], "different": [12.0, 16.0]})


def test_a_line_has_the_ratio_with_its_interval() -> None:
    assert line(ROW).split() == "10,000 128 SGD 92 % 7.00 14.00 0.50x [0.50, 0.50]".split()
    assert markdown([ROW], "Example CPU").endswith(
        "| 10,000 | 128 | SGD | 92 % | 7.00 | 14.00 | 0.50x [0.50, 0.50] |\n"
    )


def test_ids_that_repeat_are_counted_within_their_batch() -> None:
    assert repeated_percent(np.array([[1, 1, 2, 3], [1, 1, 1, 1]])) == 50.0


def test_ids_are_rows_of_the_table() -> None:
    ids = drawn(DuplicatesPlan(50, 4, 1.3, "sgd", 2, 0.0))

    assert (ids.min() >= 0, ids.max() < 50) == (True, True)


@pytest.mark.tensorflow
@pytest.mark.parametrize("update", ["sgd", "lazy"])
def test_steps_of_both_run(update: str) -> None:
    plan = DuplicatesPlan(rows=70, dim=4, zipf=1.3, update=update, rounds=2, block_s=0.0)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.duplicate_arms", json.dumps(asdict(plan))],
        cwd=Path(tests.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    _, repeated, *blocks = map(json.loads, done.stdout.splitlines())
    assert 90.0 < repeated < 100.0
    assert sorted(block["arm"] for block in blocks) == sorted([*LOOKUPS, *LOOKUPS])
