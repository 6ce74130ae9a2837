"""Profile files: which ones a path means, their bytes, and their events."""

from __future__ import annotations

import gzip
import io
import re
import stat
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import PipediagError

if TYPE_CHECKING:
    from pipediag.trace.events import TraceEvents

LARGEST_FILE_BYTES = 1 << 31
"""Protobuf's own limit for one message."""

LARGEST_UNPACKED_BYTES = 1 << 30
"""Traces of some minutes unpack to a few hundred megabytes; a bomb unpacks to anything."""

_SUFFIXES = re.compile(r"(\.xplane\.pb|\.pt\.trace\.json|\.json)?(\.gz)?$")
_PATTERNS = ("*.xplane.pb", "*.pt.trace.json", "*.pt.trace.json.gz")
# PyTorch's handler for TensorBoard writes one `<worker>.<time>.pt.trace.json` per window.
_WINDOW = re.compile(r"(?P<worker>.+)\.(?P<time>\d{10,})$")
_OF_ONE_RUN_S = 120.0
"""Own choice: workers write their windows together, eight of dlrm within 12 ms; but hosts differ in
their clocks and in how long a large window takes them."""
# TensorFlow's profiler names the directory of a run so.
_DATED = re.compile(r"\d{4}(_\d\d){5}")

_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
# An XPlane file begins with a line feed too, and a length that may be a brace.
_JSON = re.compile(rb'\s*\{\s*"')


class MalformedError(PipediagError):
    """The bytes are no profile of the kind, are damaged, or were cut short.

    Parsers say only what is wrong; `read_profile` makes it a sentence that names the file.
    """


def read(path: Path) -> TraceEvents:
    """Read a file, or the newest profile of a log directory. Raises PipediagError."""
    return read_profile(find_profiles(path)[0][-1])


def read_profile(file: Path) -> TraceEvents:
    """Read an XPlane file or a Kineto trace, packed by gzip or not. Raises PipediagError."""
    try:
        data = file_bytes(file)
        # Looking for profiles needs no parser, and each of them takes long to import.
        if _JSON.match(data):
            from pipediag.trace import kineto

            return kineto.parse(data, file)
        from pipediag.trace import xplane

        events = xplane.parse(data, file)
        if not events.planes:
            raise MalformedError("it holds no planes")
        # Other protobuf messages parse as well; the text of a graph then is a plane's name.
        if not (events.event_count or any(plane.name.startswith("/") for plane in events.planes)):
            raise MalformedError("it holds no plane of a host or a device")
        return events
    except MalformedError as error:
        raise PipediagError(
            f"{file} is not a profile that pipediag can read (XPlane or Kineto), or it was cut "
            f"short: {error}. Record it again."
        ) from error


def find_profiles(path: Path) -> tuple[list[Path], dict[Path, float]]:
    """Return the file itself, or the files of the newest run in a directory, one for each host; and
    files of other workers, perhaps of an older run, by how many seconds earlier they were written.

    A run is a directory that holds profiles, the path itself or any below it. PyTorch writes
    several windows of one worker, of which the newest is taken; and those of all runs into one
    directory. Raises PipediagError where there is none.
    """
    runs: dict[Path, set[Path]] = {}
    try:
        if not path.is_dir():
            if not path.exists():
                raise PipediagError(f"There is no profile at {path}.")
            return [path], {}
        for file in (file for pattern in _PATTERNS for file in path.rglob(pattern)):
            if file.is_file():
                runs.setdefault(file.parent, set()).add(file)
        changed = {run: max(file.stat().st_mtime_ns for file in runs[run]) for run in runs}
    except OSError as error:
        raise PipediagError(f"Cannot look for profiles at {path}: {error.strerror}.") from error
    if not runs:
        raise PipediagError(
            f"There is no profile in {path}: no {', '.join(_PATTERNS)} there or below it."
        )
    # A copy of a dated one keeps its name, and its files may not keep their time.
    dated = all(_DATED.fullmatch(run.name) for run in runs)
    newest = runs[max(runs, key=lambda run: (run.name if dated else "", changed[run], run.name))]
    windows = {host_of(file): file for file in sorted(newest, key=_worker_and_time)}
    found = sorted(windows.values())
    times = {file: _worker_and_time(file)[1] for file in found}
    earlier = {file: max(times.values()) - at for file, at in times.items() if at > 0}
    older = {file: by_s for file, by_s in earlier.items() if by_s > _OF_ONE_RUN_S}
    return [file for file in found if file not in older], older


def host_of(file: Path) -> str:
    """Return the host that wrote the profile: the file's name without its suffixes."""
    return _worker_and_time(file)[0]


def _worker_and_time(file: Path) -> tuple[str, float]:
    """Return the worker and the time in seconds, 0 where the name has none."""
    name = _SUFFIXES.sub("", file.name, count=1)
    window = _WINDOW.match(name)
    if window is None:
        return name, 0.0
    # Milliseconds, or nanoseconds of newer versions: seconds have ten digits until 2286.
    digits = window["time"]
    return window["worker"], int(digits) / 10.0 ** (len(digits) - 10)


def file_bytes(file: Path) -> memoryview:
    """Return the content, unpacked where gzip packed it.

    Raises PipediagError where the file cannot be read, is empty, too large or no regular file, and
    MalformedError where its gzip stream is damaged.
    """
    try:
        status = file.stat()
        # Opening a FIFO would wait for a writer.
        if not stat.S_ISREG(status.st_mode):
            raise PipediagError(
                f"The profile {file} is not a regular file; save its content to one first."
            )
        if status.st_size > LARGEST_FILE_BYTES:
            size = f"{status.st_size / 1e9:.1f} GB is more than a profile can hold"
            raise PipediagError(f"{file} is not read: {size}.")
        content = file.read_bytes()
    except OSError as error:
        raise PipediagError(f"Cannot read the profile {file}: {error.strerror}.") from error
    if not content:
        raise PipediagError(f"The profile {file} is empty; record it again.")
    data = _unpacked(content, file) if content.startswith(_GZIP) else content
    return memoryview(data).toreadonly()


def _unpacked(packed: bytes, file: Path) -> bytearray:
    content = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            while piece := stream.read(_PIECE_BYTES):
                content += piece
                if len(content) > LARGEST_UNPACKED_BYTES:
                    size = f"it unpacks to more than {LARGEST_UNPACKED_BYTES >> 20} MiB"
                    raise PipediagError(f"{file} is not read: {size}.")
    except EOFError as error:
        raise MalformedError("its gzip stream was cut short") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise MalformedError("its gzip stream is damaged") from error
    return content
