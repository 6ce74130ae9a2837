"""Sessions and profiles in which every field is filled, made from the models themselves.

A field that a model gains later is in them without a word here.
"""

from __future__ import annotations

import dataclasses
import types
import unicodedata
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from pipediag.session.model import Session

POISON = (
    "=cmd|' /C calc'!A0\x1b]0;title\x07\x9b31m\n::error::injected\r\n##[error]injected "
    "::warning::x \t</script><img src=x onerror=alert(1)>\u202egnp.exe\u2066`|<!-- @someone #12 "
    "https://evil.example www.evil.example [bold red][link=https://evil.example]x[/link] "
    "{{ 7 * 7 }} \u2028\u200b\U000e0041\ud800&lt;\x00 " + "x" * 5_000
)
CLEAN = "word"

ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class Filler:
    """Makes a value for any annotation of the records.

    Args:
        text: every text that is not of a closed vocabulary.
        choice: which word of a closed vocabulary; they are taken in turn.
        sections: whether records that may be missing are there.
    """

    def __init__(self, text: str, *, choice: int = 0, sections: bool = True) -> None:
        self._text = text
        self._choice = choice
        self._sections = sections

    def record(self, model: type[BaseModel]) -> dict[str, Any]:
        return {name: self.value(field.annotation) for name, field in model.model_fields.items()}

    def value(self, kind: Any) -> Any:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self.record(kind)
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            hints = get_type_hints(kind, include_extras=True)
            return {field.name: self.value(hints[field.name]) for field in dataclasses.fields(kind)}
        plain = {str: self._text, bool: True, int: 3, float: 2.5, types.NoneType: None}
        return plain[kind] if kind in plain else self._composed(kind)

    def _composed(self, kind: Any) -> Any:
        origin, parts = get_origin(kind), get_args(kind)
        makers: dict[Any, Callable[[], Any]] = {
            Annotated: lambda: self.value(parts[0]),
            Literal: lambda: parts[self._choice % len(parts)],
            Union: lambda: self._one_of(parts),
            types.UnionType: lambda: self._one_of(parts),
            list: lambda: [self.value(parts[0])],
            tuple: lambda: [self.value(part) for part in parts if part is not ...],
            dict: lambda: dict.fromkeys(self._keys(parts[0]), self.value(parts[1])),
        }
        return makers[origin]()

    def _keys(self, kind: Any) -> tuple[str, ...]:
        return get_args(kind) if get_origin(kind) is Literal else (self._text,)

    def _one_of(self, parts: tuple[Any, ...]) -> Any:
        """A text where one may stand: it is what can do harm."""
        if str in parts:
            return self._text
        part = parts[self._choice % len([part for part in parts if part is not types.NoneType])]
        is_section = isinstance(part, type) and issubclass(part, BaseModel)
        if is_section and types.NoneType in parts and not self._sections:
            return None
        return self.value(part)


def session_content(text: str, *, choice: int = 0, sections: bool = True) -> dict[str, Any]:
    """Return the content of a `session.json`."""
    content = Filler(text, choice=choice, sections=sections).record(Session)
    if not sections:
        content["breakdown"] = None
    return content


def acting(text: str) -> set[str]:
    """The characters of a text that are not seen but act; line ends are left out."""
    return {char for char in text if unicodedata.category(char) in ACTING} - {"\n"}


def commands(text: str) -> list[str]:
    """The lines that a CI runner would take for commands."""
    return [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]
