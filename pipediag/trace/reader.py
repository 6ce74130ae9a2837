"""One XPlane file, or a TensorBoard log directory, as columns of events.

Times are nanoseconds since the start of the profile as the file gives them (int64). The file holds
picoseconds; both ends of an event are rounded down, which keeps nested events nested and disjoint
events disjoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from pipediag.errors import PipediagError
from pipediag.trace.schema import xspace_class

HOST_PLANE = "/host:CPU"
ACCELERATOR_PREFIX = "/device:GPU:"

StatValue = int | float | str | bytes


@dataclass(frozen=True)
class Line:
    """One thread of the host, or one stream of a device; events sorted by start, longest first."""

    id: int
    name: str
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    name_ids: NDArray[np.int64]
    """For each event, the key of its name in the plane's `names`."""
    messages: list[Any] = field(repr=False)
    plane: Plane = field(repr=False)

    def __len__(self) -> int:
        return len(self.messages)

    @cached_property
    def used_names(self) -> dict[int, str]:
        """Every name that occurs on this line, by its key."""
        return {int(key): self.plane.names[int(key)] for key in np.unique(self.name_ids)}

    def event_name(self, index: int) -> str:
        return self.plane.names[int(self.name_ids[index])]

    def stats(self, index: int) -> dict[str, StatValue]:
        """The event's statistics; those of its metadata where it has none of that name."""
        message = self.messages[index]
        return self.plane.metadata_stats(message.metadata_id) | self.plane.decode(message.stats)

    def stat(self, index: int, name: str) -> StatValue | None:
        """One statistic of the event itself, found without decoding the others."""
        keys = self.plane.stat_keys.get(name, ())
        for stat in self.messages[index].stats:
            if stat.metadata_id in keys:
                return self.plane.value(stat)
        return None

    def named(self, keep: Iterable[int]) -> NDArray[np.bool_]:
        """Which events have one of these name keys."""
        return np.isin(self.name_ids, np.fromiter(keep, np.int64))


@dataclass(frozen=True)
class Plane:
    """The host, or one device."""

    name: str
    names: dict[int, str] = field(repr=False)
    stat_names: dict[int, str] = field(repr=False)
    metadata: dict[int, Any] = field(repr=False)
    lines: list[Line] = field(default_factory=list, repr=False)

    @cached_property
    def stat_keys(self) -> dict[str, set[int]]:
        """The keys under which a statistic of that name is written."""
        keys: dict[str, set[int]] = {}
        for key, name in self.stat_names.items():
            keys.setdefault(name, set()).add(key)
        return keys

    def metadata_stats(self, key: int) -> dict[str, StatValue]:
        entry = self.metadata.get(key)
        return {} if entry is None else self.decode(entry.stats)

    def decode(self, stats: Iterable[Any]) -> dict[str, StatValue]:
        return {self.stat_names.get(stat.metadata_id, ""): self.value(stat) for stat in stats}

    def value(self, stat: Any) -> StatValue:
        """What a statistic says; references are resolved."""
        kind = stat.WhichOneof("value")
        if kind is None:
            return 0
        if kind == "ref_value":
            return self.stat_names.get(stat.ref_value, "")
        if kind == "str_value":
            return _text(stat.str_value)
        value: StatValue = getattr(stat, kind)
        return value


@dataclass(frozen=True)
class TraceEvents:
    """Everything one profile recorded."""

    path: Path
    planes: list[Plane]
    warnings: list[str]

    @property
    def host(self) -> Plane | None:
        return next((plane for plane in self.planes if plane.name == HOST_PLANE), None)

    @property
    def host_lines(self) -> list[Line]:
        return [] if self.host is None else self.host.lines

    @property
    def accelerators(self) -> list[Plane]:
        """The device planes on which anything ran; a visible GPU without events is left out."""
        return [
            plane
            for plane in self.planes
            if plane.name.startswith(ACCELERATOR_PREFIX) and any(map(len, plane.lines))
        ]

    def lines(self) -> Iterator[Line]:
        for plane in self.planes:
            yield from plane.lines


def read(path: Path) -> TraceEvents:
    """Reads an `.xplane.pb` file, or the newest profile of a TensorBoard log directory.

    Raises PipediagError where there is no profile, or the file is empty, cut short or not one.
    """
    file = find_profile(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise PipediagError(f"Cannot read the profile {file}: {error.strerror}.") from error
    if not data:
        raise PipediagError(f"The profile {file} is empty; record it again.")
    space = xspace_class()()
    try:
        space.ParseFromString(data)
    except DecodeError as error:
        raise PipediagError(
            f"{file} is not an XPlane profile or was cut short; record it again."
        ) from error
    if not space.planes:
        raise PipediagError(f"{file} holds no planes, so it is no XPlane profile.")
    planes = [_plane(message) for message in space.planes]
    said = [_text(text) for text in (*space.errors, *space.warnings)]
    return TraceEvents(path=file, planes=planes, warnings=said)


def find_profile(path: Path) -> Path:
    """The file itself, or the newest `plugins/profile/<run>/*.xplane.pb` under a directory."""
    if not path.exists():
        raise PipediagError(f"There is no profile at {path}.")
    if not path.is_dir():
        return path
    found = [*path.glob("*.xplane.pb"), *path.glob("**/plugins/profile/*/*.xplane.pb")]
    if not found:
        raise PipediagError(
            f"There is no profile in {path}: no *.xplane.pb there or in plugins/profile/<run>/."
        )
    return max(found, key=lambda file: (file.parent.name, file.stat().st_mtime_ns, file.name))


def _plane(message: Any) -> Plane:
    metadata = {entry.key: entry.value for entry in message.event_metadata}
    plane = Plane(
        name=_text(message.name),
        names={key: _text(value.name) for key, value in metadata.items()},
        stat_names={entry.key: _text(entry.value.name) for entry in message.stat_metadata},
        metadata=metadata,
    )
    plane.lines.extend(_line(line, plane) for line in message.lines)
    return plane


def _line(message: Any, plane: Plane) -> Line:
    events = list(message.events)
    count = len(events)
    offset_ps = np.fromiter((event.offset_ps for event in events), np.int64, count)
    duration_ps = np.fromiter((event.duration_ps for event in events), np.int64, count)
    name_ids = np.fromiter((event.metadata_id for event in events), np.int64, count)
    for key in np.unique(name_ids):
        plane.names.setdefault(int(key), "")
    start_ns = message.timestamp_ns + offset_ps // 1000
    end_ns = message.timestamp_ns + (offset_ps + np.maximum(duration_ps, 0)) // 1000
    order = np.lexsort((-duration_ps, offset_ps))
    return Line(
        id=message.id,
        name=_text(message.display_name) or _text(message.name),
        start_ns=start_ns[order],
        end_ns=end_ns[order],
        name_ids=name_ids[order],
        messages=[events[index] for index in order],
        plane=plane,
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")
