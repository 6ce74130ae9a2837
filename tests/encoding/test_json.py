from __future__ import annotations

import json

from pipediag.encoding.json import dumped, harmless
from tests.encoding.poisoned import POISON, acting, commands


def test_the_value_is_the_same() -> None:
    text = json.dumps({POISON: [POISON]}, ensure_ascii=False)

    encoded = harmless(text)
    assert json.loads(encoded) == {POISON: [POISON]}
    assert not acting(encoded)
    assert commands(encoded) == []


def test_a_document_holds_texts_as_they_were() -> None:
    value = {"a": ["\x1b[2J", "##[error]x", "\ud800", "café"], "b": 1.5, "c": None}
    assert json.loads(dumped(value)) == value
    assert "\x1b" not in dumped(value)
    assert "##[" not in dumped(value)
    assert "café" in dumped(value)
    assert dumped(value).endswith("}\n")
