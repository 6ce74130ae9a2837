"""What the child process writes down while the script runs: facts only, nothing computed.

Plain dataclasses, because they are made inside the user's process, where nothing may be imported
that the script would not have imported. Times are `time.monotonic_ns()`, which parent and child
share on one machine, so that the parent can lay its host samples over the child's windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipediag.session.predictions import Prediction
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recorded_model import ModelSnapshot
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.session.recorded_tables import RecordedVariable
from pipediag.session.recorded_windows import RecordedStacks, RecordedWindow
from pipediag.vocabulary import RecordedOutcome

RECORDING_FORMAT = 1


@dataclass
class RecordedDevice:
    name: str
    kind: str


@dataclass
class RecordedEnvironment:
    python: str
    executable: str
    tensorflow: str | None = None
    keras: str | None = None
    keras_backend: str | None = None
    jax: str | None = None
    numpy: str | None = None
    cuda_build: bool | None = None
    """Whether this TensorFlow was built with CUDA or ROCm; None when it was not imported."""
    devices: list[RecordedDevice] = field(default_factory=list)
    cuda_visible_devices: str | None = None
    logical_cpus_configured: bool = False
    run_functions_eagerly: bool = False
    tf_data_debug_mode: bool = False
    legacy_keras: bool = False
    mixed_precision: str | None = None
    framework_messages: list[str] = field(default_factory=list)
    """Lines that TensorFlow itself logged about missing GPU libraries."""


@dataclass
class RecordedOtherUse:
    """Something seen that is not a training loop, for the sentence that says what was seen."""

    what: str
    file: str | None
    line: int | None
    count: int


@dataclass
class RecordedProfilerConflict:
    """The script's own profiler: it keeps its right, ours waits or gives up."""

    what: str
    file: str | None
    line: int | None
    consequence: str


@dataclass
class Recording:
    format: int
    pid: int
    started_ns: int
    outcome: RecordedOutcome
    exit_status: int | None
    """The script's own exit status; None while it runs or when it was stopped."""
    ended_ns: int | None
    stop_reason: str | None
    error: str | None
    """Type and message of the exception that ended the script."""
    environment: RecordedEnvironment
    collection_ns: int | None = None
    """What collecting Python's garbage took when the script was to be stopped; None where it ends
    by itself, or keeps Python from collecting."""
    operations: list[RecordedOperation] = field(default_factory=list)
    loops: list[RecordedLoop] = field(default_factory=list)
    windows: list[RecordedWindow] = field(default_factory=list)
    snapshots: list[ModelSnapshot] = field(default_factory=list)
    stacks: list[RecordedStacks] = field(default_factory=list)
    variables: list[RecordedVariable] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    other_uses: list[RecordedOtherUse] = field(default_factory=list)
    profiler_conflicts: list[RecordedProfilerConflict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What went otherwise than planned, in sentences for the report."""

    def table(self, like: RecordedVariable) -> RecordedVariable:
        """What is recorded of that table; it is entered where it is new, and told anew until a
        step that uses it was read."""
        found = next((one for one in self.variables if one.is_of(like)), None)
        if found is None:
            self.variables.append(like)
            return like
        if found.use is None:
            found.tell_anew(like)
        return found

    def upstream(self, op_id: str | None) -> Iterator[RecordedOperation]:
        """The operation with that id and what it reads from, nearest first, along first inputs."""
        operations = {operation.id: operation for operation in self.operations}
        while op_id is not None and (operation := operations.get(op_id)) is not None:
            yield operation
            op_id = operation.parent_ids[0] if operation.parent_ids else None
