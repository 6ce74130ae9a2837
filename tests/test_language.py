"""Language of the code: docstrings begin with their subject, and invented words are not used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pipediag

SOURCES = sorted(Path(pipediag.__file__).parent.rglob("*.py"))
NO_SUBJECT = re.compile(
    r"(As|How|Of|The same|These|Those|What|Whatever|Where|Whether|Which|Who)\b(?! is\b)"
)
INVENTED = re.compile(
    r"\b(by turns|held against|looks \(|makings|reckon\w*|seams?|told apart|ways? out)\b"
    r"|\b(is|are|was|were) told\b(?! (to|that)\b)",
    re.IGNORECASE,
)


def _docstrings(path: Path) -> Iterator[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield text


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_docstrings_begin_with_their_subject(path: Path) -> None:
    assert [text for text in _docstrings(path) if NO_SUBJECT.match(text)] == []


def test_words_that_nobody_else_uses_are_not_used() -> None:
    found = {path.name: INVENTED.findall(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {name: words for name, words in found.items() if words} == {}
