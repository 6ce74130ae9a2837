"""What `pipediag trace` says of any profile: the devices, the steps, and what to do."""

from __future__ import annotations

from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.record import Record
from pipediag.vocabulary import StepBasis, TraceFormat

TRACE_SCHEMA_VERSION = "1"
"""A major alone: pipediag writes these reports and reads none, so it has no words to upgrade."""


class ClassShare(Record):
    ms: float
    """Mean per step."""
    percent: float


class TraceSteps(Record):
    """The steps of one host's profile."""

    count: int
    basis: StepBasis
    mean_ms: float
    median_ms: float
    p95_ms: float
    breakdown: dict[str, ClassShare]
    """By class of the step's time; percents add up to 100."""


class TraceHost(Record):
    """One file of the profile."""

    path: str
    host: str
    format: TraceFormat
    events: int
    span_ms: float
    steps: TraceSteps | None
    steps_missing: str | None = None
    starts_unix_ms: float | None = None
    """Where `start_ms` 0 of its devices lies since 1970, by the host's clock; None where the file
    does not say."""
    steps_late_ms: float | None = None
    """Of several hosts: the median over the steps that all recorded of how much later than the
    first one it began, by their own clocks."""
    warnings: list[str] = []
    """What the profiler itself noted."""


class UnreadFile(Record):
    path: str
    reason: str


class TraceReport(Record):
    schema_version: str
    pipediag_version: str
    created_at: str
    """ISO 8601, UTC."""
    path: str
    hosts: list[TraceHost]
    steps_late_missing: str | None = None
    """Of several hosts: why the starts of their steps cannot be compared."""
    unread: list[UnreadFile] = []
    """Files of the profile that could not be read."""
    devices: list[DeviceActivity]
    findings: list[Finding] = []
