"""What the table of whole models says, and that their steps run; nothing is timed here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import tests
from benchmarks.embedding_models import Row, line, markdown
from benchmarks.model_arms import MODELS, ModelPlan, Tables
from benchmarks.update_arms import ARMS

TABLES = Tables(tables=8, rows=1_176_000, bytes=150_528_000, rows_a_step=3_456.7)
ROW = Row("recommender", "rows", TABLES, {"keras": [60.0, 80.0], "lazy": [6.0, 8.0]})


def test_a_line_has_the_ratio_with_its_interval() -> None:
    assert line(ROW) == "recommender  rows       70.00      7.00  10.00x [10.00, 10.00]"


def test_the_table_says_how_many_rows_a_step_needs() -> None:
    said = markdown([ROW], "Example CPU")

    assert said.startswith("Example CPU\n\n| model | tables |")
    assert "| recommender | 8, 151 MB | 1,176,000, 3,457 | a lookup of rows alone | 70.00" in said


@pytest.mark.tensorflow
@pytest.mark.parametrize("model", list(MODELS))
def test_steps_of_a_small_one_run_with_both_optimizers(model: str) -> None:
    plan = ModelPlan(model, "rows", rounds=2, block_s=0.0, scale=0.05)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.model_arms", json.dumps(asdict(plan))],
        cwd=Path(tests.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    _, told, *blocks = map(json.loads, done.stdout.splitlines())
    assert sorted(block["arm"] for block in blocks) == sorted([*ARMS, *ARMS])
    tables = Tables(**told)
    assert tables.tables == (8 if model == "recommender" else 2)
    assert 0 < tables.rows_a_step < tables.rows
