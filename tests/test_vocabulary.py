"""The lists of words, and the tuples beside them that put them in order."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from pipediag import vocabulary
from pipediag.vocabulary import (
    BY_ITSELF,
    CUT_SHORT,
    SEVERITY_ORDER,
    STATUS_ORDER,
    FindingSeverity,
    FindingStatus,
    OwnEnding,
    ScriptOutcome,
    StepClass,
)

PACKAGE = Path(vocabulary.__file__).parent


@pytest.mark.parametrize(
    ("order", "words"), [(STATUS_ORDER, FindingStatus), (SEVERITY_ORDER, FindingSeverity)]
)
def test_an_order_has_every_word_once(order: tuple[str, ...], words: object) -> None:
    assert sorted(order) == sorted(get_args(words))


def test_no_end_is_both_chosen_and_cut_short() -> None:
    assert not BY_ITSELF & CUT_SHORT
    assert set(get_args(ScriptOutcome)) - BY_ITSELF - CUT_SHORT == {"hung-in-exit"}


def test_lists_within_lists_are_flat() -> None:
    assert set(get_args(OwnEnding)) < set(get_args(ScriptOutcome))
    assert get_args(StepClass)[0] == "input_wait"
    assert all(isinstance(word, str) for word in get_args(StepClass))


def test_no_other_module_spells_a_list_again() -> None:
    ours = {
        frozenset(get_args(words))
        for name, words in vars(vocabulary).items()
        if name[0].isupper() and len(get_args(words)) > 2
    }
    spelled = {
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if path.name != "vocabulary.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"
        if _words(node.slice) in ours
    }
    assert not spelled


def test_it_imports_nothing_but_typing() -> None:
    tree = ast.parse(Path(vocabulary.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "typing"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))


def _words(listed: ast.expr) -> frozenset[object]:
    elements = listed.elts if isinstance(listed, ast.Tuple) else [listed]
    return frozenset(one.value for one in elements if isinstance(one, ast.Constant))
