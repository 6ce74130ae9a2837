"""Each medium has one way out, so that nothing written later can forget its encoder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pipediag

ROOT = Path(pipediag.__file__).parent
CHILD = ("capture", "child", "doctor/framework.py")
"""They run in the user's process, or are a program in a text."""

ONLY_IN = {
    ("click", "echo"): {"cli/common.py"},
    ("csv", "writer"): {"encoding/csv.py"},
    ("csv", "DictWriter"): set[str](),
    ("ET", "tostring"): {"encoding/xml.py"},
    ("console", "print"): {
        "reporters/terminal/summary.py",
        "reporters/terminal/trace.py",
    },
}
"""Calls, and the modules that may make them; the reporters print an `Encoded`."""


def calls(source: str) -> set[tuple[str, str]]:
    return {
        (getattr(node.func.value, "id", ""), node.func.attr)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }


def modules() -> dict[str, set[tuple[str, str]]]:
    files = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
    return {
        name: calls((ROOT / name).read_text(encoding="utf-8"))
        for name in files
        if not name.startswith(CHILD)
    }


@pytest.mark.parametrize("call", ONLY_IN, ids=".".join)
def test_only_these_modules_call(call: tuple[str, str]) -> None:
    assert {name for name, made in modules().items() if call in made} == ONLY_IN[call]


def test_only_one_place_makes_json_of_records() -> None:
    callers = {
        name
        for name, made in modules().items()
        if any(attribute == "model_dump_json" for _, attribute in made)
    }
    assert callers == {"session/record.py"}


def test_only_one_place_prints_plainly() -> None:
    printing = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    }
    assert printing == set()
