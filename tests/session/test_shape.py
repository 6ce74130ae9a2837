"""The schema changes only with its version, unless what it gains may be missing."""

from __future__ import annotations

import pytest

from pipediag.session.model import SCHEMA_VERSION
from tests.session.golden.files import shape_of
from tests.session.shape import Rise, Shape, from_text, rises, shape, to_text

HOW = (
    "Raise SCHEMA_VERSION in pipediag/session/model.py, add a step to session/upgrades.py if older "
    "sessions need one, then run `python -m tests.session.golden`."
)
OLD: Shape = {
    "Loop.id": "required: string",
    "Loop.role": 'required: "training" | "other"',
    "Loop.line": "integer | null",
    "Edit.changes[]": "Insert | Remove",
}


def test_nothing_asks_for_a_rise() -> None:
    assert shape_of().exists(), f"Version {SCHEMA_VERSION} has no shape yet. {HOW}"
    assert rises(from_text(shape_of().read_text(encoding="utf-8")), shape()) == {}, HOW


def test_the_shape_holds_every_key() -> None:
    assert shape_of().read_text(encoding="utf-8") == to_text(shape()), (
        "Keys that may be missing were added: run `python -m tests.session.golden`."
    )


@pytest.mark.parametrize(
    ("change", "rise"),
    [
        ({}, None),
        ({"Loop.file": "string | null"}, None),
        ({"Loop.time": "LoopTime | null", "LoopTime.total_s": "required: number"}, None),
        ({"Loop.role": '"training" | "other"'}, None),
        ({"Loop.role": 'required: "training" | "other" | "preview"'}, "minor"),
        ({"Loop.line": "required: integer | null"}, "minor"),
        ({"Edit.changes[]": "Insert | Remove | Skip", "Skip.do": 'required: "skip"'}, "minor"),
        ({"Edit.changes[]": "Insert | Remove | Skip", "Skip.id": "string"}, "major"),
        ({"Loop.file": "required: string"}, "minor"),
        ({"Loop.role": 'required: "training"'}, "major"),
        ({"Loop.id": "required: string | null"}, "major"),
        ({"Loop.id": "required: integer"}, "major"),
        ({"Loop.id": None}, "major"),
    ],
)
def test_what_asks_for_which_rise(change: dict[str, str | None], rise: Rise | None) -> None:
    changed = {place: line for place, line in {**OLD, **change}.items() if line is not None}

    found = rises(OLD, changed)

    assert list(found.values()) == ([rise] if rise else [])


def test_words_that_are_keys_are_in_it() -> None:
    assert '"unattributed"' in shape()["Session.breakdown(keys)"]
    assert shape()["SetParameters.do"] == '"set"'
