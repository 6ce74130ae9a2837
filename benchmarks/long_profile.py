"""Makes a long profile from a short real one, by repeating its events one span after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipediag.trace.xplane.protobuf import message_class

_PLANES, _LINES = 0x0A, 0x1A
"""Tags of the fields `XSpace.planes` and `XPlane.lines`."""


def write_repeated(source: bytes, events: int, target: Path) -> int:
    """Write the profile in `source` over and over until it holds that many events; returns them.

    Step ids and the like repeat as well; names, statistics and the order on each line are those of
    the real profile. Parts of a message that follow each other on the wire are one message, so that
    no more than one line is held in memory.
    """
    space = message_class("XSpace").FromString(source)
    lines = [line for plane in space.planes for line in plane.lines]
    count = sum(len(line.events) for line in lines)
    times = -(-events // count)
    span_ps = max(map(_end_ps, lines)) - min(map(_start_ps, lines))
    with target.open("wb") as file:
        for plane in space.planes:
            originals = list(plane.lines)
            del plane.lines[:]
            parts = [plane.SerializeToString()]
            for line in originals:
                content = b"".join(_repetitions(line, times, span_ps))
                parts.append(_delimited(_LINES, content))
            file.write(_delimited(_PLANES, b"".join(parts)))
    return times * count


def _repetitions(line: Any, times: int, span_ps: int) -> Iterator[bytes]:
    yield line.SerializeToString()
    line = message_class("XLine")(events=line.events)
    for _ in range(times - 1):
        for event in line.events:
            event.offset_ps += span_ps
        yield line.SerializeToString()


def _delimited(tag: int, content: bytes) -> bytes:
    length, size = bytearray(), len(content)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([tag, *length, size]) + content


def _start_ps(line: Any) -> int:
    offsets = (event.offset_ps for event in line.events)
    return int(line.timestamp_ns * 1000 + min(offsets, default=0))


def _end_ps(line: Any) -> int:
    ends = (event.offset_ps + event.duration_ps for event in line.events)
    return int(line.timestamp_ns * 1000 + max(ends, default=0))
