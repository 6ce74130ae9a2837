"""Receivers of what hooks report, for the hooks of every framework."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.capture.guard import Guard
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.measuring.profiler import Profiler
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.recorder import Recorder
from pipediag.capture.timeline import Timeline
from pipediag.capture.trying.trials import Trials
from pipediag.capture.watching.conductor import Conductor
from pipediag.capture.watching.in_graph import InGraphLoops
from pipediag.capture.watching.updates import UpdateWatch


@dataclass(frozen=True)
class Watchers:
    """Receivers of what hooks report, and the guard through which they do."""

    guard: Guard
    recorder: Recorder
    conductor: Conductor
    """Receives iterators, and each batch that they hand over."""
    updates: UpdateWatch
    """Receives writes of trainable variables."""
    held: Trials
    """Receives steps that fail, and epochs that could be held."""
    in_graph: InGraphLoops
    """Receives loops that a function runs by itself."""
    plan: PlanRecorder
    """Receives calls that make a pipeline."""
    profiler: Profiler
    """Receives sessions of the script's own profiler."""
    state: KeptState
    """Receives reads and saves of what the script has trained."""
    timeline: Timeline
    """Receives calls that take long, and traces."""
    came_late: bool = False
    """True if the program had datasets, iterators and functions before we came."""
