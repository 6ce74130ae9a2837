"""The benchmark's scripts and their expectations fit together; no script is run here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.diagnosis import SCRIPTS, labelled
from tests.samples.expectation import Expectation, all_expectations, marked_lines

EXPECTATIONS = all_expectations(SCRIPTS)
LONGEST = 40
A_STRANGERS = 'origin = "written without a look at pipediag"'
LONGEST_OF_A_STRANGER = 90


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda script: script.stem)
def test_each_script_is_short_documented_and_has_an_expectation(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    expectation = script.with_suffix(".expect.toml").read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert "import pipediag" not in text
    assert "from pipediag" not in text
    longest = LONGEST_OF_A_STRANGER if A_STRANGERS in expectation else LONGEST
    assert len(text.splitlines()) <= longest


@pytest.mark.parametrize("expected", EXPECTATIONS, ids=lambda expected: expected.name)
def test_markers_that_an_expectation_names_are_in_its_script(expected: Expectation) -> None:
    lines = (expected.verdict_line, expected.where_line, expected.loop_line)
    named = {*lines, *expected.rule_lines.values()} - {None}
    assert named <= set(marked_lines(expected.script))


@pytest.mark.parametrize("expected", EXPECTATIONS, ids=lambda expected: expected.name)
def test_what_trials_must_find_agrees_with_what_rules_must_say(expected: Expectation) -> None:
    trials = expected.trials
    assert not set(trials.confirmed) & {*expected.must_be_silent, *expected.must_not_fail}
    assert trials.none or trials.confirmed or trials.not_confirmed


def test_at_least_twenty_five_labels_say_where_the_run_goes() -> None:
    parts = [expected.where for expected in labelled() if expected.where]
    assert len(parts) >= 25
    assert {"epoch_start", "compile", "evaluation", "epoch_end", "before_training", "steps"} <= {
        part for where in parts for part in where
    }


def test_no_name_is_used_twice_and_there_are_at_least_forty() -> None:
    names = [expected.name for expected in labelled()]
    assert len(names) == len(set(names)) >= 40
