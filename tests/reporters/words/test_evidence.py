from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipediag import rules
from pipediag.reporters.words.evidence import LABELS, evidence
from pipediag.reporters.words.quantities import NOTHING
from pipediag.rules.registry import run_rules
from pipediag.vocabulary import Scalar
from tests.factories import make_compute_bound_session, make_session
from tests.rules.devices import copies, gpu, launches

_NO_EVIDENCE = {"SetParameters", "Insert", "Replace", "SetOptions", "SetModel", "model_copy"}
_WORDS_OF_A_STATUS = {"not-applicable", "inconclusive", "error", "compute", "copy"}
_SETTINGS = {"on_disk", "drop_remainder", "max_queue_size", "ragged", "jit_compile"}
_SETTINGS |= {"sampled_softmax", "table_terms_left_out"}
CAUSES = ("input", "launch", "python", "sync")


def keys_in(node: ast.AST, inside: bool = False) -> Iterator[str]:
    """The string keys of all dictionaries made in functions, but for those that edits are made of.

    Evidence is put together of such, in the rules and in what they share.
    """
    if isinstance(node, ast.Call) and _name(node.func) in _NO_EVIDENCE:
        return
    inside = inside or isinstance(node, ast.FunctionDef)
    keys: list[ast.expr | None] = []
    if isinstance(node, ast.Dict):
        keys = node.keys
    elif isinstance(node, ast.Assign):
        keys = [each.slice for each in node.targets if isinstance(each, ast.Subscript)]
    for key in keys if inside else []:
        match key:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=parts):
                for cause in CAUSES:
                    yield "".join(
                        str(part.value) if isinstance(part, ast.Constant) else cause
                        for part in parts
                    )
    for child in ast.iter_child_nodes(node):
        yield from keys_in(child, inside)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_every_key_that_a_rule_can_emit_has_its_words() -> None:
    folder = Path(rules.__file__).parent
    emitted = {
        key
        for path in folder.rglob("*.py")
        for key in keys_in(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert {"input_wait_percent", "launch_idle_percent_of_span", "random_operation"} <= emitted
    assert emitted - _WORDS_OF_A_STATUS - _SETTINGS - LABELS.keys() == set()


def test_what_rules_do_emit_has_its_words() -> None:
    busy = gpu(
        {"launch": 20.0, "python": 10.0, "sync": 5.0},
        launches=launches(),
        copies=[copies()],
        matmul_ms=50.0,
        tensor_core_ms=0.0,
        collective_ms=1.0,
    )
    sessions = [
        make_session(),
        make_compute_bound_session(),
        make_session(devices=[busy, busy.model_copy(update={"name": "GPU:1"})]),
    ]
    emitted = {key for each in sessions for found in run_rules(each) for key in found.evidence}
    assert len(emitted) > 30
    assert emitted - LABELS.keys() == set()


def test_no_two_words_are_the_same_with_the_same_unit() -> None:
    seen = [shown for key, shown in LABELS.items() if key != "python_percent_of_step"]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize(
    ("key", "value", "words", "shown"),
    [
        ("delay_ms_per_step", 7.934, "the operation's delay", "7.93 ms per step"),
        ("input_wait_percent", 76.31, "waiting for input", "76.3 % of the step"),
        ("cache_bytes", 2**20, "size of the cache", "1 MiB"),
        ("retraces", 3, "traced again while measured", "3 times"),
        ("us_per_element", 41.2, "a call takes", "41.2 µs"),
        ("compressed", True, "files are compressed", "yes"),
        ("random_operation", "map_0", "draws random numbers", "map in line 12"),
        ("random_operation", "gone", "draws random numbers", "gone"),
        ("parallelism", None, "calls that may run at once", NOTHING),
        # Of a newer version.
        ("self_ms_per_step", 7.934, "self", "7.93 ms per step"),
        ("wait_percent", 76.31, "wait", "76.3 %"),
        ("op_kind", "map", "op kind", "map"),
        ("_ms", 3.0, " ms", "3"),
    ],
)
def test_words_and_units(key: str, value: Scalar, words: str, shown: str) -> None:
    name, text = evidence(make_session(), key, value)

    assert (name, text.replace("\xa0", " ")) == (words, shown)
