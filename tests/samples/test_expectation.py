"""The samples and their expectations fit together; no script is run here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .expectation import SAMPLES, Expectation, all_expectations, marked_lines, read_expectation

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
    named = {expected.verdict_line, expected.loop_line, *expected.rule_lines.values()} - {None}
    assert named <= set(marked_lines(expected.script))


def test_unknown_keys_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "typo.expect.toml"
    path.write_text(
        'shows = "s"\norigin = "o"\nmeasured = "m"\n[verdict]\nbottlenek = ["input"]\n',
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="bottlenek"):
        read_expectation(path)


def test_what_trials_must_find_may_not_contradict_itself(tmp_path: Path) -> None:
    path = tmp_path / "train.expect.toml"
    path.write_text(
        'shows = "s"\norigin = "o"\nmeasured = "m"\n[verdict]\nbottleneck = ["input"]\n'
        '[trials]\nconfirmed = ["missing-cache"]\nnone = true\n',
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="wants and forbids"):
        read_expectation(path)
