"""Instruments with which loops are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipediag.capture.environment import Description
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.measuring.pace import Pace
from pipediag.capture.measuring.profiler import Profiler
from pipediag.capture.recorder import Recorder, StepJournal
from pipediag.capture.timeline.timeline import Timeline
from pipediag.session.messages import FromChild


@dataclass
class Instruments:
    """Shared by all loops of the run."""

    recorder: Recorder
    journal: StepJournal
    profiler: Profiler
    pace: Pace
    state: KeptState
    timeline: Timeline
    tell: Callable[[FromChild], None]
    running_pipelines: Callable[[], list[Any]] = list
    """What pipelines that run now live by, to be kept until the process is gone."""
    descriptions: Sequence[Description] = ()
    """What each framework says of itself."""
