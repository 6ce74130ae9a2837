"""Any profile as columns of events, whatever kind of file it lies in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.trace.events import TraceEvents
from pipediag.trace.file_bytes import Release, file_bytes
from pipediag.trace.malformed import MalformedError, TooLargeError
from pipediag.trace.profile_files import find_profiles
from pipediag.trace.xplane import file as xplane
from pipediag.vocabulary import TraceFormat

# An XPlane file begins with a line feed too, and a length that may be a brace.
_JSON = re.compile(rb'\s*(\{\s*"|\[\s*\{)')
_PLANE_PREFIX = "/"


@dataclass(frozen=True)
class Profile:
    """One file's events, and what kind of file it is."""

    format: TraceFormat
    events: TraceEvents


def read(path: Path) -> TraceEvents:
    """Reads one profile: a file, or the newest of a TensorBoard log directory.

    Raises:
        PipediagError: there is no profile, or the file is empty, cut short, damaged, too large or
            of another kind.
    """
    return read_file(find_profiles(path)[-1])


def read_file(file: Path) -> TraceEvents:
    """The events of one file; `read_profile` says what files, and what is raised."""
    return read_profile(file).events


def read_profile(file: Path) -> Profile:
    """Reads an XPlane file or a Kineto trace, either of them packed by gzip or not.

    Raises PipediagError like `read`.
    """
    try:
        return _parse(*file_bytes(file), file)
    except TooLargeError as error:
        raise PipediagError(f"{file} is not read: {error}.") from error
    except MalformedError as error:
        raise PipediagError(
            f"{file} is not a profile that pipediag reads (XPlane or Kineto), or it was cut short: "
            f"{error}. Record it again."
        ) from error


def _parse(data: memoryview, release: Release, file: Path) -> Profile:
    if _JSON.match(data):
        # The fewest files are Kineto's, and the parser of JSON takes long to import.
        from pipediag.trace.kineto import document

        return Profile("kineto", document.parse(data, file))
    events = xplane.parse(data, file, release)
    if not events.planes:
        raise MalformedError("it holds no planes")
    # Other messages of protobuf parse too: what is text in a graph is a plane's name here.
    if not events.event_count and not any(p.name.startswith(_PLANE_PREFIX) for p in events.planes):
        raise MalformedError("it holds no plane of a host or a device")
    return Profile("xplane", events)
