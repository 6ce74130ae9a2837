"""A Kineto trace as columns of events, laid out like an XPlane file: devices, streams, threads.

Kernels, copies and sets lie on their device's streams. The device's shadows of host annotations,
its waits for events and the profiler's own window are no activity and are left out. Times count
from the first event on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pipediag.trace.events import (
    ACCELERATOR_PREFIX,
    HOST_PLANE,
    SINCE_1970_NS,
    Plane,
    StatValue,
    TraceEvents,
)
from pipediag.trace.kineto.form import Arguments, Document, Event
from pipediag.trace.kineto.threads import Thread
from pipediag.trace.kineto.times import LARGEST_NS, start_and_end
from pipediag.trace.malformed import MalformedError, TooLargeError

DEVICE_ACTIVITY = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
"""Categories of what a device does, in lower case: older traces write them with a capital."""

MOST_COMMAS = 1 << 26
"""In the whole text; a trace of a gigabyte has fifty million. Each may cost 60 bytes of memory
before it turns out what it separates."""

MOST_THREADS = 1 << 16

_NO_ACTIVITY = frozenset({"gpu_user_annotation", "cuda_sync", "trace"})
_COMPLETE = "X"
_METADATA = "M"
_PEEKED_BYTES = 1024
_COUNTED_BYTES = 1 << 24

_Key = tuple[str, str]
"""A process and a thread; or a device and a stream. They may be numbers or text in the file."""


class _Gatherer:
    """Sorts events into planes and threads as they come."""

    def __init__(self) -> None:
        self._threads: dict[str, dict[_Key, Thread]] = {}
        self._names: dict[str, dict[str, int]] = {}
        self._categories: dict[str, int] = {}
        self._count = 0

    def add(self, event: Event) -> None:
        if event.ph == _COMPLETE:
            self._add_complete(event)
        elif event.ph == _METADATA:
            self._add_metadata(event)

    def planes(self, properties: Any) -> tuple[list[Plane], int]:
        """What was gathered, the host first, times from the earliest event on; and when that is."""
        filled = {
            plane: {key: thread for key, thread in threads.items() if len(thread)}
            for plane, threads in self._threads.items()
        }
        first_ns = min((t.first_ns for of in filled.values() for t in of.values()), default=0)
        kinds = list(self._categories)
        planes = []
        for name in sorted(filter(filled.get, filled), key=lambda name: (name != HOST_PLANE, name)):
            plane = Plane(name, list(self._names[name]), _device_stats(name, properties))
            for count, (key, thread) in enumerate(filled[name].items()):
                number, title = _identity(name, key, thread, count)
                plane.lines.append(thread.line(plane, number, title, first_ns, kinds))
            planes.append(plane)
        return planes, first_ns

    def _add_complete(self, event: Event) -> None:
        category = (event.cat or "").lower()
        if event.ts is None or not event.ts.is_finite() or category in _NO_ACTIVITY:
            return
        if category in DEVICE_ACTIVITY:
            plane, key = _place_on_device(event)
        else:
            plane, key = HOST_PLANE, (str(event.pid), str(event.tid))
        thread = self._thread(plane, key)
        names = self._names.setdefault(plane, {})
        thread.add(
            start_and_end(event.ts, event.dur),
            names.setdefault(event.name, len(names)),
            self._categories.setdefault(category, len(self._categories)),
            event.args,
        )

    def _add_metadata(self, event: Event) -> None:
        name = event.args.name if event.args else None
        if not isinstance(name, str):
            return
        if event.name == "thread_name":
            self._thread(HOST_PLANE, (str(event.pid), str(event.tid))).name = name
        elif event.name == "process_name" and name.startswith((HOST_PLANE, "/device:")):
            raise MalformedError(
                "it is the trace viewer's copy of a TensorFlow or JAX profile, which leaves events "
                "out; read the .xplane.pb file beside it"
            )

    def _thread(self, plane: str, key: _Key) -> Thread:
        threads = self._threads.setdefault(plane, {})
        if key not in threads:
            self._count += 1
            if self._count > MOST_THREADS:
                raise TooLargeError(f"it has more than {MOST_THREADS} threads")
            threads[key] = Thread()
        return threads[key]


def parse(data: memoryview, path: Path) -> TraceEvents:
    """The trace in `data`.

    Raises:
        MalformedError: it is none, or was cut short.
        TooLargeError: it has more parts than any trace has.
    """
    if _commas(data) > MOST_COMMAS:
        raise TooLargeError(f"its JSON has more than {MOST_COMMAS} parts")
    decoder = msgspec.json.Decoder(Event)
    gatherer = _Gatherer()
    strange = 0
    try:
        found = _document(data)
        for raw in found.traceEvents:
            try:
                gatherer.add(_event(decoder, raw))
            except msgspec.ValidationError:
                strange += 1
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedError(str(error)) from error
    planes, first_ns = gatherer.planes(found.deviceProperties)
    if not planes:
        raise MalformedError("it holds no events")
    warnings = [f"{strange} events are not as Kineto writes them and were left out."]
    return TraceEvents(
        path=path,
        planes=planes,
        warnings=warnings if strange else [],
        epoch_ns=_epoch_ns(found.baseTimeNanoseconds, first_ns),
    )


def _epoch_ns(base_ns: Any, first_ns: int) -> int | None:
    """The first event's time since 1970, where the file says it."""
    since = first_ns + (base_ns if isinstance(base_ns, int) else 0)
    return since if SINCE_1970_NS <= since < LARGEST_NS else None


def _commas(data: memoryview) -> int:
    comma = ord(",")
    pieces = range(0, len(data), _COUNTED_BYTES)
    text = np.frombuffer(data, np.uint8)
    return sum(int(np.count_nonzero(text[at : at + _COUNTED_BYTES] == comma)) for at in pieces)


def _document(data: memoryview) -> Document:
    if bytes(data[:_PEEKED_BYTES]).lstrip().startswith(b"["):
        return Document(msgspec.json.decode(data, type=list[msgspec.Raw]))
    document: Document = msgspec.json.decode(data, type=Document)
    return document


def _event(decoder: msgspec.json.Decoder[Event], raw: msgspec.Raw) -> Event:
    try:
        return decoder.decode(raw)
    except UnicodeDecodeError:
        # What is not UTF-8 costs a replacement character, not the event.
        return decoder.decode(bytes(raw).decode("utf-8", errors="replace"))


def _place_on_device(event: Event) -> tuple[str, _Key]:
    said = event.args or Arguments()
    device = said.device if isinstance(said.device, int | str) else event.pid
    stream = said.stream if isinstance(said.stream, int | str) else event.tid
    return f"{ACCELERATOR_PREFIX}{device}", (str(device), str(stream))


def _identity(plane: str, key: _Key, thread: Thread, count: int) -> tuple[int, str]:
    if plane == HOST_PLANE:
        return count, thread.name.strip() or f"thread {key[1]} of {key[0]}"
    stream = key[1].removeprefix("stream").strip()
    return int(stream) if stream.isdecimal() else count, f"Stream #{stream}"


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
