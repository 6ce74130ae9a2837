"""What a version of the schema promises, line by line, and which changes of it a version must tell.

`shape()` is the schema without its words for people: one line for each key, with what it may hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pipediag.session.model import Session

Shape = dict[str, str]
"""What may stand there, alternatives separated by ` | `, by place; words of closed lists are in
quotes. `[]` is an item, `{}` a value by key, `(keys)` the keys."""
Rise = Literal["major", "minor"]

REQUIRED = "required: "
_TOLD_APART = "{}.do"
"""The key by which a reader knows a record for one that it does not know, as it knows a word."""


def shape() -> Shape:
    """Of the present model, as a reader sees it."""
    schema = Session.model_json_schema(mode="validation")
    records = {**schema["$defs"], "Session": schema}
    return dict(
        line
        for record, definition in sorted(records.items())
        for key, value in definition["properties"].items()
        for line in _lines(f"{record}.{key}", value, key in definition.get("required", ()))
    )


def _lines(place: str, schema: Any, required: bool = False) -> Iterator[tuple[str, str]]:
    alternatives = schema.get("anyOf", [schema]) if isinstance(schema, dict) else [{}]
    names = [name for alternative in alternatives for name in _names(alternative)]
    yield place, (REQUIRED if required else "") + " | ".join(names)
    for alternative in alternatives:
        for within, part in _parts(alternative):
            yield from _lines(place + within, part)


def _names(schema: dict[str, Any]) -> list[str]:
    if "$ref" in schema:
        return [schema["$ref"].rpartition("/")[2]]
    words = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return [f'"{word}"' for word in words] or [schema.get("type", "anything")]


def _parts(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if "items" in schema:
        yield "[]", schema["items"]
    for number, item in enumerate(schema.get("prefixItems", ())):
        yield f"[{number}]", item
    if "propertyNames" in schema:
        yield "(keys)", schema["propertyNames"]
    if schema.get("type") == "object" and "additionalProperties" in schema:
        yield "{}", schema["additionalProperties"]


def rises(before: Shape, now: Shape) -> dict[str, Rise]:
    """What asks for a rise of the version, as sentences, and of which part of it."""
    records = {place.partition(".")[0] for place in before}
    found: dict[str, Rise] = {}
    for place, old in before.items():
        new = now.get(place)
        if new is None:
            found[f"{place} is gone."] = "major"
        elif gone := _alternatives(old) - _alternatives(new):
            found[f"{place} is no longer {', '.join(sorted(gone))}."] = "major"
        elif more := _alternatives(new) - _alternatives(old):
            words = all(name.startswith('"') or _TOLD_APART.format(name) in now for name in more)
            found[f"{place} may be {', '.join(sorted(more))}."] = "minor" if words else "major"
        elif new.startswith(REQUIRED) and not old.startswith(REQUIRED):
            found[f"{place} has become required."] = "minor"
    for place in now.keys() - before.keys():
        # A record that was not there before hangs on a key that may be missing.
        if now[place].startswith(REQUIRED) and place.partition(".")[0] in records:
            found[f"{place} is required and was not there."] = "minor"
    return found


def _alternatives(line: str) -> set[str]:
    return set(line.removeprefix(REQUIRED).split(" | "))


def to_text(lines: Shape) -> str:
    return "".join(f"{place}: {may_be}\n" for place, may_be in lines.items())


def from_text(text: str) -> Shape:
    return dict(line.split(": ", 1) for line in text.splitlines())
