"""Sessions around one pipeline, and tables of cases: what the tests of rules start from.

The step is 10 ms, of which 7 ms are input wait, as in the factories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.rule import Profile, Rule
from pipediag.session.devices import DeviceActivity, DeviceCopies, DeviceGap
from pipediag.session.edits import Change
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import EmbeddingIds
from pipediag.vocabulary import FindingStatus, Framework, GapCause
from tests.factories import (
    make_compute_bound_session,
    make_device,
    make_keras,
    make_loop,
    make_session,
)
from tests.records import make_breakdown, make_operation, make_pipeline


def chain(*ops: Operation) -> list[Operation]:
    """The operations, each reading from the one before it; ids are kept."""
    linked = [ops[0]]
    for op in ops[1:]:
        linked.append(replace(op, parent_ids=[linked[-1].id]))
    return linked


def source(**overrides: Any) -> Operation:
    return make_operation(
        "source",
        "from_tensor_slices",
        line=1,
        **{"cardinality": 10_000, "elements": 32.0, **overrides},
    )


def batch(size: int = 32, **overrides: Any) -> Operation:
    return make_operation("batch", "batch", line=9, parameters={"batch_size": size}, **overrides)


def session_of(
    *ops: Operation, pipeline: dict[str, Any] | None = None, **overrides: Any
) -> Session:
    """An input-bound session whose pipeline is this chain."""
    values = {"ops": chain(*ops), "bottleneck_op_id": None, **(pipeline or {})}
    return make_session(**{"pipeline": make_pipeline(**values), "differential": None, **overrides})


def epochs(count: int | None) -> dict[str, list[Loop]]:
    """Overrides for a `fit` of so many epochs."""
    return {"loops": [make_loop(keras=make_keras(epochs=count))]}


def keeps_up() -> dict[str, Any]:
    """Overrides for a run whose input wait is 1 % of the step."""
    return {"breakdown": make_breakdown(input_wait=1.0, device_compute=90.0)}


def straddles() -> dict[str, Any]:
    """Overrides for a run whose input wait is 5 to 7 %, with 4.5 % in its interval."""
    breakdown = make_breakdown(input_wait=6.0, device_compute=90.0)
    share = breakdown["input_wait"].but(ci95_percent=(4.5, 7.5))
    return {"breakdown": {**breakdown, "input_wait": share}}


def waits() -> dict[str, Any]:
    """Overrides for a run that computes as long as it waits, so that input comes first."""
    return {"breakdown": make_breakdown(off=0.0, input_wait=50.0, device_compute=40.0)}


def make_ids(**overrides: Any) -> EmbeddingIds:
    values: dict[str, Any] = {
        "batches": 8,
        "first_batch": 41,
        "last_batch": 48,
        "lookups": 8_000,
        "unique_per_step": 400.0,
        "zero_percent": 10.0,
    }
    return EmbeddingIds(**{**values, **overrides})


def run(rule: Rule, session: Session) -> list[Finding]:
    """Return the rule's findings, or that it passes."""
    return rule.findings(session) or [rule.finding("pass")]


def only(rule: Rule, session: Session) -> Finding:
    """The rule's finding, where there must be exactly one."""
    (finding,) = run(rule, session)
    return finding


Decision = tuple[FindingStatus, tuple[Change, ...] | None]


def changes(finding: Finding) -> tuple[Change, ...] | None:
    """The changes of its edit."""
    return None if finding.edit is None else finding.edit.changes


def decided(rule: Rule, session: Session) -> Decision:
    """The status of the rule's one finding, and the changes of its edit."""
    finding = only(rule, session)
    return finding.status, changes(finding)


def decides(rule: Rule, table: Mapping[str, tuple[Session, object]]) -> Callable[..., None]:
    """A test that the rule decides so in each case: a status, or status and changes of the edit."""

    @pytest.mark.parametrize(("session", "expected"), list(table.values()), ids=list(table))
    def test(session: Session, expected: object) -> None:
        assert decided(rule, session) == (
            (expected, None) if isinstance(expected, str) else expected
        )

    return test


def tried(finding: Finding) -> tuple[FindingStatus, bool]:
    """The status, and whether there is an edit."""
    return finding.status, finding.edit is not None


def cases(table: Mapping[str, tuple[object, ...]], names: str) -> pytest.MarkDecorator:
    """The cases of a table as parameters, with their names as ids."""
    values = [case[0] if len(case) == 1 else case for case in table.values()]
    return pytest.mark.parametrize(names, values, ids=list(table))


def saved_s(finding: Finding) -> float | None:
    """Seconds that its advice takes off the run at most."""
    gain = finding.for_run
    return None if gain is None else gain.before_s - gain.after_s


SPAN_MS = 100.0
H200 = "NVIDIA H200, compute capability 9.0"


def gpu(causes_ms: dict[GapCause, float] | None = None, **overrides: Any) -> DeviceActivity:
    """A GPU that is idle for these causes and busy for the rest, with one gap for each cause."""
    causes = causes_ms or {}
    idle = sum(causes.values())
    values: dict[str, Any] = {
        "name": "GPU:0",
        "kind": "gpu",
        "model": H200,
        "span_ms": SPAN_MS,
        "busy_ms": SPAN_MS - idle,
        "idle_ms": idle,
        "busy_percent": SPAN_MS - idle,
        "idle_percent": idle,
        "longest_gap_ms": max(causes.values(), default=0.0),
        "noise_ms": 0.0,
        "causes_ms": causes,
        "gaps": [gap(cause, ms) for cause, ms in causes.items()],
    }
    return make_device(**{**values, **overrides})


def cpu(causes_ms: dict[GapCause, float]) -> DeviceActivity:
    return gpu(causes_ms, name="CPU", kind="cpu", model=None)


def gap(cause: GapCause, ms: float = 1.0, **overrides: Any) -> DeviceGap:
    values: dict[str, Any] = {
        "start_ms": 0.0,
        "duration_ms": ms,
        "cause": cause,
        "causes_ms": {cause: ms},
    }
    return DeviceGap(**{**values, **overrides})


def copies(**overrides: Any) -> DeviceCopies:
    """Ten copies from the host of 1 MB each."""
    values: dict[str, Any] = {
        "direction": "host_to_device",
        "count": 10,
        "ms": 10.0,
        "exposed_ms": 10.0,
        "bytes": 10_000_000,
        "gb_per_s": 1.0,
    }
    return DeviceCopies(**{**values, **overrides})


LAUNCHES: dict[str, Any] = {"kernel_count": 1000, "median_kernel_us": 20.0, "median_delay_us": 3.0}
"""Kernels of 20 us that find the queue empty."""


def session_on(*devices: DeviceActivity, **overrides: Any) -> Session:
    """A session whose input keeps up, with these devices in its profile."""
    return make_compute_bound_session(devices=list(devices), **overrides)


def on_devices(
    rule: Rule, *devices: DeviceActivity, framework: Framework = "tensorflow"
) -> Finding:
    """The rule's one finding on a profile without a session."""
    assert rule.check_devices is not None
    found = [*rule.check_devices(Profile(devices, framework))] or [rule.finding("pass")]
    (finding,) = found
    return finding
