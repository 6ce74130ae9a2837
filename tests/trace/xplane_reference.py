"""A profile as protobuf's own parser reads it, and the reader's columns in the same form."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipediag.trace.events import LARGEST_NS, Line, StatValue
from pipediag.trace.xplane import parse
from pipediag.trace.xplane.protobuf import message_classes

# NaN equals NaN here, and 0.0 is not -0.0.
Comparable = int | str | bytes | tuple[str, bytes]


class ReferenceLimitError(ValueError):
    """A time that protobuf parses and the reader refuses."""


@dataclass(frozen=True)
class ReferenceEvent:
    name: str
    start_ns: int
    end_ns: int
    stats: dict[str, Comparable]


@dataclass(frozen=True)
class ReferenceLine:
    id: int
    name: str
    events: list[ReferenceEvent]


def planes_by_protobuf(data: bytes) -> list[tuple[str, list[ReferenceLine]]]:
    """Names and lines of every plane. Raises DecodeError, ReferenceLimitError."""
    space = message_classes()["XSpace"].FromString(data)
    if any(abs(line.timestamp_ns) >= LARGEST_NS for plane in space.planes for line in plane.lines):
        raise ReferenceLimitError
    return [(_text(plane.name), _lines(plane)) for plane in space.planes]


def planes_by_reader(data: bytes) -> list[tuple[str, list[ReferenceLine]]]:
    """The same from the columns. Raises MalformedError."""
    events = parse(memoryview(data), Path("x.xplane.pb"))
    return [(plane.name, [_read_line(line) for line in plane.lines]) for plane in events.planes]


def assert_columns_agree(data: bytes) -> int:
    """A statistic as a column is what the events say one by one; returns the count of integers."""
    found = 0
    for line in parse(memoryview(data), Path("x.xplane.pb")).lines():
        each = [line.stats(index) for index in range(len(line))]
        # Statistics whose key the file does not name all share the empty name: nobody asks for it.
        for name in {name for stats in each for name in stats} - {""}:
            values, present = line.statistics.integers(name, np.arange(len(line)))
            whole = [stats.get(name) for stats in each]
            assert present.tolist() == [isinstance(value, int) for value in whole], name
            expected = [_wrapped(value) if isinstance(value, int) else 0 for value in whole]
            assert values.tolist() == expected, name
            texts, text_of = line.statistics.texts(name, np.arange(len(line)))
            spelt = [value if isinstance(value, str) else "" for value in whole]
            assert [texts[place] for place in text_of.tolist()] == spelt, name
            found += int(present.sum())
    return found


def _lines(plane: Any) -> list[ReferenceLine]:
    stat_names = {entry.key: _text(entry.value.name) for entry in plane.stat_metadata}
    metadata = {entry.key: entry.value for entry in plane.event_metadata}
    return [
        ReferenceLine(
            line.id,
            _text(line.display_name) or _text(line.name),
            [_event(line, event, metadata, stat_names) for event in _by_start(line.events)],
        )
        for line in plane.lines
    ]


def _by_start(events: Any) -> list[Any]:
    return sorted(events, key=lambda event: (event.offset_ps, -max(0, event.duration_ps)))


def _event(
    line: Any, event: Any, metadata: dict[int, Any], stat_names: dict[int, str]
) -> ReferenceEvent:
    known = metadata.get(event.metadata_id)
    end_ps = event.offset_ps + max(0, event.duration_ps)
    shared = () if known is None else known.stats
    return ReferenceEvent(
        name="" if known is None else _text(known.name),
        start_ns=line.timestamp_ns + event.offset_ps // 1000,
        end_ns=line.timestamp_ns + end_ps // 1000,
        stats={
            stat_names.get(stat.metadata_id, ""): _comparable(_value(stat, stat_names))
            for stat in (*shared, *event.stats)
        },
    )


def _value(stat: Any, stat_names: dict[int, str]) -> StatValue:
    kind = stat.WhichOneof("value")
    if kind is None:
        return 0
    if kind == "ref_value":
        return stat_names.get(stat.ref_value, "")
    value: StatValue = getattr(stat, kind)
    return _text(stat.str_value) if kind == "str_value" else value


def _read_line(line: Line) -> ReferenceLine:
    return ReferenceLine(
        line.id,
        line.name,
        [
            ReferenceEvent(
                line.event_name(index),
                int(line.start_ns[index]),
                int(line.end_ns[index]),
                {name: _comparable(value) for name, value in line.stats(index).items()},
            )
            for index in range(len(line))
        ],
    )


def _comparable(value: StatValue) -> Comparable:
    return ("double", struct.pack("<d", value)) if isinstance(value, float) else value


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def varint(value: int) -> bytes:
    """Seven bits a byte."""
    value %= 1 << 64
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F)
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def message(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)
