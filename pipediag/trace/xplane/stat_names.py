"""A plane's names of statistics, and its texts that statistics refer to."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pipediag.trace.events import StatValue
from pipediag.trace.xplane.messages import text


class StatNames:
    """Names by the keys that statistics give."""

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names
        self._keys: dict[str, list[int]] = {}
        for key, name in names.items():
            self._keys.setdefault(name, []).append(key)

    def keys(self, name: str) -> Collection[int]:
        """The keys under which a statistic of that name is written."""
        return self._keys.get(name, ())

    def text(self, reference: int) -> str:
        """The text that statistics refer to by that number."""
        return self._names.get(reference, "")

    def decode(self, stats: Iterable[Any]) -> dict[str, StatValue]:
        """Parsed XStat messages by name; the last of a name counts."""
        return {self._names.get(stat.metadata_id, ""): self._value(stat) for stat in stats}

    def _value(self, stat: Any) -> StatValue:
        kind = stat.WhichOneof("value")
        if kind is None:
            return 0
        if kind == "ref_value":
            return self.text(stat.ref_value)
        if kind == "str_value":
            return text(stat.str_value)
        value: StatValue = getattr(stat, kind)
        return value
