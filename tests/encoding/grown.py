"""Sessions with much of something: of each list, of each table with free keys, or of each text."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pipediag.session.model import SCHEMA_VERSION, Session
from tests.encoding.poisoned import CLEAN, Filler

Grown = Literal["lists 1", "lists 2", "lists 3", "tables", "texts", "unknown keys", "wrong items"]
"""Lists by how many lists they are in, themselves included."""


def grown_content(what: Grown, times: int, *, alike: bool) -> dict[str, Any]:
    """A session in which that is there so often; texts are all alike, or no two of them."""
    content = _Large(what, times, alike=alike).record(Session)
    if what == "unknown keys":
        content |= {f"key{at}": [at] for at in range(times)}
    content["schema_version"] = SCHEMA_VERSION
    if what == "wrong items":
        content["notes"] = list(range(times))
    return content


class _Large(Filler):
    def __init__(self, what: Grown, times: int, *, alike: bool) -> None:
        super().__init__(CLEAN)
        self._what = what
        self._times = times
        self._alike = alike
        self._made = 0
        self._depth = 0

    def value(self, kind: Any) -> Any:
        if kind is str:
            return self._new_text()
        if get_origin(kind) is list:
            return self._list(get_args(kind)[0])
        return super().value(kind)

    def _new_text(self) -> str:
        self._made += 1
        text = CLEAN if self._alike else f"{CLEAN}{self._made}"
        return text * self._times if self._what == "texts" else text

    def _one_of(self, parts: tuple[Any, ...]) -> Any:
        return self._new_text() if str in parts else super()._one_of(parts)

    def _list(self, item: Any) -> list[Any]:
        self._depth += 1
        count = self._times if self._what == f"lists {self._depth}" else 1
        made = [self.value(item) for _ in range(count)]
        self._depth -= 1
        return made

    def _keys(self, kind: Any) -> tuple[str, ...]:
        if get_origin(kind) is Literal or self._what != "tables":
            return super()._keys(kind)
        return tuple(f"{CLEAN}{at}" for at in range(self._times))
