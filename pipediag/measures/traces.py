"""The profile that belongs to a loop, summarised, or the reason why there is none."""

from __future__ import annotations

from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.measures.perturbation import profile_missing
from pipediag.session.recording import RecordedLoop, RecordedWindow, Recording
from pipediag.trace.summary import TraceSummary, summarise

_PROFILES = "plugins/profile"


def trace_of(recording: Recording, loop: RecordedLoop) -> tuple[TraceSummary | None, str | None]:
    """The summary of the loop's last profile, or None and why; a damaged profile is no error."""
    profiled = [window for window in recording.windows if window.trace_directory is not None]
    of_loop = [window for window in profiled if window.loop_id == loop.id]
    if not of_loop:
        return None, profile_missing(recording, loop)
    path = _profile_path(profiled, of_loop[-1])
    if path is None:
        return None, "Which of the profiles is that of this loop can't be told."
    try:
        return summarise(path), None
    except PipediagError as error:
        return None, str(error)


def _profile_path(profiled: list[RecordedWindow], window: RecordedWindow) -> Path | None:
    """The window's directory, or where several windows share it, the run written in its turn."""
    directory = Path(window.trace_directory or "")
    sharing = [other for other in profiled if other.trace_directory == window.trace_directory]
    if len(sharing) == 1:
        return directory
    runs = sorted(path for path in (directory / _PROFILES).glob("*") if path.is_dir())
    if len(runs) != len(sharing):
        return None
    return runs[sharing.index(window)]
