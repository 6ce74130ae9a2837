"""Work of each device in a profile: busy and idle time, why it was idle, copies and kernels."""

from __future__ import annotations

from pipediag.session.findings import Finding
from pipediag.session.record import Record
from pipediag.vocabulary import CopyDirection, GapCause, StepBasis, StepClass, TraceFormat


class DeviceGap(Record):
    """A time in which no stream of the device had any activity."""

    start_ms: float
    """Time from the first step's start, or the recording's where no steps were seen."""
    duration_ms: float
    cause: GapCause
    """The cause of most of it."""
    causes_ms: dict[GapCause, float] = {}
    """All of its time by cause."""
    op_id: str | None = None
    """Operation, for input: that of the pipeline that worked longest in the gap."""
    file: str | None = None
    line: int | None = None
    iterator: str | None = None
    """Iterator, for input: the same as TensorFlow's iterator, such as `Root::Prefetch::Map`."""
    doing: str | None = None
    """The event in which the thread that launched next spent most of the gap."""
    step: int | None = None
    """The step it began in, by the number that the profile gives it, else counted from 0."""


class DeviceCopies(Record):
    """All copies of one direction, and sets of memory."""

    direction: CopyDirection
    count: int
    ms: float
    """Time in which at least one of them ran."""
    exposed_ms: float
    """The part of it in which no kernel ran."""
    bytes: int | None
    """Size of all; None where the profile has no sizes."""
    gb_per_s: float | None


class DeviceKernel(Record):
    name: str
    count: int
    ms: float
    """Summed over its runs."""


class DeviceActivity(Record):
    """One device; span = busy + idle, idle = causes + noise."""

    name: str
    kind: str
    """`gpu`, or `cpu` where the executor's operations stand for a device."""
    host: str | None = None
    """Host of the device, in a profile of several hosts."""
    model: str | None = None
    span_ms: float
    busy_ms: float
    idle_ms: float
    busy_percent: float
    idle_percent: float
    longest_gap_ms: float
    noise_ms: float
    """Gaps under the floor, summed."""
    noise_count: int = 0
    gap_floor_us: float = 5.0
    causes_ms: dict[GapCause, float] = {}
    """Idle time by cause; with the noise it adds up to `idle_ms`."""
    gap_count: int = 0
    compute_ms: float | None = None
    """Time in which at least one kernel ran that is no collective."""
    exposed_copy_ms: float | None = None
    """Copies while no kernel ran."""
    collective_ms: float | None = None
    exposed_collective_ms: float | None = None
    """Collectives while no other kernel ran."""
    matmul_ms: float | None = None
    """Matrix products and convolutions whose names say if they use tensor cores, summed."""
    tensor_core_ms: float | None = None
    tf32_ms: float | None = None
    """The part of those on tensor cores that is in TensorFloat-32, not in 16 bits."""
    copies: list[DeviceCopies] = []
    kernels: list[DeviceKernel] = []
    """The ones that took most time."""
    kernel_count: int | None = None
    median_kernel_us: float | None = None
    median_delay_us: float | None = None
    """Delay from a launch's end to its first kernel's start; short if the queue is empty."""
    gaps: list[DeviceGap]
    """The longest, in order of time."""


class ClassShare(Record):
    ms: float
    """Mean per step."""
    percent: float


class TraceSteps(Record):
    count: int
    basis: StepBasis
    mean_ms: float
    median_ms: float
    p95_ms: float
    breakdown: dict[StepClass, ClassShare]
    """Shares by class of the step's time; percents add up to 100."""


class TraceHost(Record):
    """One file of the profile."""

    path: str
    host: str
    format: TraceFormat
    events: int
    span_ms: float
    steps: TraceSteps | None
    steps_missing: str | None = None
    warnings: list[str] = []
    """Notes of the profiler itself."""


class UnreadFile(Record):
    path: str
    reason: str


class TraceReport(Record):
    schema_version: str = "1"
    pipediag_version: str
    created_at: str
    """ISO 8601, UTC."""
    path: str
    hosts: list[TraceHost]
    unread: list[UnreadFile] = []
    devices: list[DeviceActivity]
    findings: list[Finding] = []
