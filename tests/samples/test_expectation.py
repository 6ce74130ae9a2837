"""The samples and their expectations fit together; no script is run here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pipediag.session.model import Session
from tests.factories import make_finding, make_loop, make_session, make_verdict

from .expectation import (
    SAMPLES,
    Expectation,
    all_expectations,
    discrepancies,
    marked_lines,
    read_expectation,
)

EXPECTATIONS = all_expectations()
SCRIPTS = sorted(SAMPLES.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_each_script_has_an_expectation_and_a_row_in_the_index(script: Path) -> None:
    assert script.with_suffix(".expect.toml").is_file()
    index = (SAMPLES / "README.md").read_text(encoding="utf-8")
    assert f"`{script.name}`" in index


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_are_documented_and_know_nothing_of_pipediag(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    imports = {alias.name for node in plain for alias in node.names}
    imports |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(name.split(".")[0] == "pipediag" for name in imports)


@pytest.mark.parametrize("expected", EXPECTATIONS, ids=lambda expected: expected.name)
def test_markers_that_an_expectation_names_are_in_its_script(expected: Expectation) -> None:
    lines = (expected.verdict_line, expected.where_line, expected.loop_line)
    named = {*lines, *expected.rule_lines.values()} - {None}
    assert named <= set(marked_lines(expected.script))


def test_unknown_keys_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "typo.expect.toml"
    path.write_text(
        'shows = "s"\norigin = "o"\nmeasured = "m"\n[verdict]\nbottlenek = ["input"]\n',
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="bottlenek"):
        read_expectation(path)


def test_parts_that_no_run_has_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.expect.toml"
    path.write_text(
        'shows = "s"\norigin = "o"\nmeasured = "m"\n'
        '[verdict]\nbottleneck = ["input"]\nwhere = "epoch_middle"\n',
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="epoch_middle"):
        read_expectation(path)


def test_later_trainings_are_waited_for_where_they_are_to_be_seen() -> None:
    looking = {expected.name for expected in EXPECTATIONS if expected.looks_ahead}
    assert {"two_fits", "model_each_fold"} <= looking
    assert "pure_map" not in looking


def slow_in_its_evaluation(tmp_path: Path, where: str, first: str) -> Expectation:
    """What is expected of a script that evaluates in line 2."""
    script = tmp_path / "train.py"
    script.write_text("fit()  # pipediag: loop\nevaluate()  # pipediag: slow\n", encoding="utf-8")
    path = tmp_path / "train.expect.toml"
    path.write_text(
        'shows = "s"\norigin = "o"\nmeasured = "m"\n'
        f'[verdict]\nbottleneck = ["input"]\nwhere = {where}\nwhere_line = "slow"\n'
        f'[loop]\nkind = ["keras"]\nline = "loop"\n[rules]\nfirst = ["{first}"]\n',
        encoding="utf-8",
    )
    return read_expectation(path)


def evaluating(line: int) -> Session:
    verdict = make_verdict(where="evaluation", where_percent=60.0, where_file="train.py")
    return make_session(
        loops=[make_loop(line=1)],
        verdict=verdict.model_copy(update={"where_line": line}),
        findings=[make_finding("costly-evaluation"), make_finding("script-work")],
    )


def test_the_part_of_the_run_and_the_first_advice_are_compared(tmp_path: Path) -> None:
    right = slow_in_its_evaluation(tmp_path, '["epoch_end", "evaluation"]', "costly-evaluation")
    assert discrepancies(right, evaluating(line=2)) == []
    (place,) = discrepancies(right, evaluating(line=1))
    assert "expected slow" in place
    wrong = slow_in_its_evaluation(tmp_path, '"compile"', "script-work")
    part, first = discrepancies(wrong, evaluating(line=2))
    assert "most of the run is evaluation (60.0 %)" in part
    assert "the first advice is of costly-evaluation" in first


def test_what_trials_must_find_may_not_contradict_itself(tmp_path: Path) -> None:
    path = tmp_path / "train.expect.toml"
    path.write_text(
        'shows = "s"\norigin = "o"\nmeasured = "m"\n[verdict]\nbottleneck = ["input"]\n'
        '[trials]\nconfirmed = ["missing-cache"]\nnone = true\n',
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="wants and forbids"):
        read_expectation(path)
