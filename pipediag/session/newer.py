"""Reading what a newer minor version wrote: what is not known is replaced or left out, and said.

A minor version adds keys and words to closed lists. An unknown word is read as the one that claims
least (`READ_AS`), else what holds it is left out: the nearest that may be missing, or an item of a
list. Numbers under an unknown key of a closed list go to the word that is read instead, so that
parts still add up. This follows the records' annotations, so every list of words is in it.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from pipediag.encoding.terminal import one_line
from pipediag.session.model import Session
from pipediag.vocabulary import GapCause

READ_AS: Mapping[str, str] = {
    "Script.call": "analyze",
    "Script.outcome": "exited",
    "Session.breakdown": "unattributed",
    "Verdict.bottleneck": "inconclusive",
    "Verdict.severity": "unknown",
    "Verdict.confidence": "low",
    "InputWait.method": "none",
    "Finding.status": "inconclusive",
    "Finding.severity": "error",
    "Finding.subject": "quality",
    "Finding.effect_on_results": "not known",
    "Edit.check": "equal",
    "Trial.state": "inconclusive",
    "Trial.consumer": "pipeline alone",
    "Trial.basis": "pipeline",
    "Combined.basis": "pipeline",
    "TrialRun.consumer": "pipeline alone",
    "Loop.kind": "eager",
    "Loop.role": "other",
    "LoopTime.basis": "projected",
    "DeviceCopies.direction": "unknown",
}
"""The word that claims least, by record and key: a gate waves nothing through for it, and an
estimate is not taken for a measurement."""

SHOWN_AS_WRITTEN: Mapping[str, frozenset[str]] = {
    "DeviceGap.cause": frozenset(get_args(GapCause)),
    "DeviceActivity.causes_ms": frozenset(get_args(GapCause)),
}
"""Words that readers show whatever they are: they stay, and are said."""

_CHANGE = "do"
"""The key by which the changes of an edit are told apart."""
_MOST_SAID = 8
_LONGEST_WORD = 40
"""Characters; a place is three times as long at most."""


def read_newer(content: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The content in words of this version, and what was not known, as the end of a sentence."""
    reading = _Reading()
    return reading.record(Session, content, ""), reading.told()


class _UnknownWordError(Exception):
    """No word stands for it: what holds it has to go."""

    def __init__(self, place: str, word: str) -> None:
        super().__init__(place)
        self.place = place
        self.word = word


@dataclasses.dataclass(frozen=True)
class _Key:
    kind: Any
    """None where nothing in it can be unknown."""
    has_default: bool
    name: str
    """As in the tables: `Loop.role`."""


