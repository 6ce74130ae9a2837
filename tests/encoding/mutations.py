"""Sessions whose values make no sense: each differs from a full one in one section."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.encoding.poisoned import CLEAN, session_content

Path = tuple[str | int, ...]


def with_every_number(number: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each section, and the content in which all its numbers are that one."""
    content = session_content(CLEAN)
    for section, value in content.items():
        yield section, {**content, section: _numbers_replaced(value, number)}


def with_each_part(other: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The path of each list and object, and the content in which it is something else."""
    content = session_content(CLEAN)
    for path, value in _places(content):
        if isinstance(value, dict | list):
            changed = copy.deepcopy(content)
            _parent(changed, path)[path[-1]] = other
            yield ".".join(map(str, path)), changed


def without_each_key() -> Iterator[tuple[str, dict[str, Any]]]:
    """The path of each key, and the content that lacks it."""
    content = session_content(CLEAN)
    for path, _ in _places(content):
        if isinstance(path[-1], str):
            changed = copy.deepcopy(content)
            del _parent(changed, path)[path[-1]]
            yield ".".join(map(str, path)), changed


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


def _places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(item, (*path, key))


def _parent(content: Any, path: Path) -> Any:
    for key in path[:-1]:
        content = content[key]
    return content
