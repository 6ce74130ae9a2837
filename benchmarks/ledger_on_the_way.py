"""What would have been projected of a run that was let go on, had it been stopped when measured.

Two runs differ by more than a projection does, where the machine changes its speed from one to the
next. So a run that goes on to its end is carried on from what was on disk when its loop had been
measured, and held against the rest of the same run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.ledger_stamps import Stamps
from pipediag.measures.run.ledger import RunBounds, measure_run
from pipediag.session.ledger import Run
from pipediag.session.reading import read_recording, read_timeline
from pipediag.session.recording import Recording
from pipediag.session.settings import RECORDING_FILE, TIMELINE_FILE
from pipediag.session.timeline import Timeline

_LOOK_EVERY_S = 0.005
_LAST_WINDOW = "profile"
"""Of those that are measured in each run."""


@dataclass(frozen=True)
class OnTheWay:
    """A run at the moment at which its first loop had been measured."""

    run: Run
    at_ns: int
    rounds: int
    """How often the script comes to that loop, by its source."""

    def trainings(self, stamps: Stamps) -> int:
        """Of how many trainings it speaks, as the script's own clock counts them."""
        if self.rounds > 1:
            return len(stamps.legs)
        over_s = stamps.began_s
        for number, leg in enumerate(stamps.legs, start=1):
            over_s += sum(leg.values())
            if over_s > self.at_ns / 1e9:
                return number
        return len(stamps.legs)


@contextmanager
def kept_on_the_way(output: Path, folder: Path) -> Iterator[None]:
    """Keep every recording that an analysis into `output` saves meanwhile, and its timeline."""
    folder.mkdir(parents=True, exist_ok=True)
    over = threading.Event()
    looking = threading.Thread(target=_look, args=(output, folder, over))
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


def read_on_the_way(folder: Path) -> OnTheWay | None:
    """None where no loop was measured, or no step of it."""
    for path in sorted(folder.glob(f"*-{RECORDING_FILE}")):
        recording = read_recording(path)
        if recording is None:
            continue
        ends = [one.end_ns for one in recording.windows if one.kind == _LAST_WINDOW]
        if ends:
            return _carried_on(recording, read_timeline(folder / TIMELINE_FILE), ends[0])
    return None


def until(timeline: Timeline, at_ns: int) -> Timeline:
    """As it was at that moment."""
    return Timeline(
        [
            replace(one, end_ns=None) if one.end_ns is not None and one.end_ns > at_ns else one
            for one in timeline.spans
            if one.start_ns <= at_ns
        ],
        [one for one in timeline.seen if one.end_ns <= at_ns],
    )


def _carried_on(recording: Recording, timeline: Timeline, at_ns: int) -> OnTheWay | None:
    measured = {one.loop_id for one in recording.windows if one.kind == _LAST_WINDOW}
    rounds = [one.planned_rounds or 1 for one in recording.loops if one.id in measured]
    bounds = RunBounds(recording.started_ns, at_ns, "stopped")
    run = measure_run(until(timeline, at_ns), recording, bounds)
    return OnTheWay(run, at_ns, max(rounds, default=1)) if isinstance(run, Run) else None


def _look(output: Path, folder: Path, over: threading.Event) -> None:
    """Each save replaces the file, so that a further name holds what was saved before."""
    seen: set[int] = set()
    while not over.wait(_LOOK_EVERY_S):
        for saved in output.glob(f".*/{RECORDING_FILE}"):
            with suppress(OSError):
                inode = saved.stat().st_ino
                if inode in seen:
                    continue
                seen.add(inode)
                os.link(saved, folder / f"{len(seen):04}-{RECORDING_FILE}")
                os.link(saved.with_name(TIMELINE_FILE), folder / TIMELINE_FILE)
