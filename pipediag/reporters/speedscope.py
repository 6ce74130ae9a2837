"""Lines of Python that were seen running, as speedscope.app reads them.

The format is that of its `file-format-spec.ts`: frames once, then for each kind of thread a list of
stacks with weights. A session holds the innermost line of the user's code of each sample, with its
function, and no more of the stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipediag import __version__
from pipediag.encoding.json import dumped
from pipediag.reporters.words.labels import command_line
from pipediag.reporters.words.source_names import SourceNames
from pipediag.session.host import HotLine
from pipediag.session.model import Session

SPEEDSCOPE_FILE = "python.speedscope.json"
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_THREADS = {"main": "training loop", "source": "data source", "other": "other threads"}


def files(session: Session) -> Iterator[tuple[str, str]]:
    """The one file; of a session without stacks it has a profile without samples."""
    yield SPEEDSCOPE_FILE, dumped(_content(session))


def _content(session: Session) -> dict[str, Any]:
    lines = session.host.hot_python if session.host else []
    frames = _Frames(SourceNames(session))
    threads = list(dict.fromkeys(line.thread for line in lines))
    profiles = [
        _profile(_THREADS.get(one, one), [line for line in lines if line.thread == one], frames)
        for one in threads
    ]
    return {
        "$schema": _SCHEMA,
        "version": "0.0.1",
        "exporter": f"pipediag {__version__}",
        "name": command_line(session.script),
        "activeProfileIndex": 0,
        "shared": {"frames": frames.listed},
        "profiles": profiles or [_profile("no Python stacks were taken", [], frames)],
    }


class _Frames:
    """Functions and lines, each once."""

    def __init__(self, places: SourceNames) -> None:
        self.listed: list[dict[str, Any]] = []
        self._places = places
        self._known: dict[tuple[str, str, int | None], int] = {}

    def stack(self, line: HotLine) -> list[int]:
        """The function, and the line in it."""
        function = self._at(line.function, line.file, None)
        return [function, self._at(self._places.at(line.file, line.line), line.file, line.line)]

    def _at(self, name: str, file: str, line: int | None) -> int:
        key = name, file, line
        if key not in self._known:
            self._known[key] = len(self.listed)
            frame = {"name": name, "file": file}
            self.listed.append(frame if line is None else {**frame, "line": line})
        return self._known[key]


def _profile(name: str, lines: list[HotLine], frames: _Frames) -> dict[str, Any]:
    """Weights are percent of the samples in which the thread was looked at."""
    weights = [line.percent for line in lines]
    return {
        "type": "sampled",
        "name": f"{name}, percent of samples",
        "unit": "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [frames.stack(line) for line in lines],
        "weights": weights,
    }
