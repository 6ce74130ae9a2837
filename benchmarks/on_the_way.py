"""Projections of runs that were not stopped, made from what was known when their loop was measured.

Two runs differ by more than a projection does, where the machine changes its speed from one to the
next. So what a run that goes on to its end had on disk when its loop had been measured is
projected, and compared with the rest of the same run.

A `fit` that a loop of the script calls again and again is not stopped then: if it soon ends, the
script continues for a while, as another training may follow, and is stopped in a later round. So it
is projected from there, with what is on disk of the whole run as far as it was known by then.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pipediag.measures.run.ledger import measure_run
from pipediag.session.ledger import Run
from pipediag.session.messages import RECORDING_FILE, TIMELINE_FILE, ChildResult, RunSettings
from pipediag.session.reading import read_recording, read_timeline
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.timeline import Timeline

_LOOK_EVERY_S = 0.005
_LAST_WINDOW = "profile"
"""The last one that is measured in each run."""
_CONTINUES_NS = int(RunSettings.look_ahead_s * 1e9)
"""Time for which a script continues after a loop that ends soon was measured."""


@dataclass(frozen=True)
class OnTheWay:
    """A run at the moment at which it would have been stopped."""

    run: Run
    at_ns: int
    rounds: int
    """How often the script comes to that loop, by its source."""


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
    """Return the projection; None if nothing was measured, or the script was over before."""
    paths = sorted(folder.glob(f"*-{RECORDING_FILE}"))
    for path in paths:
        recording = read_recording(path)
        if recording is None:
            continue
        measured = [one for one in recording.windows if one.kind == _LAST_WINDOW]
        if not measured:
            continue
        loop = next(one for one in recording.loops if one.id == measured[0].loop_id)
        timeline, at_ns = read_timeline(folder / TIMELINE_FILE), measured[0].end_ns
        rounds = loop.planned_rounds or 1
        if rounds == 1 or not _ends_soon(loop):
            return _projected(recording, timeline, at_ns, rounds)
        whole, stop_ns = (
            read_recording(paths[-1]),
            first_step_after(timeline, at_ns + _CONTINUES_NS),
        )
        if whole is None or stop_ns is None:
            return None
        return _projected(known_by(whole, stop_ns), timeline, stop_ns, rounds)
    return None


def _ends_soon(loop: RecordedLoop) -> bool:
    """Return whether what follows the measured `fit` is awaited as well."""
    if loop.kind != "keras" or loop.planned_steps is None or not loop.steps:
        return False
    left = max(0, loop.planned_steps - loop.steps)
    return left * loop.elapsed_ns / loop.steps <= _CONTINUES_NS


def first_step_after(timeline: Timeline, at_ns: int) -> int | None:
    """Return when a step begins at or after that moment; None if none does.

    Within steps that is at once, unless the one that runs builds its function.
    """
    building = [one for one in timeline.spans if one.kind == "first_call"]
    begins: list[int] = []
    for steps in (one for one in timeline.spans if one.kind == "steps"):
        begin = steps.start_ns
        if begin < at_ns:
            ends = [one.end_ns for one in building if one.start_ns < at_ns]
            begin = max([at_ns, *(end for end in ends if end is not None)])
        if steps.end_ns is None or begin < steps.end_ns:
            begins.append(begin)
    return min(begins, default=None)


def known_by(recording: Recording, at_ns: int) -> Recording:
    """Return the recording as it was at that moment, but for the number of steps of its loops."""
    loops = [
        replace(
            one,
            last_ns=None if one.last_ns is None else min(one.last_ns, at_ns),
            epoch_boundaries=[
                boundary for boundary in one.epoch_boundaries if boundary.asked_ns <= at_ns
            ],
        )
        for one in recording.loops
        if one.started_ns <= at_ns
    ]
    windows = [one for one in recording.windows if one.end_ns <= at_ns]
    return replace(recording, loops=loops, windows=windows)


def until(timeline: Timeline, at_ns: int) -> Timeline:
    """Return the timeline as it was at that moment."""
    return Timeline(
        [
            replace(one, end_ns=None) if one.end_ns is not None and one.end_ns > at_ns else one
            for one in timeline.spans
            if one.start_ns <= at_ns
        ],
        [one for one in timeline.seen if one.end_ns <= at_ns],
    )


def _projected(
    recording: Recording, timeline: Timeline, at_ns: int, rounds: int
) -> OnTheWay | None:
    bounds = ChildResult("stopped", None, None, recording.started_ns, at_ns)
    run = measure_run(until(timeline, at_ns), recording, bounds)
    return OnTheWay(run, at_ns, rounds) if isinstance(run, Run) else None


def _look(output: Path, folder: Path, over: threading.Event) -> None:
    # Each save replaces the file; a further name keeps what was saved before.
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
