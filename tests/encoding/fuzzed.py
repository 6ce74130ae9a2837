"""Sessions that Hypothesis spoils: a full one in which some places hold something else."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

from pipediag.session.model import Session
from pipediag.session.parsing import parse_json
from tests.encoding.poisoned import CLEAN, POISON, session_content

Place = tuple[str | int, ...]

_PIECES = (
    *(POISON[at : at + 40] for at in range(0, 320, 40)),
    "\n::error file=x,line=1::injected",
    "::stop-commands::x\n",
    "\n##[group]x",
    "\x1b[2J\x1b]8;;https://evil.example\x07",
    "\x9b31m",
    "]]>",
    "<!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>&y;",
    "</title></style></script><script>alert(1)</script>",
    '" onload="alert(1)',
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "${{ github.token }}",
    "](https://evil.example)![x](https://evil.example/x.png)",
    "| --- |\n\n# heading\n```",
    "@everyone #1 GH-1",
    "=HYPERLINK(1)",
    "\t+1",
    "../../../../tmp/escaped",
    "/etc/passwd",
    "\x00",
    "\ud800",
    "\udfff\ud800",
    "\U000e0041",
    "\u2028\u2029\u0085",
    "\u202e",
    "%0A%0D%25",
    "x" * 9_000,
    "é" * 300,
)
texts = st.lists(st.sampled_from(_PIECES) | st.text(max_size=20), max_size=5).map("".join)
numbers = (
    st.integers(-(2**64), 2**64)
    | st.integers(-(10**30), 10**30)
    | st.floats(width=64)
    | st.sampled_from([0, -1, 1e-320, 5e-324, 2.0**64, -(2.0**64), 10**400])
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def _places(value: Any, place: Place = ()) -> list[tuple[Place, Any]]:
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    own = [(place, value)] if place else []
    return own + [found for key, item in items for found in _places(item, (*place, key))]


_CONTENTS = [session_content(CLEAN, choice=choice) for choice in range(4)]
_PLACES = [_places(content) for content in _CONTENTS]


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    """Most are sessions still, whatever is in them: what is refused shows nothing of the forms."""
    which = draw(st.integers(0, len(_CONTENTS) - 1))
    only_sessions = draw(st.sampled_from((True, True, True, False)))
    content = copy.deepcopy(_CONTENTS[which])
    for at in draw(st.lists(st.integers(0, len(_PLACES[which]) - 1), min_size=1, max_size=12)):
        place, value = _PLACES[which][at]
        if place == ("schema_version",):
            continue
        before = copy.deepcopy(content)
        _put(content, place, draw(_like(value)))
        if only_sessions and not _is_session(content):
            content = before
    return content


def _is_session(content: dict[str, Any]) -> bool:
    try:
        Session.model_validate(parse_json(json.dumps(content).encode()))
    except ValueError:
        return False
    return True


def _like(value: Any) -> st.SearchStrategy[Any]:
    """Something of that kind; now and then of any."""
    match value:
        case bool() | None:
            same: st.SearchStrategy[Any] = st.booleans() | st.none()
        case str():
            same = texts
        case int() | float():
            same = numbers
        case list():
            same = st.integers(0, 40).map(lambda times: value * times)
        case _:
            same = st.just(value)
    return st.one_of(same, same, same, same, values)


def _put(content: Any, place: Place, value: Any) -> None:
    """Where an earlier one has left the place."""
    for key in place[:-1]:
        if (isinstance(content, dict) and key in content) or (
            isinstance(content, list) and isinstance(key, int) and key < len(content)
        ):
            content = content[key]
        else:
            return
    last = place[-1]
    if isinstance(content, dict):
        content[last] = value
    elif isinstance(content, list) and isinstance(last, int) and content:
        content[min(last, len(content) - 1)] = value
