"""A timeline with a clock of its own, and a sampler that is only told to go on or to rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture import timeline as module
from pipediag.capture.timeline import Timeline
from pipediag.session.reading import read_timeline
from pipediag.session.timeline import SeenLine, SeenLines, Span

FEW_S = 10


class FakeSampler:
    """Remembers at which thread it looks."""

    def __init__(self, tell: Callable[[SeenLines], None]) -> None:
        self.tell = tell
        self.looks_at: int | None = None
        self.stopped = 0

    def go_on(self, thread: int) -> None:
        self.looks_at = thread

    def rest(self) -> None:
        self.looks_at = None

    def stop(self) -> None:
        self.looks_at = None
        self.stopped += 1

    def forget(self) -> None:
        self.looks_at = None


class TimelineStage:
    """What the script's thread does, moment by moment, and what was written of it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        monkeypatch.setattr(module, "LineSampler", FakeSampler)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: self.now))
        self.path = path / "capture" / "timeline.jsonl"
        self.path.parent.mkdir()
        self.notes: list[str] = []
        self.timeline = Timeline(self.path, self.notes.append)
        sampler: Any = self.timeline._sampler
        self.sampler: FakeSampler = sampler

    def at(self, now: int) -> Timeline:
        self.now = now
        return self.timeline

    @property
    def looks(self) -> bool:
        return self.sampler.looks_at is not None

    def sees(self, line: int) -> None:
        self.sampler.tell(
            SeenLines(self.now, self.now, (SeenLine("a.py", line, "<module>", False, 1),))
        )

    @property
    def spans(self) -> list[Span]:
        return read_timeline(self.path).spans

    @property
    def written(self) -> list[tuple[str, str, int, int | None]]:
        return [(span.kind, span.name, span.start_ns, span.end_ns) for span in self.spans]


def on_another_thread(does: Callable[[], Any]) -> Any:
    """What it returns there; the thread is gone afterwards."""
    returned: list[Any] = []
    thread = threading.Thread(target=lambda: returned.append(does()))
    thread.start()
    thread.join(FEW_S)
    (result,) = returned
    return result
