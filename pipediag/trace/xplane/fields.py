"""The outer fields of a message: where each begins and ends, without decoding what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipediag.trace.files import MalformedError, TooLargeError

LENGTH_DELIMITED = 2
MOST_FIELDS = 1 << 22
"""Of one message. Profiles of today have some ten thousand; it keeps a crafted file from filling
the memory with positions."""

Span = tuple[int, int]
"""Where something begins and ends in the file."""

_FIXED = {1: 8, 5: 4}
_GROUP, _GROUP_END = 3, 4
_DEEPEST_GROUP = 100
_LONGEST_VARINT = 10


@dataclass(frozen=True, slots=True)
class Field:
    """One field on the wire."""

    number: int
    wire_type: int
    start: int
    """Where its tag begins."""
    payload: int
    """Where its value begins."""
    end: int


def divided(
    data: memoryview, start: int, end: int, *numbers: int
) -> tuple[list[list[Field]], list[Span]]:
    """The message in `data[start:end]`: the messages in the fields of these numbers, and the rest.

    The rest comes as spans of neighbouring fields, in order.

    Raises:
        MalformedError: the bytes are no message.
        TooLargeError: it has more than `MOST_FIELDS`.
    """
    wanted: dict[int, list[Field]] = {number: [] for number in numbers}
    rest: list[Span] = []
    for count, part in enumerate(fields(data, start, end)):
        if count == MOST_FIELDS:
            raise TooLargeError(f"a message in it has more than {MOST_FIELDS} fields")
        if part.wire_type == LENGTH_DELIMITED and part.number in wanted:
            wanted[part.number].append(part)
        elif rest and rest[-1][1] == part.start:
            rest[-1] = rest[-1][0], part.end
        else:
            rest.append((part.start, part.end))
    return list(wanted.values()), rest


def fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """The fields of the message in `data[start:end]`, in order. Raises MalformedError."""
    while start < end:
        found = field_at(data, start, end)
        yield found
        start = found.end


def field_at(data: memoryview, start: int, end: int) -> Field:
    """The field whose tag is at `start`. Raises MalformedError."""
    tag, payload = varint_at(data, start, end)
    number, wire_type = tag >> 3, tag & 7
    if wire_type == LENGTH_DELIMITED:
        size, payload = varint_at(data, payload, end)
        after = payload + size
    elif wire_type == _GROUP:
        after = _group_end(data, payload, end, number)
    else:
        after = _scalar_end(data, payload, end, wire_type)
    if number == 0 or after > end:
        raise MalformedError(f"field {number} at byte {start} ends at {after} of {end}")
    return Field(number, wire_type, start, payload, after)


def varint_at(data: memoryview, start: int, end: int) -> tuple[int, int]:
    """The integer at `start`, and where the next byte lies. Raises MalformedError."""
    value = 0
    for place, byte in enumerate(data[start : min(end, start + _LONGEST_VARINT)]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, start + place + 1
    raise MalformedError(f"the integer at byte {start} does not end")


def _scalar_end(data: memoryview, payload: int, end: int, wire_type: int) -> int:
    if wire_type == 0:
        return varint_at(data, payload, end)[1]
    if wire_type in _FIXED:
        return payload + _FIXED[wire_type]
    raise MalformedError(f"wire type {wire_type} before byte {payload}")


def _group_end(data: memoryview, at: int, end: int, number: int) -> int:
    """Where a group ends. XPlane has none, but protobuf's parser skips one that it doesn't know."""
    open_groups = [number]
    while open_groups:
        tag, payload = varint_at(data, at, end)
        if tag & 7 == _GROUP_END:
            if tag >> 3 != open_groups.pop():
                raise MalformedError(f"a group ends at byte {at} that did not begin")
            at = payload
        elif tag & 7 == _GROUP:
            open_groups.append(tag >> 3)
            at = payload
        else:
            at = field_at(data, at, end).end
        if len(open_groups) > _DEEPEST_GROUP:
            raise MalformedError(f"groups at byte {at} lie deeper than {_DEEPEST_GROUP}")
    return at