class _Reading:
    """One pass over a session; remembers what was not known, each thing once."""

    def __init__(self) -> None:
        self._unknown: dict[str, None] = {}

    def told(self) -> str | None:
        """What was not known, the first of it in full."""
        unknown = list(self._unknown)
        if len(unknown) > _MOST_SAID:
            unknown[_MOST_SAID:] = [f"and {len(unknown) - _MOST_SAID} more"]
        return "; ".join(unknown) or None

    def record(self, kind: type, content: dict[str, Any], place: str) -> dict[str, Any]:
        keys = _keys(kind)
        for name in sorted(content.keys() - keys.keys()):
            self._unknown[f"the key {_quoted(_below(place, name))}"] = None
        result = {name: value for name, value in content.items() if name in keys}
        for name in content:
            key = keys.get(name)
            if key is not None and (key.kind is not None or key.name in SHOWN_AS_WRITTEN):
                self._put(result, name, key, _below(place, name))
        return {name: value for name, value in result.items() if name in keys}

    def _put(self, record: dict[str, Any], name: str, key: _Key, place: str) -> None:
        """Read the key's value; where that fails, it is what it is where there is none."""
        self._say_as_written(key, record[name], place)
        try:
            record[name] = self._value(key.kind, record[name], place, READ_AS.get(key.name))
        except _UnknownWordError as unknown:
            if not key.has_default and not _may_be_none(key.kind):
                raise
            self._say(unknown.place, unknown.word, "left out")
            if _may_be_none(key.kind):
                record[name] = None
            else:
                del record[name]
            record[f"{name}_missing"] = (
                f"A newer pipediag wrote it: {_quoted(unknown.place)} is {_quoted(unknown.word)}."
            )

    def _say_as_written(self, key: _Key, value: Any, place: str) -> None:
        known = SHOWN_AS_WRITTEN.get(key.name)
        if known is None:
            return
        for word in value if isinstance(value, dict) else [value]:
            if isinstance(word, str) and word not in known:
                self._say(place, word, "shown as it is called there")

    def _value(self, kind: Any, value: Any, place: str, fallback: str | None) -> Any:
        parts = get_args(kind)
        match get_origin(kind), value:
            case None, dict() if _is_record(kind):
                return self.record(kind, value, place)
            case origin, str() if origin is Literal:
                return self._word(parts, value, place, fallback)
            case origin, list() if origin in (list, tuple):
                return self._items(kind, value, f"{place}[]")
            case origin, dict() if origin is dict:
                return self._mapping(parts, value, place, fallback)
            case origin, value if origin in (Union, types.UnionType) and value is not None:
                return self._value(_member(parts, value, place), value, place, fallback)
        return value

    def _word(self, known: tuple[Any, ...], word: str, place: str, fallback: str | None) -> str:
        if word in known:
            return word
        if fallback is None:
            raise _UnknownWordError(place, word)
        self._say(place, word, f"read as {_quoted(fallback)}")
        return fallback

    def _items(self, kind: Any, values: list[Any], place: str) -> list[Any]:
        """A list without what cannot be read; a tuple belongs together: it is read whole or not."""
        read = []
        for value in values:
            try:
                read.append(self._value(get_args(kind)[0], value, place, None))
            except _UnknownWordError as unknown:
                if get_origin(kind) is tuple:
                    raise
                self._say(unknown.place, unknown.word, "left out")
        return read

    def _mapping(
        self, parts: tuple[Any, ...], values: dict[str, Any], place: str, fallback: str | None
    ) -> dict[str, Any]:
        words = get_args(parts[0]) if get_origin(parts[0]) is Literal else None
        result: dict[str, Any] = {}
        for key, value in values.items():
            known = key if words is None else self._word(words, key, place, fallback)
            read = self._value(parts[1], value, f"{place}.{known}", None)
            result[known] = _sum(result[known], read) if known in result else read
        return result

    def _say(self, place: str, word: str, what_became_of_it: str) -> None:
        self._unknown[f"{_quoted(place)} is {_quoted(word)}, {what_became_of_it}"] = None


@cache
def _keys(record: type) -> dict[str, _Key]:
    """The record's keys."""
    hints = get_type_hints(record)
    if not dataclasses.is_dataclass(record):
        assert issubclass(record, BaseModel)
        default = {name: not field.is_required() for name, field in record.model_fields.items()}
    else:
        default = {
            field.name: field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
            for field in dataclasses.fields(record)
        }
    return {
        name: _Key(
            hints[name] if _has_words(hints[name]) else None, given, f"{record.__name__}.{name}"
        )
        for name, given in default.items()
    }


def _has_words(kind: Any) -> bool:
    """Whether a list of words or a record, which may have an unknown key, is in it."""
    return get_origin(kind) is Literal or _is_record(kind) or any(map(_has_words, get_args(kind)))


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (
        issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind)
    )


def _may_be_none(kind: Any) -> bool:
    return types.NoneType in get_args(kind)


def _member(parts: tuple[Any, ...], value: Any, place: str) -> Any:
    """The one of a union that the value is: of several, the one that does the same."""
    members = [part for part in parts if part is not types.NoneType]
    if len(members) == 1 or not isinstance(value, dict):
        return members[0]
    done = value.get(_CHANGE)
    for member in members:
        if done in get_args(get_type_hints(member)[_CHANGE]):
            return member
    raise _UnknownWordError(_below(place, _CHANGE), str(done))


def _sum(first: Any, second: Any) -> Any:
    """Numbers added to numbers, within lists and objects alike."""
    match first, second:
        case dict(), dict():
            return {key: _sum(first[key], second[key]) for key in first.keys() & second.keys()}
        case list(), list():
            return [_sum(one, other) for one, other in zip(first, second, strict=False)]
        case int() | float(), int() | float():
            return first + second
    return first


def _below(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _quoted(text: str) -> str:
    return f'"{one_line(text, 3 * _LONGEST_WORD)}"'
