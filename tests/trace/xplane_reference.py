"""Any bytes that protobuf takes for a profile, and what its own parser says of them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pipediag.trace.events import Line, StatValue
from pipediag.trace.xplane import LARGEST_NS, parse
from pipediag.trace.xplane.protobuf import message_class

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
    space = message_class("XSpace").FromString(data)
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


# Profiles as writers put them, and as they may, but don't.

_EDGES = (0, 1, 127, 128, 16_383, 16_384, 2**21, 2**31, 2**32, 2**56 - 1, 2**56, 2**63, 2**64 - 1)


def varint(value: int, padding: int = 0) -> bytes:
    """Seven bits a byte; padding makes it longer than it need be."""
    value %= 1 << 64
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F)
    groups += [0] * min(padding, 10 - len(groups))
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def message(number: int, payload: bytes, padding: int = 0) -> bytes:
    """A length takes five bytes at most: the parser refuses more."""
    return varint(number << 3 | 2) + varint(len(payload), min(padding, 2)) + payload


def integer(number: int, value: int, padding: int = 0) -> bytes:
    return varint(number << 3) + varint(value, padding)


numbers = st.one_of(st.integers(0, 300), st.sampled_from(_EDGES), st.integers(-(2**63), 2**64 - 1))
keys = st.one_of(st.integers(0, 6), st.sampled_from((-1, 200, 2**21, 2**40)))
paddings = st.sampled_from((0, 0, 0, 0, 1, 9))
line_times = st.one_of(st.integers(0, 10**6), st.integers(-(2**61), 2**61))
texts = st.one_of(st.binary(max_size=8), st.sampled_from((b"\x22" * 40, b"x" * 130, b"y" * 17_000)))


def integers_of(number: int, values: SearchStrategy[int] = numbers) -> SearchStrategy[bytes]:
    return st.builds(integer, st.just(number), values, paddings)


unknown = st.sampled_from(
    (
        varint(15 << 3) + varint(7),
        varint(15 << 3 | 1) + b"\x22" * 8,
        message(15, b"\x08\x01"),
        varint(15 << 3 | 5) + b"\x08\x01\x10\x01",
        # A field that is known, by its number, in another type.
        varint(2 << 3 | 5) + b"abcd",
        varint(4 << 3) + varint(3),
    )
)


def several(*parts: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
    """The parts in order, each there or not."""
    maybe = [st.one_of(part, part, st.just(b"")) for part in parts]
    return st.tuples(*maybe).map(b"".join)


def disordered(*parts: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
    """Any of the parts, in any order, any number of times."""
    return st.lists(st.one_of(*parts, unknown), max_size=6).map(b"".join)


_doubles = st.binary(min_size=8, max_size=8).map(lambda raw: varint(2 << 3 | 1) + raw)
_values = st.one_of(
    integers_of(3),
    integers_of(4),
    integers_of(7, keys),
    _doubles,
    st.builds(message, st.sampled_from((5, 6)), texts, paddings),
)
_stat_bodies = st.one_of(
    st.tuples(integers_of(1, keys), _values).map(b"".join),
    disordered(integers_of(1, keys), _values),
)
stats = _stat_bodies.map(lambda body: message(4, body))
_event_bodies = st.one_of(
    several(integers_of(1, keys), integers_of(2), integers_of(3), stats, stats),
    several(integers_of(1, keys), integers_of(5), integers_of(3)),
    disordered(integers_of(1, keys), integers_of(2), integers_of(3), integers_of(5), stats),
)
events = st.builds(message, st.just(4), _event_bodies, paddings)
_one_or_many = st.one_of(
    st.lists(events, max_size=4).map(b"".join),
    st.tuples(events, st.integers(1, 30)).map(lambda run: run[0] * run[1]),
)
_overlong_tag = _event_bodies.map(lambda body: b"\xa2\x00" + varint(len(body)) + body)
_line_bodies = st.one_of(
    several(integers_of(1), texts.map(lambda raw: message(2, raw)), integers_of(3, line_times),
            _one_or_many),
    disordered(integers_of(1), integers_of(3, line_times), _one_or_many, _overlong_tag),
)  # fmt: skip
lines = _line_bodies.map(lambda body: message(3, body))
_shared_stats = _stat_bodies.map(lambda body: message(5, body))
_event_metadata = st.tuples(keys, texts, st.one_of(st.just(b""), _shared_stats)).map(
    lambda entry: message(4, integer(1, entry[0]) + message(2, message(2, entry[1]) + entry[2]))
)
_stat_names = st.tuples(keys, st.sampled_from((b"id", b"bytes", b"\xff", b"long name"))).map(
    lambda entry: message(5, integer(1, entry[0]) + message(2, message(2, entry[1])))
)
_planes = st.tuples(
    st.lists(lines, max_size=3), st.lists(_event_metadata, max_size=3),
    st.lists(_stat_names, max_size=4), st.one_of(st.just(b""), unknown),
).map(lambda parts: message(1, b"".join((*parts[2], *parts[1], parts[3], *parts[0]))))  # fmt: skip
profiles = st.lists(st.one_of(_planes, _planes, unknown), min_size=1, max_size=2).map(b"".join)
