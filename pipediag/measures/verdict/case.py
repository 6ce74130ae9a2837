"""All that a verdict rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipediag.session.host import Host
from pipediag.session.loops import Loop
from pipediag.session.pipeline import Pipeline
from pipediag.session.run import OtherProcesses, OtherUse, Script
from pipediag.session.steps import Ceiling, InputWait, Perturbation, Share, Steps
from pipediag.vocabulary import StepClass


@dataclass(frozen=True)
class Case:
    """Sections of the session, and two facts that it does not hold."""

    script: Script
    loops: list[Loop]
    steps: Steps | None = None
    steps_missing: str | None = None
    breakdown: Mapping[StepClass, Share] | None = None
    breakdown_missing: str | None = None
    input_wait: InputWait | None = None
    perturbation: Perturbation | None = None
    ceiling: Ceiling | None = None
    pipeline: Pipeline | None = None
    host: Host | None = None
    consumer_alone: bool = False
    """Whether the consumer was measured on a repeated batch."""
    tensorflow: str | None = None
    other_uses: list[OtherUse] = field(default_factory=list)
    other_processes: OtherProcesses | None = None

    @property
    def loop(self) -> Loop | None:
        return next((loop for loop in self.loops if loop.diagnosed), None)

    @property
    def averaged(self) -> bool:
        """Whether a timed sample is a mean over an interval: no clock sees steps inside a graph."""
        return self.loop is not None and self.loop.kind == "in_graph"
