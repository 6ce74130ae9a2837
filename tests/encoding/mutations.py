"""Sessions whose values make no sense: each differs from a full one in one place of a section."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any

from tests.encoding.poisoned import CLEAN, session_content

Place = tuple[str | int, ...]
"""Of a value in a session: keys and numbers of items, from outside in."""
Change = Callable[[Any, str | int], None]
"""Is given what holds the value, and its key there."""


def with_every_number(number: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each section, and the content in which all its numbers are that one."""
    content = session_content(CLEAN)
    for section, value in content.items():
        yield section, {**content, section: _numbers_replaced(value, number)}


def parts() -> list[Place]:
    """Every list and every object."""
    places = _places(session_content(CLEAN))
    return [place for place, value in places if isinstance(value, dict | list)]


def keys() -> list[Place]:
    """Every key."""
    places = _places(session_content(CLEAN))
    return [place for place, _ in places if isinstance(place[-1], str)]


def replaced_by(other: Any) -> Change:
    """Something else stands there."""

    def change(holder: Any, key: str | int) -> None:
        holder[key] = copy.deepcopy(other)

    return change


def removed(holder: Any, key: str | int) -> None:
    """Nothing stands there."""
    del holder[key]


def changed(places: Iterable[Place], change: Change) -> dict[str, Any]:
    """A full session in which all these are changed; none is within another."""
    content = session_content(CLEAN)
    for place in places:
        change(_parent(content, place), place[-1])
    return content


def one_of_each_section(places: Iterable[Place]) -> Iterator[list[Place]]:
    """All of them, in groups without two of the same section."""
    sections: dict[str | int, list[Place]] = {}
    for place in places:
        sections.setdefault(place[0], []).append(place)
    for group in zip_longest(*sections.values()):
        yield [place for place in group if place is not None]


def _numbers_replaced(value: Any, number: float) -> Any:
    match value:
        case bool():
            return value
        case int() | float():
            return number
        case list():
            return [_numbers_replaced(item, number) for item in value]
        case dict():
            return {key: _numbers_replaced(item, number) for key, item in value.items()}
    return value


def _places(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    if place:
        yield place, value
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(item, (*place, key))


def _parent(content: Any, place: Place) -> Any:
    for key in place[:-1]:
        content = content[key]
    return content
