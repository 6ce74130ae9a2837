"""A Kineto trace as columns of events, laid out like an XPlane file: devices, streams, threads.

Kernels, copies and sets lie on their device's streams. The device's shadows of host annotations,
its waits for events and the profiler's own window are no activity and are left out. Times count
from the first event on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pipediag.trace import PYTHON_FRAME
from pipediag.trace.events import (
    ACCELERATOR_PREFIX,
    HOST_PLANE,
    LARGEST_NS,
    Line,
    Plane,
    Statistics,
    StatValue,
    TraceEvents,
)
from pipediag.trace.files import MalformedError

_DIGITS = 18
_DEVICE_ACTIVITY = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
"""Categories in lower case: older traces write them with a capital."""
_NO_ACTIVITY = frozenset({"gpu_user_annotation", "cuda_sync", "trace"})
_COMPLETE, _METADATA = "X", "M"
_Key = tuple[str, str]
"""A process and a thread; or a device and a stream. They may be numbers or text in the file."""
_Row = tuple[int, int, int, dict[str, StatValue]]
"""Start, end, the place of the name, and statistics of an event."""


# msgspec skips the parts of a trace that are not named here. Their values may have any type.
class Arguments(msgspec.Struct):
    name: Any = None
    device: Any = None
    stream: Any = None
    correlation: Any = None
    bytes: Any = None


class Event(msgspec.Struct):
    ph: str = ""
    name: str = ""
    cat: str | None = None
    ts: Decimal | None = None
    """Microseconds."""
    dur: Decimal | None = None
    pid: Any = None
    tid: Any = None
    args: Arguments | None = None


class Document(msgspec.Struct):
    traceEvents: list[msgspec.Raw]  # noqa: N815  as the format spells it
    deviceProperties: Any = None  # noqa: N815


_NO_ARGUMENTS = Arguments()


def nanoseconds(microseconds: Decimal) -> int:
    """Convert a time, rounding towards zero. Raises MalformedError if too large for a clock."""
    # Before it is multiplied out: "1e999999999" is a number too.
    within = microseconds.is_finite() and microseconds.adjusted() < _DIGITS
    found = int(microseconds * 1000) if within else LARGEST_NS
    if abs(found) >= LARGEST_NS:
        raise MalformedError(f"it claims a time of {microseconds:.3g} us")
    return found


@dataclass(frozen=True)
class _Arguments(Statistics):
    """Arguments of a line's events that are integers."""

    each: list[dict[str, StatValue]] = field(repr=False)

    def of(self, index: int) -> dict[str, StatValue]:
        return self.each[index]


def _line(rows: list[_Row], plane: Plane, number: int, name: str, first_ns: int) -> Line:
    """Return the events of a thread as a line of the plane, times from `first_ns` on."""
    rows = sorted(rows, key=lambda row: (row[0], -row[1]))
    times = np.array([row[:3] for row in rows], np.int64)
    return Line(
        id=number,
        name=name,
        start_ns=times[:, 0] - first_ns,
        end_ns=times[:, 1] - first_ns,
        name_ids=times[:, 2].astype(np.int32),
        statistics=_Arguments([row[3] for row in rows]),
        plane=plane,
    )


def _integers(arguments: Arguments) -> dict[str, StatValue]:
    values = {"correlation_id": arguments.correlation, "bytes": arguments.bytes}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_NS
    }


class _Gatherer:
    """Sorts events into planes and threads as they come."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[_Key, list[_Row]]] = {}
        self._names: dict[str, dict[str, int]] = {}
        self._threads: dict[_Key, str] = {}

    def planes(self, properties: Any) -> list[Plane]:
        """Return the planes, host first, with times from the earliest event on."""
        lines = [rows for threads in self._rows.values() for rows in threads.values()]
        first_ns = min((row[0] for rows in lines for row in rows), default=0)
        planes = []
        for name in sorted(self._rows, key=lambda name: (name != HOST_PLANE, name)):
            plane = Plane(name, list(self._names[name]), _device_stats(name, properties))
            for number, (key, rows) in enumerate(self._rows[name].items()):
                if name == HOST_PLANE:
                    title = self._threads.get(key, "").strip() or f"thread {key[1]} of {key[0]}"
                else:
                    title = f"Stream #{key[1].removeprefix('stream').strip()}"
                plane.lines.append(_line(rows, plane, number, title, first_ns))
            planes.append(plane)
        return planes

    def add_complete(self, event: Event) -> None:
        category = (event.cat or "").lower()
        if event.ts is None or not event.ts.is_finite() or category in _NO_ACTIVITY:
            return
        arguments = event.args or _NO_ARGUMENTS
        plane, key = HOST_PLANE, (str(event.pid), str(event.tid))
        if category in _DEVICE_ACTIVITY:
            device = arguments.device if isinstance(arguments.device, int | str) else event.pid
            stream = arguments.stream if isinstance(arguments.stream, int | str) else event.tid
            plane, key = f"{ACCELERATOR_PREFIX}{device}", (str(device), str(stream))
        start_ns = end_ns = nanoseconds(event.ts)
        # A negative duration counts as none.
        if event.dur is not None and event.dur.is_finite() and event.dur > 0:
            nanoseconds(event.dur)
            end_ns = nanoseconds(event.ts + event.dur)
        # Named as TensorFlow's, so that `torch/_compile.py(31): inner` is no compilation.
        said = f"{PYTHON_FRAME}{event.name}" if category == "python_function" else event.name
        names = self._names.setdefault(plane, {})
        name = names.setdefault(said, len(names))
        rows = self._rows.setdefault(plane, {}).setdefault(key, [])
        rows.append((start_ns, end_ns, name, _integers(arguments)))

    def add_metadata(self, event: Event) -> None:
        name = event.args.name if event.args else None
        if not isinstance(name, str):
            return
        if event.name == "thread_name":
            self._threads[str(event.pid), str(event.tid)] = name
        elif event.name == "process_name" and name.startswith((HOST_PLANE, "/device:")):
            raise MalformedError(
                "it is the trace viewer's copy of a TensorFlow or JAX profile, which leaves events "
                "out; read the .xplane.pb file next to it"
            )


def parse(data: memoryview, path: Path) -> TraceEvents:
    """Read the trace in `data`. Raises MalformedError where it is none, or was cut short."""
    decoder = msgspec.json.Decoder(Event)
    gatherer = _Gatherer()
    strange = 0
    try:
        found: Document = msgspec.json.decode(data, type=Document)
        for raw in found.traceEvents:
            try:
                event = decoder.decode(raw)
            except (msgspec.ValidationError, UnicodeDecodeError):
                strange += 1
                continue
            if event.ph == _COMPLETE:
                gatherer.add_complete(event)
            elif event.ph == _METADATA:
                gatherer.add_metadata(event)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedError(str(error)) from error
    planes = gatherer.planes(found.deviceProperties)
    if not planes:
        raise MalformedError("it holds no events")
    note = f"{strange} events do not have Kineto's form and were left out."
    return TraceEvents(path, "kineto", planes, [note] if strange else [])


def _device_stats(plane: str, properties: Any) -> dict[str, StatValue]:
    for entry in properties if isinstance(properties, list) else ():
        if isinstance(entry, dict) and plane == f"{ACCELERATOR_PREFIX}{entry.get('id')}":
            known = {
                "gpu_device_name": entry.get("name"),
                "compute_cap_major": entry.get("computeMajor"),
                "compute_cap_minor": entry.get("computeMinor"),
            }
            return {key: value for key, value in known.items() if isinstance(value, str | int)}
    return {}
