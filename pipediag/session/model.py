"""The session: the versioned record of one run, which reports, rules and gates are functions of.

A section that is missing is None, and the field `<name>_missing` beside it says why; only then is
that field there. A part of a section that is missing is None, and the section's own `missing` says
why. `input_wait` is there whenever a loop was measured, so `steps_missing` speaks for it. Field
names carry their units.
"""

from __future__ import annotations

from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding, Verdict
from pipediag.session.host import Host, HostSample
from pipediag.session.loops import Embedding, Loop
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.session.record import Record
from pipediag.session.run import Environment, OtherProcesses, OtherUse, ProfilerConflict, Script
from pipediag.session.steps import (
    Ceiling,
    Differential,
    InputWait,
    Perturbation,
    Share,
    StepRow,
    Steps,
    Window,
)
from pipediag.session.trials import Combined, PipelineAlone, TrialRun
from pipediag.vocabulary import StepClass

SCHEMA_VERSION = "1.1"
"""Major and minor. The major rises when a key goes, is renamed or means something else: readers of
an older one refuse the file. The minor rises when a list of words gains one, when a key becomes
required, or when sessions of the version before need a step in `session/upgrades.py`: readers of an
older one say what they do not know. A key that may be missing raises neither."""


class Session(Record):
    schema_version: str
    pipediag_version: str
    created_at: str
    """ISO 8601, UTC."""
    script: Script
    environment: Environment
    verdict: Verdict
    steps: Steps | None
    steps_missing: str | None = None
    breakdown: dict[StepClass, Share] | None
    breakdown_missing: str | None = None
    input_wait: InputWait | None = None
    perturbation: Perturbation | None
    perturbation_missing: str | None = None
    differential: Differential | None = None
    differential_missing: str | None = None
    ceiling: Ceiling | None
    ceiling_missing: str | None = None
    pipeline: Pipeline | None
    pipeline_missing: str | None = None
    devices: list[DeviceActivity] = []
    host: Host | None
    host_missing: str | None = None
    embeddings: list[Embedding] = []
    findings: list[Finding] = []
    """In the order in which to deal with them, which is decided once, when the run is concluded."""
    combined: Combined | None = None
    combined_missing: str | None = None
    pipeline_alone: PipelineAlone | None = None
    pipeline_alone_missing: str | None = None
    trials: TrialRun | None = None
    trials_missing: str | None = None
    loops: list[Loop] = []
    windows: list[Window] = []
    step_rows: list[StepRow] = []
    host_samples: list[HostSample] = []
    other_uses: list[OtherUse] = []
    other_processes: OtherProcesses | None = None
    profiler_conflicts: list[ProfilerConflict] = []
    notes: list[str] = []
    wall_s: float
    """From the start of the script to its end or stop."""

    def operation(self, op_id: str | None) -> Operation | None:
        """The pipeline operation with that id, or None."""
        if self.pipeline is None:
            return None
        return next((op for op in self.pipeline.ops if op.id == op_id), None)

    def diagnosed_loop(self) -> Loop | None:
        """The loop that the verdict speaks of, or None."""
        return next((loop for loop in self.loops if loop.diagnosed), None)
